/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reducer - gradients of random models, made ready in random orders, are what one rank would have
 * had from the data of all: with skips, micro-steps, weights, ranks that join, wire types, and
 * buckets of any size that are made anew meanwhile. GS_TEST_SEED and GS_TEST_MODELS choose.
 */
#include "model.h"

#define MODELS 12 /* on one rank or two */
#define STEPS  6
#define MICROS 3

static struct model model;
static void *first_at[MODEL_MOST];
static char *host;
static int scalar[4];

static uint64_t number_from (const char *name, uint64_t standard)
{
    const char *text = getenv (name);

    return text ? strtoull (text, NULL, 10) : standard;
}

/* Options at random, the same on all ranks. */
static void draw_options (struct model *m)
{
    static const int gradients[] = {1, 2, 7, 40, 161, 300, 3000};
    static const gs_dtype_t wires[] = {0, 0, 0, GS_BF16, GS_F16};
    static const size_t bytes[] = {0, 1, 4096, 100000, 1 << 20};

    m->opts = (gs_reducer_opts_t) GS_REDUCER_OPTS_INIT;
    m->gradients = gradients[model_below (m, -1, 30, 0, 7)];
    m->opts.first_bytes = bytes[model_below (m, -1, 31, 0, 5)];
    m->opts.bucket_bytes = bytes[model_below (m, -1, 32, 0, 5)];
    m->opts.last_bytes = bytes[model_below (m, -1, 33, 0, 5)];
    m->opts.overlap = (gs_overlap_t) (model_below (m, -1, 34, 0, 5) % 3);
    m->opts.wire = wires[model_below (m, -1, 35, 0, 5)];
    m->opts.forward = model_below (m, -1, 36, 0, 4) == 0;
    m->opts.weighted = model_below (m, -1, 38, 0, 2) == 0;
    m->opts.average_micro = model_below (m, -1, 39, 0, 2) == 0;
    m->opts.check_finite = model_below (m, -1, 40, 0, 4) == 0;
    m->opts.want_norm = model_below (m, -1, 41, 0, 3) == 0;
}

/* What all ranks do in a step, as far as it is theirs alone. */
static void draw_parts (const struct model *m, int step, struct model_part *part)
{
    for (int r = 0; r < m->size; r++) {
        double weight = (double) model_below (m, r, 50, (size_t) step, 5);
        part[r] = (struct model_part){.weight = m->opts.weighted ? weight : 1};
        part[r].joins = m->opts.weighted && r > m->size / 2 && step >= STEPS - 2;
        if (part[r].joins)
            part[r].weight = 0;
    }
}

static double scalar_of (int r, int step)
{
    return ldexp (data_number (data_bits (99, r, (size_t) step)), r % 7);
}

static void run_micro (const struct model *m, int step, int micro, bool last)
{
    CHECK_OK (gs_reducer_set_sync (m->reducer, last));
    for (int k = 0; k < m->gradients; k++) {
        int g = m->order[k];
        if (model_skips (m, m->rank, step, micro, g)) {
            CHECK_OK (gs_reducer_skip (m->reducer, g, NULL));
        } else {
            model_write (m, step, micro, g, host);
            CHECK_OK (gs_reducer_ready (m->reducer, g, NULL));
        }
    }
    if (last)
        for (int s = 0; s < 4; s++)
            CHECK_OK (gs_reducer_set_scalar (m->reducer, scalar[s], scalar_of (m->rank, step)));
    CHECK_OK (gs_reducer_finish (m->reducer, NULL));
}

/* Runs a step, and tells how many micro-steps it had. */
static int run_step (const struct model *m, int step, const struct model_part *part)
{
    int micros = 1 + (int) model_below (m, -1, 51, (size_t) step, MICROS), done = 1;

    if (part[m->rank].joins) {
        CHECK_OK (gs_reducer_set_sync (m->reducer, 1));
        CHECK_OK (gs_reducer_join (m->reducer, NULL, &done));
        CHECK (!done, "a join is the end, but others had data");
        return micros;
    }
    for (int k = 0; k < micros - 1; k++)
        run_micro (m, step, k, false);
    if (m->opts.weighted)
        CHECK_OK (gs_reducer_set_weight (m->reducer, part[m->rank].weight));
    run_micro (m, step, micros - 1, true);
    return micros;
}

