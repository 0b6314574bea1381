/* SPDX-License-Identifier: BSD-3-Clause */
/* describe - calls in words, for errors and comparisons. */
#ifndef GS_CALL_DESCRIBE_H
#define GS_CALL_DESCRIBE_H

#include "core/comm.h"

#define GSI_DESCRIBE_TEXT 384 /* bytes of a call that is described */

/* "bucket, GS_F32, count 5, bucket 0, in step 3 of reducer 'x', bucket 1 of 2, a to b" */
void gsi_describe_told (const gs_comm_t *comm, const struct gsi_told *c, char *text, size_t room);

/* Whether ranks that make these calls at a time disagree. */
bool gsi_told_differs (const struct gsi_told *a, const struct gsi_told *b);

/* "bucket #57 (step 9 of reducer 'x', bucket 3 of 7, conv1_w to conv2_w) of " */
void gsi_describe_call (const gs_comm_t *comm, const struct gsi_call *call, char *text,
                        size_t room);

#endif /* GS_CALL_DESCRIBE_H */
