/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boundary - a model cut in as many stages as there are ranks: one forward, one backward, with
 * micro-batches of all schedules; gradients against those of the whole model on one rank.
 *
 * Stage s multiplies by a number of its own, w_s, and squares: so its gradient needs what it had
 * in the forward pass of the same micro-batch.
 */
#include "data.h"

#define BATCH    2
#define CHANNELS 3
#define HEIGHT   17
#define WIDTH    31
#define COUNT    ((size_t) BATCH * CHANNELS * HEIGHT * WIDTH)
#define MICRO    7

static gs_comm_t *comm;
static int rank, size;
static const size_t shape[] = {BATCH, CHANNELS, HEIGHT, WIDTH};
static gs_boundary_t *before, *behind; /* of this stage; NULL at the ends */

static double weight_of (int stage)
{
    return 0.75 + 0.03125 * stage;
}

static double input (int micro, size_t i)
{
    return data_number (data_bits (17, micro, i));
}

/* ---- What must come out ---- */

/* The whole model on one rank: what stage [until] puts out, and the gradient that it gets. */
static double forward_of (int micro, size_t i, int until)
{
    double x = input (micro, i);

    for (int s = 0; s < until; s++)
        x = weight_of (s) * x * x;
    return x;
}

/* The loss is the sum over what the last stage puts out, times micro + 1. */
static double gradient_of (int micro, size_t i, int at)
{
    double g = micro + 1;

    for (int s = size - 1; s >= at; s--)
        g *= 2 * weight_of (s) * forward_of (micro, i, s);
    return g;
}

/* ---- A stage ---- */

static double in[MICRO][COUNT], out[MICRO][COUNT], grad_out[MICRO][COUNT], grad_in[MICRO][COUNT];

static void run_forward (int m)
{
    for (size_t i = 0; i < COUNT; i++)
        out[m][i] = weight_of (rank) * in[m][i] * in[m][i];
}

static void run_backward (int m)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (!behind)
            grad_out[m][i] = m + 1;
        grad_in[m][i] = grad_out[m][i] * 2 * weight_of (rank) * in[m][i];
    }
}

static void check_all (void)
{
    for (int m = 0; m < MICRO; m++)
        for (size_t i = 0; i < COUNT; i++) {
            double x = forward_of (m, i, rank + 1), g = gradient_of (m, i, rank);
            CHECK (fabs (out[m][i] - x) <= 1e-14 * fabs (x), "micro-batch %d, output %zu", m, i);
            CHECK (fabs (grad_in[m][i] - g) <= 1e-13 * fabs (g), "micro-batch %d, gradient %zu",
                   m, i);
        }
}

static void clear (void)
{
    memset (in, 0, sizeof (in));
    memset (out, 0, sizeof (out));
    memset (grad_in, 0, sizeof (grad_in));
    memset (grad_out, 0, sizeof (grad_out));
    for (int m = 0; m < MICRO && !before; m++)
        for (size_t i = 0; i < COUNT; i++)
            in[m][i] = input (m, i);
}

/* ---- Schedules ---- */

static void receive_forward (int m)
{
    if (before)
        CHECK_OK (multi_wait (comm, gs_boundary_forward (before, in[m], NULL)));
}

/* All forward, then all backward. */
static void all_then_all (void)
{
    clear ();
    for (int m = 0; m < MICRO; m++) {
        receive_forward (m);
        run_forward (m);
        if (behind)
            CHECK_OK (multi_wait (comm, gs_boundary_forward (behind, out[m], NULL)));
    }
    for (int m = MICRO - 1; m >= 0; m--) {
        if (behind)
            CHECK_OK (multi_wait (comm, gs_boundary_backward (behind, grad_out[m], NULL)));
        run_backward (m);
        if (before)
            CHECK_OK (multi_wait (comm, gs_boundary_backward (before, grad_in[m], NULL)));
    }
    check_all ();
}

