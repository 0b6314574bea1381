/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * adjoint_check - whether a backward pass of all ranks together is the gradient of their forward
 * pass: the dot-product test, with differences where the function is not linear.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/sized.h"
#include "base/status.h"
#include "feature/feature.h"
#include "feature/consensus.h"

#define LINEAR_TOLERANCE 1e-12
#define TOLERANCE        1e-6
#define STEP             1e-3

static const char caller[] = "gs_adjoint_check";

struct test {
    gs_comm_t *comm;
    gs_forward_f forward;
    gs_backward_f backward;
    void *context;
    size_t nx, ny;
    gs_adjoint_opts_t opts;
    double *x, *at, *d, *grad_x; /* [nx] */
    double *y, *jd, *g;          /* [ny] */
};

/* ---- All ranks alike ---- */

/* Whether all ranks can go on; what a pass of the caller's returned may be no status. */
static gs_status_t agree_on_pass (struct test *t, gs_status_t own)
{
    if ((int) own < 0)
        own = gsi_fail (GS_ERR_ARG, "%s: a pass returned %d, which is no gs_status_t", caller,
                        (int) own);
    else if (own && !*gsi_callback_text ())
        own = gsi_fail (own, "%s: a pass returned %s", caller, gs_status_string (own));
    return gsi_consensus (t->comm, caller, own, NULL, NULL);
}

/* Ranks of one loss differ in [what]. */
static gs_status_t fail_same_loss (const struct test *t, const char *what,
                                   const struct gsi_agreement *a)
{
    return gsi_fail (GS_ERR_ARG,
                     "%s: with same_loss all ranks give the same %s: rank %d (host %s) has %llu, "
                     "rank %d (host %s) has %llu",
                     caller, what, a->least_rank, gs_comm_host_of (t->comm, a->least_rank),
                     (unsigned long long) a->least, a->most_rank,
                     gs_comm_host_of (t->comm, a->most_rank), (unsigned long long) a->most);
}

/* The same, before the test; whether passes are called as often, and with same_loss whether y is
 * of one length. */
static gs_status_t agree_to_begin (struct test *t, gs_status_t own)
{
    struct gsi_agreement a = {
        .words = 3,
        .word = {!!t->opts.linear, !!t->opts.same_loss, t->opts.same_loss ? t->ny : 0}};
    gs_status_t st = gsi_consensus (t->comm, caller, own, &a, NULL);

    if (st || a.differs < 0)
        return st;
    if (a.differs < 2)
        return gsi_fail (
            GS_ERR_ARG,
            "%s: the option %s is set on rank %d (host %s), but not on rank %d (host "
            "%s): give all ranks the same",
            caller, a.differs ? "same_loss" : "linear", a.most_rank,
            gs_comm_host_of (t->comm, a.most_rank), a.least_rank,
            gs_comm_host_of (t->comm, a.least_rank));
    return fail_same_loss (t, "ny", &a);
}

static uint64_t bits_of (double number)
{
    uint64_t bits;

    memcpy (&bits, &number, sizeof (bits));
    return bits;
}

static double number_of (uint64_t bits)
{
    double number;

    memcpy (&number, &bits, sizeof (number));
    return number;
}

/* Whether the test is the same one, and passes or fails, on all ranks. */
static gs_status_t agree_on_numbers (struct test *t)
{
    uint64_t seed = t->opts.same_loss ? t->opts.seed : 0;
    struct gsi_agreement a = {
        .words = 3, .word = {bits_of (t->opts.step), bits_of (t->opts.tolerance), seed}};
    gs_status_t st = gsi_consensus (t->comm, caller, GS_OK, &a, NULL);

    if (st || a.differs < 0)
        return st;
    if (a.differs == 2)
        return fail_same_loss (t, "seed", &a);
    return gsi_fail (
        GS_ERR_ARG,
        "%s: the option %s is %.17g on rank %d (host %s), but %.17g on rank %d (host "
        "%s): give all ranks the same",
        caller, a.differs ? "tolerance" : "step", number_of (a.least), a.least_rank,
        gs_comm_host_of (t->comm, a.least_rank), number_of (a.most), a.most_rank,
        gs_comm_host_of (t->comm, a.most_rank));
}

