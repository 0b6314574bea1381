/* SPDX-License-Identifier: BSD-3-Clause */
/* weights - those of a weighted average, as scales. */
#ifndef GS_COLLECTIVES_WEIGHTS_H
#define GS_COLLECTIVES_WEIGHTS_H

#include "gradsync.h"

/*
 * Turns the weights of all ranks into scales relative to the largest, which cannot overflow, and
 * gives their sum, 0 if all are. GS_ERR_ARG, on all ranks alike, if one is negative or not
 * finite.
 */
gs_status_t gsi_weights_scale (const gs_comm_t *comm, const char *caller, double *weights,
                               double *sum);

/* Warns that the average is 0 because all weights are: rank 0, once for a communicator. */
void gsi_weights_warn (gs_comm_t *comm, const char *caller);

#endif /* GS_COLLECTIVES_WEIGHTS_H */
