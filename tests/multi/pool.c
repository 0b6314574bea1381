/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool - rows of all ranks, evaluated by few: any numbers of rows, also none, in one or two steps
 * at once, within nodes and across them, against what each rank computes alone; gradients; and
 * every way to be wrong.
 */
#include "data.h"
#include "rows.h"

#define MOST  50 /* rows of a rank */
#define BATCH 16
#define STEPS 40

static gs_comm_t *comm;
static int rank, size;
static size_t longest;    /* batch that this rank was given */
static int fail_at = -1;  /* 0: the next call of a function of ours fails */
static gs_pool_t *inside; /* (unless NULL) that functions of ours try to use */
static gs_balance_t balance;
static float in[2][MOST * INPUTS], out[2][MOST * OUTPUTS], grad_out[MOST * OUTPUTS],
    grad_in[MOST * INPUTS];

/* A function that calls what it must not, on an evaluator, is told so, and nothing hangs. */
static void check_calls_inside (void)
{
    double number = 1;

    CHECK_FAILS (gs_allreduce_avg (comm, &number, 1, GS_F64, NULL), GS_ERR_STATE,
                 "is in a step of pool 'inside'");
    CHECK_FAILS (gs_pool_evaluate (inside, NULL, 0, NULL), GS_ERR_STATE, "gs_pool_evaluate",
                 "inside a call of on_batch");
    CHECK_FAILS (gs_pool_destroy (inside), GS_ERR_STATE, "inside a call of on_batch");
}

static gs_status_t on_batch (size_t rows, const void *x, void *y, gs_stream_t stream,
                             void *context)
{
    (void) stream;
    CHECK (context == &comm, "the context is another one");
    longest = rows > longest ? rows : longest;
    if (inside)
        check_calls_inside ();
    if (fail_at >= 0 && !fail_at--)
        return GS_ERR_DEVICE;
    for (size_t r = 0; r < rows; r++)
        evaluate_row ((const float *) x + r * INPUTS, (float *) y + r * OUTPUTS);
    return GS_OK;
}

static gs_status_t on_gradient (size_t rows, const void *x, const void *grad_y, void *grad_x,
                                gs_stream_t stream, void *context)
{
    (void) stream;
    (void) context;
    if (fail_at >= 0 && !fail_at--)
        return GS_ERR_NOMEM;
    for (size_t r = 0; r < rows; r++)
        take_row_back ((const float *) x + r * INPUTS, (const float *) grad_y + r * OUTPUTS,
                       (float *) grad_x + r * INPUTS);
    return GS_OK;
}

static gs_pool_opts_t usual (void)
{
    gs_pool_opts_t opts = GS_POOL_OPTS_INIT;

    opts.inputs = INPUTS;
    opts.outputs = OUTPUTS;
    opts.dtype = GS_F32;
    opts.max_rows = MOST;
    opts.max_batch = BATCH;
    opts.balance = balance;
    opts.on_batch = on_batch;
    opts.on_gradient = on_gradient;
    opts.context = &comm;
    return opts;
}

/* How many rows this rank has in a step: any number, in every fifth step none on any rank. */
static size_t rows_of (int step)
{
    size_t rows = (size_t) (data_bits (3, rank, (size_t) step) % (MOST + 1));

    return step % 5 == 4 || (step + rank) % 3 == 0 ? 0 : rows;
}

static void fill (float *x, size_t count, int seed)
{
    for (size_t i = 0; i < count; i++)
        x[i] = (float) data_number (data_bits ((uint64_t) seed, rank, i));
}

static void check_results (int step, const float *x, const float *y, size_t rows)
{
    float wanted[OUTPUTS];

    for (size_t r = 0; r < rows; r++) {
        evaluate_row (x + r * INPUTS, wanted);
        CHECK (!memcmp (wanted, y + r * OUTPUTS, sizeof (wanted)), "step %d, result %zu of %zu",
               step, r, rows);
    }
}

