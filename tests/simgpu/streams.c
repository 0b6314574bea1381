/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * streams - the program of streams.sh: calls on arrays in device memory against the streams they
 * are queued on. Runs on real GPUs as well.
 *
 *   streams blocked  every operation returns while its stream stands still
 *   streams weights  buckets of a weighted reducer leave while the stream stands still
 *   streams turns    ghosts of one halo are exchanged in two streams, which nothing else orders
 *   streams graph    messages and ghosts that were captured into a graph
 *   streams arrives  statistics of arrays of the host that the stream has yet to write
 *   streams pool     a step of a pool whose stream is captured is refused, the next one is right,
 *                    and so is one whose row the stream has yet to write in place
 */
#include <stdatomic.h>

#include "simgpu/check_cuda.h"

#define COUNT 1000 /* elements of a piece */
#define RANKS 16
#define NX    40 /* of a block of the field, which has a ghost layer on each side */
#define NY    3000

static gs_comm_t *comm;
static int rank, size;
static cudaStream_t stream;
static float *from, *to; /* [RANKS * COUNT] of the device */
static size_t counts[RANKS], displs[RANKS];
static gs_halo_t *halo;
static atomic_int gate;

/* ---- Operations that return ---- */

static gs_status_t average (void)
{
    return gs_allreduce_avg (comm, from, COUNT, GS_F32, stream);
}

static gs_status_t average_halves (void)
{
    return gs_allreduce_avg (comm, from, COUNT, GS_BF16, stream);
}

static gs_status_t largest (void)
{
    return gs_allreduce (comm, from, COUNT, GS_F32, GS_MAX, stream);
}

static gs_status_t broadcast (void)
{
    return gs_broadcast (comm, from, COUNT, GS_F32, size - 1, stream);
}

static gs_status_t allgather (void)
{
    return gs_allgather (comm, from, to, COUNT, GS_F32, stream);
}

static gs_status_t allgatherv (void)
{
    return gs_allgatherv (comm, from, counts[rank], to, RANKS * COUNT, counts, displs, GS_F32,
                          stream);
}

static gs_status_t gather (void)
{
    return gs_gather (comm, from, to, COUNT, GS_F32, 0, stream);
}

static gs_status_t gatherv (void)
{
    return gs_gatherv (comm, from, counts[rank], to, RANKS * COUNT, counts, displs, GS_F32, 0,
                       stream);
}

static gs_status_t scatter (void)
{
    return gs_scatter (comm, from, to, COUNT, GS_F32, 0, stream);
}

static gs_status_t scatterv (void)
{
    return gs_scatterv (comm, from, counts, displs, to, counts[rank], GS_F32, 0, stream);
}

static gs_status_t alltoall (void)
{
    return gs_alltoall (comm, from, to, COUNT, GS_F32, stream);
}

static gs_status_t alltoallv (void)
{
    size_t equal[RANKS];

    for (int r = 0; r < size; r++)
        equal[r] = COUNT / 2;
    return gs_alltoallv (comm, from, equal, NULL, to, equal, NULL, GS_F32, stream);
}

static gs_status_t reduce (void)
{
    return gs_reduce (comm, from, to, COUNT, GS_F32, GS_SUM, 0, stream);
}

static gs_status_t reduce_scatter (void)
{
    return gs_reduce_scatter (comm, from, to, COUNT, GS_F32, GS_SUM, stream);
}

static gs_status_t reduce_scatterv (void)
{
    return gs_reduce_scatterv (comm, from, counts, displs, to, counts[rank], GS_F32, GS_SUM,
                               stream);
}

static gs_status_t adjoint (void)
{
    return gs_allgather_backward (comm, from, to, COUNT, GS_F32, GS_GRAD_ADJOINT, stream);
}

static gs_status_t own_slot (void)
{
    return gs_allgather_backward (comm, from, to, COUNT, GS_F32, GS_GRAD_OWN_SLOT, stream);
}

static gs_status_t barrier (void)
{
    return gs_barrier (comm, stream);
}

/* To the next rank, from the one before. */
static gs_status_t messages (void)
{
    gs_status_t st = gs_group_begin (comm);

    st = st ? st : gs_send (comm, from, COUNT, GS_F32, (rank + 1) % size, stream);
    st = st ? st : gs_recv (comm, to, COUNT, GS_F32, (rank + size - 1) % size, stream);
    return st ? st : gs_group_end (comm);
}

static gs_status_t exchange (void)
{
    return gs_halo_exchange (halo, from, stream);
}

static gs_status_t exchange_back (void)
{
    return gs_halo_adjoint (halo, from, stream);
}

