/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chosen - the program of devices.sh. Without an argument it tells which transport and GPU each
 * rank got, or why none, and what becomes of an array on a GPU. With "current" it holds the
 * library to leaving the caller's device alone and to refusing arrays of another GPU, with
 * "captured" to putting calls into a CUDA graph or refusing to.
 */
#include <cuda_runtime_api.h>

#include "../multi/multi.h"

static gs_comm_t *comm;

/* The average of the ranks' numbers over an array at [x], in memory of the host or managed. */
static void check_average (float *x)
{
    int rank = gs_comm_rank (comm), size = gs_comm_size (comm);

    for (int i = 0; i < 100; i++)
        x[i] = (float) rank;
    CHECK_OK (gs_allreduce_avg (comm, x, 100, GS_F32, NULL));
    CHECK_OK (gs_comm_wait (comm, NULL));
    for (int i = 0; i < 100; i++)
        CHECK (x[i] == (float) (size - 1) / 2, "an average is %g", (double) x[i]);
}

static void tell_device_array (void)
{
    int device = gs_comm_device (comm) < 0 ? 0 : gs_comm_device (comm);
    void *memory = NULL;
    gs_status_t st;

    if (cudaSetDevice (device) || cudaMalloc (&memory, 1000)) {
        float x[10] = {0};
        printf ("rank %d has no array on a GPU\n", multi_rank ());
        cudaGetLastError ();
        if (getenv ("GS_TEST_ALL_CALL")) /* the others take theirs with this rank */
            CHECK_OK (gs_allreduce_avg (comm, x, 10, GS_F32, NULL));
        return;
    }
    st = gs_allreduce_avg (comm, memory, 10, GS_F32, NULL);
    st = multi_wait (comm, st);
    printf ("rank %d with an array on a GPU: %s: %s\n", multi_rank (), gs_status_string (st),
            st ? gs_last_error () : "");
    cudaFree (memory);
}

static void tell (void)
{
    float x[100];
    gs_status_t st = gs_comm_create (NULL, &comm);

    if (st) {
        printf ("rank %d has none: %s: %s\n", multi_rank (), gs_status_string (st),
                gs_last_error ());
        return;
    }
    printf ("rank %d has transport %s, GPU %d\n", multi_rank (), gs_comm_transport (comm),
            gs_comm_device (comm));
    check_average (x);
    if (!getenv ("GS_DEVICE")) /* told to leave GPUs alone, the library does not look for them */
        tell_device_array ();
    CHECK_OK (gs_comm_destroy (comm));
}

/* After each kind of call the caller's device is the one it had chosen. */
static void still (int device, const char *after)
{
    int now = -1;

    CHECK (!cudaGetDevice (&now) && now == device, "after %s the device is %d, not %d", after,
           now, device);
}

static void check_calls (int device)
{
    float *own, *managed, *all, x[100] = {0};

    CHECK_OK (gs_device_alloc (comm, 400, (void **) &own));
    still (device, "gs_device_alloc");
    CHECK_OK (gs_device_alloc (comm, 400 * (size_t) gs_comm_size (comm) + 400, (void **) &all));
    CHECK_OK (gs_device_copy (comm, own, x, 400, NULL));
    still (device, "gs_device_copy");
    CHECK_OK (gs_allreduce_avg (comm, own, 100, GS_F32, NULL));
    still (device, "gs_allreduce_avg");
    check_average (x);
    still (device, "a staged gs_allreduce_avg");
    CHECK_OK (gs_allreduce_wavg (comm, own, 100, GS_F32, 2, NULL));
    still (device, "gs_allreduce_wavg");
    CHECK_OK (gs_allreduce (comm, own, 100, GS_U16, GS_MAX, NULL));
    still (device, "gs_allreduce");
    CHECK_OK (gs_broadcast (comm, own, 100, GS_F32, 0, NULL));
    still (device, "gs_broadcast");
    CHECK_OK (gs_allgather (comm, own, all, 100, GS_F32, NULL));
    still (device, "gs_allgather");
    CHECK_OK (gs_barrier (comm, NULL));
    still (device, "gs_barrier");
    CHECK_OK (gs_comm_check (comm));
    CHECK_OK (gs_comm_wait (comm, NULL));
    still (device, "gs_comm_wait");
    CHECK (!cudaMallocManaged ((void **) &managed, 400, cudaMemAttachGlobal), "no memory");
    check_average (managed);
    CHECK (!cudaFree (managed), "managed memory cannot be freed");
    CHECK_OK (gs_device_free (comm, own));
    CHECK_OK (gs_device_free (comm, all));
    still (device, "gs_device_free");
}

