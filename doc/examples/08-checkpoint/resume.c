/* SPDX-License-Identifier: BSD-3-Clause */
/* resume.c - trains until step 1000, going on from the newest checkpoint if there is one. */
#include <gradsync.h>
#include <stdio.h>

enum { WEIGHTS = 100, ROWS = 64, COLUMNS = 32, STEPS = 1000, EVERY = 100 };

static double w[WEIGHTS], m[WEIGHTS]; /* parameters and their moments: equal on all ranks */
static double u[ROWS * COLUMNS];      /* the rows that this rank has of a field */

static gs_status_t make_plan (gs_comm_t *comm, gs_ckpt_t **ckpt)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    size_t rank = (size_t) gs_comm_rank (comm), size = (size_t) gs_comm_size (comm);
    size_t first = ROWS * rank / size, next = ROWS * (rank + 1) / size;
    size_t extents[2] = {next - first, COLUMNS}, offsets[2] = {first, 0};
    size_t shape[2] = {ROWS, COLUMNS}, weights = WEIGHTS;
    gs_status_t st;

    opts.keep_last = 3;    /* the newest three stay, */
    opts.keep_every = 500; /* and those of steps 500, 1000, ... */
    if ((st = gs_ckpt_create (comm, "checkpoints", &opts, ckpt)) ||
        (st = gs_ckpt_add_replicated (*ckpt, "model/w", 1, &weights, GS_F64, w)) ||
        (st = gs_ckpt_add_replicated (*ckpt, "optimizer/m", 1, &weights, GS_F64, m)) ||
        (st = gs_ckpt_add_sharded (*ckpt, "u", 2, extents, offsets, shape, GS_F64, u)) ||
        (st = gs_ckpt_set_attribute (*ckpt, "u", "units", "m s-1")))
        return st;
    return gs_ckpt_commit (*ckpt);
}

static gs_status_t train (gs_comm_t *comm, int64_t step)
{
    double g[WEIGHTS];
    gs_status_t st;

    for (int i = 0; i < WEIGHTS; i++) /* stands for the simulation and a backward pass */
        g[i] = w[i] - (double) (i + gs_comm_rank (comm)) / (double) step;
    if ((st = gs_allreduce_avg (comm, g, WEIGHTS, GS_F64, NULL)))
        return st;
    for (int i = 0; i < WEIGHTS; i++) {
        m[i] = 0.9 * m[i] + g[i];
        w[i] -= 0.01 * m[i];
    }
    return GS_OK;
}

int main (void)
{
    gs_comm_t *comm;
    gs_ckpt_t *ckpt;
    int64_t step;
    int reasons = 0;

    if (gs_comm_create (NULL, &comm) || make_plan (comm, &ckpt) ||
        gs_ckpt_read (ckpt, GS_CKPT_LATEST, &step, NULL))
        goto fail;
    if (step < 0) /* there is none: w, m and u are as they were, here 0 */
        step = 0;
    while (step < STEPS && !reasons) {
        if (train (comm, ++step) || gs_stop_requested (ckpt, &reasons, NULL))
            goto fail;
        if ((step % EVERY == 0 || reasons) && gs_ckpt_write (ckpt, step, NULL))
            goto fail;
    }
    if (gs_ckpt_destroy (ckpt) || gs_comm_destroy (comm))
        goto fail;
    return step == STEPS || reasons & GS_CKPT_STOP_FILE ? 0 : GS_CKPT_EXIT_REQUEUE;
fail:
    fprintf (stderr, "%s\n", gs_last_error ());
    return 1; /* the other ranks find out */
}
