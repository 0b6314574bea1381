/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replayed - rank 0 is killed, or gives up, while the others wait for it in CUDA graphs alone,
 * with no call under way: they are told, though the deadline is far. Runs on real GPUs as well.
 *
 *   replayed REPLAYS [abort]
 */
#include <signal.h>

#include "simgpu/check_cuda.h"

#define COUNT 5000

static gs_comm_t *comm;
static int rank, size;

/* A graph with the average of [x], which is not run. */
static cudaGraphExec_t capture (float *x, cudaStream_t stream)
{
    cudaGraphExec_t exec = NULL;
    cudaGraph_t captured;

    CHECK_CUDA (cudaStreamBeginCapture (stream, cudaStreamCaptureModeThreadLocal));
    CHECK_OK (gs_allreduce_avg (comm, x, COUNT, GS_F32, stream));
    CHECK_CUDA (cudaStreamEndCapture (stream, &captured));
    CHECK_CUDA (cudaGraphInstantiate (&exec, captured, 0));
    CHECK_CUDA (cudaGraphDestroy (captured));
    return exec;
}

static void replay (cudaGraphExec_t exec, cudaStream_t stream, int times)
{
    while (times--)
        CHECK_CUDA (cudaGraphLaunch (exec, stream));
}

/* Until the communicator has failed, or a minute has passed: no call is made meanwhile. */
static void await_failure (void)
{
    double begin = multi_seconds ();

    while (!gs_comm_check (comm) && multi_seconds () - begin < 60)
        nanosleep (&(struct timespec){.tv_nsec = 10000000}, NULL);
    printf ("rank %d knows it after %.2f s\n", rank, multi_seconds () - begin);
}

int main (int argc, char **argv)
{
    int replays = argc > 1 ? atoi (argv[1]) : 1;
    bool aborts = argc > 2;
    cudaStream_t stream;
    cudaGraphExec_t exec;
    float host[COUNT], *x;
    void *device = NULL;

    setenv ("GS_TIMEOUT_MS", "100000", 0);
    comm = create_on_gpu (&rank, &size);
    CHECK_OK (gs_device_alloc (comm, sizeof (host), &device));
    x = device;
    for (int i = 0; i < COUNT; i++)
        host[i] = (float) rank;
    CHECK_CUDA (cudaStreamCreateWithFlags (&stream, cudaStreamNonBlocking));
    CHECK_CUDA (cudaMemcpy (x, host, sizeof (host), cudaMemcpyHostToDevice));
    CHECK_CUDA (cudaDeviceSynchronize ()); /* that may have left it to the legacy stream */
    for (int i = 0; i < 3; i++)
        CHECK_OK (gs_allreduce_avg (comm, x, COUNT, GS_F32, stream));
    CHECK_OK (gs_comm_wait (comm, stream));
    exec = capture (x, stream);
    replay (exec, stream, 5);
    CHECK_CUDA (cudaStreamSynchronize (stream));
    CHECK_CUDA (cudaMemcpy (host, x, sizeof (host), cudaMemcpyDeviceToHost));
    CHECK (host[COUNT - 1] == (float) (size - 1) / 2, "a replay gives %g", host[COUNT - 1]);
    if (!rank && !aborts)
        raise (SIGKILL);
    if (!rank) {
        CHECK_OK (gs_comm_abort (comm));
        multi_await_others ("told", 0);
    } else {
        replay (exec, stream, replays);
        await_failure ();
        CHECK_FAILS (gs_comm_check (comm), aborts ? GS_ERR_STATE : GS_ERR_TRANSPORT, "rank 0",
                     aborts ? "gave the communicator up" : "has ended");
        multi_signal ("told", rank);
    }
    gs_device_free (comm, x);
    gs_comm_destroy (comm); /* does not wait for the graph */
    CHECK_CUDA (cudaGraphExecDestroy (exec));
    CHECK_CUDA (cudaStreamDestroy (stream));
    return multi_end ("replayed");
}
