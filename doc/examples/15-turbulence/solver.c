/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * solver.c - lattice Boltzmann, D2Q9. The collision is that of central moments: the shear stress
 * relaxes with the viscosity, all else goes to its equilibrium at once, which damps sound and
 * stays stable where the grid does not resolve the flow (Geier et al., 2006). Forces are those
 * of Guo et al. (2002).
 */
#include "solver.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Populations: at rest; to the right, left, up, down; and along the diagonals. */
static const int cx[POPULATIONS] = {0, 1, -1, 0, 0, 1, -1, 1, -1};
static const int cy[POPULATIONS] = {0, 0, 0, 1, -1, 1, 1, -1, -1};

gs_status_t block_create (gs_comm_t *comm, size_t n, size_t unit, struct block *b)
{
    int size = gs_comm_size (comm), rank = gs_comm_rank (comm);
    size_t units = n / unit, rows, columns, row, column;

    b->comm = comm;
    b->n = n;
    for (int i = 1; i * i <= size; i++)
        if (size % i == 0)
            b->grid[1] = i; /* as square as may be */
    b->grid[0] = size / b->grid[1];
    rows = (size_t) b->grid[0], columns = (size_t) b->grid[1];
    row = (size_t) rank / columns, column = (size_t) rank % columns;
    b->y0 = units * row / rows * unit;
    b->x0 = units * column / columns * unit;
    b->ny = units * (row + 1) / rows * unit - b->y0;
    b->nx = units * (column + 1) / columns * unit - b->x0;
    b->pitch = b->nx + 2;
    b->all = b->pitch * (b->ny + 2);
    return GS_OK;
}

gs_status_t block_halo (const struct block *b, size_t arrays, gs_halo_t **halo)
{
    const int grid[3] = {1, b->grid[0], b->grid[1]}, periodic[3] = {0, 1, 1};
    const size_t extents[3] = {arrays, b->ny, b->nx}, width[3] = {0, 1, 1};

    return gs_halo_create (b->comm, 3, grid, extents, width, periodic, GS_F64, halo);
}

double *block_arrays (const struct block *b, size_t count)
{
    return calloc (count * b->all, sizeof (double));
}

gs_status_t flow_create (gs_comm_t *comm, size_t n, size_t unit, double viscosity,
                         struct flow *flow)
{
    gs_status_t st = block_create (comm, n, unit, &flow->b);

    flow->viscosity = viscosity;
    flow->f = block_arrays (&flow->b, POPULATIONS);
    flow->next = block_arrays (&flow->b, POPULATIONS);
    flow->rho = block_arrays (&flow->b, 1);
    flow->u[0] = block_arrays (&flow->b, 2);
    flow->force[0] = block_arrays (&flow->b, 2);
    if (!flow->f || !flow->next || !flow->rho || !flow->u[0] || !flow->force[0])
        return GS_ERR_NOMEM;
    flow->u[1] = flow->u[0] + flow->b.all;
    flow->force[1] = flow->force[0] + flow->b.all;
    for (size_t i = 0; i < flow->b.all; i++)
        flow->rho[i] = 1;
    return st ? st : block_halo (&flow->b, POPULATIONS, &flow->halo);
}

gs_status_t flow_destroy (struct flow *flow)
{
    gs_status_t st = gs_halo_destroy (flow->halo);

    free (flow->f);
    free (flow->next);
    free (flow->rho);
    free (flow->u[0]);
    free (flow->force[0]);
    memset (flow, 0, sizeof *flow);
    return st;
}