static void check_scalars (const struct model *m, int step, const struct model_part *part)
{
    double sum = 0, mean = 0, weights = 0, least = INFINITY, most = -INFINITY, got;

    for (int r = 0; r < m->size; r++) {
        double x = scalar_of (r, step);
        if (part[r].joins)
            continue; /* it had no step of its own */
        sum += x;
        mean += part[r].weight * x;
        weights += part[r].weight;
        least = fmin (least, x);
        most = fmax (most, x);
    }
    mean = weights > 0 ? mean / weights : 0;
    for (int s = 0; s < 4; s++) {
        double right[] = {sum, mean, least, most};
        CHECK_OK (gs_reducer_get_scalar (m->reducer, scalar[s], &got));
        CHECK (fabs (got - right[s]) <= 1e-14 * m->size * (1 + fabs (right[s])),
               "seed %llu: scalar %d is %g, not %g", (unsigned long long) m->seed, s, got,
               right[s]);
    }
}

static void check_norm (const struct model *m, int step, int micros,
                        const struct model_part *part)
{
    double sum = 0, got;

    if (!m->opts.want_norm || m->rank != step % m->size)
        return;
    for (int g = 0; g < m->gradients; g++)
        for (size_t i = 0; i < m->count[g]; i++) {
            double x = model_average (m, step, micros, g, i, part);
            sum += x * x * (gsi_dtype_is_complex (m->dtype[g]) ? 1.25 : 1);
        }
    CHECK_OK (gs_reducer_get_norm (m->reducer, &got));
    CHECK (fabs (got - sqrt (sum)) <= 2e-2 * (data_fast ? m->size : 1) * (sqrt (sum) + 1e-3),
           "seed %llu: the norm is %g, not %g", (unsigned long long) m->seed, got, sqrt (sum));
}

static void run_steps (struct model *m)
{
    struct model_part part[64];

    for (int step = 1; step <= STEPS + 1; step++) {
        int micros;
        draw_parts (m, step, part);
        model_shuffle (m, step);
        micros = run_step (m, step, part);
        for (int g = 0; g < m->gradients; g++) {
            CHECK (step > STEPS || model_at (m, g) == first_at[g], "g%d was moved", g);
            if ((g + step) % m->size / 2 == m->rank / 2) /* two ranks look at each */
                model_check (m, step, micros, g, part, host);
        }
        check_scalars (m, step, part);
        check_norm (m, step, micros, part);
        if (step == STEPS)
            CHECK_OK (gs_reducer_relayout (m->reducer));
    }
}

static void check_stats (const struct model *m)
{
    gs_reducer_stats_t stats = {.size = sizeof (stats)};
    gs_bucket_stats_t bucket = {.size = sizeof (bucket)};
    size_t bytes = 0, all = 0;
    int gradients = 0;

    for (int g = 0; g < m->gradients; g++)
        all += m->count[g] * gs_dtype_size (m->dtype[g]);
    CHECK_OK (gs_reducer_get_stats (m->reducer, &stats));
    for (int b = 0; b < stats.buckets; b++) {
        CHECK_OK (gs_reducer_get_bucket (m->reducer, b, &bucket));
        bytes += bucket.bytes;
        gradients += bucket.gradients;
    }
    CHECK (stats.steps == STEPS + 1 && stats.bytes == all && bytes == all &&
               gradients == m->gradients,
           "stats tell of %lld steps, %zu bytes and %d gradients", (long long) stats.steps, bytes,
           gradients);
    CHECK (m->opts.overlap == GS_OVERLAP_AUTO || stats.overlap == 0 ||
               (m->opts.overlap == GS_OVERLAP_INLINE && multi_any_gpus ()),
           "%g is hidden of what is inside calls", stats.overlap);
    CHECK (stats.rebuilds == 0 || !multi_number (0, "GS_DETERMINISTIC", NULL),
           "buckets were made anew");
}

static void run_model (struct model *m)
{
    static const char *const names[] = {"sum", "mean", "least", "most"};
    static const gs_op_t ops[] = {GS_SUM, GS_AVG, GS_MIN, GS_MAX};
    bool mixed;

    draw_options (m);
    mixed = model_below (m, -1, 42, 0, 2);
    model_open (m, mixed);
    for (int s = 0; s < 4; s++)
        CHECK_OK (gs_reducer_add_scalar (m->reducer, names[s], ops[s], &scalar[s]));
    CHECK_OK (gs_reducer_commit (m->reducer));
    host = data_allocate (m->most * 16);
    for (int g = 0; g < m->gradients; g++)
        first_at[g] = model_at (m, g);
    run_steps (m);
    check_stats (m);
    CHECK (data_free (host, m->most * 16), "memory behind a gradient was written to");
    model_close (m);
}

