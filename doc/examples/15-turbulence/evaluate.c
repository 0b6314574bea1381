/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * evaluate.c - a priori: the stress of each closure from the filtered fine flow, beside the exact
 * one. A posteriori: coarse flows, with each closure as a force, beside the filtered fine flow.
 */
#include "evaluate.h"
#include "fields.h"
#include "spectrum.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCORES = CLOSURES + 1 }; /* squares of the force that each closure leaves, and of all */

static const double speed = 0.04, viscosity = 0.001; /* of a fine flow, in cells and steps */

struct evaluation {
    const struct models *models;
    struct flow fine;
    struct coarse filtered, beside; /* the latter for what a coarse flow has */
    struct flow flow[CLOSURES];
    double scores[SCORES];
};

gs_status_t start_fine (gs_comm_t *comm, size_t n, unsigned seed, struct flow *flow)
{
    gs_status_t st = flow_create (comm, n, FACTOR, viscosity, flow);

    return st ? st : flow_stir (flow, seed, speed);
}

static gs_status_t start_coarse (gs_comm_t *comm, const struct coarse *c, struct flow *flow)
{
    gs_status_t st = flow_create (comm, c->b.n, 1, viscosity / FACTOR, flow);

    if (st)
        return st;
    memcpy (flow->rho, c->rho, c->b.all * sizeof *c->rho);
    memcpy (flow->u[0], c->u[0], 2 * c->b.all * sizeof *c->rho);
    return flow_start (flow);
}

/* A time step of a coarse flow, with the force of its closure. */
static gs_status_t advance_coarse (struct evaluation *e, enum closure closure)
{
    struct flow *flow = &e->flow[closure];
    struct coarse *c = &e->beside;
    double force[2];
    gs_status_t st = GS_OK;

    if (closure != NONE) {
        memcpy (c->u[0], flow->u[0], 2 * c->b.all * sizeof *c->rho);
        st = gs_halo_exchange (c->halo, c->u[0], NULL);
        if (!st)
            st = closure_apply (c, closure, e->models);
    }
    for (size_t y = 0; y < c->b.ny && closure != NONE && !st; y++)
        for (size_t x = 0; x < c->b.nx; x++) {
            size_t at = AT (&c->b, y, x);
            closure_force (&c->b, c->model, at, force);
            flow->force[0][at] = flow->rho[at] * force[0];
            flow->force[1][at] = flow->rho[at] * force[1];
        }
    return st ? st : flow_advance (flow);
}

/* Adds to the scores what the filtered flow says now. */
static gs_status_t add_scores (struct evaluation *e)
{
    struct coarse *c = &e->filtered;
    double force[2], exact[2];
    gs_status_t st = GS_OK;

    for (int k = 0; k < CLOSURES && !st; k++) {
        st = closure_apply (c, (enum closure) k, e->models);
        for (size_t y = 0; y < c->b.ny && !st; y++)
            for (size_t x = 0; x < c->b.nx; x++) {
                size_t at = AT (&c->b, y, x);
                closure_force (&c->b, c->model, at, force);
                closure_force (&c->b, c->exact, at, exact);
                for (int i = 0; i < 2; i++) {
                    e->scores[k] += (force[i] - exact[i]) * (force[i] - exact[i]);
                    if (k == NONE)
                        e->scores[CLOSURES] += exact[i] * exact[i];
                }
            }
    }
    return st;
}

static double vorticity (const struct block *b, double *const *u, size_t at)
{
    double g[4];

    gradients (b, u, at, g);
    return g[2] - g[1];
}

