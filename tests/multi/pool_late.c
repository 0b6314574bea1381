/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool_late - a rank of a pool that does not come: the others of its node name it at their
 * deadline, in each part of a step, and it gets no results when it comes. What a step costs the
 * heap: nothing.
 */
#include "holdings.h"

#define ROWS     12
#define LATE     1 /* the rank that is late, on the node of rank 0, which evaluates */
#define COMPARED 3 /* steps that go well before */
#define STEPS    200

/* Calls of this thread that allocate. Sanitizers have an allocator of their own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTS 0
static int counted, counting;
#else
#define COUNTS 1
static _Thread_local int counted, counting;

void *__libc_malloc (size_t bytes);
void *__libc_calloc (size_t number, size_t bytes);
void *__libc_realloc (void *memory, size_t bytes);

void *malloc (size_t bytes)
{
    counted += counting;
    return __libc_malloc (bytes);
}

void *calloc (size_t number, size_t bytes)
{
    counted += counting;
    return __libc_calloc (number, bytes);
}

void *realloc (void *memory, size_t bytes)
{
    counted += counting;
    return __libc_realloc (memory, bytes);
}
#endif

static gs_comm_t *comm;
static gs_pool_t *pool;
static int rank;
static double in[ROWS], out[ROWS];

static gs_status_t twice (size_t rows, const void *x, void *y, gs_stream_t stream, void *context)
{
    (void) stream;
    (void) context;
    for (size_t r = 0; r < rows; r++)
        ((double *) y)[r] = 2 * ((const double *) x)[r];
    return GS_OK;
}

static gs_status_t back (size_t rows, const void *x, const void *grad_y, void *grad_x,
                         gs_stream_t stream, void *context)
{
    (void) x;
    return twice (rows, grad_y, grad_x, stream, context);
}

static void make (int timeout_ms)
{
    gs_comm_opts_t comm_opts = GS_COMM_OPTS_INIT;
    gs_pool_opts_t opts = GS_POOL_OPTS_INIT;

    comm_opts.timeout_ms = timeout_ms;
    comm = multi_create (&comm_opts);
    opts.inputs = opts.outputs = 1;
    opts.dtype = GS_F64;
    opts.max_rows = ROWS;
    /* One of each node, so that no rank has what it needs without the others. */
    opts.evaluator = gs_comm_local_rank (comm) ? GS_EVALUATOR_NO : GS_EVALUATOR_YES;
    opts.on_batch = twice;
    opts.on_gradient = back;
    CHECK_OK (gs_pool_create (comm, &opts, &pool));
    for (int i = 0; i < COMPARED; i++)
        CHECK_OK (gs_pool_evaluate (pool, in, ROWS, out));
}

/* ---- Late ---- */

static gs_status_t evaluate (void)
{
    return gs_pool_evaluate (pool, in, ROWS, out);
}

/* The others have begun a step with this rank, whose rows do not come. */
static gs_status_t begin_in_place (void)
{
    return gs_pool_begin (pool, rank == LATE ? NULL : in, ROWS);
}

static gs_status_t end (void)
{
    return gs_pool_end (pool, out);
}

static gs_status_t backward (void)
{
    return gs_pool_backward (pool, in, out);
}

static const struct {
    const char *name;
    gs_status_t (*before) (void); /* that goes well on all; or NULL */
    gs_status_t (*call) (void);
} parts[] = {
    {"evaluate", NULL, evaluate}, {"end", begin_in_place, end}, {"backward", NULL, backward}};

static void run (int which)
{
    gs_status_t st;

    make (rank == LATE ? 30000 : 500);
    if (parts[which].before)
        CHECK_OK (parts[which].before ());
    if (rank == LATE) {
        multi_await (parts[which].name, 0);
        st = parts[which].call ();
        CHECK (st != GS_OK, "%s gives GS_OK behind the deadline of others", parts[which].name);
    } else {
        st = parts[which].call ();
        CHECK (rank || (st == GS_ERR_TIMEOUT && strstr (gs_last_error (), "pool #") &&
                        strstr (gs_last_error (), "rank 1 (host")),
               "%s without rank 1 gives %s: %s", parts[which].name, gs_status_string (st),
               gs_last_error ());
        multi_signal (parts[which].name, rank);
    }
    CHECK_OK (gs_pool_destroy (pool));
    gs_comm_destroy (comm);
}

/* ---- Memory ---- */

/* Steps take nothing of the heap: neither what they give back nor what they keep. */
static void check_heap (void)
{
    size_t before, after;
    void *volatile memory;

    counting = 1;
    memory = malloc (1);
    CHECK (!COUNTS || counted == 1, "allocations are not counted");
    free (memory);
    counting = counted = 0;
    make (30000);
    CHECK_OK (gs_pool_backward (pool, in, out));
    before = holdings_heap ();
    counting = !multi_any_gpus (); /* there CUDA may */
    for (int i = 0; i < STEPS; i++) {
        CHECK_OK (gs_pool_begin (pool, in, (size_t) (i % ROWS)));
        CHECK_OK (gs_pool_begin (pool, in, ROWS));
        CHECK_OK (gs_pool_end (pool, out));
        CHECK_OK (gs_pool_backward (pool, in, out));
        CHECK_OK (gs_pool_end (pool, out));
    }
    counting = 0;
    after = holdings_heap ();
    CHECK (!counted, "%d steps have allocated %d times", STEPS, counted);
    CHECK (after <= before, "%d steps have taken %zu bytes", STEPS, after - before);
    CHECK_OK (gs_pool_destroy (pool));
    CHECK_OK (gs_comm_destroy (comm));
}

/* Pools that come and go leave no memory of the node mapped, and no descriptor open. */
static void check_life (void)
{
    int files, descriptors;

    make (30000);
    files = holdings_mapped_files ();
    descriptors = holdings_descriptors ();
    for (int i = 0; i < 5; i++) {
        gs_pool_opts_t opts = GS_POOL_OPTS_INIT;
        gs_pool_t *another;
        opts.inputs = opts.outputs = 3;
        opts.dtype = GS_F32;
        opts.max_rows = 1000;
        opts.on_batch = twice;
        CHECK_OK (gs_pool_create (comm, &opts, &another));
        CHECK (holdings_mapped_files () == files + 1, "a pool is no mapping");
        CHECK_OK (gs_pool_destroy (another));
    }
    CHECK (holdings_mapped_files () == files, "%d files are mapped, not %d",
           holdings_mapped_files (), files);
    CHECK (holdings_descriptors () == descriptors, "descriptors are left open");
    CHECK_OK (gs_pool_destroy (pool));
    CHECK_OK (gs_comm_destroy (comm));
}

int main (void)
{
    setenv ("GS_DEBUG", "warn", 0);
    rank = multi_rank ();
    for (int i = 0; i < ROWS; i++)
        in[i] = i + rank;
    check_life ();
    check_heap ();
    for (int i = 0; i < (int) (sizeof (parts) / sizeof (parts[0])); i++)
        run (i);
    return multi_end_together ("a rank of a pool that does not come is named");
}
