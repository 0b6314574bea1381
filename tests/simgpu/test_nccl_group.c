/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nccl_group - send and receive, groups, several streams, graphs.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "test_nccl.h"

static int next (void)
{
    return (rank + 1) % ranks;
}

static int before (void)
{
    return (rank + ranks - 1) % ranks;
}

static void expect (const int *device, size_t count, int value)
{
    int *host = malloc (count * sizeof (*host));

    read_device (host, device, count * sizeof (*host));
    for (size_t i = 0; i < count; i++)
        if (host[i] != value)
            FAIL ("element %zu is %d, not %d", i, host[i], value);
    free (host);
}

/* [count] times [value]. */
static int *ints (size_t count, int value)
{
    int *host = malloc (count * sizeof (*host)), *device;

    for (size_t i = 0; i < count; i++)
        host[i] = value;
    device = make_device (host, count * sizeof (*host));
    free (host);
    return device;
}

/* More than any socket takes, all of it in both directions at once. */
static void ring_of_messages (void)
{
    size_t count = 3000000;
    ncclComm_t comm = make_comm (true);
    cudaStream_t stream = make_stream ();
    int *out = ints (count, rank), *in = ints (count, -1);

    NCCL (ncclGroupStart ());
    NCCL (ncclSend (out, count, ncclInt32, next (), comm, stream));
    NCCL (ncclRecv (in, count, ncclInt32, before (), comm, stream));
    NCCL (ncclGroupEnd ());
    CUDA (cudaStreamSynchronize (stream));
    expect (in, count, before ());
    end_comm (comm);
}

static void all_to_all (void)
{
    size_t count = 1000;
    ncclComm_t comm = make_comm (true);
    cudaStream_t stream = make_stream ();
    int *out[MOST], *in[MOST], *more[MOST];

    for (int i = 0; i < ranks; i++) {
        out[i] = ints (count, 100 * rank + i);
        in[i] = ints (count, -1);
        more[i] = ints (1, -1);
    }
    NCCL (ncclGroupStart ());
    for (int i = 0; i < ranks; i++) {
        NCCL (ncclSend (out[i], count, ncclInt32, i, comm, stream));
        NCCL (ncclSend (out[i], 1, ncclInt32, i, comm, stream)); /* in order, to each */
    }
    for (int i = 0; i < ranks; i++) {
        NCCL (ncclRecv (in[i], count, ncclInt32, i, comm, stream));
        NCCL (ncclRecv (more[i], 1, ncclInt32, i, comm, stream));
    }
    NCCL (ncclGroupEnd ());
    CUDA (cudaStreamSynchronize (stream));
    for (int i = 0; i < ranks; i++) {
        expect (in[i], count, 100 * i + rank);
        expect (more[i], 1, 100 * i + rank);
    }
    end_comm (comm);
}

/* Pairs without a group: one side sends while the other receives. */
static void pairs (void)
{
    ncclComm_t comm = make_comm (true);
    cudaStream_t stream = make_stream ();
    int *data = ints (10, rank);

    for (int i = 1; i < ranks; i++) {
        if (rank == 0)
            NCCL (ncclSend (data, 10, ncclInt32, i, comm, stream));
        if (rank == i)
            NCCL (ncclRecv (data, 10, ncclInt32, 0, comm, stream));
    }
    CUDA (cudaStreamSynchronize (stream));
    expect (data, 10, 0);
    end_comm (comm);
}