/* Another point in time of the results: enstrophies and correlations. */
static gs_status_t add_point (struct evaluation *e, double steps, struct results *r)
{
    const struct block *b = &e->filtered.b;
    double squares[FIELDS + CLOSURES] = {0}, *products = squares + FIELDS;
    size_t p = r->points;
    gs_status_t st = GS_OK;

    for (int k = 0; k < CLOSURES && !st; k++)
        st = gs_halo_exchange (e->beside.halo, e->flow[k].u[0], NULL);
    for (size_t y = 0; y < b->ny && !st; y++)
        for (size_t x = 0; x < b->nx; x++) {
            size_t at = AT (b, y, x);
            double fine = vorticity (b, e->filtered.u, at);
            squares[FINE] += fine * fine;
            for (int k = 0; k < CLOSURES; k++) {
                double w = vorticity (b, e->flow[k].u, at);
                squares[k] += w * w;
                products[k] += w * fine;
            }
        }
    if (!st)
        st = gs_allreduce (b->comm, squares, FIELDS + CLOSURES, GS_F64, GS_SUM, NULL);
    if (st || p == POINTS)
        return st;
    if (p == 0) { /* all begin with the same */
        r->first_square = squares[FINE];
        r->turnover = FACTOR / sqrt (squares[FINE] / (double) (b->n * b->n));
    }
    r->time[p] = steps / r->turnover;
    for (int k = 0; k < CLOSURES; k++)
        r->correlation[k][p] = products[k] / sqrt (squares[k] * squares[FINE]);
    for (int k = 0; k < FIELDS; k++)
        r->enstrophy[k][p] = squares[k] / r->first_square;
    r->points++;
    if (p % 12 == 0 && gs_comm_rank (b->comm) == 0) {
        printf (
            "[%6.1f s] test: %.1f turnover times, correlation %.3f without closure, %.3f with "
            "the network\n",
            elapsed (), r->time[p], r->correlation[NONE][p], r->correlation[NETWORK][p]);
        fflush (stdout);
    }
    return GS_OK;
}

/* Vorticities now: of this rank's block, in [own], and whole fields on rank 0. */
static gs_status_t gather (struct evaluation *e, double *own, struct results *r)
{
    const struct block *b = &e->filtered.b;
    const size_t extents[2] = {b->ny, b->nx}, offsets[2] = {b->y0, b->x0},
                 shape[2] = {b->n, b->n};
    gs_status_t st = GS_OK;

    r->n = b->n;
    for (int k = 0; k < FIELDS && !st; k++, own += b->ny * b->nx) {
        double *const *u = k == FINE ? e->filtered.u : e->flow[k].u;
        for (size_t y = 0; y < b->ny; y++)
            for (size_t x = 0; x < b->nx; x++)
                own[y * b->nx + x] = vorticity (b, u, AT (b, y, x));
        r->vorticity[k] = malloc (b->n * b->n * sizeof *own);
        st = gs_gather_field (b->comm, own, 2, extents, offsets, r->vorticity[k], shape, GS_F64,
                              0, NULL);
    }
    return st;
}

/* Numbers that the curves come to. */
static void sum_up (struct results *r)
{
    for (int k = 0; k < CLOSURES; k++) {
        size_t p = 0;
        for (; p < r->points && r->correlation[k][p] >= 0.9; p++)
            r->kept[k] = r->time[p];
        if (p > 0 && p < r->points) /* between two points */
            r->kept[k] += (r->time[p] - r->time[p - 1]) * (r->correlation[k][p - 1] - 0.9) /
                          (r->correlation[k][p - 1] - r->correlation[k][p]);
        for (p = 0; p < r->points; p++)
            r->enstrophy_error[k] +=
                fabs (r->enstrophy[k][p] / r->enstrophy[FINE][p] - 1) / (double) r->points;
    }
}

/* Spectra of the fields that rank 0 has, and how far they are from that of the fine flow. */
static gs_status_t add_spectra (struct results *r)
{
    for (int k = 0; k < FIELDS; k++) {
        r->energy[k] = malloc (r->n / 2 * sizeof *r->energy[k]);
        if (!r->energy[k] || spectrum (r->vorticity[k], r->n, r->energy[k]))
            return GS_ERR_NOMEM;
    }
    for (int k = 0; k < CLOSURES; k++) {
        double sum = 0;
        for (size_t i = 1; i < r->n / 2; i++)
            sum += pow (log10 (r->energy[k][i] / r->energy[FINE][i]), 2);
        r->spectrum_error[k] = sqrt (sum / (double) (r->n / 2 - 1));
    }
    return GS_OK;
}

