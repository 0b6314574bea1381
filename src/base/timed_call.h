/* SPDX-License-Identifier: BSD-3-Clause */
/* timed_call - calls of other libraries that may wait for ever, each made by a thread of its own.
 */
#ifndef GS_BASE_TIMED_CALL_H
#define GS_BASE_TIMED_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "gradsync.h"

struct gsi_timed_call;

/*
 * Has a thread call [work] with [argument], which must live until it has returned, and waits
 * until [deadline_ns]; [*rc] is what it gave. [*e] is NULL, or a call that had not returned
 * before: then waits on for that one. GS_ERR_TIMEOUT, without a text, leaves it in [*e];
 * GS_ERR_NOMEM, with a text that begins with [what], where there is no thread for it.
 */
gs_status_t gsi_timed_call_run (struct gsi_timed_call **e, const char *what, int (*work) (void *),
                                void *argument, int64_t deadline_ns, int *rc);

/* Leaves a call that has not returned to its thread. */
void gsi_timed_call_leave (struct gsi_timed_call *e);

#endif /* GS_BASE_TIMED_CALL_H */
