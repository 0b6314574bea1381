/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reducer_hooks - what programs put into a reducer: a compression that sends only the largest
 * elements and keeps the rest for later, and a step of the optimizer for each bucket.
 */
#include "model.h"

#define STEPS 120

static struct model model;

/* ---- Top-k with error feedback ---- */

/* Per gradient: what was not sent yet. */
static double *rest[MODEL_MOST];

/* An element that travels. */
struct sent {
    int64_t index;
    double value;
};

static int by_size (const void *a, const void *b)
{
    double x = fabs (((const struct sent *) a)->value),
           y = fabs (((const struct sent *) b)->value);

    return (x < y) - (x > y);
}

/* grad = average over the ranks of the [k] largest of grad + rest on each. */
static gs_status_t send_largest (const gs_bucket_t *b, double *grad, double *left, size_t count,
                                 size_t k)
{
    struct sent *mine = calloc (count, sizeof (*mine));
    struct sent *all = calloc (k * (size_t) model.size, sizeof (*all));
    gs_status_t st;

    for (size_t i = 0; i < count; i++) {
        left[i] += grad[i];
        mine[i] = (struct sent){(int64_t) i, left[i]};
    }
    qsort (mine, count, sizeof (*mine), by_size);
    st = gs_allgather (b->comm, mine, all, k * sizeof (*mine), GS_U8, b->stream);
    for (size_t i = 0; i < k; i++)
        left[mine[i].index] = 0;
    memset (grad, 0, count * sizeof (*grad));
    for (size_t i = 0; i < k * (size_t) model.size; i++)
        grad[all[i].index] += all[i].value / model.size;
    free (mine);
    free (all);
    return st;
}

static gs_status_t top_k (const gs_bucket_t *b, void *context)
{
    size_t *sent = context;
    gs_status_t st = GS_OK;

    for (int i = 0; i < b->gradients && !st; i++) {
        size_t count = b->count[i], k = (count + 9) / 10;
        double *host = data_allocate (count * sizeof (double));
        st = gs_device_copy (b->comm, host, b->grad[i], count * sizeof (double), b->stream);
        st = st ? st : gs_comm_wait (b->comm, b->stream);
        if (!st && count)
            st = send_largest (b, host, rest[b->gradient[i]], count, k);
        if (!st && count)
            st = gs_device_copy (b->comm, b->grad[i], host, count * sizeof (double), b->stream);
        *sent += k;
        data_free (host, count * sizeof (double));
    }
    return st;
}

/* All of a gradient, in host memory. */
static void fetch (const struct model *m, int g, double *host)
{
    if (m->count[g])
        CHECK_OK (gs_device_copy (m->comm, host, model_at (m, g), m->count[g] * 8, NULL));
    CHECK_OK (gs_comm_wait (m->comm, NULL));
}

/* Descends |x - c_r|^2 / 2 over the ranks: to the mean of c_r, though a tenth is sent at a time.
 */
static void descend (struct model *m, double **x)
{
    for (int step = 1; step <= STEPS; step++) {
        for (int g = m->gradients - 1; g >= 0; g--) {
            double *host = data_allocate (m->count[g] * 8);
            for (size_t i = 0; i < m->count[g]; i++)
                host[i] = x[g][i] - model_value (m, m->rank, 1, 0, g, i);
            if (m->count[g])
                CHECK_OK (gs_device_copy (m->comm, model_at (m, g), host, m->count[g] * 8, NULL));
            data_free (host, m->count[g] * 8);
            CHECK_OK (gs_reducer_ready (m->reducer, g, NULL));
        }
        CHECK_OK (gs_reducer_finish (m->reducer, NULL));
        for (int g = 0; g < m->gradients; g++) {
            double *host = data_allocate (m->count[g] * 8);
            fetch (m, g, host);
            for (size_t i = 0; i < m->count[g]; i++)
                x[g][i] -= 0.03 * host[i]; /* it may come ten steps late */
            data_free (host, m->count[g] * 8);
        }
    }
}

