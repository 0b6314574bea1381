/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * training.c - the loop: some steps of the simulation, then one of training on what the filter
 * takes from it; checkpoints of both.
 */
#include "training.h"
#include "evaluate.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPACING = 2 }; /* steps of the simulation from one step of training to the next */

static const double first_rate = 5e-3; /* of learning; falls to 0 */

struct training {
    const struct settings *set;
    struct models *models;
    struct flow fine;
    struct coarse coarse;
    struct trainer trainer;
    double *in, *want; /* samples */
    double sums[2];    /* on the constant of Smagorinsky, of this rank */
    double loss;       /* summed since the last line */
    int losses;
    size_t step, first; /* that is done; that this start began with */
    double begin;       /* when */
    gs_ckpt_t *ckpt;
    gs_halo_t *halo;   /* of the velocities, for their gradients */
    double *packed;    /* populations, [ny][nx][POPULATIONS] */
    double *vorticity; /* [ny][nx] */
    double *velocity;  /* [ny][nx][3], the last 0: a vector for ParaView */
    double time;       /* in steps; for who reads the file */
    int64_t seed;
};

/* What the checkpoint has of the simulation: copies without ghosts, in both directions. */
static gs_status_t pack (struct training *t, int back)
{
    const struct block *b = &t->fine.b;
    double g[4];
    gs_status_t st = gs_halo_exchange (t->halo, t->fine.u[0], NULL);

    for (size_t y = 0; y < b->ny && !st; y++)
        for (size_t x = 0; x < b->nx; x++) {
            size_t cell = y * b->nx + x, at = AT (b, y, x);
            for (size_t i = 0; i < POPULATIONS; i++)
                if (back)
                    t->fine.f[i * b->all + at] = t->packed[cell * POPULATIONS + i];
                else
                    t->packed[cell * POPULATIONS + i] = t->fine.f[i * b->all + at];
            gradients (b, t->fine.u, at, g);
            t->vorticity[cell] = g[2] - g[1];
            t->velocity[3 * cell] = t->fine.u[0][at];
            t->velocity[3 * cell + 1] = t->fine.u[1][at];
        }
    return st;
}

static gs_status_t add_fields (struct training *t)
{
    const struct block *b = &t->fine.b;
    size_t extents[3] = {b->ny, b->nx, POPULATIONS}, offsets[3] = {b->y0, b->x0, 0};
    size_t shape[3] = {b->n, b->n, POPULATIONS}, cells = b->ny * b->nx;
    gs_status_t st;

    t->packed = calloc (cells * POPULATIONS, sizeof (double));
    t->vorticity = calloc (cells, sizeof (double));
    t->velocity = calloc (cells * 3, sizeof (double));
    if (!t->packed || !t->vorticity || !t->velocity)
        return GS_ERR_NOMEM;
    if ((st = block_halo (b, 2, &t->halo)) ||
        (st = gs_ckpt_add_sharded (t->ckpt, "flow/populations", 3, extents, offsets, shape,
                                   GS_F64, t->packed)) ||
        (st = gs_ckpt_add_sharded (t->ckpt, "flow/vorticity", 2, extents, offsets, shape, GS_F64,
                                   t->vorticity)))
        return st;
    extents[2] = shape[2] = 3;
    if ((st = gs_ckpt_add_sharded (t->ckpt, "flow/velocity", 3, extents, offsets, shape, GS_F64,
                                   t->velocity)) ||
        (st = gs_ckpt_set_grid (t->ckpt, "flow/vorticity", GS_CKPT_CELLS, 2, NULL, NULL)))
        return st;
    return gs_ckpt_set_grid (t->ckpt, "flow/velocity", GS_CKPT_CELLS, 2, NULL, NULL);
}

/* Goes on from the newest checkpoint, if that is wished. */
static gs_status_t resume (gs_comm_t *comm, struct training *t, const char **problem)
{
    int64_t found = -1;
    size_t number = 0;
    gs_status_t st = gs_ckpt_list (t->ckpt, NULL, 0, &number);

    if (!st && !t->set->resume && number > 0)
        *problem = "has checkpoints: go on with --resume, or take another folder";
    if (!st && t->set->resume)
        st = gs_ckpt_read (t->ckpt, GS_CKPT_LATEST, &found, NULL);
    if (!st && (unsigned) t->seed != t->set->seed)
        *problem = "has a flow of another --seed";
    if (!st && found > (int64_t) t->set->steps)
        *problem = "has more steps than --steps";
    if (st || found < 0 || *problem)
        return st;
    t->step = t->first = (size_t) found;
    if (gs_comm_rank (comm) == 0)
        printf ("[%6.1f s] goes on after step %zu\n", elapsed (), t->step);
    return pack (t, 1);
}

