/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sharing - the program of sharing.sh: ranks that share GPUs, and what becomes of what they have
 * queued. Runs on real GPUs as well.
 *
 *   sharing sums      averages of several blocks
 *   sharing late      a rank does not come to a sum, nor to a call of hosts: streams go on
 *   sharing full      nor to as many sums as the GPU's queue takes
 *   sharing aborts    a rank gives up while others end the communicator
 *   sharing beside    another thread gives it up while this one ends it
 *   sharing others    a communicator ends while another one has queued what waits for a rank
 *   sharing apart     a sum is captured, and others are not, at the same time
 *   sharing refused   what a capture has no memory for is refused on all ranks
 *   sharing graph     a graph runs when its communicator was given up and ended
 *   sharing long      pieces of an alltoallv that do not fit into what they go through
 *   sharing group     a group is as its parent, whatever the environment says by then
 *   sharing hosts N   messages in host memory, beside some of the device, N times, ever longer
 */
#include <pthread.h>

#include "simgpu/check_cuda.h"

#define COUNT ((size_t) 3000000) /* elements of a sum: more than one block */
#define SUMS  3000               /* more than SIM_LAUNCH_QUEUE has room for */

static gs_comm_t *comm;
static int rank, size;
static cudaStream_t stream;
static float *array; /* [COUNT] of the device */
static int times = 1;

static void fill (float value)
{
    float *x = malloc (COUNT * sizeof (*x));

    for (size_t i = 0; i < COUNT; i++)
        x[i] = value;
    CHECK_CUDA (cudaMemcpy (array, x, COUNT * sizeof (*x), cudaMemcpyHostToDevice));
    CHECK_CUDA (cudaStreamSynchronize (NULL)); /* what was pageable may be on its way still */
    free (x);
}

static void expect (float value, const char *what)
{
    float *x = malloc (COUNT * sizeof (*x));
    size_t wrong = 0;

    CHECK_CUDA (cudaMemcpy (x, array, COUNT * sizeof (*x), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < COUNT; i++)
        wrong += x[i] != value;
    CHECK (!wrong, "%s: %zu of %zu elements are not %g, the first is %g", what, wrong, COUNT,
           (double) value, (double) x[0]);
    free (x);
}

static void begin (int64_t timeout_ms)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;

    opts.timeout_ms = timeout_ms;
    comm = multi_create (&opts);
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    CHECK_CUDA (cudaSetDevice (gs_comm_device (comm)));
    CHECK_CUDA (cudaStreamCreateWithFlags (&stream, cudaStreamNonBlocking));
    CHECK_CUDA (cudaMalloc ((void **) &array, COUNT * sizeof (*array)));
    for (int i = 0; i < 3; i++) /* the first calls are compared, and NCCL connects in them */
        CHECK_OK (gs_allreduce_avg (comm, array, COUNT, GS_F32, stream));
    CHECK_OK (gs_comm_wait (comm, stream));
    fill (1);
}

static void end (void)
{
    CHECK_CUDA (cudaStreamDestroy (stream));
    CHECK_CUDA (cudaFree (array));
}

static void check_sums (void)
{
    begin (0);
    for (int i = 0; i < 3; i++) {
        fill ((float) (rank + i));
        CHECK_OK (gs_allreduce_avg (comm, array, COUNT, GS_F32, stream));
        CHECK_OK (gs_comm_wait (comm, stream));
        expect ((float) (size - 1) / 2 + (float) i, "average");
    }
    CHECK_OK (gs_comm_destroy (comm));
    end ();
}

/* ---- Ranks that do not come ---- */

static void check_late (void)
{
    char last[32];
    float x = 1;

    begin (2000);
    snprintf (last, sizeof (last), "rank %d ", size - 1);
    if (rank == size - 1) {
        multi_await_others ("late", rank);
    } else {
        CHECK_OK (gs_allreduce_avg (comm, array, COUNT, GS_F32, stream));
        CHECK_FAILS (gs_allreduce_avg (comm, &x, 1, GS_F32, NULL), GS_ERR_TIMEOUT,
                     "1 of 4 ranks did not come", last);
        CHECK_CUDA (cudaStreamSynchronize (stream));
        multi_signal ("late", rank);
    }
    gs_comm_abort (comm);
    CHECK_OK (gs_comm_destroy (comm));
    end ();
}

