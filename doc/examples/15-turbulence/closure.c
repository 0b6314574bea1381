/* SPDX-License-Identifier: BSD-3-Clause */
/* closure.c - the filter, the features of the network, and the models of the sub-grid stress. */
#include "closure.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The neighbours of a cell, x and y, against the clock: two further is a turn by 90 degrees. */
static const int around[8][2] = {{1, 0},  {1, 1},   {0, 1},  {-1, 1},
                                 {-1, 0}, {-1, -1}, {0, -1}, {1, -1}};

gs_status_t coarse_create (gs_comm_t *comm, size_t n, struct coarse *c)
{
    gs_status_t st = block_create (comm, n, 1, &c->b);

    c->rho = block_arrays (&c->b, 1);
    c->u[0] = block_arrays (&c->b, 2);
    c->exact[0] = block_arrays (&c->b, 2);
    c->model[0] = block_arrays (&c->b, 2);
    c->means = block_arrays (&c->b, MEANS);
    if (!c->rho || !c->u[0] || !c->exact[0] || !c->model[0] || !c->means)
        return GS_ERR_NOMEM;
    c->u[1] = c->u[0] + c->b.all;
    c->exact[1] = c->exact[0] + c->b.all;
    c->model[1] = c->model[0] + c->b.all;
    if (!st)
        st = block_halo (&c->b, MEANS, &c->means_halo);
    return st ? st : block_halo (&c->b, 2, &c->halo);
}

gs_status_t coarse_destroy (struct coarse *c)
{
    gs_status_t st = gs_halo_destroy (c->halo), means = gs_halo_destroy (c->means_halo);

    free (c->means);
    free (c->rho);
    free (c->u[0]);
    free (c->exact[0]);
    free (c->model[0]);
    memset (c, 0, sizeof *c);
    return st ? st : means;
}

/* c->means at the coarse cell (y, x). */
static void average_cells (struct coarse *c, const struct flow *fine, size_t y, size_t x)
{
    const double part = 1.0 / (FACTOR * FACTOR);
    double *mean = c->means + AT (&c->b, y, x);

    for (size_t k = 0; k < MEANS; k++)
        mean[k * c->b.all] = 0;
    for (size_t j = 0; j < FACTOR; j++)
        for (size_t i = 0; i < FACTOR; i++) {
            size_t at = AT (&fine->b, y * FACTOR + j, x * FACTOR + i);
            double u = fine->u[0][at], v = fine->u[1][at];
            double all[MEANS] = {fine->rho[at], u, v, u * u, v * v, u * v};
            for (size_t k = 0; k < MEANS; k++)
                mean[k * c->b.all] += part * all[k];
        }
}

/* 1/4, 1/2, 1/4 of the cells around, in both directions. */
static double smooth (const struct block *b, const double *field, size_t at)
{
    double sum = 0;

    for (int j = -1; j <= 1; j++) {
        const double *row = field + (long) at + j * (long) b->pitch;
        sum += (2 - abs (j)) * (row[-1] + 2 * row[0] + row[1]) / 16;
    }
    return sum;
}

gs_status_t coarse_filter (struct coarse *c, const struct flow *fine)
{
    double m[MEANS];
    gs_status_t st;

    for (size_t y = 0; y < c->b.ny; y++)
        for (size_t x = 0; x < c->b.nx; x++)
            average_cells (c, fine, y, x);
    st = gs_halo_exchange (c->means_halo, c->means, NULL);
    for (size_t y = 0; y < c->b.ny && !st; y++)
        for (size_t x = 0; x < c->b.nx; x++) {
            size_t at = AT (&c->b, y, x);
            for (size_t k = 0; k < MEANS; k++)
                m[k] = smooth (&c->b, c->means + k * c->b.all, at);
            c->rho[at] = m[0];
            c->u[0][at] = m[1];
            c->u[1][at] = m[2];
            c->exact[0][at] = (m[3] - m[1] * m[1] - m[4] + m[2] * m[2]) / 2;
            c->exact[1][at] = m[5] - m[1] * m[2];
        }
    if (!st)
        st = gs_halo_exchange (c->halo, c->u[0], NULL);
    return st ? st : gs_halo_exchange (c->halo, c->exact[0], NULL);
}

