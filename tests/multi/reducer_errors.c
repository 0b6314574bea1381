/* SPDX-License-Identifier: BSD-3-Clause */
/* reducer_errors - whatever is wrong with a use of a reducer is named, and undone where it can
 * be. */
#include <sched.h>

#include "data.h"

static gs_comm_t *comm;
static int rank, size;
static const size_t shape[] = {3, 40};

static gs_reducer_t *make (const gs_reducer_opts_t *opts)
{
    gs_reducer_t *r = NULL;

    CHECK_OK (gs_reducer_create (comm, opts, &r));
    if (!r)
        exit (1);
    return r;
}

/* Three gradients, of which the last two are in one bucket. */
static gs_reducer_t *make_three (const gs_reducer_opts_t *opts)
{
    gs_reducer_t *r = make (opts);

    CHECK_OK (gs_reducer_add (r, "conv_w", 2, shape, GS_F32, NULL, NULL));
    CHECK_OK (gs_reducer_add (r, "fc_w", 1, shape, GS_F64, NULL, NULL));
    CHECK_OK (gs_reducer_add (r, "fc_b", 1, shape, GS_F64, NULL, NULL));
    CHECK_OK (gs_reducer_commit (r));
    return r;
}

static void ready_all (gs_reducer_t *r)
{
    for (int i = 2; i >= 0; i--)
        CHECK_OK (gs_reducer_ready (r, i, NULL));
}

/* What finish says or, where it does not wait, what comes of it. */
static gs_status_t finish (gs_reducer_t *r)
{
    gs_status_t st = gs_reducer_finish (r, NULL);

    return st ? st : gs_comm_wait (comm, NULL);
}

static void check_options (void)
{
    gs_reducer_opts_t opts = GS_REDUCER_OPTS_INIT;
    gs_reducer_t *r = (gs_reducer_t *) &opts;

    CHECK_FAILS (gs_reducer_create (comm, NULL, NULL), GS_ERR_ARG, "reducer is NULL");
    CHECK_FAILS (gs_reducer_create (NULL, NULL, &r), GS_ERR_ARG, "comm is NULL");
    CHECK (!r, "a failed create leaves something");
    opts.size = 8;
    CHECK_FAILS (gs_reducer_create (comm, &opts, &r), GS_ERR_ARG, "GS_REDUCER_OPTS_INIT");
    opts = (gs_reducer_opts_t) GS_REDUCER_OPTS_INIT;
    opts.wire = GS_F32;
    CHECK_FAILS (gs_reducer_create (comm, &opts, &r), GS_ERR_ARG, "wire", "GS_F32");
    opts.wire = (gs_dtype_t) 0;
    opts.error_feedback = 1;
    CHECK_FAILS (gs_reducer_create (comm, &opts, &r), GS_ERR_ARG, "error_feedback");
    opts.error_feedback = 0;
    opts.max_norm = -1;
    CHECK_FAILS (gs_reducer_create (comm, &opts, &r), GS_ERR_ARG, "max_norm");
    opts.max_norm = 0;
    opts.overlap = (gs_overlap_t) 9;
    CHECK_FAILS (gs_reducer_create (comm, &opts, &r), GS_ERR_ARG, "overlap 9");
}

