/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * step_exchange - what ranks tell each other at the end of a step, in one exchange: scalars, what
 * they found, and the order in which gradients became ready.
 */
#ifndef GS_GRAD_STEP_EXCHANGE_H
#define GS_GRAD_STEP_EXCHANGE_H

#include "grad/reducer.h"

/* What a rank finds in its gradients; on GPUs in device memory. */
struct gsi_found {
    uint32_t bad; /* place of one that is not finite, before the average; or GSI_ALL_FINITE */
    uint32_t reserved;
    double squares; /* of this rank's share of the averages */
};

gs_status_t gsi_step_exchange_open (gs_reducer_t *r);
void gsi_step_exchange_close (gs_reducer_t *r); /* in gsi_commit_undo */

/* Where what is found in this step goes. */
struct gsi_found *gsi_step_exchange_found (struct gsi_step_exchange *step_exchange);

/* (GPUs) Room for GSI_SQUARES_PARTS numbers, on the device. */
double *gsi_step_exchange_room (struct gsi_step_exchange *step_exchange);

/* This rank's value of a scalar. */
void gsi_step_exchange_set (struct gsi_step_exchange *step_exchange, int scalar, double value);

/*
 * Collective: exchanges it, by a thread that calls for the reducer. [due]: with the proposal for
 * buckets. [busy_us] is how long buckets were under way here.
 */
gs_status_t gsi_step_exchange_exchange (gs_reducer_t *r, bool due, double busy_us);

/* (GPUs) Waits until the last exchange is known here. */
gs_status_t gsi_step_exchange_await (gs_reducer_t *r);

/* Whether it is known already. */
bool gsi_step_exchange_past (const gs_reducer_t *r);

/* What follows from the last exchange, which is known. Whether the step was as it should be: */
gs_status_t gsi_step_exchange_verdict (const gs_reducer_t *r);

/* Whether there should be other buckets, and ranks [differ] on them; */
bool gsi_step_exchange_wants_order (const gs_reducer_t *r, bool *differ);

/* the rank that the others waited for, or -1, and how long; */
int gsi_step_exchange_late (const gs_reducer_t *r, double *late_us);

/* and what became of scalar [index], and the norm of the averages. */
double gsi_step_exchange_scalar (const gs_reducer_t *r, int index);
double gsi_step_exchange_norm (const gs_reducer_t *r);

/* (GPUs) Queues the factor that brings the averages to max_norm, and tells where it will be. */
gs_status_t gsi_step_exchange_factor (gs_reducer_t *r, const double **factor);

#endif /* GS_GRAD_STEP_EXCHANGE_H */