/* The largest magnitude of all ranks. */
static gs_status_t find_most (struct test *t, const double *numbers, size_t count, double *most)
{
    *most = 0;
    for (size_t i = 0; i < count; i++)
        *most = fmax (*most, fabs (numbers[i]));
    return gs_allreduce (t->comm, most, 1, GS_F64, GS_MAX, NULL);
}

/* ---- The two sides ---- */

/* y = f (x + factor * d) */
static gs_status_t forward_at (struct test *t, double factor)
{
    for (size_t i = 0; i < t->nx; i++)
        t->at[i] = t->opts.linear ? t->d[i] : t->x[i] + factor * t->d[i];
    gsi_callback_begin ();
    return agree_on_pass (t, t->forward (t->at, t->y, t->context));
}

/* Adds [weight] times the central difference with step [h] to jd. */
static gs_status_t add_difference (struct test *t, double h, double weight)
{
    gs_status_t st;

    for (int sign = 1; sign >= -1; sign -= 2) {
        if ((st = forward_at (t, sign * h)))
            return st;
        for (size_t i = 0; i < t->ny; i++)
            t->jd[i] += weight * sign * t->y[i] / (2 * h);
    }
    return GS_OK;
}

static gs_status_t derive (struct test *t)
{
    double most;
    gs_status_t st;

    if (t->opts.linear) {
        if (!(st = forward_at (t, 1)) && t->ny)
            memcpy (t->jd, t->y, t->ny * sizeof (*t->jd));
        return st;
    }
    if ((st = find_most (t, t->x, t->nx, &most)))
        return st;
    if (!t->opts.step)
        t->opts.step = STEP * (most > 0 ? most : 1);
    if ((st = add_difference (t, t->opts.step / 2, 4.0 / 3)))
        return st;
    return add_difference (t, t->opts.step, -1.0 / 3);
}

static gs_status_t judge (struct test *t, gs_adjoint_result_t *result)
{
    double sums[4] = {0}, norm, unit; /* of jd, whose squares may be beyond the range */
    gs_status_t st = find_most (t, t->jd, t->ny, &unit);

    if (st)
        return st;
    unit = unit > 0 && isfinite (unit) ? unit : 1;
    for (size_t i = 0; i < t->ny; i++) {
        sums[0] += t->jd[i] * t->g[i];
        sums[2] += (t->jd[i] / unit) * (t->jd[i] / unit);
        sums[3] += t->g[i] * t->g[i];
    }
    for (size_t i = 0; i < t->nx; i++)
        sums[1] += t->d[i] * t->grad_x[i];
    if ((st = gs_allreduce (t->comm, sums, 4, GS_F64, GS_SUM, NULL)))
        return st;
    norm = sqrt (sums[2]) * sqrt (sums[3]); /* in units */
    result->forward = sums[0];
    result->backward = sums[1];
    result->error = fabs (sums[0] - sums[1]);
    if (result->error > 0)
        result->error = result->error / unit / norm; /* of a derivative that is 0: infinite */
    if (result->error <= t->opts.tolerance)
        return GS_OK;
    return gsi_fail (GS_ERR_MISMATCH,
                     "%s: the backward pass is not the gradient of the forward pass: J d . g is "
                     "%.17g by the forward pass, but d . J' g is %.17g by the backward pass; the "
                     "relative error is %.3g, allowed are %.3g",
                     caller, sums[0], sums[1], result->error, t->opts.tolerance);
}

/* ---- The function ---- */