static void check_adds (void)
{
    static const size_t vast[] = {SIZE_MAX / 2, 3};
    gs_reducer_t *r = make (NULL);
    void *at;

    CHECK_FAILS (gs_reducer_add (NULL, "a", 0, NULL, GS_F32, NULL, NULL), GS_ERR_ARG, "NULL");
    CHECK_FAILS (gs_reducer_add (r, NULL, 0, NULL, GS_F32, NULL, NULL), GS_ERR_ARG, "name");
    CHECK_FAILS (gs_reducer_add (r, "a\nb", 0, NULL, GS_F32, NULL, NULL), GS_ERR_ARG, "line");
    CHECK_FAILS (gs_reducer_add (r, "a", 99, shape, GS_F32, NULL, NULL), GS_ERR_ARG, "'a'", "99");
    CHECK_FAILS (gs_reducer_add (r, "a", 1, NULL, GS_F32, NULL, NULL), GS_ERR_ARG, "no shape");
    CHECK_FAILS (gs_reducer_add (r, "a", 2, vast, GS_F32, NULL, NULL), GS_ERR_ARG, "overflows");
    CHECK_FAILS (gs_reducer_add (r, "a", 1, shape, (gs_dtype_t) 77, NULL, NULL), GS_ERR_ARG,
                 "77");
    CHECK_FAILS (gs_reducer_add (r, "a", 1, shape, GS_I32, NULL, NULL), GS_ERR_UNSUPPORTED,
                 "GS_I32", "round");
    CHECK_FAILS (gs_reducer_add (r, "a", 1, shape, GS_F32, (void *) 6, NULL), GS_ERR_ARG, "'a'",
                 "aligned");
    CHECK_FAILS (gs_reducer_add_scalar (r, "s", (gs_op_t) 0, NULL), GS_ERR_ARG, "op 0");
    CHECK_FAILS (gs_reducer_get_grad (r, 0, &at), GS_ERR_STATE, "gs_reducer_commit");
    CHECK_FAILS (gs_reducer_ready (r, 0, NULL), GS_ERR_STATE, "gs_reducer_commit");
    CHECK_FAILS (gs_reducer_finish (r, NULL), GS_ERR_STATE, "gs_reducer_commit");
    CHECK_FAILS (gs_reducer_commit (r), GS_ERR_ARG, "nothing was added");
    CHECK_OK (gs_reducer_add (r, "twice", 1, shape, GS_F32, NULL, NULL));
    CHECK_FAILS (gs_reducer_add (r, "twice", 1, shape, GS_F64, NULL, NULL), GS_ERR_ARG,
                 "'twice'");
    CHECK_OK (gs_device_alloc (comm, 4 * 41 * sizeof (float), &at));
    CHECK_OK (gs_reducer_add (r, "given", 1, shape, GS_F32, at, NULL));
    CHECK_FAILS (gs_reducer_add (r, "tied", 1, shape, GS_F32, (float *) at + 1, NULL), GS_ERR_ARG,
                 "'tied'", "'given'", "overlaps");
    CHECK_OK (gs_reducer_add (r, "behind", 1, shape, GS_F32, (float *) at + shape[0], NULL));
    CHECK_OK (gs_reducer_add_scalar (r, "loss", GS_AVG, NULL));
    CHECK_FAILS (gs_reducer_add_scalar (r, "loss", GS_SUM, NULL), GS_ERR_ARG, "'loss'");
    CHECK_FAILS (gs_comm_destroy (comm), GS_ERR_STATE, "1 reducers", "gs_reducer_destroy");
    CHECK_OK (gs_reducer_destroy (r));
    CHECK_OK (gs_device_free (comm, at));
    CHECK_OK (gs_reducer_destroy (NULL));
}

/* The last rank adds something else: all ranks hear what, and from whom. */
static void check_differences (void)
{
    char last[32];

    snprintf (last, sizeof (last), "rank %d", size - 1);
    for (int what = 0; what < 7 && size > 1; what++) {
        static const char *const told[] = {"GS_F32",       "[41]",      "'fc_v'",      "caller",
                                           "nothing more", "forward 1", "1.0000000009"};
        bool odd = rank == size - 1;
        gs_reducer_opts_t opts = GS_REDUCER_OPTS_INIT;
        size_t extent = odd && what == 1 ? 41 : 40;
        void *given = NULL;
        gs_reducer_t *r;
        opts.forward = odd && what == 5;
        opts.max_norm = what < 6 ? 0 : odd ? 1 + ldexp (1, -30) : 1;
        r = make (&opts);
        if (odd && what == 3)
            CHECK_OK (gs_device_alloc (comm, 8 * extent, &given));
        CHECK_OK (gs_reducer_add (r, "conv_w", 2, shape, GS_F32, NULL, NULL));
        if (!odd || what != 4)
            CHECK_OK (gs_reducer_add (r, odd && what == 2 ? "fc_v" : "fc_w", 1, &extent,
                                      odd && what == 0 ? GS_F32 : GS_F64, given, NULL));
        CHECK_FAILS (gs_reducer_commit (r), GS_ERR_MISMATCH, "rank 0", last,
                     what == 6   ? "max_norm"
                     : what == 5 ? "forward"
                                 : "fc_w",
                     told[what]);
        CHECK_OK (gs_reducer_destroy (r));
        CHECK_OK (gs_device_free (comm, given));
    }
}

static char said[2048];

static void note (gs_log_level_t level, const char *line, void *context)
{
    (void) context;
    if (level == GS_LOG_INFO && strstr (line, "buckets are reduced"))
        snprintf (said, sizeof (said), "%s", line);
}