/* A number in [0, 1) that depends on [seed] and [k] alone (splitmix64). */
static double random_at (unsigned seed, uint64_t k)
{
    uint64_t z = (((uint64_t) seed << 32) + k + 1) * UINT64_C (0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C (0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C (0x94d049bb133111eb);
    return (double) ((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* Adds the velocities of a wave of the stream function, a cos (kx x + ky y + phase). */
static void add_wave (struct flow *flow, const double *k, double a, double phase)
{
    const struct block *b = &flow->b;

    for (size_t y = 0; y < b->ny; y++) {
        double *u = flow->u[0] + AT (b, y, 0), *v = flow->u[1] + AT (b, y, 0);
        double s0 = sin (k[1] * (double) (b->y0 + y) + phase), s1 = sin (k[0]);
        double c0 = cos (k[1] * (double) (b->y0 + y) + phase), c1 = cos (k[0]);
        /* Turns (c0, s0) by k[0] from cell to cell; from 0, for the same bits in any block. */
        for (size_t x = 0; x < b->x0 + b->nx; x++) {
            double s = s0;
            if (x >= b->x0) {
                u[x - b->x0] += a * k[1] * s;
                v[x - b->x0] -= a * k[0] * s;
            }
            s0 = s * c1 + c0 * s1;
            c0 = c0 * c1 - s * s1;
        }
    }
}

gs_status_t flow_stir (struct flow *flow, unsigned seed, double speed)
{
    int most = (int) (flow->b.n / 32), least = (int) (flow->b.n / 64);
    double energy = 0, k[2];

    for (int pass = 0; pass < 2; pass++) /* the first one only adds up the energy */
        for (int ky = 0; ky <= most; ky++)
            for (int kx = -most; kx <= most; kx++) {
                uint64_t mode = (uint64_t) ((ky << 16) + kx + most);
                int square = kx * kx + ky * ky;
                double a = random_at (seed, 2 * mode) / square, turn = 2 * acos (-1);
                if (square < least * least || square > most * most || (!ky && kx <= 0))
                    continue;
                k[0] = turn * kx / (double) flow->b.n;
                k[1] = turn * ky / (double) flow->b.n;
                if (pass)
                    add_wave (flow, k, a * speed / sqrt (energy),
                              turn * random_at (seed, 2 * mode + 1));
                else
                    energy += a * a * (k[0] * k[0] + k[1] * k[1]) / 2;
            }
    return flow_start (flow);
}

/* What a cell's populations are after the collision. */
struct cell {
    double rho;
    double j[2];       /* momentum */
    double u[2];       /* velocity */
    double xx, yy, xy; /* second central moments */
};

static inline void set_populations (const struct cell *c, double *restrict f, size_t all)
{
    double u = c->u[0], v = c->u[1];
    double xx = c->xx + c->rho * u * u, yy = c->yy + c->rho * v * v;
    double xy = c->xy + c->rho * u * v;
    double xxy = 2 * u * c->xy + v * xx, xyy = 2 * v * c->xy + u * yy;
    double xxyy = c->rho / 9 + v * v * xx + u * u * c->yy + 4 * u * v * c->xy;

    f[0] = c->rho - xx - yy + xxyy;
    f[all] = (c->j[0] + xx - xyy - xxyy) / 2;
    f[2 * all] = (-c->j[0] + xx + xyy - xxyy) / 2;
    f[3 * all] = (c->j[1] + yy - xxy - xxyy) / 2;
    f[4 * all] = (-c->j[1] + yy + xxy - xxyy) / 2;
    f[5 * all] = (xy + xxy + xyy + xxyy) / 4;
    f[6 * all] = (-xy + xxy - xyy + xxyy) / 4;
    f[7 * all] = (-xy - xxy + xyy + xxyy) / 4;
    f[8 * all] = (xy - xxy - xyy + xxyy) / 4;
}

void gradients (const struct block *b, double *const *u, size_t at, double *g)
{
    for (int i = 0; i < 2; i++) {
        g[2 * i] = (u[i][at + 1] - u[i][at - 1]) / 2;
        g[2 * i + 1] = (u[i][at + b->pitch] - u[i][at - b->pitch]) / 2;
    }
}

gs_status_t flow_start (struct flow *flow)
{
    const struct block *b = &flow->b;
    double tau = 3 * flow->viscosity + 0.5, g[4];
    gs_halo_t *halo;
    gs_status_t st = block_halo (b, 2, &halo);

    if (!st)
        st = gs_halo_exchange (halo, flow->u[0], NULL);
    for (size_t y = 0; y < b->ny && !st; y++)
        for (size_t x = 0; x < b->nx; x++) {
            size_t at = AT (b, y, x);
            double rho = flow->rho[at], u = flow->u[0][at], v = flow->u[1][at];
            gradients (b, flow->u, at, g);
            double shear = rho * (1 - tau) / 3; /* of the stress after a collision */
            struct cell c = {rho, {rho * u, rho * v}, {u, v}, 0, 0, shear * (g[1] + g[2])};
            c.xx = rho / 3 + shear * (g[0] - g[3]);
            c.yy = rho / 3 - shear * (g[0] - g[3]);
            set_populations (&c, flow->f + at, b->all);
        }
    return st ? st : gs_halo_destroy (halo);
}

/* Streams to a row of [nx] cells, and lets them collide. */
static void advance_row (const struct flow *flow, size_t at, size_t nx)
{
    const struct block *b = &flow->b;
    const double *p[POPULATIONS], *fx = flow->force[0] + at, *fy = flow->force[1] + at;
    double *restrict next = flow->next + at, *restrict rho = flow->rho + at;
    double *restrict u = flow->u[0] + at, *restrict v = flow->u[1] + at;
    double s = 1 / (3 * flow->viscosity + 0.5);

    for (int i = 0; i < POPULATIONS; i++)
        p[i] = flow->f + (size_t) i * b->all + at - (long) b->pitch * cy[i] - cx[i];
    for (size_t x = 0; x < nx; x++) {
        double right = p[1][x] + p[5][x] + p[7][x], left = p[2][x] + p[6][x] + p[8][x];
        double up = p[3][x] + p[5][x] + p[6][x], down = p[4][x] + p[7][x] + p[8][x];
        double r = p[0][x] + right + left + p[3][x] + p[4][x];
        double jx = right - left + fx[x] / 2, jy = up - down + fy[x] / 2;
        struct cell c = {r, {jx + fx[x] / 2, jy + fy[x] / 2}, {jx / r, jy / r}, 0, 0, 0};
        double work = c.u[0] * fx[x] + c.u[1] * fy[x];
        double difference = right + left - up - down - r * (c.u[0] * c.u[0] - c.u[1] * c.u[1]);
        double cross = p[5][x] - p[6][x] - p[7][x] + p[8][x] - r * c.u[0] * c.u[1];

        difference = (1 - s) * difference + (2 - s) * (c.u[0] * fx[x] - c.u[1] * fy[x]);
        c.xy = (1 - s) * cross + (1 - s / 2) * (c.u[0] * fy[x] + c.u[1] * fx[x]);
        c.xx = r / 3 + (work + difference) / 2;
        c.yy = r / 3 + (work - difference) / 2;
        set_populations (&c, next + x, b->all);
        rho[x] = r;
        u[x] = c.u[0];
        v[x] = c.u[1];
    }
}

gs_status_t flow_advance (struct flow *flow)
{
    gs_status_t st = gs_halo_exchange (flow->halo, flow->f, NULL);
    double *f = flow->f;

    for (size_t y = 0; y < flow->b.ny && !st; y++)
        advance_row (flow, AT (&flow->b, y, 0), flow->b.nx);
    if (!st) {
        flow->f = flow->next;
        flow->next = f;
    }
    return st;
}
