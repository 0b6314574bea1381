/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * closure.h - what a coarse grid does not see: its exact sub-grid stress, and models of it.
 *
 * Of a stress only the deviatoric part counts, in two components: (xx - yy) / 2 and xy. Lengths
 * and times are those of the coarse grid.
 */
#ifndef TURBULENCE_CLOSURE_H
#define TURBULENCE_CLOSURE_H

#include "network.h"
#include "solver.h"

enum { FACTOR = 4 }; /* cells of the fine grid along a side of a coarse one */
enum { MEANS = 6 };
enum closure { NONE, SMAGORINSKY, NETWORK, CLOSURES };

/* Fields on the coarse grid. */
struct coarse {
    struct block b;
    gs_halo_t *halo;       /* of two arrays */
    gs_halo_t *means_halo; /* of MEANS */
    double *means;         /* over squares of fine cells: density, u, v, uu, vv, uv */
    double *rho;
    double *u[2];
    double *exact[2]; /* stress */
    double *model[2]; /* stress */
};

struct models {
    struct network net;
    double smagorinsky[2]; /* sums of exact * basis and of basis^2, on all ranks */
};

/* [c] is all 0 before, and may be destroyed even if this fails. */
gs_status_t coarse_create (gs_comm_t *comm, size_t n, struct coarse *c);
gs_status_t coarse_destroy (struct coarse *c);

/*
 * Filters a fine flow, and gives the exact stress. The filter takes means over squares of cells,
 * and then 1/4, 1/2, 1/4 of neighbours in both directions: it is as wide as a box of 2.6 coarse
 * cells. One as narrow as a coarse cell leaves a stress no larger than the error of the coarse
 * scheme itself, and a flow hardly feels its closure. Collective.
 */
gs_status_t coarse_filter (struct coarse *c, const struct flow *fine);

/*
 * The samples of a step of training: a part of the cells, which [phase] chooses, each turned by a
 * multiple of 90 degrees. [in] and [want] have room for all cells. Returns their number.
 */
size_t closure_samples (const struct coarse *c, unsigned phase, double *in, double *want);

/*
 * Adds what the cells say on the constant of Smagorinsky to [sums], of this rank alone: least
 * squares of the force, which is what a flow feels. Collective.
 */
gs_status_t closure_fit (struct coarse *c, double *sums);

/* c->model from c->u, whose ghosts are filled, with ghosts. Collective. */
gs_status_t closure_apply (struct coarse *c, enum closure closure, const struct models *models);

/* Minus the divergence of a stress with ghosts: the force in a cell, [2]. */
void closure_force (const struct block *b, double *const *stress, size_t at, double *force);

#endif
