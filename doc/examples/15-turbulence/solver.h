/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * solver.h - a flow in a doubly periodic square, by the lattice Boltzmann method, cut in blocks.
 *
 * Lengths are in cells and times in steps of the grid at hand. Arrays have a layer of ghosts
 * around the block; AT (b, y, x) is a place in such an array, with y and x from -1.
 */
#ifndef TURBULENCE_SOLVER_H
#define TURBULENCE_SOLVER_H

#include <gradsync.h>

enum { POPULATIONS = 9 };

/* The block of this rank. */
struct block {
    gs_comm_t *comm;
    int grid[2];       /* blocks in y and in x */
    size_t n;          /* cells along a side of the square */
    size_t ny, nx;     /* of the block */
    size_t y0, x0;     /* where it begins in the square */
    size_t pitch, all; /* elements of a row, and of an array, with ghosts */
};

#define AT(b, y, x) ((size_t) ((long) ((b)->pitch) * ((long) (y) + 1) + (long) (x) + 1))

struct flow {
    struct block b;
    gs_halo_t *halo;
    double viscosity;
    double *f;        /* [POPULATIONS][all] after the collision */
    double *next;     /* the same of the next step */
    double *rho;      /* [all] density, without ghosts */
    double *u[2];     /* [all] velocity in x and in y, one array of both */
    double *force[2]; /* [all] on a unit of volume */
};

/*
 * Cuts a square of [n] x [n] cells in blocks, as many as [comm] has ranks, whose sizes are
 * multiples of [unit].
 */
gs_status_t block_create (gs_comm_t *comm, size_t n, size_t unit, struct block *b);

/* A halo of a layer of ghosts for [arrays] arrays that lie behind each other. */
gs_status_t block_halo (const struct block *b, size_t arrays, gs_halo_t **halo);

/* [count] arrays behind each other, all 0; NULL: no memory. */
double *block_arrays (const struct block *b, size_t count);

/* A flow at rest. [flow] is all 0 before, and may be destroyed even if this fails. */
gs_status_t flow_create (gs_comm_t *comm, size_t n, size_t unit, double viscosity,
                         struct flow *flow);
gs_status_t flow_destroy (struct flow *flow);

/*
 * Sets velocities from a stream function: waves of 32 to 64 cells of random amplitude and phase,
 * [speed] in the root mean square. The same bits on any number of ranks.
 */
gs_status_t flow_stir (struct flow *flow, unsigned seed, double speed);

/*
 * Sets populations for the density and the velocities that the flow has: the equilibrium, and
 * the viscous stress that goes with the velocity's gradients.
 */
gs_status_t flow_start (struct flow *flow);

/* A time step, with the force that is there. Collective. */
gs_status_t flow_advance (struct flow *flow);

/* Central differences of u[2] with ghosts: g = du/dx, du/dy, dv/dx, dv/dy. */
void gradients (const struct block *b, double *const *u, size_t at, double *g);

#endif