static gs_status_t take_opts (struct test *t, const gs_adjoint_opts_t *opts)
{
    gs_status_t st;

    t->opts = (gs_adjoint_opts_t) GS_ADJOINT_OPTS_INIT;
    if (opts && (st = gsi_sized_take (&t->opts, sizeof (t->opts), sizeof (t->opts), opts,
                                      "gs_adjoint_check: opts", "GS_ADJOINT_OPTS_INIT")))
        return st;
    if (!(t->opts.tolerance >= 0) || !(t->opts.step >= 0) || isinf (t->opts.step))
        return gsi_fail (GS_ERR_ARG,
                         "%s: tolerance is %g and step %g: give 0 for the default, or "
                         "more",
                         caller, t->opts.tolerance, t->opts.step);
    if (!t->opts.tolerance)
        t->opts.tolerance = t->opts.linear ? LINEAR_TOLERANCE : TOLERANCE;
    return GS_OK;
}

/* Numbers from -1 to 1; the sequence is that of [rank] and [number]. */
static void fill (const struct test *t, double *numbers, size_t count, int rank, int number)
{
    uint64_t seed = t->opts.seed ? t->opts.seed : 1;
    struct {
        uint64_t seed, rank, number;
    } key = {seed, (uint64_t) rank, (uint64_t) number};
    uint64_t state = gsi_hash (&key, sizeof (key));
    unsigned short words[3] = {(unsigned short) state, (unsigned short) (state >> 16),
                               (unsigned short) (state >> 32)};

    for (size_t i = 0; i < count; i++)
        numbers[i] = 2 * erand48 (words) - 1;
}

static void draw (struct test *t, const double *x)
{
    int rank = gs_comm_rank (t->comm);

    if (x && t->nx)
        memcpy (t->x, x, t->nx * sizeof (*x));
    else
        fill (t, t->x, t->nx, rank, 1);
    fill (t, t->d, t->nx, rank, 2);
    fill (t, t->g, t->ny, t->opts.same_loss ? -1 : rank, 3);
    memset (t->jd, 0, t->ny * sizeof (*t->jd));
}

static gs_status_t run_check (struct test *t, const double *x, gs_adjoint_result_t *result)
{
    gs_status_t st;

    draw (t, x);
    if ((st = derive (t)))
        return st;
    gsi_callback_begin ();
    if ((st = agree_on_pass (t, t->backward (t->x, t->g, t->grad_x, t->context))))
        return st;
    return judge (t, result);
}

gs_status_t gs_adjoint_check (gs_comm_t *comm, gs_forward_f forward, gs_backward_f backward,
                              void *context, const double *x, size_t nx, size_t ny,
                              const gs_adjoint_opts_t *opts, gs_adjoint_result_t *result)
{
    struct test t = {.comm = comm,
                     .forward = forward,
                     .backward = backward,
                     .context = context,
                     .nx = nx,
                     .ny = ny};
    gs_adjoint_result_t unseen;
    size_t xs, ys, bytes;
    double *memory = NULL;
    gs_status_t st = gsi_feature_check (comm, caller, NULL, 0, GS_F64, NULL);

    if (st)
        return gsi_result (st);
    if (!forward || !backward)
        st = gsi_fail (GS_ERR_ARG, "%s: %s is NULL", caller, forward ? "backward" : "forward");
    if (!st)
        st = take_opts (&t, opts);
    if (!st &&
        (__builtin_mul_overflow (nx, (size_t) 4, &xs) ||
         __builtin_mul_overflow (ny, (size_t) 3, &ys) || __builtin_add_overflow (xs, ys, &xs) ||
         __builtin_mul_overflow (xs, sizeof (double), &bytes) ||
         !(memory = malloc (bytes + sizeof (double)))))
        st = gsi_fail (GS_ERR_NOMEM, "%s: out of memory for 4 * %zu + 3 * %zu numbers", caller,
                       nx, ny);
    if (memory) {
        t.x = memory, t.at = t.x + nx, t.d = t.at + nx, t.grad_x = t.d + nx;
        t.y = t.grad_x + nx, t.jd = t.y + ny, t.g = t.jd + ny;
    }
    if (!(st = agree_to_begin (&t, st)) && !(st = agree_on_numbers (&t)))
        st = run_check (&t, x, result ? result : &unseen);
    free (memory);
    return gsi_result (st);
}