static void check_gradients (gs_pool_t *pool, int step, const float *x, size_t rows)
{
    float wanted[INPUTS];

    fill (grad_out, rows * OUTPUTS, 1000 + step);
    memset (grad_in, 0, sizeof (grad_in));
    CHECK_OK (gs_pool_backward (pool, grad_out, grad_in));
    for (size_t r = 0; r < rows; r++) {
        take_row_back (x + r * INPUTS, grad_out + r * OUTPUTS, wanted);
        CHECK (!memcmp (wanted, grad_in + r * INPUTS, sizeof (wanted)),
               "step %d, gradient %zu of %zu", step, r, rows);
    }
}

/* ---- Steps ---- */

static void check_one_by_one (gs_pool_t *pool)
{
    for (int step = 0; step < STEPS; step++) {
        size_t rows = rows_of (step);
        fill (in[0], rows * INPUTS, step);
        memset (out[0], 0xff, sizeof (out[0]));
        CHECK_OK (gs_pool_evaluate (pool, in[0], rows, out[0]));
        check_results (step, in[0], out[0], rows);
        check_gradients (pool, step, in[0], rows);
        if (step % 7 == 0)
            check_gradients (pool, step + 1, in[0], rows);
    }
}

/* Two steps in flight, of which the first ends when the second has begun; and a backward pass of
 * the one that ended while the next is in flight. */
static void check_two_in_flight (gs_pool_t *pool)
{
    size_t rows[2];

    for (int step = 0; step < STEPS; step++) {
        int now = step % 2, before = 1 - now;
        rows[now] = rows_of (step);
        fill (in[now], rows[now] * INPUTS, 100 + step);
        CHECK_OK (gs_pool_begin (pool, in[now], rows[now]));
        if (!step)
            continue;
        memset (out[before], 0xff, sizeof (out[before]));
        CHECK_OK (gs_pool_end (pool, out[before]));
        check_results (step, in[before], out[before], rows[before]);
        check_gradients (pool, step, in[before], rows[before]);
    }
    CHECK_OK (gs_pool_end (pool, out[(STEPS - 1) % 2]));
    check_results (STEPS, in[(STEPS - 1) % 2], out[(STEPS - 1) % 2], rows[(STEPS - 1) % 2]);
}

/* Rows that the program writes where they are to be; results that it does not want. */
static void check_in_place (gs_pool_t *pool)
{
    void *place = NULL;

    for (int step = 0; step < 6; step++) {
        size_t rows = rows_of (step);
        CHECK_OK (gs_pool_begin (pool, NULL, rows));
        CHECK_OK (gs_pool_get_rows (pool, &place));
        fill (in[0], rows * INPUTS, 200 + step);
        if (rows)
            memcpy (place, in[0], rows * INPUTS * sizeof (float));
        CHECK_OK (gs_pool_end (pool, step % 2 ? NULL : out[0]));
        if (step % 2 == 0)
            check_results (step, in[0], out[0], rows);
    }
}

/* Memory of the communicator's device, with what [from] has if that is not NULL. */
static float *on_device (const float *from, size_t count)
{
    void *memory = NULL;

    CHECK_OK (gs_device_alloc (comm, count * sizeof (float), &memory));
    if (from)
        CHECK_OK (gs_device_copy (comm, memory, from, count * sizeof (float), NULL));
    return memory;
}

/* Rows that a stream of the program's is (on GPUs) still copying there when the step ends. */
static void check_queued_in_place (gs_pool_t *pool, const float *x, size_t rows)
{
    void *place = NULL;
    char *slow[2];
    size_t bytes = (size_t) 8 << 20;

    for (int i = 0; i < 2; i++)
        slow[i] = (char *) on_device (NULL, bytes / sizeof (float));
    CHECK_OK (gs_pool_begin (pool, NULL, rows));
    CHECK_OK (gs_pool_get_rows (pool, &place));
    memset (place, 0xff, rows * INPUTS * sizeof (float));
    for (int i = 0; i < 8; i++)
        CHECK_OK (gs_device_copy (comm, slow[i % 2], slow[1 - i % 2], bytes, NULL));
    CHECK_OK (gs_device_copy (comm, place, x, rows * INPUTS * sizeof (float), NULL));
    CHECK_OK (gs_pool_end (pool, out[0]));
    check_results (0, in[0], out[0], rows);
    for (int i = 0; i < 2; i++)
        CHECK_OK (gs_device_free (comm, slow[i]));
}