/* A micro-step of some gradients alone tells nothing of the order: a new layout has each once. */
static void check_layout_after_part (gs_comm_t *comm)
{
    static const size_t count[] = {3, 1000, 40};
    double x[1000];
    gs_reducer_t *r = NULL;
    void *at[3];

    CHECK_OK (gs_reducer_create (comm, NULL, &r));
    for (int i = 0; i < 3; i++)
        CHECK_OK (gs_reducer_add (r, (const char *[]){"a", "b", "c"}[i], 1, &count[i], GS_F64,
                                  NULL, NULL));
    CHECK_OK (gs_reducer_commit (r));
    for (int i = 0; i < 3; i++)
        CHECK_OK (gs_reducer_ready (r, i, NULL));
    CHECK_OK (gs_reducer_finish (r, NULL));
    CHECK_OK (gs_reducer_set_sync (r, 0));
    CHECK_OK (gs_reducer_ready (r, 1, NULL));
    CHECK_OK (gs_reducer_finish (r, NULL));
    CHECK_OK (gs_reducer_set_sync (r, 1));
    CHECK_OK (gs_reducer_relayout (r));
    for (int i = 0; i < 3; i++) {
        CHECK_OK (gs_reducer_get_grad (r, i, &at[i]));
        for (size_t k = 0; k < count[i]; k++)
            x[k] = i + 1;
        CHECK_OK (gs_device_copy (comm, at[i], x, count[i] * sizeof (double), NULL));
        CHECK_OK (gs_comm_wait (comm, NULL));
    }
    for (int i = 0; i < 3; i++)
        CHECK_OK (gs_reducer_ready (r, i, NULL));
    CHECK_OK (gs_reducer_finish (r, NULL));
    for (int i = 0; i < 3; i++) {
        CHECK_OK (gs_device_copy (comm, x, at[i], count[i] * sizeof (double), NULL));
        CHECK_OK (gs_comm_wait (comm, NULL));
        for (size_t k = 0; k < count[i]; k++)
            CHECK (fabs (x[k] - (i + 1)) < 1e-12, "gradient %d is %g, not %d", i, x[k], i + 1);
    }
    CHECK_OK (gs_reducer_destroy (r));
}

/* What rounding lost comes in the next step in which a rank counts, not in one in between. */
static void check_feedback (gs_comm_t *comm)
{
    gs_reducer_opts_t opts = GS_REDUCER_OPTS_INIT;
    bool last = gs_comm_rank (comm) == gs_comm_size (comm) - 1;
    double x = 1 + ldexp (1, -13), own, got, sum = 0;
    gs_reducer_t *r = NULL;
    void *at;

    opts.wire = GS_F16;
    opts.error_feedback = opts.weighted = 1;
    CHECK_OK (gs_reducer_create (comm, &opts, &r));
    CHECK_OK (gs_reducer_add (r, "x", 0, NULL, GS_F64, NULL, NULL));
    CHECK_OK (gs_reducer_commit (r));
    CHECK_OK (gs_reducer_get_grad (r, 0, &at));
    for (int step = 0; step < 16; step++) {
        bool counts = last == (step % 2 == 0);
        own = counts ? x : 0;
        CHECK_OK (gs_device_copy (comm, at, &own, sizeof (own), NULL));
        CHECK_OK (gs_comm_wait (comm, NULL));
        CHECK_OK (gs_reducer_set_weight (r, counts));
        CHECK_OK (gs_reducer_ready (r, 0, NULL));
        CHECK_OK (gs_reducer_finish (r, NULL));
        CHECK_OK (gs_device_copy (comm, &got, at, sizeof (got), NULL));
        CHECK_OK (gs_comm_wait (comm, NULL));
        sum += step % 2 == 0 ? got : 0;
    }
    CHECK (fabs (sum - 8 * x) <= ldexp (1, -11), "8 averages make %.17g, not %.17g", sum, 8 * x);
    CHECK_OK (gs_reducer_destroy (r));
}

int main (void)
{
    uint64_t seed = number_from ("GS_TEST_SEED", 1);
    uint64_t models = number_from ("GS_TEST_MODELS", multi_size () > 8   ? 3
                                                     : multi_size () > 2 ? 6
                                                                         : MODELS);

    setenv ("GS_DEBUG", "error", 1);
    model.comm = multi_create (NULL);
    data_learn (model.comm);
    check_layout_after_part (model.comm);
    check_feedback (model.comm);
    for (uint64_t t = 0; t < models && !multi_failures; t++) {
        model.seed = seed + t;
        run_model (&model);
    }
    if (!gs_comm_rank (model.comm))
        printf ("seeds %llu to %llu\n", (unsigned long long) seed,
                (unsigned long long) (seed + models - 1));
    CHECK_OK (gs_comm_destroy (model.comm));
    return multi_end ("averages of random models in buckets");
}