static void check_full (void)
{
    gs_status_t st = GS_OK;

    begin (2000);
    if (rank == size - 1) {
        multi_await_others ("full", rank);
    } else {
        for (int i = 0; i < SUMS && !st; i++)
            st = gs_allreduce_avg (comm, array, 1000, GS_F32, stream);
        CHECK (st, "all is queued");
        CHECK_CUDA (cudaStreamSynchronize (stream));
        multi_signal ("full", rank);
    }
    gs_comm_abort (comm);
    CHECK_OK (gs_comm_destroy (comm));
    end ();
}

/* ---- The end ---- */

static void check_aborts (void)
{
    begin (20000);
    if (rank == 0) {
        usleep (300000);
        CHECK_OK (gs_comm_abort (comm));
        CHECK_OK (gs_comm_destroy (comm));
    } else {
        CHECK (gs_comm_destroy (comm), "the end goes well without rank 0");
    }
    end ();
}

/* Another rank may have been first, so that this one's destroy is through. */
static void *give_up (void *unused)
{
    usleep (300000);
    CHECK (!gs_comm_abort (comm) || strstr (gs_last_error (), "was destroyed"), "abort: %s",
           gs_last_error ());
    return unused;
}

static void check_beside (void)
{
    pthread_t thread;

    begin (20000);
    if (rank == 0) {
        multi_await_others ("beside", rank);
        gs_comm_abort (comm);
        CHECK_OK (gs_comm_destroy (comm));
    } else {
        CHECK (!pthread_create (&thread, NULL, give_up, NULL), "no thread");
        CHECK (gs_comm_destroy (comm), "the end goes well without rank 0");
        multi_signal ("beside", rank);
        CHECK (!pthread_join (thread, NULL), "no end of the thread");
    }
    end ();
}

/* Rank 0 waits, on the GPU, for sums that the others make when they have ended their other one.
 */
static void check_others (void)
{
    gs_comm_t *other;

    begin (20000);
    other = multi_create (NULL);
    if (rank == 0)
        CHECK_OK (gs_allreduce (comm, array, COUNT, GS_F32, GS_SUM, stream));
    CHECK_OK (gs_comm_destroy (other));
    if (rank != 0)
        CHECK_OK (gs_allreduce (comm, array, COUNT, GS_F32, GS_SUM, stream));
    CHECK_OK (gs_comm_wait (comm, stream));
    expect ((float) size, "a sum beside an end");
    CHECK_OK (gs_comm_destroy (comm));
    end ();
}

/* ---- Graphs ---- */

static cudaGraphExec_t capture (void)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec = NULL;

    CHECK_CUDA (cudaStreamBeginCapture (stream, cudaStreamCaptureModeRelaxed));
    CHECK_OK (gs_allreduce (comm, array, COUNT, GS_F32, GS_SUM, stream));
    CHECK_CUDA (cudaStreamEndCapture (stream, &graph));
    CHECK_CUDA (cudaGraphInstantiate (&exec, graph, 0));
    CHECK_CUDA (cudaGraphDestroy (graph));
    return exec;
}