/* Arrays on the device, which are not waited for before; on hosts they are in shared memory. */
static void check_on_device (void)
{
    gs_pool_opts_t opts = usual ();
    gs_pool_t *pool;
    size_t rows = 30;
    float *x, *y, *grad_y, *grad_x;

    fill (in[0], rows * INPUTS, 300);
    fill (grad_out, rows * OUTPUTS, 301);
    CHECK_OK (gs_pool_create (comm, &opts, &pool));
    x = on_device (in[0], rows * INPUTS);
    y = on_device (NULL, rows * OUTPUTS);
    grad_y = on_device (grad_out, rows * OUTPUTS);
    grad_x = on_device (NULL, rows * INPUTS);
    CHECK_OK (gs_pool_evaluate (pool, x, rows, y));
    CHECK_OK (gs_pool_backward (pool, grad_y, grad_x));
    CHECK_OK (gs_device_copy (comm, out[0], y, rows * OUTPUTS * sizeof (float), NULL));
    CHECK_OK (gs_device_copy (comm, grad_in, grad_x, rows * INPUTS * sizeof (float), NULL));
    CHECK_OK (gs_comm_wait (comm, NULL));
    check_results (0, in[0], out[0], rows);
    for (size_t r = 0; r < rows; r++) {
        float wanted[INPUTS];
        take_row_back (in[0] + r * INPUTS, grad_out + r * OUTPUTS, wanted);
        CHECK (!memcmp (wanted, grad_in + r * INPUTS, sizeof (wanted)), "gradient %zu", r);
    }
    check_queued_in_place (pool, x, rows);
    CHECK_OK (gs_device_free (comm, x));
    CHECK_OK (gs_device_free (comm, y));
    CHECK_OK (gs_device_free (comm, grad_y));
    CHECK_OK (gs_device_free (comm, grad_x));
    CHECK_OK (gs_pool_destroy (pool));
}

/* What evaluators have taken is what all ranks had: gradients do not count. */
static void check_totals (const gs_pool_t *pool)
{
    gs_pool_info_t info = {.size = sizeof (info)};
    uint64_t sums[2];

    CHECK_OK (gs_pool_get_info (pool, &info));
    sums[0] = info.rows;
    sums[1] = info.taken;
    CHECK_OK (gs_allreduce (comm, sums, 2, GS_U64, GS_SUM, NULL));
    CHECK (sums[0] && sums[0] == sums[1], "of %llu rows %llu were taken",
           (unsigned long long) sums[0], (unsigned long long) sums[1]);
}

static void check_steps (gs_evaluator_t wish, size_t batch)
{
    gs_pool_info_t info = {.size = sizeof (info)};
    gs_pool_opts_t opts = usual ();
    gs_pool_t *pool;
    int local = gs_comm_local_rank (comm), count = gs_comm_local_size (comm);

    opts.evaluator = wish == GS_EVALUATOR_AUTO          ? wish
                     : local == count - 1 || local == 0 ? GS_EVALUATOR_YES
                                                        : GS_EVALUATOR_NO;
    opts.max_batch = batch;
    longest = 0;
    CHECK_OK (gs_pool_create (comm, &opts, &pool));
    check_one_by_one (pool);
    check_two_in_flight (pool);
    check_in_place (pool);
    CHECK_OK (gs_pool_get_info (pool, &info));
    CHECK (info.steps == 2 * STEPS + 6, "%llu steps", (unsigned long long) info.steps);
    check_totals (pool);
    CHECK (!batch || longest <= batch, "a batch has %zu rows", longest);
    CHECK (info.evaluator || !longest, "who is no evaluator was given a batch");
    if (wish == GS_EVALUATOR_YES)
        CHECK (info.evaluator == (opts.evaluator == GS_EVALUATOR_YES) &&
                   info.evaluators == (count > 1 ? 2 : 1),
               "%d evaluators, this one %d", info.evaluators, info.evaluator);
    CHECK_OK (gs_pool_destroy (pool));
}