/* A group of everything: collectives, in any order, messages, and groups in it. */
static void mixture (void)
{
    ncclComm_t comm = make_comm (true);
    cudaStream_t stream = make_stream ();
    int *a = ints (10, 1), *b = ints (1000, rank), *c = ints (2000, 2);
    int *in = ints (10, -1), *out = ints (10, rank);

    NCCL (ncclGroupStart ());
    NCCL (ncclAllReduce (a, a, 10, ncclInt32, ncclSum, comm, stream));
    NCCL (ncclGroupStart ());
    NCCL (ncclBroadcast (b, b, 1000, ncclInt32, ranks - 1, comm, stream));
    NCCL (ncclSend (out, 10, ncclInt32, next (), comm, stream));
    NCCL (ncclGroupEnd ());
    NCCL (ncclRecv (in, 10, ncclInt32, before (), comm, stream));
    CUDA (cudaStreamSynchronize (stream)); /* nothing has been started */
    expect (a, 10, 1);
    NCCL (ncclAllReduce (c, c, 2000, ncclInt32, ncclSum, comm, stream));
    NCCL (ncclGroupEnd ());
    CUDA (cudaStreamSynchronize (stream));
    expect (a, 10, ranks);
    expect (c, 2000, 2 * ranks);
    expect (b, 1000, ranks - 1);
    expect (in, 10, before ());
    end_comm (comm);
}

/* What has one rank is done at the call, whatever group that is in. */
static void one_rank_at_once (void)
{
    ncclComm_t comm = make_comm (true);
    cudaStream_t stream = make_stream ();
    int *a = ints (10, 7), *b = ints (10, -1);

    NCCL (ncclGroupStart ());
    NCCL (ncclAllReduce (a, b, 10, ncclInt32, ncclSum, comm, stream));
    CUDA (cudaStreamSynchronize (stream));
    expect (b, 10, 7);
    NCCL (ncclGroupEnd ());
    end_comm (comm);
}

static void nap (void *arg)
{
    (void) arg;
    nanosleep (&(struct timespec){0, 30000000}, NULL);
}

/* What is issued first runs first, though its stream is late, and on each rank another one. */
static void order_of_streams (void)
{
    ncclComm_t comm = make_comm (true);
    cudaStream_t stream[2] = {make_stream (), make_stream ()};
    int *data = ints (10, rank * rank + 5);

    CUDA (cudaLaunchHostFunc (stream[rank % 2], nap, NULL));
    NCCL (ncclBroadcast (data, data, 10, ncclInt32, 1, comm, stream[rank % 2]));
    NCCL (ncclAllReduce (data, data, 10, ncclInt32, ncclSum, comm, stream[1 - rank % 2]));
    CUDA (cudaStreamSynchronize (stream[0]));
    CUDA (cudaStreamSynchronize (stream[1]));
    expect (data, 10, 6 * ranks);
    end_comm (comm);
}

/* All streams of a group are waited for, and all wait. */
static void streams_of_a_group (void)
{
    ncclComm_t comm = make_comm (true);
    cudaStream_t stream[2] = {make_stream (), make_stream ()};
    int *a = ints (1000, 0), *b = ints (1000, 0);

    CUDA (cudaLaunchHostFunc (stream[1], nap, NULL));
    CUDA (cudaMemsetAsync (b, 1, 4000, stream[1]));
    NCCL (ncclGroupStart ());
    NCCL (ncclAllReduce (a, a, 1000, ncclInt32, ncclSum, comm, stream[0]));
    NCCL (ncclAllReduce (b, b, 1000, ncclInt32, ncclMax, comm, stream[1]));
    NCCL (ncclGroupEnd ());
    CUDA (cudaMemcpyAsync (a, b, 4000, cudaMemcpyDeviceToDevice, stream[0]));
    CUDA (cudaStreamSynchronize (stream[0]));
    expect (a, 1000, 0x01010101);
    CUDA (cudaStreamSynchronize (stream[1]));
    end_comm (comm);
}

static void two_communicators (void)
{
    ncclComm_t a = make_comm (true), b = make_comm (true);
    cudaStream_t stream[2] = {make_stream (), make_stream ()};
    int *x = ints (100, 1), *y = ints (100, 2);

    NCCL (ncclGroupStart ());
    NCCL (ncclAllReduce (x, x, 100, ncclInt32, ncclSum, a, stream[0]));
    NCCL (ncclAllReduce (y, y, 100, ncclInt32, ncclSum, b, stream[1]));
    NCCL (ncclGroupEnd ());
    CUDA (cudaStreamSynchronize (stream[0]));
    CUDA (cudaStreamSynchronize (stream[1]));
    expect (x, 100, ranks);
    expect (y, 100, 2 * ranks);
    NCCL (ncclGroupStart ());
    NCCL (ncclCommDestroy (a));
    NCCL (ncclCommDestroy (b));
    NCCL (ncclGroupEnd ());
}

