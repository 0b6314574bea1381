/* SPDX-License-Identifier: BSD-3-Clause */
/* errand - calls of other libraries that may wait for ever, each made by a thread of its own. */
#ifndef GS_BASE_ERRAND_H
#define GS_BASE_ERRAND_H

#include <stdbool.h>
#include <stdint.h>

#include "gradsync.h"

struct gsi_errand;

/* Begins a call of [work] with [argument], which must live until it has returned. GS_ERR_NOMEM
 * where there is no thread for it, with a text that begins with [what]. */
gs_status_t gsi_errand_begin (const char *what, int (*work) (void *), void *argument,
                              struct gsi_errand **out);

/* Whether it has returned by [deadline_ns], and what in [*rc]; may be asked again if not. */
bool gsi_errand_wait (struct gsi_errand *e, int64_t deadline_ns, int *rc);

/* The caller is done with it; a call that has not returned is left to its thread. */
void gsi_errand_drop (struct gsi_errand *e);

#endif /* GS_BASE_ERRAND_H */
