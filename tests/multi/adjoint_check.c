/* SPDX-License-Identifier: BSD-3-Clause */
/* adjoint_check - gs_adjoint_check on functions whose gradients are right, and wrong. */
#include <math.h>

#include "multi.h"

#define MOST_RANKS MULTI_MOST_RANKS

static gs_comm_t *comm;
static int rank, size;
static bool compares; /* GS_CHECK=collective */

#define N 5

/* A loss over the joined batch: y = tanh of all x, weighted; gradients right or wrong by choice.
 */
enum mistake { NONE, AVERAGED, FORGOTTEN, OWN_SLOT, FAILS };

struct model {
    enum mistake mistake;
    int calls;
};

static gs_status_t gather_all (const double *x, double *y, void *context)
{
    struct model *m = context;
    gs_status_t st = gs_allgather (comm, x, y, N, GS_F64, NULL);

    return m->mistake == FAILS && m->calls++ == 1 && rank == size - 1 ? GS_ERR_NOMEM : st;
}

static gs_status_t forward (const double *x, double *y, void *context)
{
    gs_status_t st = gather_all (x, y, context);

    for (int i = 0; i < N * size; i++)
        y[i] = tanh (y[i] * (i + 1));
    return st;
}

static gs_status_t backward (const double *x, const double *grad_y, double *grad_x, void *context)
{
    const struct model *m = context;
    double inner[MOST_RANKS * N];
    gs_status_t st = gs_allgather (comm, x, inner, N, GS_F64, NULL);

    for (int i = 0; i < N * size; i++) {
        double t = tanh (inner[i] * (i + 1));
        inner[i] = grad_y[i] * (1 - t * t) * (i + 1);
        if (m->mistake == FORGOTTEN && i == 2)
            inner[i] = 0;
    }
    if (st)
        return st;
    st =
        gs_allgather_backward (comm, inner, grad_x, N, GS_F64,
                               m->mistake == OWN_SLOT ? GS_GRAD_OWN_SLOT : GS_GRAD_ADJOINT, NULL);
    for (int i = 0; i < N && m->mistake == AVERAGED; i++)
        grad_x[i] /= size;
    return st;
}

static gs_status_t gather_back (const double *x, const double *grad_y, double *grad_x,
                                void *context)
{
    (void) x, (void) context;
    return gs_allgather_backward (comm, grad_y, grad_x, N, GS_F64, GS_GRAD_ADJOINT, NULL);
}

static void check_models (void)
{
    gs_adjoint_opts_t opts = GS_ADJOINT_OPTS_INIT;
    gs_adjoint_result_t result;
    struct model m = {NONE, 0};
    size_t ny = (size_t) (N * size);
    double x[N], before[N];

    for (int i = 0; i < N; i++)
        before[i] = x[i] = 0.1 * (i + 1) / (rank + 1);
    CHECK_OK (gs_adjoint_check (comm, forward, backward, &m, x, N, ny, NULL, &result));
    /* Both numbers grow with the ranks, and so does what they differ by. */
    CHECK (result.error < 1e-8 && (size > 8 || fabs (result.forward - result.backward) < 1e-6),
           "error %g, %g and %g", result.error, result.forward, result.backward);
    CHECK (!memcmp (x, before, sizeof (x)), "x was changed");
    CHECK_OK (gs_adjoint_check (comm, forward, backward, &m, NULL, N, ny, NULL, NULL));
    opts.linear = 1;
    CHECK_OK (gs_adjoint_check (comm, gather_all, gather_back, &m, NULL, N, ny, &opts, &result));
    CHECK (result.error <= 1e-13, "error of a linear function %g", result.error);
    CHECK_FAILS (gs_adjoint_check (comm, forward, gather_back, &m, NULL, N, ny, &opts, NULL),
                 GS_ERR_MISMATCH, "not the gradient");
    opts.linear = 0;
    m.mistake = FORGOTTEN;
    CHECK_FAILS (gs_adjoint_check (comm, forward, backward, &m, x, N, ny, NULL, &result),
                 GS_ERR_MISMATCH, "not the gradient", "forward pass", "backward pass");
    CHECK (result.error > 1e-6 && result.forward != result.backward, "error %g", result.error);
    opts.same_loss = 1;
    m.mistake = OWN_SLOT;
    CHECK_OK (gs_adjoint_check (comm, forward, backward, &m, x, N, ny, &opts, &result));
    if (size > 1) {
        CHECK_FAILS (gs_adjoint_check (comm, forward, backward, &m, x, N, ny, NULL, &result),
                     GS_ERR_MISMATCH, compares ? "GS_GRAD_OWN_SLOT" : "not the gradient");
        m.mistake = AVERAGED;
        CHECK_FAILS (gs_adjoint_check (comm, forward, backward, &m, x, N, ny, NULL, &result),
                     GS_ERR_MISMATCH, "not the gradient");
        CHECK_FAILS (gs_adjoint_check (comm, forward, backward, &m, x, N, ny + (rank == 0), &opts,
                                       &result),
                     GS_ERR_ARG, "same_loss", "rank 0 (host");
        opts.linear = !rank;
        CHECK_FAILS (gs_adjoint_check (comm, forward, backward, &m, x, N, ny, &opts, &result),
                     GS_ERR_ARG, "linear is set on rank 0 (host", "but not on rank 1 (host");
        opts.linear = 0;
        opts.step = rank ? 0.5 : 0.25;
        CHECK_FAILS (gs_adjoint_check (comm, forward, backward, &m, x, N, ny, &opts, &result),
                     GS_ERR_ARG, "step is 0.25 on rank 0 (host", "but 0.5 on rank 1 (host");
        opts.step = 0;
        opts.tolerance = rank ? 0 : 1;
        CHECK_FAILS (gs_adjoint_check (comm, forward, backward, &m, x, N, ny, &opts, &result),
                     GS_ERR_ARG, "tolerance is", "but 1 on rank 0 (host");
        opts.tolerance = 0;
        opts.same_loss = 1;
        opts.seed = (uint64_t) rank + 7;
        CHECK_FAILS (gs_adjoint_check (comm, forward, backward, &m, x, N, ny, &opts, &result),
                     GS_ERR_ARG, "same seed", "rank 0 (host", "has 7");
        opts.seed = 0;
        opts.same_loss = !!rank;
        CHECK_FAILS (gs_adjoint_check (comm, forward, backward, &m, x, N, ny, &opts, &result),
                     GS_ERR_ARG, "same_loss is set on rank 1 (host", "but not on rank 0 (host");
    }
}