static gs_status_t open_checkpoints (gs_comm_t *comm, struct training *t, const char **problem)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    struct network *net = &t->models->net;
    size_t parameters = PARAMETERS, two = 2;
    gs_status_t st;

    opts.keep_last = 2;
    opts.create_folder = 1;
    opts.overwrite = 1;
    if ((st = gs_ckpt_create (comm, t->set->checkpoint, &opts, &t->ckpt)) ||
        (st = gs_ckpt_add_replicated (t->ckpt, "model/w", 1, &parameters, GS_F64, net->w)) ||
        (st = gs_ckpt_add_replicated (t->ckpt, "model/smagorinsky", 1, &two, GS_F64,
                                      t->models->smagorinsky)) ||
        (st = gs_ckpt_add_replicated (t->ckpt, "optimizer/m", 1, &parameters, GS_F64, net->m)) ||
        (st = gs_ckpt_add_replicated (t->ckpt, "optimizer/v", 1, &parameters, GS_F64, net->v)) ||
        (st = gs_ckpt_add_replicated (t->ckpt, "optimizer/updates", 0, NULL, GS_I64,
                                      &net->updates)) ||
        (st = gs_ckpt_add_replicated (t->ckpt, "time", 0, NULL, GS_F64, &t->time)) ||
        (st = gs_ckpt_add_replicated (t->ckpt, "seed", 0, NULL, GS_I64, &t->seed)) ||
        (st = add_fields (t)) || (st = gs_ckpt_commit (t->ckpt)))
        return st;
    return resume (comm, t, problem);
}

/* Brings the ranks' sums for Smagorinsky together. */
static gs_status_t add_up (gs_comm_t *comm, struct training *t)
{
    gs_status_t st = gs_allreduce (comm, t->sums, 2, GS_F64, GS_SUM, NULL);

    for (int i = 0; i < 2; i++) {
        t->models->smagorinsky[i] += t->sums[i];
        t->sums[i] = 0;
    }
    return st;
}

static void report (gs_comm_t *comm, struct training *t)
{
    double speed = (double) (t->step - t->first) / (elapsed () - t->begin);

    if (gs_comm_rank (comm) == 0) {
        printf ("[%6.1f s] training: step %zu of %zu, loss %.4f, %.0f steps/s, %.0f s left\n",
                elapsed (), t->step, t->set->steps, t->loss / t->losses, speed,
                (double) (t->set->steps - t->step) / speed);
        fflush (stdout);
    }
    t->loss = t->losses = 0;
}

static gs_status_t learn (struct training *t)
{
    double rate = first_rate * (1 - (double) (t->step - 1) / (double) t->set->steps), loss = 0;
    size_t samples;
    gs_status_t st = coarse_filter (&t->coarse, &t->fine);

    if (st || (st = closure_fit (&t->coarse, t->sums)))
        return st;
    samples = closure_samples (&t->coarse, (unsigned) (t->step / SPACING), t->in, t->want);
    st = trainer_step (&t->trainer, samples, t->in, t->want, rate, &loss);
    t->loss += loss;
    t->losses++;
    return st;
}

static gs_status_t loop (gs_comm_t *comm, struct training *t)
{
    size_t steps = t->set->steps, lines = steps / 10 / SPACING * SPACING;
    gs_status_t st = GS_OK;

    t->begin = elapsed ();
    lines = lines ? lines : SPACING;
    while (t->step < steps && !st) {
        t->step++;
        st = flow_advance (&t->fine);
        if (!st && t->step % SPACING == 0)
            st = learn (t);
        if (!st && t->step % lines == 0)
            report (comm, t);
        if (st || !t->ckpt || (t->step % t->set->every && t->step != steps))
            continue;
        t->time = (double) t->step;
        st = pack (t, 0);
        if (!st)
            st = add_up (comm, t);
        if (!st)
            st = gs_ckpt_write (t->ckpt, (int64_t) t->step, NULL);
    }
    return st ? st : add_up (comm, t);
}

gs_status_t train (gs_comm_t *comm, const struct settings *set, struct models *models,
                   const char **problem)
{
    struct training t = {.set = set, .models = models, .seed = set->seed};
    gs_status_t st = start_fine (comm, set->size, set->seed, &t.fine);
    size_t cells;

    memset (models, 0, sizeof *models);
    network_create (&models->net);
    if (!st)
        st = coarse_create (comm, set->size / FACTOR, &t.coarse);
    cells = t.coarse.b.ny * t.coarse.b.nx;
    t.in = calloc (cells * INPUTS, sizeof (double));
    t.want = calloc (cells * OUTPUTS, sizeof (double));
    if (!st)
        st = t.in && t.want ? trainer_create (comm, &models->net, cells, &t.trainer)
                            : GS_ERR_NOMEM;
    if (!st && set->checkpoint)
        st = open_checkpoints (comm, &t, problem);
    if (!st && !*problem)
        st = loop (comm, &t);
    gs_ckpt_destroy (t.ckpt);
    gs_halo_destroy (t.halo);
    trainer_destroy (&t.trainer);
    coarse_destroy (&t.coarse);
    flow_destroy (&t.fine);
    free (t.in);
    free (t.want);
    free (t.packed);
    free (t.vorticity);
    free (t.velocity);
    return st;
}
