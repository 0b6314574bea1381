/* SPDX-License-Identifier: BSD-3-Clause */
/* starved_features - calls of starving.c on reducers and checkpoints; what all work on. */
#ifndef GS_TESTS_STARVED_FEATURES_H
#define GS_TESTS_STARVED_FEATURES_H

#include "multi.h"

#define LARGE 140000 /* numbers: more than one block of a large operation */
#define SMALL 24

static gs_comm_t *comm, *group, *column;
static int rank, size;
static double in[4 * LARGE], out[4 * LARGE]; /* of a call; alike each time when it begins */
static void *memory;
static gs_boundary_t *boundary;
static gs_halo_t *halo;
static gs_reducer_t *reducer;
static gs_ckpt_t *plan;

/* ---- Reducers ---- */

static int gradient[3];

static gs_status_t make_reducer (void)
{
    gs_reducer_opts_t opts = GS_REDUCER_OPTS_INIT;

    opts.overlap = GS_OVERLAP_AUTO;
    opts.want_norm = opts.weighted = 1;
    opts.wire = GS_BF16;
    opts.error_feedback = 1;
    opts.bucket_bytes = opts.first_bytes = 65536;
    return gs_reducer_create (comm, &opts, &reducer);
}

static void prepare_reducer (void)
{
    CHECK_OK (make_reducer ());
}

static gs_status_t add_gradients (void)
{
    static const char *const names[] = {"a", "b", "c"};
    const size_t shape[] = {SMALL, LARGE, LARGE / 10};
    gs_status_t st = GS_OK;
    int scalar;

    for (int i = 0; i < 3 && !st; i++)
        if (gradient[i] < 0)
            st = gs_reducer_add (reducer, names[i], 1, &shape[i], GS_F64, i < 2 ? NULL : out,
                                 &gradient[i]);
    return st ? st : gs_reducer_add_scalar (reducer, "loss", GS_AVG, &scalar);
}

static void prepare_gradients (void)
{
    for (int i = 0; i < 3; i++)
        gradient[i] = -1;
    prepare_reducer ();
}

static void prepare_commit (void)
{
    prepare_gradients ();
    CHECK_OK (add_gradients ());
}

static gs_status_t commit_reducer (void)
{
    return gs_reducer_commit (reducer);
}

static void prepare_step (void)
{
    prepare_commit ();
    CHECK_OK (commit_reducer ());
}

/* A step. What is refused on the way ends it, and the communicator with it. */
static gs_status_t step (void)
{
    void *grad;
    gs_status_t st = gs_reducer_set_weight (reducer, rank + 1);

    for (int i = 0; i < 3 && !st; i++) {
        if (!(st = gs_reducer_get_grad (reducer, gradient[i], &grad)))
            memcpy (grad, in, SMALL * sizeof (double));
        st = st ? st : gs_reducer_ready (reducer, gradient[i], NULL);
    }
    return st ? st : gs_reducer_finish (reducer, NULL);
}

static void use_reducer (void)
{
    void *grad;

    CHECK_OK (step ());
    for (int i = 0; i < 2; i++) {
        CHECK_OK (gs_reducer_get_grad (reducer, gradient[i], &grad));
        memcpy (out + LARGE + i * SMALL, grad, SMALL * sizeof (double));
    }
}

static void use_gradients (void)
{
    CHECK_OK (commit_reducer ());
    use_reducer ();
}

static void use_new_reducer (void)
{
    for (int i = 0; i < 3; i++)
        gradient[i] = -1;
    CHECK_OK (add_gradients ());
    use_gradients ();
}

static gs_status_t share_parameters (void)
{
    void *const parameters[] = {out, out + SMALL, out + LARGE + SMALL};

    return gs_reducer_broadcast (reducer, parameters, 0, NULL);
}

static void prepare_relayout (void)
{
    prepare_step ();
    CHECK_OK (step ());
}

static gs_status_t relayout (void)
{
    return gs_reducer_relayout (reducer);
}

/* ---- Checkpoints ---- */

static char folder[1000];
static bool added[3];

static gs_status_t make_plan (void)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;

    opts.overwrite = 1;
    opts.keep_last = 2;
    return gs_ckpt_create (comm, folder, &opts, &plan);
}

static void prepare_plan (void)
{
    CHECK_OK (make_plan ());
}

static gs_status_t add_arrays (void)
{
    const size_t whole[] = {2 * (size_t) size, SMALL / 2}, part[] = {2, SMALL / 2},
                 at[] = {2 * (size_t) rank, 0}, few = SMALL, many = LARGE;
    const double zeros[] = {0, 0}, ones[] = {1, 1};
    const int64_t lower = 1;
    gs_status_t st = GS_OK;

    if (!added[0] && !(st = gs_ckpt_add_sharded (plan, "s", 2, part, at, whole, GS_F64, out)))
        added[0] = true;
    if (!st && !added[1] &&
        !(st = gs_ckpt_add_replicated (plan, "r", 1, &many, GS_F64, out + LARGE)))
        added[1] = true;
    if (!st && !added[2] &&
        !(st = gs_ckpt_add_per_rank (plan, "p", 1, &few, GS_F64, out + SMALL)))
        added[2] = true;
    if (st || (st = gs_ckpt_set_attribute (plan, "r", "unit", "K")) ||
        (st = gs_ckpt_set_bounds (plan, "p", &lower)))
        return st;
    return gs_ckpt_set_grid (plan, "s", GS_CKPT_CELLS, 2, zeros, ones);
}

static void prepare_commit_plan (void)
{
    prepare_plan ();
    CHECK_OK (add_arrays ());
}

static gs_status_t commit_plan (void)
{
    return gs_ckpt_commit (plan);
}

static void prepare_write (void)
{
    prepare_commit_plan ();
    CHECK_OK (commit_plan ());
}

static gs_status_t write_plan (void)
{
    return gs_ckpt_write (plan, 1, NULL);
}

static gs_status_t begin_write (void)
{
    gs_status_t st = gs_ckpt_write_async (plan, 2, NULL, NULL);

    return st ? st : gs_ckpt_wait (plan, NULL, NULL);
}

static gs_status_t read_plan (void)
{
    return gs_ckpt_read (plan, GS_CKPT_LATEST, NULL, NULL);
}

/* An older one must not be taken for it. */
static void prepare_read (void)
{
    prepare_write ();
    CHECK_OK (write_plan ());
    out[0]++;
    CHECK_OK (gs_ckpt_write (plan, 3, NULL));
    memset (out, 0, sizeof (out));
}

static void use_plan (void)
{
    memset (out, 0, sizeof (out));
    CHECK_OK (read_plan ());
}

static void use_commit (void)
{
    memset (out + LARGE, 0, LARGE * sizeof (*out));
    CHECK_OK (write_plan ());
    use_plan ();
}

static void use_arrays (void)
{
    CHECK_OK (commit_plan ());
    use_commit ();
}

static void use_new_plan (void)
{
    CHECK_OK (add_arrays ());
    use_arrays ();
}

static gs_status_t list_plan (void)
{
    int64_t step = 0;
    size_t number = 0;
    gs_status_t st = gs_ckpt_list (plan, &step, 1, &number);

    out[0] = (double) step;
    out[1] = (double) number;
    return st;
}

static void prepare_list (void)
{
    prepare_write ();
    CHECK_OK (write_plan ());
}

static gs_status_t ask_stop (void)
{
    int reasons = 0;
    gs_status_t st = gs_stop_requested (plan, &reasons, NULL);

    out[0] = reasons;
    return st;
}

#endif /* GS_TESTS_STARVED_FEATURES_H */