/* Commits with [overlap], and checks what rank 0 and the statistics say. */
static void check_said (gs_overlap_t overlap, bool beside, const char *text)
{
    gs_reducer_opts_t opts = GS_REDUCER_OPTS_INIT;
    gs_reducer_stats_t stats = {.size = sizeof (stats)};
    gs_reducer_t *r;

    *said = 0;
    opts.overlap = overlap;
    r = make_three (&opts);
    CHECK_OK (gs_reducer_get_stats (r, &stats));
    CHECK (stats.overlaps == beside, "overlap %d: overlaps is %d", (int) overlap, stats.overlaps);
    CHECK (rank || strstr (said, text), "overlap %d: no '%s' in '%s'", (int) overlap, text, said);
    CHECK_OK (gs_reducer_destroy (r));
}

/* Whether buckets are reduced during the backward pass is no secret, nor is why not. */
static void check_overlap (void)
{
    bool gpus = multi_on_gpus ();
    cpu_set_t before, one;

    setenv ("GS_DEBUG", "info", 1);
    gs_log_set_sink (note, NULL);
    comm = multi_create (NULL);
    check_said (GS_OVERLAP_OFF, false, "inside gs_reducer_finish");
    check_said (GS_OVERLAP_INLINE, false, "inside gs_reducer_ready");
    if (multi_mixed ()) {
        check_said (GS_OVERLAP_AUTO, false, "some ranks have a GPU, others none");
        CHECK_OK (gs_comm_destroy (comm));
        return;
    }
    check_said (GS_OVERLAP_THREAD, true, gpus ? "by a stream" : "by a thread");
    CPU_ZERO (&one);
    sched_getaffinity (0, sizeof (before), &before);
    for (int core = 0; core < CPU_SETSIZE && !CPU_COUNT (&one); core++)
        if (CPU_ISSET (core, &before))
            CPU_SET (core, &one);
    sched_setaffinity (0, sizeof (one), &one);
    if (gpus || gs_comm_nodes (comm) > 1)
        check_said (GS_OVERLAP_AUTO, true, "during the backward pass");
    else
        check_said (GS_OVERLAP_AUTO, false, size > 1 ? "GS_OVERLAP_THREAD" : "there is one rank");
    check_said (GS_OVERLAP_THREAD, true, gpus ? "by a stream" : "by a thread");
    sched_setaffinity (0, sizeof (before), &before);
    CHECK_OK (gs_comm_destroy (comm));
    gs_log_set_sink (NULL, NULL);
    setenv ("GS_DEBUG", "error", 1);
}

/* An address that is refused is so before the first is sent. */
static void check_broadcast (void)
{
    gs_reducer_t *r = make_three (NULL);
    double fc_w[3] = {0}, fc_b[3] = {0};
    float conv_w[3 * 40] = {0};
    void *params[3] = {conv_w, fc_w, (char *) fc_b + 1};

    conv_w[0] = (float) rank;
    CHECK_FAILS (gs_reducer_broadcast (r, params, 0, NULL), GS_ERR_ARG,
                 "gs_reducer_broadcast ('fc_b')", "aligned");
    CHECK_OK (gs_comm_wait (comm, NULL));
    CHECK (conv_w[0] == (float) rank, "rank 0's parameters came in a call that was refused");
    params[2] = fc_b;
    CHECK_OK (gs_reducer_broadcast (r, params, 0, NULL));
    CHECK_OK (gs_comm_wait (comm, NULL));
    CHECK (conv_w[0] == 0, "rank 0's parameters did not come");
    if (size > 1) { /* on one rank: all are told */
        params[0] = rank == size - 1 ? (char *) conv_w + 1 : (char *) conv_w;
        CHECK_FAILS (gs_reducer_broadcast (r, params, 0, NULL), GS_ERR_ARG, "conv_w", "aligned");
        params[0] = conv_w;
        params[rank == size - 1 ? 1 : 2] = NULL;
        CHECK_FAILS (gs_reducer_broadcast (r, params, 0, NULL), GS_ERR_MISMATCH, "leaves out",
                     "rank 0 (host");
    }
    CHECK_OK (gs_reducer_destroy (r));
}