/* ---- Across nodes ---- */

/* The first node has all rows; each evaluator of all nodes takes as many, and later more. */
static void check_even (void)
{
    gs_pool_info_t info = {.size = sizeof (info)};
    gs_pool_opts_t opts = usual ();
    gs_pool_t *pool;
    size_t rows = gs_comm_node (comm) ? 0 : 30;
    uint64_t *taken = calloc ((size_t) size, sizeof (*taken)), own, least = UINT64_MAX, most = 0;

    opts.max_batch = 0;
    CHECK_OK (gs_pool_create (comm, &opts, &pool));
    for (int step = 1; step <= 2; step++) {
        fill (in[0], rows * INPUTS, 600 + step);
        memset (out[0], 0xff, sizeof (out[0]));
        CHECK_OK (gs_pool_evaluate (pool, in[0], rows, out[0]));
        check_results (step, in[0], out[0], rows);
        check_gradients (pool, step, in[0], rows);
        CHECK_OK (gs_pool_get_info (pool, &info));
        CHECK (info.batches <= (uint64_t) step, "%llu batches",
               (unsigned long long) info.batches);
    }
    own = info.evaluator ? info.taken : UINT64_MAX;
    CHECK_OK (gs_allgather (comm, &own, taken, 1, GS_U64, NULL));
    for (int r = 0; r < size; r++) {
        least = taken[r] < least ? taken[r] : least;
        most = taken[r] != UINT64_MAX && taken[r] > most ? taken[r] : most;
    }
    CHECK (most - least <= 2, "evaluators have from %llu to %llu rows",
           (unsigned long long) least, (unsigned long long) most);
    free (taken);
    CHECK_OK (gs_pool_destroy (pool));
}

/* More than other nodes have room for stays, and is right. */
static void check_room (void)
{
    gs_pool_opts_t opts = usual ();
    gs_pool_t *pool;

    CHECK_OK (gs_pool_create (comm, &opts, &pool));
    for (int turn = 0; turn < 3; turn++) {
        size_t rows = gs_comm_node (comm) == turn % gs_comm_nodes (comm) ? MOST : MOST - 2;
        fill (in[0], rows * INPUTS, 700 + turn);
        memset (out[0], 0xff, sizeof (out[0]));
        CHECK_OK (gs_pool_evaluate (pool, in[0], rows, out[0]));
        check_results (turn, in[0], out[0], rows);
        check_gradients (pool, turn, in[0], rows);
    }
    CHECK_OK (gs_pool_destroy (pool));
}

/* A function fails on rank 0 alone: all ranks that wait for it are told. */
static void check_one_failure (void)
{
    gs_pool_opts_t opts = usual ();
    gs_pool_t *pool;
    bool told = balance == GS_BALANCE_ACROSS_NODES || gs_comm_node (comm) == 0;

    opts.evaluator = gs_comm_local_rank (comm) ? GS_EVALUATOR_NO : GS_EVALUATOR_YES;
    CHECK_OK (gs_pool_create (comm, &opts, &pool));
    fill (in[0], 20 * INPUTS, 8);
    fill (grad_out, 20 * OUTPUTS, 9);
    fail_at = rank ? -1 : 0;
    if (told)
        CHECK_FAILS (gs_pool_evaluate (pool, in[0], 20, out[0]), GS_ERR_DEVICE,
                     "on_batch of rank 0", "returned 6 (GS_ERR_DEVICE) in step 1");
    else
        CHECK_OK (gs_pool_evaluate (pool, in[0], 20, out[0]));
    fail_at = rank ? -1 : 0;
    if (told)
        CHECK_FAILS (gs_pool_backward (pool, grad_out, grad_in), GS_ERR_NOMEM,
                     "on_gradient of rank 0");
    else
        CHECK_OK (gs_pool_backward (pool, grad_out, grad_in));
    fail_at = -1;
    CHECK_OK (gs_pool_evaluate (pool, in[0], 20, out[0]));
    check_results (0, in[0], out[0], 20);
    check_gradients (pool, 0, in[0], 20);
    CHECK_OK (gs_pool_destroy (pool));
}