/* Derivatives whose squares are beyond what f64 has. */
static gs_status_t scale (const double *x, double *y, void *context)
{
    for (int i = 0; i < N; i++)
        y[i] = *(const double *) context * x[i];
    return GS_OK;
}

static gs_status_t scale_back (const double *x, const double *grad_y, double *grad_x,
                               void *context)
{
    (void) x;
    return scale (grad_y, grad_x, (double *) context + 1);
}

static void check_range (void)
{
    gs_adjoint_opts_t opts = GS_ADJOINT_OPTS_INIT;
    gs_adjoint_result_t result;

    opts.linear = 1;
    for (double factor = 1e-200; factor < 1e301; factor *= 1e100) {
        double right[2] = {factor, factor}, wrong[2] = {factor, 1.5 * factor};
        CHECK_OK (gs_adjoint_check (comm, scale, scale_back, right, NULL, N, N, &opts, &result));
        CHECK_FAILS (
            gs_adjoint_check (comm, scale, scale_back, wrong, NULL, N, N, &opts, &result),
            GS_ERR_MISMATCH, "not the gradient");
        CHECK (result.error > 1e-3 && result.error < 1, "%g: error %g", factor, result.error);
    }
}

/* A failure of one rank is one of all, and so are bad arguments. */
static void check_failures (void)
{
    gs_adjoint_opts_t opts = GS_ADJOINT_OPTS_INIT;
    struct model m = {FAILS, 0};
    size_t ny = (size_t) (N * size);
    double x[N] = {0};
    char last[40];

    snprintf (last, sizeof (last), "rank %d (host", size - 1);
    CHECK_FAILS (gs_adjoint_check (comm, forward, backward, &m, x, N, ny, NULL, NULL),
                 GS_ERR_NOMEM, rank == size - 1 ? "" : last);
    CHECK_FAILS (
        gs_adjoint_check (comm, forward, rank ? backward : NULL, &m, x, N, ny, NULL, NULL),
        GS_ERR_ARG, rank ? "rank 0 (host" : "backward is NULL");
    opts.size = 3;
    CHECK_FAILS (gs_adjoint_check (comm, forward, backward, &m, x, N, ny, &opts, NULL),
                 GS_ERR_ARG, "GS_ADJOINT_OPTS_INIT");
}

int main (void)
{
    const char *check = getenv ("GS_CHECK");

    compares = check && !strcmp (check, "collective");
    comm = multi_create (NULL);
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    check_models ();
    check_range ();
    check_failures ();
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("tests of gradients");
}
