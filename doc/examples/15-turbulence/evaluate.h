/* SPDX-License-Identifier: BSD-3-Clause */
/* evaluate.h - how good the closures are in a flow that no network has seen. */
#ifndef TURBULENCE_EVALUATE_H
#define TURBULENCE_EVALUATE_H

#include "closure.h"

enum { POINTS = 60, FINE = CLOSURES, FIELDS = CLOSURES + 1 };

struct results {
    double stress[CLOSURES]; /* held-out R2 */
    double force[CLOSURES];  /* of its divergence */
    size_t points;
    double time[POINTS];              /* in fine steps */
    double enstrophy[FIELDS][POINTS]; /* in units of that of the fine flow at the start */
    double error[CLOSURES][POINTS];   /* of the vorticity, relative, in the root mean square */
    size_t n;                         /* cells along a side of the fields */
    double *vorticity[FIELDS];        /* [n][n] at the end, on rank 0 */
};

/* A flow as example programs of this folder start it. */
gs_status_t start_fine (gs_comm_t *comm, size_t n, unsigned seed, struct flow *flow);

/*
 * Runs a fine flow from [seed], and coarse ones with each closure beside it from a quarter of the
 * [steps] on. [r] is all 0 before. Collective.
 */
gs_status_t evaluate (gs_comm_t *comm, size_t n, unsigned seed, size_t steps,
                      const struct models *models, struct results *r);
void results_free (struct results *r);

#endif