/* ---- Failures of the program's functions ---- */

static void check_failures (void)
{
    gs_pool_opts_t opts = usual ();
    gs_pool_t *pool;
    size_t rows = 20;
    gs_status_t st;

    opts.name = "failing";
    CHECK_OK (gs_pool_create (comm, &opts, &pool));
    fill (in[0], rows * INPUTS, 5);
    fail_at = 0;
    CHECK_FAILS (gs_pool_evaluate (pool, in[0], rows, out[0]), GS_ERR_DEVICE, "gs_pool_evaluate",
                 "on_batch of rank", "returned 6 (GS_ERR_DEVICE) in step 1", "pool 'failing'");
    fail_at = -1;
    CHECK_OK (gs_comm_check (comm));
    CHECK_OK (gs_pool_evaluate (pool, in[0], rows, out[0]));
    check_results (0, in[0], out[0], rows);
    fail_at = 0;
    fill (grad_out, rows * OUTPUTS, 6);
    st = gs_pool_backward (pool, grad_out, grad_in);
    CHECK (st == GS_ERR_NOMEM && strstr (gs_last_error (), "on_gradient of rank"),
           "a failing on_gradient gives %s: %s", gs_status_string (st), gs_last_error ());
    fail_at = -1;
    check_gradients (pool, 7, in[0], rows);
    CHECK_OK (gs_pool_destroy (pool));
    CHECK_OK (gs_comm_check (comm));
}

/* ---- Several pools, and groups ---- */

static void check_calls_of_function (void)
{
    gs_pool_opts_t opts = usual ();
    gs_pool_t *pool;

    opts.name = "inside";
    CHECK_OK (gs_pool_create (comm, &opts, &pool));
    inside = pool;
    CHECK_OK (gs_pool_evaluate (pool, in[0], 5, out[0]));
    inside = NULL;
    CHECK_OK (gs_pool_evaluate (pool, in[0], 5, out[0]));
    check_results (0, in[0], out[0], 5);
    CHECK_OK (gs_pool_destroy (pool));
}

/* Two pools in turn; another order is told across nodes, or with GS_CHECK=collective. */
static void check_two_pools (void)
{
    bool across = balance == GS_BALANCE_ACROSS_NODES && gs_comm_nodes (comm) > 1;
    const char *check = getenv ("GS_CHECK"),
               *text = across ? "different pools" : "pool and stage";
    bool compares = check && !strcmp (check, "collective");
    gs_pool_opts_t opts = usual ();
    int node = gs_comm_node (comm) > 0;
    gs_pool_t *pools[2];

    for (int i = 0; i < 2; i++)
        CHECK_OK (gs_pool_create (comm, &opts, &pools[i]));
    for (int i = 0; i < 2; i++) {
        fill (in[i], MOST * INPUTS, 400 + i);
        CHECK_OK (gs_pool_begin (pools[i], in[i], (size_t) (MOST - i)));
    }
    for (int i = 0; i < 2; i++) {
        CHECK_OK (gs_pool_end (pools[i], out[i]));
        check_results (i, in[i], out[i], (size_t) (MOST - i));
    }
    if (size > 1 && (across || compares))
        CHECK_FAILS (gs_pool_evaluate (pools[rank > 0], in[0], 1, out[0]), GS_ERR_MISMATCH, text);
    for (int i = 0; i < 2; i++) {
        CHECK_OK (gs_pool_evaluate (pools[i], in[i], 3, out[i]));
        check_results (i, in[i], out[i], 3);
    }
    for (int i = 0; i < 2 && across; i++)
        CHECK_OK (gs_pool_begin (pools[i], in[i], node ? 1 : MOST)); /* some go elsewhere */
    if (across)
        CHECK_FAILS (gs_pool_end (pools[node], out[0]), GS_ERR_MISMATCH,
                     compares ? "pool and stage" : text);
    for (int i = 0; i < 2; i++)
        CHECK_OK (gs_pool_destroy (pools[i]));
}