/* In a step everything has its order; what is refused changes nothing. */
static void check_steps (void)
{
    gs_reducer_t *r = make_three (NULL), *other = make_three (NULL);
    gs_reducer_stats_t stats = {.size = 1};
    float number = 1;
    double value;

    CHECK_FAILS (gs_reducer_add (r, "late", 0, NULL, GS_F32, NULL, NULL), GS_ERR_STATE, "commit");
    CHECK_FAILS (gs_reducer_commit (r), GS_ERR_STATE, "already");
    CHECK_FAILS (gs_reducer_ready (r, 3, NULL), GS_ERR_ARG, "index 3");
    CHECK_FAILS (gs_reducer_ready (r, -1, NULL), GS_ERR_ARG, "index -1");
    CHECK_FAILS (gs_reducer_get_scalar (r, 0, &value), GS_ERR_ARG, "0 scalars");
    CHECK_FAILS (gs_reducer_get_norm (r, &value), GS_ERR_STATE, "want_norm");
    CHECK_FAILS (gs_reducer_set_weight (r, 1), GS_ERR_STATE, "weighted");
    CHECK_FAILS (gs_reducer_relayout (r), GS_ERR_STATE, "a step");
    CHECK_FAILS (gs_reducer_get_stats (r, &stats), GS_ERR_ARG, "size");
    CHECK_OK (gs_reducer_ready (r, 2, NULL));
    CHECK_FAILS (gs_reducer_ready (r, 2, NULL), GS_ERR_STATE, "'fc_b'", "ready already");
    CHECK_FAILS (gs_reducer_skip (r, 2, NULL), GS_ERR_STATE, "'fc_b'", "ready already");
    CHECK_FAILS (gs_reducer_set_sync (r, 0), GS_ERR_STATE, "inside step 1");
    CHECK_FAILS (gs_reducer_set_hook (r, NULL, NULL), GS_ERR_STATE, "inside step 1");
    CHECK_FAILS (gs_reducer_destroy (r), GS_ERR_STATE, "inside step 1");
    CHECK_FAILS (gs_allreduce_avg (comm, &number, 1, GS_F32, NULL), GS_ERR_STATE, "step",
                 "reducer 'gradients'");
    CHECK_FAILS (gs_reducer_ready (other, 0, NULL), GS_ERR_STATE, "reducer 'gradients'");
    CHECK_FAILS (gs_reducer_finish (r, NULL), GS_ERR_STATE, "'conv_w', 'fc_w'", "2 of the 3",
                 "on rank");
    CHECK_OK (gs_reducer_skip (r, 1, NULL));
    CHECK_FAILS (gs_reducer_ready (r, 1, NULL), GS_ERR_STATE, "'fc_w'", "skipped already");
    CHECK_OK (gs_reducer_ready (r, 0, NULL));
    CHECK_OK (finish (r));
    ready_all (other);
    CHECK_OK (finish (other));
    CHECK_OK (gs_reducer_destroy (r));
    CHECK_OK (gs_reducer_destroy (other));
}

static void check_weights (void)
{
    gs_reducer_opts_t opts = GS_REDUCER_OPTS_INIT;
    gs_reducer_t *r;
    char last[32];
    int done = 0;

    snprintf (last, sizeof (last), "rank %d", size - 1);
    opts.weighted = opts.average_micro = 1;
    r = make_three (&opts);
    CHECK_FAILS (gs_reducer_ready (r, 0, NULL), GS_ERR_STATE, "gs_reducer_set_weight");
    CHECK_FAILS (gs_reducer_set_weight (r, rank == size - 1 ? -1 : 1), GS_ERR_ARG, last, "-1");
    CHECK_FAILS (gs_reducer_set_weight (r, rank == size - 1 ? NAN : 1), GS_ERR_ARG, last, "nan");
    if (size > 1) {
        CHECK_OK (gs_reducer_set_sync (r, 0));
        if (rank == size - 1)
            CHECK_OK (gs_reducer_finish (r, NULL));
        CHECK_FAILS (gs_reducer_join (r, NULL, &done), GS_ERR_STATE, "gs_reducer_set_sync");
        CHECK_OK (gs_reducer_set_sync (r, 1));
        CHECK_FAILS (gs_reducer_set_weight (r, 1), GS_ERR_MISMATCH, last, "micro-steps");
    }
    CHECK_OK (gs_reducer_join (r, NULL, &done));
    CHECK (done == 1, "all ranks joined, but it is not the end");
    CHECK_OK (gs_reducer_destroy (r));
}

