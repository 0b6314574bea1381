/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nccl_rules - each rule is broken once: what is an error is returned, what a real NCCL
 * would not notice is misuse, and the process ends with status 86. And the faults that can be
 * asked for.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "test_nccl.h"

#pragma weak ncclMemAlloc

#define COUNT 1000

static ncclComm_t comm;
static cudaStream_t stream;
static float *data, *more;

static void nap (void)
{
    nanosleep (&(struct timespec){0, 5000000}, NULL);
}

/* All have a communicator before any of them breaks a rule. */
static void begin (bool blocking)
{
    comm = make_comm (blocking);
    stream = make_stream ();
    data = make_device (NULL, COUNT * sizeof (*data));
    more = make_device (NULL, COUNT * sizeof (*more));
    meet ();
}

static ncclResult_t sum (size_t count)
{
    return ncclAllReduce (data, data, count, ncclFloat32, ncclSum, comm, stream);
}

/* A call of ranks that disagree: some hear of it before they call. */
static void disputed (ncclResult_t result)
{
    CHECK (result == ncclSuccess || result == ncclInvalidUsage);
}

/* Ranks that disagree end, all of them. */
static void end_disagreement (void)
{
    const struct timespec pause = {0, 1000000};

    CUDA (cudaStreamSynchronize (stream));
    while (settle (comm) != ncclInvalidUsage)
        nanosleep (&pause, NULL);
    /* That a rank which heard of it has left may be said for a moment instead. */
    for (int i = 0; i < 2000 && !strstr (ncclGetLastError (comm), "the ranks disagree"); i++)
        nanosleep (&pause, NULL);
    CHECK (strstr (ncclGetLastError (comm), "the ranks disagree"));
    GIVES (ncclInvalidUsage, sum (1));
    NCCL (ncclCommAbort (comm));
}

static void different_counts (void)
{
    begin (true);
    disputed (sum (rank == 0 ? 10 : 11));
    end_disagreement ();
}

static void different_types (void)
{
    begin (true);
    disputed (ncclAllReduce (data, data, 10, rank == 0 ? ncclInt32 : ncclFloat32, ncclSum, comm,
                             stream));
    end_disagreement ();
}

static void different_operators (void)
{
    begin (true);
    disputed (
        ncclAllReduce (data, data, 10, ncclFloat32, rank == 1 ? ncclMax : ncclSum, comm, stream));
    end_disagreement ();
}

static void different_roots (void)
{
    begin (true);
    disputed (ncclReduce (data, data, 10, ncclFloat32, ncclSum, rank == 0, comm, stream));
    disputed (sum (1)); /* where it is noticed, if each rank is a root of its own */
    end_disagreement ();
}

static void different_order (void)
{
    begin (true);
    for (int i = 0; i < 2; i++)
        disputed (rank % 2 == i ? sum (10)
                                : ncclAllGather (data, more, 1, ncclFloat32, comm, stream));
    end_disagreement ();
}

static void different_messages (void)
{
    begin (true);
    if (rank == 0)
        disputed (ncclSend (data, 10, ncclFloat32, 1, comm, stream));
    if (rank == 1)
        disputed (ncclRecv (data, 20, ncclFloat32, 0, comm, stream));
    end_disagreement ();
}

static void different_sizes (void)
{
    ncclUniqueId id;

    if (rank == 0)
        NCCL (ncclGetUniqueId (&id));
    tell (0, &id, sizeof (id));
    GIVES (ncclInvalidUsage, ncclCommInitRank (&comm, rank == 0 ? ranks + 1 : ranks, id, rank));
    meet ();
}

static void early_finalize (void)
{
    begin (true);
    NCCL (sum (10)); /* the first call waits for all ranks to connect */
    CUDA (cudaStreamSynchronize (stream));
    if (rank == 0) {
        (void) !ncclCommFinalize (comm);
        NCCL (ncclCommAbort (comm));
        return;
    }
    disputed (sum (10));
    end_disagreement ();
}

