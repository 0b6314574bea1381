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

gs_status_t gsi_tail_open (gs_reducer_t *r);
void gsi_tail_close (gs_reducer_t *r);

/* Where what is found in this step goes. */
struct gsi_found *gsi_tail_found (struct gsi_tail *tail);

/* (GPUs) Room for GSI_SQUARES_PARTS numbers, on the device. */
double *gsi_tail_room (struct gsi_tail *tail);

/* This rank's value of a scalar. */
void gsi_tail_set (struct gsi_tail *tail, int scalar, double value);

/*
 * Collective: exchanges it, by a thread that calls for the reducer. [due]: with the wish for
 * buckets. [busy_us] is how long buckets were under way here.
 */
gs_status_t gsi_tail_exchange (gs_reducer_t *r, bool due, double busy_us);

/* (GPUs) Waits until the last exchange is known here. */
gs_status_t gsi_tail_await (gs_reducer_t *r);

/* Whether it is known already. */
bool gsi_tail_past (const gs_reducer_t *r);

/* What follows from the last exchange, which is known. Whether the step was as it should be: */
gs_status_t gsi_tail_verdict (const gs_reducer_t *r);

/* Whether there should be other buckets, and ranks [differ] on them; */
bool gsi_tail_wants_order (const gs_reducer_t *r, bool *differ);

/* the rank that the others waited for, or -1, and how long; */
int gsi_tail_late (const gs_reducer_t *r, double *late_us);

/* and what became of scalar [index], and the norm of the averages. */
double gsi_tail_scalar (const gs_reducer_t *r, int index);
double gsi_tail_norm (const gs_reducer_t *r);

/* (GPUs) Queues the factor that brings the averages to max_norm, and tells where it will be. */
gs_status_t gsi_tail_factor (gs_reducer_t *r, const double **factor);

#endif /* GS_GRAD_STEP_EXCHANGE_H */