static const struct {
    const char *name;
    gs_status_t (*call) (void);
} operations[] = {{"an average", average},
                  {"an average of halves", average_halves},
                  {"a maximum", largest},
                  {"broadcast", broadcast},
                  {"allgather", allgather},
                  {"allgatherv", allgatherv},
                  {"gather", gather},
                  {"gatherv", gatherv},
                  {"scatter", scatter},
                  {"scatterv", scatterv},
                  {"alltoall", alltoall},
                  {"alltoallv", alltoallv},
                  {"reduce", reduce},
                  {"reduce_scatter", reduce_scatter},
                  {"reduce_scatterv", reduce_scatterv},
                  {"the adjoint of a gather", adjoint},
                  {"its own slot", own_slot},
                  {"a barrier", barrier},
                  {"messages", messages},
                  {"ghosts", exchange},
                  {"the adjoint of ghosts", exchange_back}};

static void stand_still (void *data)
{
    (void) data;
    while (!atomic_load (&gate))
        usleep (1000);
}

static void make_halo (size_t nx, size_t ny)
{
    const int grid[2] = {size, 1}, periodic[2] = {1, 1};
    const size_t extents[2] = {nx, ny}, width[2] = {1, 1};

    CHECK_OK (gs_halo_create (comm, 2, grid, extents, width, periodic, GS_F32, &halo));
}

/* The first round makes what is made once; in the second nothing moves until all have returned.
 */
static void blocked (void)
{
    const size_t number = sizeof (operations) / sizeof (operations[0]);

    make_halo (10, 20);
    for (int round = 0; round < 2; round++) {
        atomic_store (&gate, !round);
        CHECK_CUDA (cudaLaunchHostFunc (stream, stand_still, NULL));
        for (size_t i = 0; i < number; i++) {
            cudaSetDevice (-1); /* an error that the program does not read is not ours */
            CHECK (!operations[i].call (), "%s: %s", operations[i].name, gs_last_error ());
        }
        if (round)
            CHECK (cudaStreamQuery (stream) == cudaErrorNotReady, "the stream did not stand");
        atomic_store (&gate, 1);
        CHECK_OK (gs_comm_wait (comm, stream));
    }
}

/* ---- Buckets ---- */

static gs_reducer_t *make_reducer (void)
{
    const gs_reducer_opts_t options = {.size = sizeof (options),
                                       .first_bytes = 2 * COUNT,
                                       .bucket_bytes = 2 * COUNT,
                                       .last_bytes = 2 * COUNT,
                                       .weighted = 1};
    const size_t shape = COUNT;
    gs_reducer_t *reducer;

    CHECK_OK (gs_reducer_create (comm, &options, &reducer));
    CHECK_OK (gs_reducer_add (reducer, "first", 1, &shape, GS_BF16, NULL, NULL));
    CHECK_OK (gs_reducer_add (reducer, "second", 1, &shape, GS_BF16, NULL, NULL));
    CHECK_OK (gs_reducer_commit (reducer));
    return reducer;
}

/* The weights of a step are on the GPU already when the second of its buckets leaves. */
static void weights (void)
{
    gs_reducer_t *reducer = make_reducer ();

    for (int step = 0; step < 3; step++) {
        CHECK_OK (gs_reducer_set_weight (reducer, rank + step + 1));
        atomic_store (&gate, !step); /* the first one makes what is made once */
        CHECK_CUDA (cudaLaunchHostFunc (stream, stand_still, NULL));
        for (int g = 1; g >= 0; g--)
            CHECK_OK (gs_reducer_ready (reducer, g, stream));
        if (step)
            CHECK (cudaStreamQuery (stream) == cudaErrorNotReady, "the stream did not stand");
        atomic_store (&gate, 1);
        CHECK_OK (gs_reducer_finish (reducer, stream));
        CHECK_OK (gs_comm_wait (comm, stream));
    }
    CHECK_OK (gs_reducer_destroy (reducer));
}

/* ---- Ghosts ---- */

/* There, for all streams: from pageable memory cudaMemcpy may return before it is. */
static void to_device (void *device, const void *host, size_t bytes)
{
    CHECK_CUDA (cudaMemcpy (device, host, bytes, cudaMemcpyHostToDevice));
    CHECK_CUDA (cudaStreamSynchronize (cudaStreamLegacy));
}

/* Fills a field: cells have the rank, or what is [more]; ghosts -1. */
static void fill (float *field, float *host, float more)
{
    for (int i = 0; i < (NX + 2) * (NY + 2); i++) {
        int x = i / (NY + 2), y = i % (NY + 2);
        bool cell = x > 0 && x <= NX && y > 0 && y <= NY;
        host[i] = cell ? (float) rank + more : -1;
    }
    to_device (field, host, (NX + 2) * (NY + 2) * sizeof (float));
}