/* A pool of a group whose ranks are in the other order, and one of all ranks beside it. */
static void check_group (void)
{
    gs_pool_opts_t opts = usual ();
    gs_comm_t *group;
    gs_pool_t *pool, *all;

    CHECK_OK (gs_comm_split (comm, rank % 2, -rank, &group));
    CHECK_OK (gs_pool_create (group, &opts, &pool));
    CHECK_OK (gs_pool_create (comm, &opts, &all));
    for (int step = 0; step < 4; step++) {
        size_t rows = rows_of (step);
        fill (in[0], rows * INPUTS, 500 + step);
        memset (out, 0xff, sizeof (out));
        CHECK_OK (gs_pool_evaluate (pool, in[0], rows, out[0]));
        CHECK_OK (gs_pool_evaluate (all, in[0], rows, out[1]));
        check_results (step, in[0], out[0], rows);
        check_results (step, in[0], out[1], rows);
    }
    CHECK_OK (gs_pool_destroy (pool));
    CHECK_OK (gs_pool_destroy (all));
    CHECK_OK (gs_comm_destroy (group));
}

/* ---- Refusals ---- */

static void check_states (void)
{
    gs_pool_opts_t opts = usual ();
    gs_pool_info_t info = {.size = 0};
    gs_pool_t *pool;
    void *place;

    CHECK_OK (gs_pool_create (comm, &opts, &pool));
    CHECK_FAILS (gs_pool_end (pool, out[0]), GS_ERR_STATE, "gs_pool_end",
                 "no step in flight: gs_pool_begin");
    CHECK_FAILS (gs_pool_get_rows (pool, &place), GS_ERR_STATE, "no step in flight");
    CHECK_FAILS (gs_pool_get_rows (pool, NULL), GS_ERR_ARG, "rows is NULL");
    CHECK_FAILS (gs_pool_backward (pool, grad_out, grad_in), GS_ERR_STATE, "no step of", "ended");
    CHECK_FAILS (gs_pool_begin (pool, in[0], MOST + 1), GS_ERR_ARG, "51 rows", "max_rows, 50");
    CHECK_FAILS (gs_pool_begin (pool, (char *) in[0] + 1, 1), GS_ERR_ARG, "not aligned");
    CHECK_FAILS (gs_pool_evaluate (pool, NULL, 1, out[0]), GS_ERR_ARG, "in is NULL");
    CHECK_FAILS (gs_pool_evaluate (pool, in[0], 1, (char *) out[0] + 1), GS_ERR_ARG,
                 "not aligned");
    CHECK_FAILS (gs_pool_evaluate (pool, in[0], SIZE_MAX / 8, out[0]), GS_ERR_ARG,
                 "max_rows, 50");
    CHECK_FAILS (gs_pool_end (pool, out[0]), GS_ERR_STATE, "no step in flight");
    CHECK_FAILS (gs_pool_get_info (pool, NULL), GS_ERR_ARG, "info is NULL");
    CHECK_FAILS (gs_pool_get_info (pool, &info), GS_ERR_ARG, "no size");
    CHECK_OK (gs_pool_begin (pool, in[0], 1));
    CHECK_FAILS (gs_pool_evaluate (pool, in[0], 1, out[0]), GS_ERR_STATE, "in flight");
    CHECK_OK (gs_pool_begin (pool, in[0], 1));
    CHECK_FAILS (gs_pool_begin (pool, in[0], 1), GS_ERR_STATE, "2 steps in flight");
    CHECK_OK (gs_pool_end (pool, out[0]));
    CHECK_OK (gs_pool_begin (pool, in[0], 1));
    CHECK_FAILS (gs_pool_backward (pool, grad_out, grad_in), GS_ERR_STATE, "two steps");
    CHECK_FAILS (gs_comm_destroy (comm), GS_ERR_STATE, "");
    CHECK_OK (gs_pool_destroy (pool));
    CHECK_FAILS (gs_pool_begin (NULL, in[0], 1), GS_ERR_ARG, "gs_pool_begin", "pool is NULL");
    CHECK_OK (gs_pool_destroy (NULL));
}

/* An option that is wrong on the last rank: all are told, and it is named where there are more.
 */
