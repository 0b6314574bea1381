/* SPDX-License-Identifier: BSD-3-Clause */
/* evaluate.h - how good the closures are in a flow that no network has seen. */
#ifndef TURBULENCE_EVALUATE_H
#define TURBULENCE_EVALUATE_H

#include "closure.h"
#include "turbulence.h"

enum { POINTS = 60, FINE = CLOSURES, FIELDS = CLOSURES + 1 };

struct results {
    double force[CLOSURES]; /* a priori: R2 of the sub-grid force, in the filtered fine flow */

    /* A posteriori: coarse flows beside the filtered fine one. */
    size_t points;
    double time[POINTS];                  /* since they began, in turnover times */
    double turnover;                      /* 1 / rms of the vorticity then, in fine steps */
    double first_square;                  /* sum of the squares of the vorticity then */
    double correlation[CLOSURES][POINTS]; /* of the vorticity with that of the fine flow */
    double enstrophy[FIELDS][POINTS];     /* in units of that of the fine flow at the start */
    double kept[CLOSURES];                /* time until the correlation is below 0.9 */
    double enstrophy_error[CLOSURES];     /* mean over time of |enstrophy / fine - 1| */

    /* At the end, on rank 0. */
    int no_file;                     /* for ParaView, without HDF5 */
    size_t n;                        /* cells along a side */
    double *vorticity[FIELDS];       /* [n][n] */
    double *energy[FIELDS];          /* [n / 2], by wavenumber */
    double spectrum_error[CLOSURES]; /* rms over wavenumbers of log10 (energy / fine) */
};

/* A flow as this program starts it, at rest but for what [seed] stirs. */
gs_status_t start_fine (gs_comm_t *comm, size_t n, unsigned seed, struct flow *flow);

/*
 * Runs a fine flow from the seed after that of the training, and coarse ones with each closure
 * beside it from a quarter of the steps on. [r] is all 0 before. Collective.
 */
gs_status_t evaluate (gs_comm_t *comm, const struct settings *set, const struct models *models,
                      struct results *r);
void results_free (struct results *r);

#endif