/* One forward, one backward: what crosses one boundary in both directions is a group. */
static void one_and_one (void)
{
    int early = size - 1 - rank < MICRO ? size - 1 - rank : MICRO, forward = early;

    clear ();
    for (int m = 0; m < early; m++) {
        receive_forward (m);
        run_forward (m);
        CHECK_OK (multi_wait (comm, gs_boundary_forward (behind, out[m], NULL)));
    }
    if (forward < MICRO)
        receive_forward (forward);
    for (int m = 0; m < MICRO; m++) {
        bool more = forward < MICRO;
        if (more)
            run_forward (forward);
        CHECK_OK (gs_group_begin (comm));
        if (behind && more)
            CHECK_OK (gs_boundary_forward (behind, out[forward], NULL));
        if (behind)
            CHECK_OK (gs_boundary_backward (behind, grad_out[m], NULL));
        CHECK_OK (multi_wait (comm, gs_group_end (comm)));
        run_backward (m);
        forward += more;
        CHECK_OK (gs_group_begin (comm));
        if (before)
            CHECK_OK (gs_boundary_backward (before, grad_in[m], NULL));
        if (before && forward < MICRO)
            CHECK_OK (gs_boundary_forward (before, in[forward], NULL));
        CHECK_OK (multi_wait (comm, gs_group_end (comm)));
    }
    check_all ();
}

static void make_boundaries (void)
{
    if (rank > 0)
        CHECK_OK (gs_boundary_create (comm, rank - 1, rank, 4, shape, GS_F64, &before));
    if (rank < size - 1)
        CHECK_OK (gs_boundary_create (comm, rank, rank + 1, 4, shape, GS_F64, &behind));
}

/* <A x, y> = <x, A* y>: what the receiver has of x, against what the sender has of y. */
static void check_adjoint (void)
{
    double *x = calloc (COUNT, 8), *y = calloc (COUNT, 8), sums[4] = {0};

    if (behind) {
        data_fill (GS_F64, x, 3, rank, COUNT);
        CHECK_OK (multi_wait (comm, gs_boundary_forward (behind, x, NULL)));
        CHECK_OK (multi_wait (comm, gs_boundary_backward (behind, y, NULL)));
        for (size_t i = 0; i < COUNT; i++)
            sums[1] += x[i] * y[i];
    }
    if (before) {
        data_fill (GS_F64, y, 4, rank, COUNT);
        CHECK_OK (multi_wait (comm, gs_boundary_forward (before, x, NULL)));
        CHECK_OK (multi_wait (comm, gs_boundary_backward (before, y, NULL)));
        for (size_t i = 0; i < COUNT; i++) {
            sums[0] += x[i] * y[i];
            sums[2] += x[i] * x[i];
            sums[3] += y[i] * y[i];
        }
    }
    CHECK_OK (multi_wait (comm, gs_allreduce (comm, sums, 4, GS_F64, GS_SUM, NULL)));
    CHECK (fabs (sums[0] - sums[1]) <= 1e-13 * sqrt (sums[2]) * sqrt (sums[3]),
           "the adjoint is none: %.17g and %.17g", sums[0], sums[1]);
    free (x);
    free (y);
}

/* The same with buffers on GPUs, where there are some. */
static void check_device (void)
{
    void *there;
    double *x = calloc (COUNT, 8);
    bool wrong = false;

    CHECK_OK (gs_device_alloc (comm, 8 * COUNT, &there));
    data_fill (GS_F64, x, 9, rank, COUNT);
    CHECK_OK (gs_device_copy (comm, there, x, 8 * COUNT, NULL));
    if (rank % 2 == 0 && behind)
        CHECK_OK (gs_boundary_forward (behind, there, NULL));
    if (rank % 2 == 1) {
        CHECK_OK (gs_boundary_forward (before, there, NULL));
        CHECK_OK (gs_device_copy (comm, x, there, 8 * COUNT, NULL));
        CHECK_OK (gs_comm_wait (comm, NULL));
        for (size_t i = 0; i < COUNT; i++)
            wrong = wrong || x[i] != data_number (data_bits (9, rank - 1, i));
        CHECK (!wrong, "what came over the boundary in device memory is wrong");
    }
    CHECK_OK (gs_comm_wait (comm, NULL));
    CHECK_OK (gs_device_free (comm, there));
    free (x);
}

/* ---- What is wrong ---- */