/* A weight holds until it is given again, and one that is refused is not given. */
static void check_kept_weight (void)
{
    gs_reducer_opts_t opts = GS_REDUCER_OPTS_INIT;
    double sum = size * (size + 1) / 2.0, squares = sum * (2 * size + 1) / 3, x[3];
    gs_reducer_t *r;
    int done = 0;
    void *at;

    opts.weighted = 1;
    r = make_three (&opts);
    CHECK_OK (gs_reducer_set_weight (r, rank + 1));
    CHECK_OK (gs_reducer_get_grad (r, 1, &at));
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < 3; i++)
            x[i] = rank + 1;
        CHECK_OK (gs_device_copy (comm, at, x, sizeof (x), NULL));
        ready_all (r);
        CHECK_OK (finish (r));
        CHECK_OK (gs_device_copy (comm, x, at, sizeof (x), NULL));
        CHECK_OK (gs_comm_wait (comm, NULL));
        CHECK (fabs (x[2] - squares / sum) < 1e-12, "step %d: the average is %g, not %g", step,
               x[2], squares / sum);
        CHECK_FAILS (gs_reducer_set_weight (r, rank == size - 1 ? -3 : 10), GS_ERR_ARG, "-3");
    }
    CHECK_OK (gs_reducer_join (r, NULL, &done));
    CHECK (done == 1, "all ranks joined, but it is not the end");
    CHECK_FAILS (gs_reducer_ready (r, 0, NULL), GS_ERR_STATE, "gs_reducer_set_weight");
    CHECK_OK (gs_reducer_destroy (r));
}

/* Ranks that have added up more are named in any step, not only where buckets may change. */
static void check_micro (void)
{
    gs_reducer_opts_t opts = GS_REDUCER_OPTS_INIT;
    gs_reducer_t *r;
    char last[32];

    opts.average_micro = 1;
    r = make_three (&opts);
    snprintf (last, sizeof (last), "rank %d", size - 1);
    for (int step = 1; step < 8; step++) {
        bool wrong = (step == 3 || step == 6) && size > 1;
        if (wrong && rank == size - 1) {
            CHECK_OK (gs_reducer_set_sync (r, 0));
            CHECK_OK (gs_reducer_finish (r, NULL));
            CHECK_OK (gs_reducer_set_sync (r, 1));
        }
        ready_all (r);
        if (wrong)
            CHECK_FAILS (gs_reducer_finish (r, NULL), GS_ERR_MISMATCH, last, "micro-steps");
        else
            CHECK_OK (gs_reducer_finish (r, NULL));
    }
    CHECK_OK (gs_reducer_destroy (r));
}

static int warned;

static void count_warnings (gs_log_level_t level, const char *line, void *context)
{
    (void) context;
    warned += level == GS_LOG_WARN && strstr (line, "all weights are 0");
}

/* Weights that are all 0 are said once, though each step gives them. */
static void check_weightless (void)
{
    gs_reducer_opts_t opts = GS_REDUCER_OPTS_INIT;
    gs_reducer_t *r;

    setenv ("GS_DEBUG", "warn", 1);
    gs_log_set_sink (count_warnings, NULL);
    comm = multi_create (NULL);
    opts.weighted = 1;
    r = make_three (&opts);
    for (int step = 0; step < 3; step++) {
        CHECK_OK (gs_reducer_set_weight (r, 0));
        ready_all (r);
        CHECK_OK (finish (r));
    }
    CHECK (warned == !rank, "%d warnings of weights that are 0", warned);
    CHECK_OK (gs_reducer_destroy (r));
    CHECK_OK (gs_comm_destroy (comm));
    gs_log_set_sink (NULL, NULL);
    setenv ("GS_DEBUG", "error", 1);
}

/* A number that is not finite is named with its rank, by all; the next step is as usual. */
static void check_finite (void)
{
    gs_reducer_opts_t opts = GS_REDUCER_OPTS_INIT;
    double bad[3] = {0, NAN, 0}, good[3] = {0};
    gs_reducer_t *r;
    char last[32];
    void *at;

    opts.check_finite = 1;
    r = make_three (&opts);
    snprintf (last, sizeof (last), "rank %d", size - 1);
    CHECK_OK (gs_reducer_get_grad (r, 1, &at));
    for (int step = 1; step < 5; step++) {
        bool wrong = step == 3 && rank == size - 1;
        CHECK_OK (gs_device_copy (comm, at, wrong ? bad : good, sizeof (bad), NULL));
        ready_all (r);
        if (step == 3)
            CHECK_FAILS (gs_reducer_finish (r, NULL), GS_ERR_ARG, "'fc_w'", last, "step 3");
        else
            CHECK_OK (gs_reducer_finish (r, NULL));
        CHECK_OK (gs_comm_wait (comm, NULL));
    }
    CHECK_OK (gs_reducer_destroy (r));
}