static void check_top_k (struct model *m)
{
    static double *x[MODEL_MOST];
    struct model_part part[64];
    size_t sent = 0, all = 0;
    double off = 0, norm = 0;

    m->opts = (gs_reducer_opts_t) GS_REDUCER_OPTS_INIT;
    m->opts.bucket_bytes = 4096;
    m->gradients = 7;
    m->rank = gs_comm_rank (m->comm);
    m->size = gs_comm_size (m->comm);
    CHECK_OK (gs_reducer_create (m->comm, &m->opts, &m->reducer));
    for (int g = 0; g < m->gradients; g++) {
        char name[32];
        m->count[g] = model_count (m, g);
        m->count[g] = m->count[g] > 3000 ? 3000 : m->count[g];
        m->dtype[g] = GS_F64;
        m->given[g] = NULL;
        all += m->count[g];
        snprintf (name, sizeof (name), "g%d", g);
        CHECK_OK (gs_reducer_add (m->reducer, name, 1, &m->count[g], GS_F64, NULL, NULL));
        rest[g] = calloc (m->count[g] + 1, sizeof (double));
        x[g] = calloc (m->count[g] + 1, sizeof (double));
    }
    CHECK_OK (gs_reducer_commit (m->reducer));
    CHECK_OK (gs_reducer_set_hook (m->reducer, top_k, &sent));
    descend (m, x);
    for (int r = 0; r < m->size; r++)
        part[r] = (struct model_part){.weight = 1};
    for (int g = 0; g < m->gradients; g++) {
        for (size_t i = 0; i < m->count[g]; i++) {
            double right = model_average (m, 1, 1, g, i, part);
            off += (x[g][i] - right) * (x[g][i] - right);
            norm += right * right;
        }
        free (rest[g]);
        free (x[g]);
    }
    CHECK (sqrt (off) < 0.35 * sqrt (norm), "%d steps lead to %g of %g", STEPS, sqrt (off),
           sqrt (norm));
    CHECK (sent >= STEPS * all / 10 && sent <= STEPS * (all / 10 + 7), "%zu elements were sent",
           sent);
    CHECK_OK (gs_reducer_destroy (m->reducer));
}

/* ---- A step of the optimizer ---- */

/* What the callback has seen. */
struct seen {
    void *copy[MODEL_MOST]; /* of each gradient, in memory of the device */
    int times[MODEL_MOST], last;
    int64_t step;
};

/* Takes a copy of the averages, which stand for new parameters. */
static gs_status_t take_copy (const gs_bucket_t *b, void *context)
{
    struct seen *seen = context;
    gs_status_t st = GS_OK;

    CHECK (b->size == sizeof (*b) && b->index == seen->last + 1 && b->index < b->buckets,
           "bucket %d of %d comes after %d", b->index, b->buckets, seen->last);
    seen->last = b->index;
    seen->step = b->step;
    for (int i = 0; i < b->gradients && !st; i++) {
        int g = b->gradient[i];
        seen->times[g]++;
        CHECK (b->count[i] == model.count[g] && b->dtype == model.dtype[g] &&
                   (!b->count[i] || b->grad[i] == model_at (&model, g)),
               "the callback is told of another gradient than g%d", g);
        st = gs_device_copy (b->comm, seen->copy[g], b->grad[i],
                             b->count[i] * gs_dtype_size (b->dtype), b->stream);
    }
    return st;
}

static void compare_copies (const struct model *m, const struct seen *seen, int step)
{
    CHECK (seen->step == step, "the callback was told of step %lld", (long long) seen->step);
    for (int g = 0; g < m->gradients; g++) {
        size_t bytes = m->count[g] * gs_dtype_size (m->dtype[g]);
        char *copy = data_allocate (bytes), *average = data_allocate (bytes);
        if (bytes) {
            CHECK_OK (gs_device_copy (m->comm, copy, seen->copy[g], bytes, NULL));
            CHECK_OK (gs_device_copy (m->comm, average, model_at (m, g), bytes, NULL));
            CHECK_OK (gs_comm_wait (m->comm, NULL));
        }
        CHECK (seen->times[g] == step && !memcmp (copy, average, bytes),
               "step %d: the callback saw g%d %d times, or before it was averaged", step, g,
               seen->times[g]);
        data_free (copy, bytes);
        data_free (average, bytes);
    }
}