static void check_ghosts (const float *field, float *host, float more)
{
    size_t wrong = 0;

    CHECK_CUDA (
        cudaMemcpy (host, field, (NX + 2) * (NY + 2) * sizeof (float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < (NX + 2) * (NY + 2); i++) {
        int x = i / (NY + 2);
        int owner = x == 0 ? rank - 1 + size : x == NX + 1 ? rank + 1 : rank;
        wrong += host[i] != (float) (owner % size) + more;
    }
    CHECK (!wrong, "%zu numbers of %g are wrong", wrong, more);
}

/* Nothing but the halo itself keeps one stream's ghosts from the other's. */
static void turns (void)
{
    const size_t bytes = (NX + 2) * (NY + 2) * sizeof (float);
    float *host = malloc (bytes), *field[6];
    cudaStream_t other;

    CHECK_CUDA (cudaStreamCreateWithFlags (&other, cudaStreamNonBlocking));
    make_halo (NX, NY);
    for (int f = 0; f < 6; f++) {
        void *memory;
        CHECK_OK (gs_device_alloc (comm, bytes, &memory));
        fill (field[f] = memory, host, (float) (100 * f));
    }
    for (int f = 0; f < 6; f++)
        CHECK_OK (gs_halo_exchange (halo, field[f], f % 2 ? other : stream));
    CHECK_OK (gs_comm_wait (comm, stream));
    CHECK_OK (gs_comm_wait (comm, other));
    for (int f = 0; f < 6; f++) {
        check_ghosts (field[f], host, (float) (100 * f));
        CHECK_OK (gs_device_free (comm, field[f]));
    }
    CHECK_CUDA (cudaStreamDestroy (other));
    free (host);
}

static void graph (void)
{
    const size_t bytes = (NX + 2) * (NY + 2) * sizeof (float);
    float *host = malloc (bytes), first = 0;
    cudaGraph_t captured;
    cudaGraphExec_t exec;
    void *field;

    make_halo (NX, NY);
    CHECK_OK (gs_device_alloc (comm, bytes, &field));
    for (int i = 0; i < 2; i++) /* the first two calls are compared */
        CHECK_OK (gs_barrier (comm, stream));
    CHECK_OK (gs_comm_wait (comm, stream));
    CHECK_CUDA (cudaStreamBeginCapture (stream, cudaStreamCaptureModeThreadLocal));
    CHECK_OK (gs_halo_exchange (halo, field, stream));
    CHECK_OK (alltoallv ());
    CHECK_OK (allgatherv ());
    CHECK_OK (messages ());
    CHECK_FAILS (gs_allgatherv (comm, from, 1, to, RANKS * COUNT, NULL, NULL, GS_F32, stream),
                 GS_ERR_UNSUPPORTED, "gs_allgatherv", "graph", "counts");
    CHECK_FAILS (gs_halo_exchange (halo, host, stream), GS_ERR_UNSUPPORTED, "halo", "graph",
                 "host memory");
    CHECK_CUDA (cudaStreamEndCapture (stream, &captured));
    CHECK_CUDA (cudaGraphInstantiate (&exec, captured, 0));
    for (int i = 0; i < 3; i++) {
        float sent = (float) (10 * rank + i);
        fill (field, host, (float) i);
        to_device (from, &sent, sizeof (sent));
        CHECK_CUDA (cudaGraphLaunch (exec, stream));
        CHECK_OK (gs_comm_wait (comm, stream));
        check_ghosts (field, host, (float) i);
        CHECK_CUDA (cudaMemcpy (&first, to, sizeof (first), cudaMemcpyDeviceToHost));
        CHECK (first == (float) ((rank + size - 1) % size * 10 + i), "a message brings %g",
               first);
    }
    CHECK_CUDA (cudaGraphExecDestroy (exec));
    CHECK_CUDA (cudaGraphDestroy (captured));
    CHECK_OK (gs_device_free (comm, field));
    free (host);
}

/* ---- Arrays of the host ---- */

static float arriving[COUNT];

static void write_late (void *data)
{
    usleep (100000);
    for (int i = 0; i < COUNT; i++)
        arriving[i] = *(const float *) data;
}

static void arrives (void)
{
    static float values[2] = {3, 5};
    const gs_array_t array = {"arriving", arriving, COUNT, GS_F32};
    gs_moments_t m;

    CHECK_CUDA (cudaLaunchHostFunc (stream, write_late, &values[0]));
    CHECK_OK (gs_moments_compute (comm, arriving, COUNT, 1, GS_F32, NULL, 0, &m, stream));
    CHECK (m.mean == 3 && m.min == 3, "a mean of %g, from %g on: it came too early", m.mean,
           m.min);
    arriving[0] = (float) rank; /* if it is compared now, ranks differ */
    CHECK_CUDA (cudaLaunchHostFunc (stream, write_late, &values[1]));
    CHECK_OK (gs_arrays_compare (comm, &array, 1, 0, stream));
    CHECK (arriving[0] == 5, "it was compared too early");
}

/* ---- Pools ---- */

static gs_status_t copy_rows (size_t rows, const void *in, void *out, gs_stream_t s,
                              void *context)
{
    (void) s;
    (void) context;
    memcpy (out, in, rows * sizeof (float));
    return GS_OK;
}

/* Writes 7 to where a row lies. */
static void write_row_late (void *place)
{
    usleep (100000);
    *(float *) place = 7;
}

static void check_row_in_place (gs_pool_t *pool)
{
    float out = 0;
    void *place;

    CHECK_OK (gs_pool_begin (pool, NULL, 1));
    CHECK_OK (gs_pool_get_rows (pool, &place));
    CHECK_CUDA (cudaLaunchHostFunc (stream, write_row_late, place));
    CHECK_OK (gs_pool_end (pool, &out));
    CHECK (out == 7, "the result is %g: the row was taken too early", (double) out);
}

static void pool_of_rows (void)
{
    gs_pool_opts_t opts = GS_POOL_OPTS_INIT;
    float in = (float) rank + 1, out = 0;
    cudaGraph_t captured;
    gs_pool_t *pool;

    opts.inputs = opts.outputs = opts.max_rows = 1;
    opts.dtype = GS_F32;
    opts.on_batch = copy_rows;
    opts.stream = stream;
    CHECK_OK (gs_pool_create (comm, &opts, &pool));
    CHECK_CUDA (cudaStreamBeginCapture (stream, cudaStreamCaptureModeThreadLocal));
    CHECK_FAILS (gs_pool_evaluate (pool, &in, 1, &out), GS_ERR_UNSUPPORTED, "pool of", "graph",
                 "waits in it for the other ranks");
    CHECK_CUDA (cudaStreamEndCapture (stream, &captured));
    CHECK_CUDA (cudaGraphDestroy (captured));
    CHECK_OK (gs_pool_evaluate (pool, &in, 1, &out));
    CHECK (out == in, "the result is %g, not %g", (double) out, (double) in);
    check_row_in_place (pool);
    CHECK_OK (gs_pool_destroy (pool));
}

/* The stream of the last rank, which evaluates nothing, does not come as far as its rows. */
static void late_pool (void)
{
    gs_pool_opts_t opts = GS_POOL_OPTS_INIT;
    bool late = rank == size - 1;
    gs_pool_t *pool;

    opts.inputs = opts.outputs = opts.max_rows = 1;
    opts.dtype = GS_F32;
    opts.on_batch = late ? NULL : copy_rows;
    opts.stream = stream;
    CHECK_OK (gs_pool_create (comm, &opts, &pool));
    if (late)
        CHECK_CUDA (cudaLaunchHostFunc (stream, stand_still, NULL));
    CHECK_FAILS (gs_pool_evaluate (pool, from, 1, to), GS_ERR_TIMEOUT, "deadline");
    atomic_store (&gate, 1);
    gs_pool_destroy (pool);
}

static float *make_array (void)
{
    void *memory = NULL;

    CHECK_OK (gs_device_alloc (comm, RANKS * COUNT * sizeof (float), &memory));
    CHECK_CUDA (cudaMemset (memory, 0, RANKS * COUNT * sizeof (float)));
    CHECK_CUDA (cudaStreamSynchronize (cudaStreamLegacy));
    return memory;
}

int main (int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";

    comm = multi_create (NULL);
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    CHECK_CUDA (cudaSetDevice (gs_comm_device (comm)));
    CHECK_CUDA (cudaStreamCreateWithFlags (&stream, cudaStreamNonBlocking));
    for (int r = 0; r < size; r++) {
        counts[r] = (size_t) (COUNT - 10 * r);
        displs[r] = (size_t) r * COUNT;
    }
    from = make_array ();
    to = make_array ();
    if (!strcmp (mode, "blocked"))
        blocked ();
    else if (!strcmp (mode, "weights"))
        weights ();
    else if (!strcmp (mode, "turns"))
        turns ();
    else if (!strcmp (mode, "graph"))
        graph ();
    else if (!strcmp (mode, "arrives"))
        arrives ();
    else if (!strcmp (mode, "pool"))
        pool_of_rows ();
    else if (!strcmp (mode, "late pool"))
        late_pool ();
    else
        CHECK (false, "no such mode: '%s'", mode);
    CHECK_OK (gs_halo_destroy (halo));
    CHECK_OK (gs_device_free (comm, from));
    CHECK_OK (gs_device_free (comm, to));
    CHECK_CUDA (cudaStreamDestroy (stream));
    CHECK (!gs_comm_destroy (comm) || !strcmp (mode, "late pool"), "%s", gs_last_error ());
    return multi_end (mode);
}