/* What is left when the flows have come to their end. */
static gs_status_t conclude (struct evaluation *e, const char *out, size_t step,
                             struct results *r)
{
    const struct block *b = &e->filtered.b;
    double *own = malloc (FIELDS * b->ny * b->nx * sizeof *own), *vorticities[FIELDS];
    char folder[4096];
    gs_status_t st = own ? gather (e, own, r) : GS_ERR_NOMEM;

    for (int k = 0; k < FIELDS && own; k++)
        vorticities[k] = own + (size_t) k * b->ny * b->nx;
    snprintf (folder, sizeof folder, "%s/fields", out);
    if (!st)
        st = fields_write (b, folder, step, vorticities);
    if (st == GS_ERR_UNSUPPORTED) { /* built without HDF5 */
        r->no_file = 1;
        st = GS_OK;
    }
    free (own);
    if (!st && gs_comm_rank (b->comm) == 0)
        st = add_spectra (r);
    if (!st)
        st = gs_allreduce (b->comm, e->scores, SCORES, GS_F64, GS_SUM, NULL);
    for (int k = 0; k < CLOSURES && !st; k++)
        r->force[k] = 1 - e->scores[k] / e->scores[CLOSURES];
    sum_up (r);
    return st;
}

static gs_status_t run (gs_comm_t *comm, struct evaluation *e, const struct settings *set,
                        struct results *r)
{
    size_t begin = set->steps / 4 / FACTOR * FACTOR, every, steps;
    gs_status_t st = GS_OK;

    /* Rounded up, so that there are POINTS at most; the run ends with the last of them. */
    every = (set->steps - begin + (POINTS - 1) * FACTOR - 1) / ((POINTS - 1) * FACTOR) * FACTOR;
    steps = begin + (set->steps - begin) / every * every;
    for (size_t step = 1; step <= steps && !st; step++) {
        st = flow_advance (&e->fine);
        if (st || step < begin || (step - begin) % FACTOR)
            continue;
        for (int k = 0; k < CLOSURES && step > begin && !st; k++)
            st = advance_coarse (e, (enum closure) k);
        if (st || (step - begin) % every)
            continue;
        st = coarse_filter (&e->filtered, &e->fine);
        for (int k = 0; k < CLOSURES && step == begin && !st; k++)
            st = start_coarse (comm, &e->filtered, &e->flow[k]);
        if (!st)
            st = add_scores (e);
        if (!st)
            st = add_point (e, (double) (step - begin), r);
    }
    return st ? st : conclude (e, set->out, steps, r);
}

gs_status_t evaluate (gs_comm_t *comm, const struct settings *set, const struct models *models,
                      struct results *r)
{
    struct evaluation e = {.models = models};
    gs_status_t st = start_fine (comm, set->size, set->seed + 1, &e.fine);

    if (!st)
        st = coarse_create (comm, set->size / FACTOR, &e.filtered);
    if (!st)
        st = coarse_create (comm, set->size / FACTOR, &e.beside);
    if (!st)
        st = run (comm, &e, set, r);
    for (int k = 0; k < CLOSURES; k++)
        flow_destroy (&e.flow[k]);
    flow_destroy (&e.fine);
    coarse_destroy (&e.filtered);
    coarse_destroy (&e.beside);
    return st;
}

void results_free (struct results *r)
{
    for (int k = 0; k < FIELDS; k++) {
        free (r->vorticity[k]);
        free (r->energy[k]);
    }
    memset (r, 0, sizeof *r);
}