static void check_apart (void)
{
    cudaGraphExec_t exec;
    cudaStream_t own;
    cudaGraph_t graph;

    begin (20000);
    CHECK_CUDA (cudaStreamCreateWithFlags (&own, cudaStreamNonBlocking));
    CHECK_CUDA (cudaStreamBeginCapture (stream, cudaStreamCaptureModeRelaxed));
    CHECK_OK (gs_allreduce (comm, array, COUNT, GS_F32, GS_SUM, stream));
    CHECK_OK (gs_allreduce (comm, array, COUNT, GS_F32, GS_SUM, own));
    CHECK_OK (gs_allreduce (comm, array, COUNT, GS_F32, GS_SUM, stream));
    CHECK_CUDA (cudaStreamEndCapture (stream, &graph));
    CHECK_CUDA (cudaGraphInstantiate (&exec, graph, 0));
    CHECK_CUDA (cudaGraphDestroy (graph));
    CHECK_OK (gs_comm_wait (comm, own));
    expect ((float) size, "a sum beside a capture");
    for (int i = 0; i < 2; i++) {
        fill (1);
        CHECK_CUDA (cudaGraphLaunch (exec, own));
        CHECK_CUDA (cudaStreamSynchronize (own));
        expect ((float) (size * size), "two sums of a graph");
    }
    CHECK_OK (gs_allreduce (comm, array, COUNT, GS_F32, GS_SUM, own));
    CHECK_OK (gs_comm_wait (comm, own));
    expect ((float) (size * size * size), "a sum behind a graph");
    CHECK_CUDA (cudaGraphExecDestroy (exec));
    CHECK_CUDA (cudaStreamDestroy (own));
    CHECK_OK (gs_comm_destroy (comm));
    end ();
}

static void check_refused (void)
{
    cudaGraph_t graph;

    begin (20000);
    for (int i = 0; i < 2; i++) {
        CHECK_CUDA (cudaStreamBeginCapture (stream, cudaStreamCaptureModeRelaxed));
        if (i)
            CHECK_OK (gs_allreduce (comm, array, COUNT, GS_F32, GS_MAX, stream));
        else
            CHECK_FAILS (gs_allreduce (comm, array, COUNT, GS_F32, GS_MAX, stream),
                         GS_ERR_UNSUPPORTED, "call it once before");
        CHECK_CUDA (cudaStreamEndCapture (stream, &graph));
        CHECK_CUDA (cudaGraphDestroy (graph));
        fill ((float) rank);
        CHECK_OK (gs_allreduce (comm, array, COUNT, GS_F32, GS_MAX, stream));
        CHECK_OK (gs_comm_wait (comm, stream));
        expect ((float) (size - 1), "a maximum");
    }
    CHECK_OK (gs_comm_destroy (comm));
    end ();
}

static void check_graph (void)
{
    cudaGraphExec_t exec;

    begin (20000);
    exec = capture ();
    gs_comm_abort (comm);
    CHECK_OK (gs_comm_destroy (comm));
    CHECK_CUDA (cudaGraphLaunch (exec, stream)); /* it does nothing, but ends */
    CHECK_CUDA (cudaStreamSynchronize (stream));
    CHECK_CUDA (cudaGraphExecDestroy (exec));
    end ();
}

/* ---- Others ---- */

/* Rank r sends r + 1 times this to each, of which the device has little. */
static void check_long (void)
{
    const size_t unit = 1500001;
    size_t send[16], recv[16], at = 0, total = 0;
    float *in, *out, *x;

    begin (20000);
    for (int r = 0; r < size; r++) {
        send[r] = unit * (size_t) (rank + 1) - (size_t) r;
        recv[r] = unit * (size_t) (r + 1) - (size_t) rank;
        total += recv[r];
    }
    CHECK_CUDA (cudaMalloc ((void **) &in, unit * (size_t) ((rank + 1) * size) * sizeof (*in)));
    CHECK_CUDA (cudaMalloc ((void **) &out, total * sizeof (*out)));
    x = calloc (unit * (size_t) (size * size), sizeof (*x));
    for (int r = 0; r < size; r++)
        for (size_t i = 0; i < send[r]; i++)
            x[at++] = (float) ((size_t) (rank * 100 + r * 10) + i % 7);
    CHECK_CUDA (cudaMemcpy (in, x, at * sizeof (*x), cudaMemcpyHostToDevice));
    CHECK_CUDA (cudaStreamSynchronize (NULL));
    CHECK_OK (gs_alltoallv (comm, in, send, NULL, out, recv, NULL, GS_F32, stream));
    CHECK_OK (gs_comm_wait (comm, stream));
    CHECK_CUDA (cudaMemcpy (x, out, total * sizeof (*x), cudaMemcpyDeviceToHost));
    at = 0;
    for (int r = 0; r < size; r++)
        for (size_t i = 0; i < recv[r]; i++, at++)
            CHECK (x[at] == (float) ((size_t) (r * 100 + rank * 10) + i % 7),
                   "element %zu from rank %d is %g", i, r, (double) x[at]);
    free (x);
    CHECK_CUDA (cudaFree (in));
    CHECK_CUDA (cudaFree (out));
    CHECK_OK (gs_comm_destroy (comm));
    end ();
}