static void invalid_arguments (void)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;
    ncclComm_t other;
    ncclRedOp_t op;
    float half = 0.5f;

    begin (true);
    GIVES (ncclInvalidArgument,
           ncclAllReduce (data, data, 1, ncclFloat32, ncclSum, NULL, stream));
    GIVES (ncclInvalidArgument,
           ncclAllReduce (data, data, 1, (ncclDataType_t) 99, ncclSum, comm, stream));
    if (is_simulated ()) /* real ones have it from 2.24 on, where the GPU is of sm_90 */
        GIVES (ncclInvalidArgument,
               ncclAllReduce (data, data, 1, ncclFloat8e4m3, ncclSum, comm, stream));
    GIVES (ncclInvalidArgument, ncclBroadcast (data, data, 1, ncclFloat32, ranks, comm, stream));
    GIVES (ncclInvalidArgument, ncclSend (data, 1, ncclFloat32, -1, comm, stream));
    NCCL (ncclRedOpCreatePreMulSum (&op, &half, ncclFloat32, ncclScalarHostImmediate, comm));
    GIVES (ncclInvalidArgument, ncclAllReduce (data, data, 1, ncclFloat64, op, comm, stream));
    NCCL (ncclRedOpDestroy (op, comm));
    NCCL (ncclGetUniqueId (&id));
    GIVES (ncclInvalidArgument, ncclCommInitRank (&other, 1, id, 1));
    CHECK (other == NULL || other != comm);
    config.magic = 0;
    GIVES (ncclInvalidArgument, ncclCommInitRankConfig (&other, 1, id, 0, &config));
    NCCL (sum (COUNT)); /* none of it did any harm */
    CUDA (cudaStreamSynchronize (stream));
    end_comm (comm);
}

/* The first error is the group's, and nothing of it is launched. */
static void error_in_a_group (void)
{
    begin (true);
    NCCL (ncclGroupStart ());
    NCCL (sum (1));
    GIVES (ncclInvalidArgument, ncclBroadcast (data, data, 1, ncclFloat32, -1, comm, stream));
    GIVES (ncclInvalidArgument, ncclGroupEnd ());
    CUDA (cudaStreamSynchronize (stream));
    NCCL (sum (COUNT));
    end_comm (comm);
}

static void very_many (void)
{
    begin (true);
    NCCL (ncclGroupStart ());
    for (int i = 0; i < 2049; i++)
        NCCL (sum (1));
    NCCL (ncclGroupEnd ());
    CUDA (cudaStreamSynchronize (stream));
    end_comm (comm);
}

static void mixed_group (void)
{
    ncclComm_t other = make_comm (false);

    begin (true);
    NCCL (ncclGroupStart ());
    NCCL (sum (1));
    NCCL (ncclAllReduce (more, more, 1, ncclFloat32, ncclSum, other, stream));
    (void) !ncclGroupEnd ();
    settle (other);
    settle (comm);
    NCCL (ncclCommAbort (other));
    NCCL (ncclCommAbort (comm));
}

static void lonely_receive (void)
{
    begin (true);
    GIVES (ncclInvalidUsage, ncclRecv (data, 1, ncclFloat32, rank, comm, stream));
    end_comm (comm);
}

static void foreign_stream (void)
{
    int device = rank == 0 ? 1 : 0;

    need_gpus (1);
    begin (true);
    CUDA (cudaSetDevice (device));
    stream = make_stream ();
    GIVES (ncclInvalidUsage, sum (1));
    CUDA (cudaSetDevice (rank));
    end_comm (comm);
}

/* Capture is for all streams of a group or for none. */
static void half_captured (void)
{
    cudaStream_t captured;
    cudaGraph_t graph;

    begin (true);
    captured = make_stream ();
    CUDA (cudaStreamBeginCapture (captured, cudaStreamCaptureModeThreadLocal));
    NCCL (ncclGroupStart ());
    NCCL (sum (1));
    GIVES (ncclInvalidUsage, ncclAllReduce (more, more, 1, ncclFloat32, ncclSum, comm, captured));
    GIVES (ncclInvalidUsage, ncclGroupEnd ());
    CUDA (cudaStreamEndCapture (captured, &graph));
    CUDA (cudaGraphDestroy (graph));
    end_comm (comm);
}

/* From here on: misuse. */

static void no_group_end (void)
{
    begin (true);
    end_comm (comm);
    NCCL (ncclGroupStart ());
}

static void no_group_start (void)
{
    GIVES (ncclInvalidUsage, ncclGroupEnd ());
}

static void after_abort (void)
{
    begin (true);
    NCCL (ncclCommAbort (comm));
    GIVES (ncclInvalidArgument, sum (1));
}

static void after_destroy (void)
{
    ncclResult_t state;

    begin (true);
    NCCL (ncclCommDestroy (comm));
    GIVES (ncclInvalidArgument, ncclCommGetAsyncError (comm, &state));
}