/* The ranks launch what two communicators do in two streams in different orders. */
static void collectives_cross (void)
{
    ncclComm_t comm[2] = {make_comm (true), make_comm (true)};
    cudaStream_t stream[2] = {make_stream (), make_stream ()};
    int *data[2] = {ints (100, 1), ints (100, 2)}, sum[2] = {1, 2};
    cudaEvent_t event;

    CUDA (cudaEventCreateWithFlags (&event, cudaEventDisableTiming));
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++, sum[i] *= ranks) /* the first ones wait for each other */
            NCCL (ncclAllReduce (data[i], data[i], 100, ncclInt32, ncclSum, comm[i], stream[i]));
    for (int i = 0; i < 2; i++)
        CUDA (cudaStreamSynchronize (stream[i]));
    for (int k = 0; k < 2; k++) {
        int i = (k + rank) % 2;
        NCCL (ncclAllReduce (data[i], data[i], 100, ncclInt32, ncclSum, comm[i], stream[i]));
        CUDA (cudaEventRecord (event, stream[i]));
        nap (NULL);
    }
    for (int i = 0; i < 2; i++) {
        CUDA (cudaStreamSynchronize (stream[i]));
        expect (data[i], 100, sum[i] * ranks);
        end_comm (comm[i]);
    }
    CUDA (cudaEventDestroy (event));
}

/* One thread, two ranks on two devices: only in a group. */
static void two_ranks_of_a_process (void)
{
    ncclUniqueId id;
    ncclComm_t comm[2];
    cudaStream_t stream[2];
    int *data[2], device;

    need_gpus (2);
    if (rank == 0)
        NCCL (ncclGetUniqueId (&id));
    tell (0, &id, sizeof (id));
    NCCL (ncclGroupStart ());
    for (int i = 0; i < 2; i++) {
        CUDA (cudaSetDevice (2 * rank + i));
        NCCL (ncclCommInitRank (&comm[i], 2 * ranks, id, 2 * rank + i));
    }
    NCCL (ncclGroupEnd ());
    for (int i = 0; i < 2; i++) {
        CUDA (cudaSetDevice (2 * rank + i));
        stream[i] = make_stream ();
        data[i] = ints (100, 1);
        NCCL (ncclCommCuDevice (comm[i], &device));
        CHECK (device == 2 * rank + i);
    }
    CUDA (cudaSetDevice (0));
    NCCL (ncclGroupStart ());
    for (int i = 0; i < 2; i++)
        NCCL (ncclAllReduce (data[i], data[i], 100, ncclInt32, ncclSum, comm[i], stream[i]));
    NCCL (ncclGroupEnd ());
    CUDA (cudaGetDevice (&device));
    CHECK (device == 0);
    for (int i = 0; i < 2; i++) {
        CUDA (cudaStreamSynchronize (stream[i]));
        expect (data[i], 100, 2 * ranks);
    }
    NCCL (ncclGroupStart ());
    NCCL (ncclCommDestroy (comm[0]));
    NCCL (ncclCommDestroy (comm[1]));
    NCCL (ncclGroupEnd ());
}

static void default_streams (void)
{
    ncclComm_t comm = make_comm (true);
    int *data = ints (100, 1);

    NCCL (ncclAllReduce (data, data, 100, ncclInt32, ncclSum, comm, NULL));
    NCCL (ncclAllReduce (data, data, 100, ncclInt32, ncclSum, comm, cudaStreamLegacy));
    NCCL (ncclAllReduce (data, data, 100, ncclInt32, ncclSum, comm, cudaStreamPerThread));
    CUDA (cudaDeviceSynchronize ());
    expect (data, 100, ranks * ranks * ranks);
    end_comm (comm);
}