static void check_group (void)
{
    gs_comm_t *world;

    begin (20000);
    world = comm;
    setenv ("GS_GPU_SHARING", "never", 1);
    CHECK_OK (gs_comm_split (world, 0, rank, &comm));
    CHECK_OK (gs_allreduce (comm, array, COUNT, GS_F32, GS_SUM, stream));
    CHECK_OK (gs_comm_wait (comm, stream));
    expect ((float) size, "a sum of a group");
    CHECK_OK (gs_comm_destroy (comm));
    CHECK_OK (gs_comm_destroy (world));
    end ();
}

/* To the next rank and from the one before: [count] in host memory, as many less [short_of] as
 * the other end has, and a thousand on the device. */
static gs_status_t pass_on (float *out, float *in, size_t count, size_t short_of)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;

    CHECK_OK (gs_group_begin (comm));
    CHECK_OK (gs_send (comm, out, count, GS_F32, next, stream));
    CHECK_OK (gs_recv (comm, in, count, GS_F32, before, stream));
    CHECK_OK (gs_send (comm, out, count, GS_F32, next, stream));
    CHECK_OK (gs_recv (comm, in + count, count - short_of, GS_F32, before, stream));
    CHECK_OK (gs_send (comm, array, 1000, GS_F32, next, stream));
    CHECK_OK (gs_recv (comm, array + 1000, 1000, GS_F32, before, stream));
    return gs_group_end (comm);
}

static void check_passed (const float *in, size_t count, const char *what)
{
    float before = (float) ((rank + size - 1) % size), x[2000];
    size_t wrong = 0;

    for (size_t i = 0; i < count; i++)
        wrong += in[i] != before;
    CHECK_CUDA (cudaMemcpy (x, array, sizeof (x), cudaMemcpyDeviceToHost));
    for (size_t i = 1000; i < 2000; i++)
        wrong += x[i] != before;
    CHECK (!wrong, "%s: %zu elements are wrong", what, wrong);
}

static void check_hosts (void)
{
    const size_t most = (size_t) 100000 << times;
    float *out = malloc (most * sizeof (*out)), *in = malloc (2 * most * sizeof (*in));
    size_t count = 100000;

    begin (20000);
    for (int i = 0; i < times; i++, count *= 2) {
        fill ((float) rank);
        for (size_t k = 0; k < 2 * count; k++) {
            out[k / 2] = (float) rank;
            in[k] = -1;
        }
        CHECK_OK (pass_on (out, in, count, 0));
        check_passed (in, 2 * count, "messages in host memory");
    }
    fill ((float) rank);
    for (size_t k = 0; k < 200; k++)
        in[k] = -1;
    CHECK_FAILS (pass_on (out, in, 100, 1), GS_ERR_MISMATCH, "sends 400 bytes",
                 "receives 396 bytes");
    check_passed (in, 100, "messages beside one whose ends disagree");
    CHECK (in[100] == -1, "a message whose ends disagree was written");
    CHECK_OK (gs_comm_destroy (comm));
    free (out);
    free (in);
    end ();
}

int main (int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*check) (void);
    } parts[] = {{"sums", check_sums},     {"late", check_late},       {"full", check_full},
                 {"aborts", check_aborts}, {"beside", check_beside},   {"others", check_others},
                 {"apart", check_apart},   {"refused", check_refused}, {"graph", check_graph},
                 {"long", check_long},     {"group", check_group},     {"hosts", check_hosts}};
    const char *name = argc > 1 ? argv[1] : "";

    if (argc > 2)
        times = atoi (argv[2]);
    for (size_t i = 0; i < sizeof (parts) / sizeof (parts[0]); i++)
        if (!strcmp (parts[i].name, name)) {
            parts[i].check ();
            return multi_end (name);
        }
    fprintf (stderr, "sharing: what is \"%s\"?\n", name);
    return 99;
}