static void twice_destroyed (void)
{
    begin (true);
    NCCL (ncclCommDestroy (comm));
    GIVES (ncclInvalidArgument, ncclCommDestroy (comm));
}

static void after_finalize (void)
{
    begin (true);
    NCCL (sum (1)); /* connects */
    CUDA (cudaStreamSynchronize (stream));
    meet (); /* the sum of one must not meet the end of another */
    NCCL (ncclCommFinalize (comm));
    meet (); /* it waits for no other rank, and an abort would end what those wait for */
    NCCL (sum (1));
    NCCL (ncclCommAbort (comm));
}

static void in_progress (void)
{
    begin (false);
    GIVES (ncclInProgress, sum (1));
    GIVES (ncclInvalidArgument, sum (1));
    CHECK (settle (comm) == ncclSuccess);
    CUDA (cudaStreamSynchronize (stream));
    end_comm (comm);
}

/* A thread's next communicator, when nothing but the state of the one before was asked for. */
static void not_joined (void)
{
    ncclComm_t other = make_comm (false);
    int value;

    NCCL (ncclCommCount (other, &value));
    begin (false);
    GIVES (ncclInProgress, sum (1));
    CHECK (settle (comm) == ncclSuccess);
    GIVES (ncclInProgress, ncclAllReduce (data, data, 1, ncclFloat32, ncclSum, other, stream));
    CHECK (settle (other) == ncclSuccess);
    CUDA (cudaStreamSynchronize (stream));
    end_comm (other);
    end_comm (comm);
}

static void foreign_operator (void)
{
    ncclComm_t other = make_comm (true);
    ncclRedOp_t op;
    float half = 0.5f;

    begin (true);
    NCCL (ncclRedOpCreatePreMulSum (&op, &half, ncclFloat32, ncclScalarHostImmediate, other));
    GIVES (ncclInvalidArgument, ncclAllReduce (data, data, 1, ncclFloat32, op, comm, stream));
    end_comm (other);
    end_comm (comm);
}

static void leak (void)
{
    begin (true);
}

/* A GPU that reaches for what is not its own is lost to the process. */
static void end_illegal (void)
{
    CHECK (cudaStreamSynchronize (stream) == cudaErrorIllegalAddress);
    while (settle (comm) != ncclUnhandledCudaError)
        nap ();
    NCCL (ncclCommAbort (comm));
    exit (0);
}

static void host_memory (void)
{
    static float host[COUNT];

    begin (true);
    NCCL (ncclAllReduce (host, host, COUNT, ncclFloat32, ncclSum, comm, stream));
    end_illegal ();
}

static void too_long (void)
{
    begin (true);
    NCCL (sum (COUNT + 1));
    end_illegal ();
}

static void per_thread_stream (void)
{
    begin (false);
    stream = cudaStreamPerThread;
    GIVES (ncclInvalidUsage, sum (1));
    NCCL (ncclCommAbort (comm)); /* the refusal stays */
}

static void split_with_work (void)
{
    ncclComm_t child;

    begin (true);
    NCCL (ncclRecv (data, 1, ncclFloat32, (rank + 1) % ranks, comm, stream)); /* waits */
    (void) !ncclCommSplit (comm, NCCL_SPLIT_NOCOLOR, 0, &child, NULL);
    NCCL (ncclCommAbort (comm));
    CUDA (cudaStreamSynchronize (stream));
}

static void graph_outlives (void)
{
    cudaGraph_t graph;

    begin (true);
    CUDA (cudaStreamBeginCapture (stream, cudaStreamCaptureModeThreadLocal));
    NCCL (sum (1));
    CUDA (cudaStreamEndCapture (stream, &graph));
    NCCL (ncclCommDestroy (comm));
    CUDA (cudaGraphDestroy (graph));
}

static void no_communicator (void)
{
    int something[64] = {0};

    GIVES (ncclInvalidArgument, ncclCommAbort ((ncclComm_t) (void *) something));
}

/* Found by its name, but not a function of the version that was asked for. */
static void newer_function (void)
{
    void *memory;

    GIVES (ncclInvalidUsage, ncclMemAlloc (&memory, 1));
}

/* From here on: faults. */

static void fault_returned (void)
{
    begin (true);
    GIVES (ncclSystemError, sum (1)); /* before anything was queued */
    CUDA (cudaStreamSynchronize (stream));
    NCCL (sum (1));
    end_comm (comm);
}