static cudaGraphExec_t capture (ncclComm_t comm, cudaStream_t stream, int *data, int *in)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    CUDA (cudaStreamBeginCapture (stream, cudaStreamCaptureModeThreadLocal));
    NCCL (ncclAllReduce (data, data, 100, ncclInt32, ncclSum, comm, stream));
    NCCL (ncclGroupStart ());
    NCCL (ncclSend (data, 100, ncclInt32, next (), comm, stream));
    NCCL (ncclRecv (in, 100, ncclInt32, before (), comm, stream));
    NCCL (ncclGroupEnd ());
    CUDA (cudaStreamEndCapture (stream, &graph));
    CUDA (cudaGraphInstantiateWithFlags (&exec, graph, 0));
    CUDA (cudaGraphDestroy (graph));
    return exec;
}

static void graphs (void)
{
    ncclComm_t comm = make_comm (true);
    cudaStream_t stream = make_stream ();
    int *data = ints (100, 1), *in = ints (100, 0);
    cudaGraphExec_t exec = capture (comm, stream, data, in);

    CUDA (cudaStreamSynchronize (stream));
    expect (data, 100, 1); /* nothing ran */
    for (int i = 0; i < 3; i++)
        CUDA (cudaGraphLaunch (exec, stream));
    NCCL (ncclAllReduce (data, data, 100, ncclInt32, ncclSum, comm, stream));
    CUDA (cudaStreamSynchronize (stream));
    expect (data, 100, ranks * ranks * ranks * ranks);
    expect (in, 100, ranks * ranks * ranks);
    CUDA (cudaGraphExecDestroy (exec));
    end_comm (comm);
}

/* A launch thread of NCCL's own; the stream is captured all the same. */
static void graph_without_blocking (void)
{
    ncclComm_t comm = make_comm (false);
    cudaStream_t stream = make_stream ();
    int *data = ints (100, 1);
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    CUDA (cudaStreamBeginCapture (stream, cudaStreamCaptureModeThreadLocal));
    GIVES (ncclInProgress, ncclAllReduce (data, data, 100, ncclInt32, ncclSum, comm, stream));
    CHECK (settle (comm) == ncclSuccess);
    CUDA (cudaStreamEndCapture (stream, &graph));
    CUDA (cudaGraphInstantiateWithFlags (&exec, graph, 0));
    CUDA (cudaGraphLaunch (exec, stream));
    CUDA (cudaStreamSynchronize (stream));
    expect (data, 100, ranks);
    CUDA (cudaGraphExecDestroy (exec));
    CUDA (cudaGraphDestroy (graph));
    end_comm (comm);
}

const struct test group_tests[] = {
    {"ring-of-messages", ring_of_messages, 8, 1, 0, NULL, NULL},
    {"all-to-all", all_to_all, 8, 1, 0, NULL, NULL},
    {"pairs", pairs, 8, 2, 0, NULL, NULL},
    {"mixture", mixture, 8, 2, 0, NULL, NULL},
    {"one-rank-at-once", one_rank_at_once, 1, 1, 0, NULL, NULL},
    {"order-of-streams", order_of_streams, 8, 2, 0, NULL, NULL},
    {"streams-of-a-group", streams_of_a_group, 8, 2, 0, NULL, NULL},
    {"two-communicators", two_communicators, 8, 1, 0, NULL, NULL},
    {"collectives-cross", collectives_cross, 4, 2, 0, NULL, NULL},
    {"two-ranks-of-a-process", two_ranks_of_a_process, 4, 1, 0, NULL, NULL},
    {"default-streams", default_streams, 4, 1, 0, NULL, NULL},
    {"graphs", graphs, 4, 1, 0, NULL, NULL},
    {"graph-without-blocking", graph_without_blocking, 4, 2, 0, NULL, NULL},
    {0},
};