/*
 * The velocities around a cell, less its own, in units of their root mean square, which is
 * returned: neither a mean wind nor the strength of the flow matters. The cell is turned by
 * [turns] times 90 degrees first.
 */
static double features (const struct coarse *c, size_t at, unsigned turns, double *in)
{
    double square = 0, scale;

    for (unsigned k = 0; k < 8; k++) {
        const int *to = around[(k + 8 - 2 * turns) % 8];
        size_t there = (size_t) ((long) at + to[1] * (long) c->b.pitch + to[0]);
        double u = c->u[0][there] - c->u[0][at], v = c->u[1][there] - c->u[1][at];
        square += u * u + v * v;
        for (unsigned i = 0; i < turns; i++) {
            double old = u;
            u = -v;
            v = old;
        }
        in[2 * k] = u;
        in[2 * k + 1] = v;
    }
    scale = sqrt (square / INPUTS) + 1e-12;
    for (int i = 0; i < INPUTS; i++)
        in[i] /= scale;
    return scale;
}

size_t closure_samples (const struct coarse *c, unsigned phase, double *in, double *want)
{
    size_t count = 0;

    for (size_t y = 0; y < c->b.ny; y++)
        for (size_t x = 0; x < c->b.nx; x++) {
            size_t place = c->b.x0 + x + 2 * (c->b.y0 + y) + phase;
            unsigned turns = (unsigned) (place / 4 + c->b.y0 + y) % 4;
            size_t at = AT (&c->b, y, x);
            double scale, sign = turns % 2 ? -1 : 1; /* a turn by 90 degrees */
            if (place % 4)
                continue;
            scale = features (c, at, turns, in + count * INPUTS);
            for (int i = 0; i < OUTPUTS; i++)
                want[count * OUTPUTS + (size_t) i] =
                    sign * c->exact[i][at] / (scale * scale) * 10;
            count++;
        }
    return count;
}

/* The stress of Smagorinsky (1963) for a constant of 1. */
static void smagorinsky (const struct coarse *c, size_t at, double *stress)
{
    double g[4], strain;

    gradients (&c->b, c->u, at, g);
    strain = sqrt ((g[0] - g[3]) * (g[0] - g[3]) + (g[1] + g[2]) * (g[1] + g[2]));
    stress[0] = -strain * (g[0] - g[3]);
    stress[1] = -strain * (g[1] + g[2]);
}

gs_status_t closure_apply (struct coarse *c, enum closure closure, const struct models *models)
{
    double in[INPUTS], out[2] = {0, 0}, scale = 0;

    if (closure == SMAGORINSKY && models->smagorinsky[1] > 0)
        scale = models->smagorinsky[0] / models->smagorinsky[1];
    for (size_t y = 0; y < c->b.ny; y++)
        for (size_t x = 0; x < c->b.nx; x++) {
            size_t at = AT (&c->b, y, x);
            if (closure == SMAGORINSKY) {
                smagorinsky (c, at, out);
            } else if (closure == NETWORK) {
                scale = features (c, at, 0, in);
                scale *= scale / 10;
                network_apply (&models->net, in, out);
            }
            c->model[0][at] = scale * out[0];
            c->model[1][at] = scale * out[1];
        }
    return gs_halo_exchange (c->halo, c->model[0], NULL);
}

void closure_force (const struct block *b, double *const *stress, size_t at, double *force)
{
    double g[4]; /* of (xx - yy) / 2, and of xy */

    gradients (b, stress, at, g);
    force[0] = -g[0] - g[3];
    force[1] = -g[2] + g[1];
}

gs_status_t closure_fit (struct coarse *c, double *sums)
{
    static const struct models one = {.smagorinsky = {1, 1}};
    double force[2], exact[2];
    gs_status_t st = closure_apply (c, SMAGORINSKY, &one);

    for (size_t y = 0; y < c->b.ny && !st; y++)
        for (size_t x = 0; x < c->b.nx; x++) {
            closure_force (&c->b, c->model, AT (&c->b, y, x), force);
            closure_force (&c->b, c->exact, AT (&c->b, y, x), exact);
            for (int i = 0; i < 2; i++) {
                sums[0] += exact[i] * force[i];
                sums[1] += force[i] * force[i];
            }
        }
    return st;
}