static void check_averaged (struct model *m, gs_dtype_t wire)
{
    static struct seen seen;
    char *host;

    m->opts = (gs_reducer_opts_t) GS_REDUCER_OPTS_INIT;
    m->opts.first_bytes = m->opts.last_bytes = 1000;
    m->opts.bucket_bytes = 50000;
    m->opts.wire = wire;
    m->gradients = 40;
    seen = (struct seen){.last = -1};
    model_open (m, true);
    CHECK_OK (gs_reducer_commit (m->reducer));
    CHECK_OK (gs_reducer_set_averaged (m->reducer, take_copy, &seen));
    host = data_allocate (m->most * 16);
    for (int g = 0; g < m->gradients; g++)
        CHECK_OK (
            gs_device_alloc (m->comm, m->count[g] * gs_dtype_size (m->dtype[g]), &seen.copy[g]));
    for (int step = 1; step < 5; step++) {
        seen.last = -1;
        for (int g = m->gradients - 1; g >= 0; g--) {
            model_write (m, step, 0, g, host);
            CHECK_OK (gs_reducer_ready (m->reducer, g, NULL));
        }
        CHECK_OK (gs_reducer_finish (m->reducer, NULL));
        compare_copies (m, &seen, step);
    }
    for (int g = 0; g < m->gradients; g++)
        CHECK_OK (gs_device_free (m->comm, seen.copy[g]));
    data_free (host, m->most * 16);
    model_close (m);
}

/* ---- The norm ---- */

static void check_clipping (struct model *m)
{
    struct model_part part[64];
    double norm, factor, got;
    char *host;

    for (int r = 0; r < m->size; r++)
        part[r] = (struct model_part){.weight = 1};
    for (int large = 0; large < 2; large++) {
        m->opts = (gs_reducer_opts_t) GS_REDUCER_OPTS_INIT;
        m->opts.max_norm = large ? 1e6 : 0.5;
        m->gradients = 7;
        model_open (m, false);
        CHECK_OK (gs_reducer_commit (m->reducer));
        CHECK_FAILS (gs_reducer_set_averaged (m->reducer, take_copy, NULL), GS_ERR_STATE,
                     "max_norm");
        host = data_allocate (m->most * 16);
        for (int g = 0; g < m->gradients; g++) {
            model_write (m, 1, 0, g, host);
            CHECK_OK (gs_reducer_ready (m->reducer, g, NULL));
        }
        CHECK_OK (gs_reducer_finish (m->reducer, NULL));
        CHECK_OK (gs_reducer_get_norm (m->reducer, &norm));
        factor = norm > m->opts.max_norm ? m->opts.max_norm / norm : 1;
        CHECK ((factor < 1) == !large, "the norm is %g", norm);
        for (int g = 0; g < m->gradients; g++) {
            fetch (m, g, (double *) (void *) host);
            for (size_t i = 0; i < m->count[g]; i++) {
                got = ((double *) (void *) host)[i];
                CHECK (fabs (got - factor * model_average (m, 1, 1, g, i, part)) < 1e-12,
                       "g%d[%zu] is %g", g, i, got);
            }
        }
        data_free (host, m->most * 16);
        model_close (m);
    }
}

/* A norm that is no number is not hidden: with a factor of 0 all would seem to be well. */
static void check_no_number (struct model *m, double bad)
{
    double *host, norm;

    m->opts = (gs_reducer_opts_t) GS_REDUCER_OPTS_INIT;
    m->opts.max_norm = 0.5;
    m->gradients = 7;
    model_open (m, false);
    CHECK_OK (gs_reducer_commit (m->reducer));
    host = (double *) data_allocate (m->most * 16);
    for (int g = 0; g < m->gradients; g++) {
        model_write (m, 1, 0, g, (char *) host);
        if (g == 0 && m->rank == m->size - 1) {
            host[m->count[g] - 1] = bad;
            CHECK_OK (gs_device_copy (m->comm, model_at (m, g), host, m->count[g] * 8, NULL));
        }
        CHECK_OK (gs_reducer_ready (m->reducer, g, NULL));
    }
    CHECK_OK (gs_reducer_finish (m->reducer, NULL));
    CHECK_OK (gs_reducer_get_norm (m->reducer, &norm));
    CHECK (!isfinite (norm), "the norm is %g", norm);
    for (int g = 0; g < m->gradients; g++) {
        fetch (m, g, host);
        for (size_t i = 0; i < m->count[g]; i++)
            CHECK (isnan (host[i]), "g%d[%zu] is %g beside %g", g, i, host[i], bad);
    }
    data_free (host, m->most * 16);
    model_close (m);
}

int main (void)
{
    setenv ("GS_DEBUG", "error", 1);
    model.comm = multi_create (NULL);
    model.seed = 4;
    data_learn (model.comm);
    check_top_k (&model);
    check_averaged (&model, (gs_dtype_t) 0);
    check_averaged (&model, GS_BF16);
    check_clipping (&model);
    check_no_number (&model, INFINITY);
    check_no_number (&model, NAN);
    check_no_number (&model, 1e200); /* whose square overflows */
    CHECK_OK (gs_comm_destroy (model.comm));
    return multi_end ("hooks, callbacks and norms of a reducer");
}