/* An array of the current device, which is not the communicator's. */
static void check_foreign (int device)
{
    char theirs[64], ours[64];
    float *memory, x = 0;

    snprintf (theirs, sizeof (theirs), "in memory of GPU %d", device);
    snprintf (ours, sizeof (ours), "is on GPU %d", gs_comm_device (comm));
    CHECK (!cudaMalloc ((void **) &memory, 400), "no memory");
    CHECK_FAILS (gs_allreduce_avg (comm, memory, 100, GS_F32, NULL), GS_ERR_DEVICE,
                 "gs_allreduce_avg: the buffer is", theirs, ours);
    CHECK_FAILS (gs_device_copy (comm, memory, &x, 4, NULL), GS_ERR_DEVICE, "dst is", theirs);
    CHECK_FAILS (gs_device_copy (comm, &x, memory, 4, NULL), GS_ERR_DEVICE, "src is", theirs);
    still (device, "refusals");
    CHECK (!cudaFree (memory), "memory cannot be freed");
}

static void check_current (int device)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;

    CHECK (!cudaSetDevice (device), "no device %d", device);
    opts.device = 77;
    CHECK_FAILS (gs_comm_create (&opts, &comm), GS_ERR_DEVICE, "asks for GPU 77");
    still (device, "a create that fails");
    comm = multi_create (NULL);
    still (device, "gs_comm_create");
    check_calls (device);
    check_foreign (device);
    CHECK_OK (gs_comm_destroy (comm));
    still (device, "gs_comm_destroy");
    comm = multi_create (NULL);
    CHECK_OK (gs_comm_abort (comm));
    still (device, "gs_comm_abort");
    CHECK_OK (gs_comm_destroy (comm));
    still (device, "gs_comm_destroy after an abort");
}

/* What cannot be captured says so, and the capture goes on. */
static void check_refusals (cudaStream_t stream, float *x)
{
    float host[100] = {0};

    CHECK_FAILS (gs_allreduce_avg (comm, host, 100, GS_F32, stream), GS_ERR_UNSUPPORTED,
                 "allreduce_avg of communicator 'world' cannot be captured", "host memory");
    CHECK_FAILS (gs_allreduce_wavg (comm, x, 100, GS_F32, 1, stream), GS_ERR_UNSUPPORTED,
                 "allreduce_wavg of communicator 'world' cannot be captured", "waits");
    if (multi_shares_gpus ())
        CHECK_FAILS (gs_broadcast (comm, x, 100, GS_F32, 0, stream), GS_ERR_UNSUPPORTED,
                     "by way of the hosts", "CUDA graph");
    else
        CHECK_FAILS (gs_allreduce (comm, x, 100, GS_I16, GS_SUM, stream), GS_ERR_UNSUPPORTED,
                     "memory that cannot be made while a graph is captured: call it once before");
    CHECK_FAILS (gs_comm_wait (comm, stream), GS_ERR_UNSUPPORTED, "gs_comm_wait", "captured");
    CHECK_OK (gs_comm_check (comm));
}

/* Adds up over the ranks what the legacy stream has put there; while the library's thread looks.
 */
static cudaGraphExec_t capture (float *x)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec = NULL;

    CHECK (!cudaStreamCreateWithFlags (&stream, cudaStreamNonBlocking) &&
               !cudaStreamBeginCapture (stream, cudaStreamCaptureModeGlobal),
           "no capture");
    CHECK_OK (gs_allreduce (comm, x, 100, GS_F32, GS_SUM, stream));
    usleep (300000);
    check_refusals (stream, x);
    if (!multi_shares_gpus ())
        CHECK_OK (gs_broadcast (comm, x, 100, GS_F32, 0, stream));
    CHECK (!cudaStreamEndCapture (stream, &graph) && !cudaGraphInstantiate (&exec, graph, 0) &&
               !cudaGraphDestroy (graph) && !cudaStreamDestroy (stream),
           "the capture fails: %s", cudaGetErrorString (cudaGetLastError ()));
    return exec;
}

static void check_captured (void)
{
    float x[100], *memory;
    cudaGraphExec_t exec;

    comm = multi_create (NULL);
    CHECK (!cudaSetDevice (gs_comm_device (comm)), "no device");
    CHECK_OK (gs_device_alloc (comm, sizeof (x), (void **) &memory));
    exec = capture (memory);
    for (int i = 0; i < 100; i++)
        x[i] = 1;
    CHECK_OK (gs_device_copy (comm, memory, x, sizeof (x), NULL));
    CHECK_OK (gs_comm_wait (comm, NULL));
    for (int launch = 0; launch < 2; launch++)
        CHECK (!cudaGraphLaunch (exec, NULL), "no launch %d", launch);
    CHECK_OK (gs_device_copy (comm, x, memory, sizeof (x), NULL));
    CHECK_OK (gs_comm_wait (comm, NULL));
    CHECK (x[0] == (float) (gs_comm_size (comm) * gs_comm_size (comm)) && x[99] == x[0],
           "two launches of a sum make %g", (double) x[0]);
    CHECK (!cudaGraphExecDestroy (exec), "the graph cannot be destroyed");
    CHECK_OK (gs_device_free (comm, memory));
    CHECK_OK (gs_comm_destroy (comm));
}

int main (int argc, char **argv)
{
    if (argc > 1 && !strcmp (argv[1], "current"))
        check_current (2);
    else if (argc > 1)
        check_captured ();
    else
        tell ();
    return multi_end (argc > 1 ? "all is well" : "told");
}