/* An error of a communicator that does not block is its state as well. */
static void fault_stays (void)
{
    begin (false);
    GIVES (ncclInternalError, sum (1));
    CHECK (settle (comm) == ncclInternalError);
    NCCL (ncclCommAbort (comm));
}

static void fault_stalls (void)
{
    begin (true);
    NCCL (sum (1));
    nap ();
    CHECK (cudaStreamQuery (stream) == cudaErrorNotReady);
    NCCL (ncclCommAbort (comm));
    CUDA (cudaStreamSynchronize (stream));
}

static void fault_late (void)
{
    ncclResult_t state = ncclSuccess;

    begin (true);
    NCCL (sum (1));
    while (state == ncclSuccess)
        NCCL (ncclCommGetAsyncError (comm, &state));
    CHECK (state == ncclRemoteError);
    GIVES (ncclRemoteError, sum (1));
    NCCL (ncclCommAbort (comm));
    CUDA (cudaStreamSynchronize (stream));
}

static void fault_in_init (void)
{
    ncclUniqueId id;

    NCCL (ncclGetUniqueId (&id));
    comm = (ncclComm_t) &comm;
    GIVES (ncclSystemError, ncclCommInitRank (&comm, 1, id, 0));
    NCCL (ncclCommInitRank (&comm, 1, id, 0));
    end_comm (comm);
}

static void fault_late_init (void)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;

    config.blocking = 0;
    NCCL (ncclGetUniqueId (&id));
    GIVES (ncclInProgress, ncclCommInitRankConfig (&comm, 1, id, 0, &config));
    CHECK (settle (comm) == ncclRemoteError);
    NCCL (ncclCommAbort (comm));
}

static void fault_stalls_init (void)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclResult_t state;
    ncclUniqueId id;

    config.blocking = 0;
    NCCL (ncclGetUniqueId (&id));
    GIVES (ncclInProgress, ncclCommInitRankConfig (&comm, 1, id, 0, &config));
    nap ();
    NCCL (ncclCommGetAsyncError (comm, &state));
    CHECK (state == ncclInProgress);
    NCCL (ncclCommAbort (comm));
}

static void fault_stalls_finalize (void)
{
    ncclResult_t state;

    begin (false);
    GIVES (ncclInProgress, ncclCommFinalize (comm));
    nap ();
    NCCL (ncclCommGetAsyncError (comm, &state));
    CHECK (state == ncclInProgress);
    NCCL (ncclCommAbort (comm));
}

/* All of a group: here the second of two. */
static void fault_at_group_end (void)
{
    begin (true);
    for (int i = 0; i < 2; i++) {
        NCCL (ncclGroupStart ());
        NCCL (sum (1));
        NCCL (sum (2));
        GIVES (i == 0 ? ncclSuccess : ncclSystemError, ncclGroupEnd ());
    }
    CUDA (cudaStreamSynchronize (stream));
    end_comm (comm);
}

static void fault_in_split (void)
{
    ncclComm_t child = (ncclComm_t) &child;

    begin (true);
    GIVES (ncclSystemError, ncclCommSplit (comm, 0, 0, &child, NULL));
    NCCL (ncclCommSplit (comm, 0, rank, &child, NULL));
    end_comm (child);
    end_comm (comm);
}

static void traffic (void)
{
    begin (true);
    NCCL (sum (840));
    NCCL (ncclAllGather (data, make_device (NULL, 4 * 840), 840 / (size_t) ranks, ncclFloat32,
                         comm, stream));
    NCCL (ncclGroupStart ());
    NCCL (ncclSend (data, 10, ncclFloat32, (rank + 1) % ranks, comm, stream));
    NCCL (ncclRecv (more, 10, ncclFloat32, (rank + ranks - 1) % ranks, comm, stream));
    NCCL (ncclSend (data, 100, ncclFloat32, rank, comm, stream));
    NCCL (ncclRecv (more, 100, ncclFloat32, rank, comm, stream));
    NCCL (ncclGroupEnd ());
    CUDA (cudaStreamSynchronize (stream));
    end_comm (comm);
}

#define SAID MISUSE, "simgpu: misuse: "