static void check_options (void)
{
    enum { OPTIONS = 7 };
    gs_pool_opts_t opts[OPTIONS];
    static const char *const words[] = {
        "inputs is 0", "unknown evaluator 7", "on_batch is NULL", "unknown dtype 77",
        "->reserved",  "unknown balance 2",   "more than memory"};
    gs_pool_t *pool;
    char name[40];

    for (int i = 0; i < OPTIONS; i++)
        opts[i] = usual ();
    opts[0].inputs = 0;
    opts[1].evaluator = (gs_evaluator_t) 7;
    opts[2].evaluator = GS_EVALUATOR_YES;
    opts[2].on_batch = NULL;
    opts[3].dtype = (gs_dtype_t) 77;
    opts[4].reserved[3] = &pool;
    opts[5].balance = (gs_balance_t) 2;
    opts[6].max_rows = SIZE_MAX / 64;
    snprintf (name, sizeof (name), "rank %d (host ", size - 1);
    for (int i = 0; i < OPTIONS - 1; i++) {
        gs_pool_opts_t good = usual ();
        gs_status_t st = gs_pool_create (comm, rank == size - 1 ? &opts[i] : &good, &pool);
        CHECK (st == GS_ERR_ARG && !pool, "option %d gives %s", i, gs_status_string (st));
        CHECK (strstr (gs_last_error (), words[i]), "no '%s' in '%s'", words[i],
               gs_last_error ());
        CHECK (rank == size - 1 || strstr (gs_last_error (), name), "no '%s' in '%s'", name,
               gs_last_error ());
    }
    CHECK_FAILS (gs_pool_create (comm, &opts[6], &pool), GS_ERR_ARG, words[6]);
    CHECK_FAILS (gs_pool_create (comm, NULL, &pool), GS_ERR_ARG, "opts is NULL");
    CHECK_FAILS (gs_pool_create (comm, &opts[0], NULL), GS_ERR_ARG, "pool is NULL");
    CHECK_FAILS (gs_pool_create (NULL, &opts[0], &pool), GS_ERR_ARG, "gs_pool_create");
}

/* Ranks that disagree, and nodes where nobody can. */
static void check_disagreements (void)
{
    gs_pool_opts_t opts = usual ();
    gs_pool_t *pool;

    opts.max_batch += rank == size - 1;
    if (size > 1)
        CHECK_FAILS (gs_pool_create (comm, &opts, &pool), GS_ERR_MISMATCH, "gs_pool_create",
                     "max_batch 16", "max_batch 17");
    opts = usual ();
    opts.evaluator = GS_EVALUATOR_NO;
    CHECK_FAILS (gs_pool_create (comm, &opts, &pool), GS_ERR_ARG, "no rank of host",
                 "evaluates for pool 'rows'");
    opts = usual ();
    opts.evaluator = GS_EVALUATOR_YES;
    opts.on_gradient = rank ? NULL : on_gradient;
    if (size > 1)
        CHECK_FAILS (gs_pool_create (comm, &opts, &pool), GS_ERR_MISMATCH, "rank 0 (host",
                     "has on_gradient, rank 1", "has none");
    opts.on_gradient = NULL;
    CHECK_OK (gs_pool_create (comm, &opts, &pool));
    CHECK_OK (gs_pool_evaluate (pool, in[0], 1, out[0]));
    CHECK_FAILS (gs_pool_backward (pool, grad_out, grad_in), GS_ERR_STATE, "no on_gradient");
    CHECK_OK (gs_pool_destroy (pool));
}

int main (void)
{
    comm = multi_create (NULL);
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    for (int b = 0; b < 2; b++) {
        balance = (gs_balance_t) b;
        check_steps (GS_EVALUATOR_AUTO, BATCH);
        check_steps (GS_EVALUATOR_AUTO, 0);
        check_steps (GS_EVALUATOR_YES, 1);
        check_on_device ();
        check_failures ();
        check_one_failure ();
        check_two_pools ();
        check_group ();
    }
    check_even ();
    check_room ();
    check_calls_of_function ();
    balance = GS_BALANCE_WITHIN_NODES;
    check_states ();
    check_options ();
    check_disagreements ();
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("rows of all ranks are evaluated by few as each would alone");
}