static void check_arguments (void)
{
    size_t huge[2] = {SIZE_MAX / 2, 3};
    gs_boundary_t *b = (gs_boundary_t *) huge;
    int next = (rank + 1) % size;

    CHECK_FAILS (gs_boundary_create (NULL, 0, 1, 4, shape, GS_F64, &b), GS_ERR_ARG,
                 "gs_boundary_create: comm is NULL");
    CHECK (!b, "a boundary after a failure");
    CHECK_FAILS (gs_boundary_create (comm, 0, 1, 4, shape, GS_F64, NULL), GS_ERR_ARG,
                 "boundary is NULL");
    CHECK_FAILS (gs_boundary_create (comm, 0, size, 4, shape, GS_F64, &b), GS_ERR_ARG, "to ",
                 "is not a rank of 'world'");
    CHECK_FAILS (gs_boundary_create (comm, -1, 0, 4, shape, GS_F64, &b), GS_ERR_ARG, "from -1");
    CHECK_FAILS (gs_boundary_create (comm, rank, rank, 4, shape, GS_F64, &b), GS_ERR_ARG,
                 "both rank", "between two ranks");
    if (size > 2)
        CHECK_FAILS (gs_boundary_create (comm, next, (rank + 2) % size, 4, shape, GS_F64, &b),
                     GS_ERR_ARG, "neither from", "only the two stages call");
    CHECK_OK (gs_boundary_destroy (NULL));
    CHECK_FAILS (gs_boundary_forward (NULL, huge, NULL), GS_ERR_ARG,
                 "gs_boundary_forward: boundary is NULL");
    CHECK_FAILS (gs_boundary_backward (NULL, huge, NULL), GS_ERR_ARG,
                 "gs_boundary_backward: boundary is NULL");
    if (size == 1 || rank > 1)
        return;
    CHECK_FAILS (gs_boundary_create (comm, 0, 1, 2, rank ? huge : shape, GS_F64, &b), GS_ERR_ARG,
                 rank ? "more elements" : "rank 1 (host");
    CHECK_FAILS (gs_boundary_create (comm, 0, 1, 2, rank ? shape : NULL, GS_F64, &b), GS_ERR_ARG,
                 rank ? "rank 0 (host" : "shape is NULL");
    CHECK_FAILS (gs_boundary_create (comm, 0, 1, rank ? 4 : 16, shape, GS_F64, &b), GS_ERR_ARG,
                 rank ? "rank 0 (host" : "dims is 16: 1 to 15");
    CHECK_FAILS (gs_boundary_create (comm, 0, 1, rank ? 3 : 4, shape, GS_F64, &b),
                 GS_ERR_MISMATCH, "rank 0 (host", "expects 2 x 3 x 17 x 31 of GS_F64",
                 "rank 1 (host", "expects 2 x 3 x 17 of GS_F64");
    CHECK_FAILS (gs_boundary_create (comm, 0, 1, 4, shape, rank ? GS_F32 : GS_F64, &b),
                 GS_ERR_MISMATCH, "2 x 3 x 17 x 31 of GS_F64", "2 x 3 x 17 x 31 of GS_F32");
    CHECK_FAILS (gs_boundary_create (comm, rank, !rank, 4, shape, GS_F64, &b), GS_ERR_MISMATCH,
                 "rank 0 (host", "the other way round");
    CHECK_OK (gs_group_begin (comm));
    CHECK_FAILS (gs_boundary_create (comm, 0, 1, 4, shape, GS_F64, &b), GS_ERR_STATE,
                 "a group of 'world' is open");
    CHECK_OK (gs_group_end (comm));
}

int main (void)
{
    comm = multi_create (NULL);
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    make_boundaries ();
    for (int turn = 0; turn < 2; turn++) {
        all_then_all ();
        one_and_one ();
    }
    check_adjoint ();
    check_device ();
    check_arguments ();
    if (size > 1)
        CHECK_FAILS (gs_comm_destroy (comm), GS_ERR_STATE, "boundaries", "gs_boundary_destroy");
    CHECK_OK (gs_boundary_destroy (before));
    CHECK_OK (gs_boundary_destroy (behind));
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("a pipeline of stages, forward and backward");
}