const struct test rule_tests[] = {
    {"different-counts", different_counts, 4, 2, MISUSE, "ncclAllReduce (count 11", NULL},
    {"different-types", different_types, 4, 2, SAID "the ranks disagree: rank ", NULL},
    {"different-operators", different_operators, 4, 2, MISUSE, "float32, max", NULL},
    {"different-roots", different_roots, 4, 2, MISUSE, "root 1", NULL},
    {"different-order", different_order, 4, 2, MISUSE, "ncclAllGather (count 1,", EARLY},
    {"different-messages", different_messages, 2, 2, MISUSE, "ncclRecv (count 20", NULL},
    {"different-sizes", different_sizes, 4, 2, MISUSE, "others", NULL},
    {"early-finalize", early_finalize, 2, 2, MISUSE, "does ncclCommFinalize", NULL},
    {"invalid-arguments", invalid_arguments, 2, 1, 0, NULL, NULL},
    {"error-in-a-group", error_in_a_group, 2, 2, 0, NULL, NULL},
    {"very-many", very_many, 2, 2, 0, NULL, NULL},
    {"mixed-group", mixed_group, 2, 2, MISUSE, "a group of communicators that block", NULL},
    {"lonely-receive", lonely_receive, 2, 2, 0, NULL, NULL},
    {"foreign-stream", foreign_stream, 2, 2, 0, NULL, NULL},
    {"half-captured", half_captured, 2, 2, 0, NULL, NULL},
    {"no-group-end", no_group_end, 1, 1, SAID "ncclGroupStart without ncclGroupEnd", NULL},
    {"no-group-start", no_group_start, 1, 1, SAID "ncclGroupEnd: not in a group", NULL},
    {"after-abort", after_abort, 2, 1, MISUSE, "was aborted before", NULL},
    {"after-destroy", after_destroy, 2, 1, MISUSE, "was destroyed before", NULL},
    {"twice-destroyed", twice_destroyed, 2, 1, MISUSE, "was destroyed before", NULL},
    {"after-finalize", after_finalize, 2, 1, MISUSE, "was finalized before", NULL},
    {"in-progress", in_progress, 2, 2, MISUSE, "ncclInProgress", NULL},
    {"not-joined", not_joined, 2, 2, MISUSE, "is still in this thread's list",
     "SIM_NCCL_VERSION=2.24"},
    {"foreign-operator", foreign_operator, 2, 1, MISUSE, "is not one of communicator", NULL},
    {"leak", leak, 2, 1, MISUSE, "was neither destroyed nor aborted", NULL},
    {"host-memory", host_memory, 2, 1, SAID "ncclAllReduce", NULL},
    {"too-long", too_long, 2, 1, SAID "ncclAllReduce", NULL},
    {"per-thread-stream", per_thread_stream, 2, 1, MISUSE, "cudaStreamPerThread", NULL},
    {"split-with-work", split_with_work, 2, 2, MISUSE, "are not complete", NULL},
    {"graph-outlives", graph_outlives, 2, 1, MISUSE, "destroy graphs first", NULL},
    {"no-communicator", no_communicator, 1, 1, MISUSE, "is no communicator", NULL},
    {"newer-function", newer_function, 1, 1, MISUSE, "ncclMemAlloc came with NCCL 2.19",
     "SIM_NCCL_VERSION=2.18"},
    {"fault-returned", fault_returned, 2, 1, 0, NULL, "SIM_FAULT=ncclAllReduce=2"},
    {"fault-stays", fault_stays, 2, 1, 0, NULL, "SIM_FAULT=ncclAllReduce=3"},
    {"fault-stalls", fault_stalls, 2, 1, 0, NULL, "SIM_FAULT=ncclAllReduce=stall"},
    {"fault-late", fault_late, 2, 1, 0, NULL, "SIM_FAULT=ncclAllReduce=late"},
    {"fault-in-init", fault_in_init, 1, 1, 0, NULL, "SIM_FAULT=ncclCommInitRank"},
    {"fault-late-init", fault_late_init, 1, 1, 0, NULL, "SIM_FAULT=ncclCommInitRankConfig=late"},
    {"fault-stalls-init", fault_stalls_init, 1, 1, 0, NULL,
     "SIM_FAULT=ncclCommInitRankConfig=stall"},
    {"fault-stalls-finalize", fault_stalls_finalize, 2, 1, 0, NULL,
     "SIM_FAULT=ncclCommFinalize=stall"},
    {"fault-at-group-end", fault_at_group_end, 2, 1, 0, NULL, "SIM_FAULT=ncclGroupEnd#2"},
    {"fault-in-split", fault_in_split, 2, 1, 0, NULL, "SIM_FAULT=ncclCommSplit"},
    {"traffic", traffic, 4, 4, 0, NULL, NULL},
    {0},
};