/* Fails on the last rank, for the bucket [*context]. */
static gs_status_t fail_there (const gs_bucket_t *bucket, void *context)
{
    return rank == size - 1 && bucket->index == *(int *) context ? GS_ERR_IO : GS_OK;
}

/* Calls the reducer, its context, which is refused. */
static gs_status_t call_again (const gs_bucket_t *bucket, void *reducer)
{
    (void) bucket;
    CHECK_FAILS (gs_reducer_ready (reducer, 0, NULL), GS_ERR_STATE, "gs_reducer_ready",
                 "inside a function of the program");
    CHECK_FAILS (gs_reducer_finish (reducer, NULL), GS_ERR_STATE, "gs_reducer_finish");
    CHECK_FAILS (gs_reducer_destroy (reducer), GS_ERR_STATE, "inside a function");
    return GS_OK;
}

/* A callback that fails does not keep the others from their averages. */
static void check_callback (void)
{
    gs_reducer_t *r = make_three (NULL);
    int bucket = 0;

    CHECK_OK (gs_reducer_set_averaged (r, fail_there, &bucket));
    ready_all (r);
    if (rank == size - 1)
        CHECK_FAILS (gs_reducer_finish (r, NULL), GS_ERR_IO, "callback", "bucket 1");
    else
        CHECK_OK (gs_reducer_finish (r, NULL));
    CHECK_OK (gs_reducer_set_averaged (r, call_again, r));
    CHECK_OK (gs_reducer_ready (r, 2, NULL));
    CHECK_OK (gs_reducer_ready (r, 1, NULL));
    CHECK_OK (gs_reducer_skip (r, 0, NULL));
    CHECK_OK (finish (r));
    CHECK_OK (gs_reducer_set_averaged (r, NULL, NULL));
    ready_all (r);
    CHECK_OK (finish (r));
    CHECK_OK (gs_reducer_destroy (r));
}

/* A hook that fails ends the communicator: the others might wait in a call of theirs. */
static void check_hook (void)
{
    gs_reducer_t *r = make_three (NULL);
    gs_status_t st = GS_OK;
    int bucket = 0;

    CHECK_OK (gs_reducer_set_hook (r, fail_there, &bucket));
    for (int i = 2; i >= 0 && !st; i--)
        st = gs_reducer_ready (r, i, NULL);
    st = st ? st : finish (r);
    CHECK (st == (rank == size - 1 ? GS_ERR_IO : GS_ERR_STATE) || (size > 1 && st),
           "the hook failed, finish gives %s", gs_status_string (st));
    if (rank == size - 1)
        CHECK (strstr (gs_last_error (), "hook"), "no hook in '%s'", gs_last_error ());
    CHECK_OK (gs_reducer_destroy (r));
}

/* The last rank stops: the others are told of the bucket, its gradients and the rank. */
static void check_deadline (void)
{
    gs_reducer_t *r = make_three (NULL);
    gs_status_t st = GS_OK;
    char last[32];

    snprintf (last, sizeof (last), "rank %d", size - 1);
    ready_all (r);
    CHECK_OK (finish (r));
    if (rank == size - 1) {
        multi_await_others ("late", rank);
        gs_comm_abort (comm);
    } else {
        for (int i = 2; i >= 0 && !st; i--)
            st = gs_reducer_ready (r, i, NULL);
        CHECK_FAILS (st ? st : finish (r), GS_ERR_TIMEOUT, "bucket 1 of",
                     multi_has_gpu () ? "reducer 'gradients'" : "step 2 of reducer 'gradients'",
                     "fc_b", last);
        CHECK_FAILS (gs_reducer_ready (r, 0, NULL), GS_ERR_TIMEOUT, "bucket 1 of");
        multi_signal ("late", rank);
    }
    CHECK_OK (gs_reducer_destroy (r));
}

int main (void)
{
    setenv ("GS_DEBUG", "error", 1);
    comm = multi_create (NULL);
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    check_options ();
    check_adds ();
    check_differences ();
    check_broadcast ();
    check_steps ();
    check_weights ();
    check_kept_weight ();
    check_micro ();
    check_finite ();
    check_callback ();
    CHECK_OK (gs_comm_destroy (comm));
    check_overlap ();
    check_weightless ();
    comm = multi_create (NULL);
    check_hook ();
    gs_comm_destroy (comm);
    if (size > 1) {
        setenv ("GS_TIMEOUT_MS", "1000", 1);
        comm = multi_create (NULL);
        check_deadline ();
        gs_comm_destroy (comm);
    }
    return multi_end ("wrong uses of a reducer");
}
