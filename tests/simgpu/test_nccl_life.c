/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nccl_life - communicators come and go: without blocking, from several ids, as children of
 * others; ranks that never come, vanish, or share a GPU; versions.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "test_nccl.h"

/* Not in the libraries of older versions; the tests that need them are not run with these. */
#pragma weak ncclCommInitRankScalable
#pragma weak ncclCommShrink
#pragma weak ncclCommRevoke

static void nap (void)
{
    nanosleep (&(struct timespec){0, 30000000}, NULL);
}

/* That [comm] works: the sum over its ranks of one each. */
static void check_sum (ncclComm_t comm, int expected)
{
    int one = 1, *data = make_device (&one, sizeof (one));
    cudaStream_t stream = make_stream ();
    ncclResult_t result = ncclAllReduce (data, data, 1, ncclInt32, ncclSum, comm, stream);

    CHECK (result == ncclSuccess || result == ncclInProgress);
    CHECK (settle (comm) == ncclSuccess);
    CUDA (cudaStreamSynchronize (stream));
    read_device (&one, data, sizeof (one));
    CHECK (one == expected);
}

static void blocking (void)
{
    ncclComm_t comm = make_comm (true);
    int value = -1, device;

    NCCL (ncclCommCount (comm, &value));
    CHECK (value == ranks);
    NCCL (ncclCommUserRank (comm, &value));
    CHECK (value == rank);
    NCCL (ncclCommCuDevice (comm, &value));
    CUDA (cudaGetDevice (&device));
    CHECK (value == device);
    check_sum (comm, ranks);
    NCCL (ncclCommFinalize (comm));
    NCCL (ncclCommDestroy (comm));
    comm = make_comm (true);
    NCCL (ncclCommDestroy (comm)); /* finalizes */
    NCCL (ncclCommDestroy (NULL));
    NCCL (ncclCommAbort (NULL));
}

static void not_blocking (void)
{
    ncclComm_t comm = make_comm (false);
    cudaStream_t stream = make_stream ();
    int *data = make_device (NULL, 4000), version;

    check_sum (comm, ranks);
    NCCL (ncclGroupStart ());
    for (int i = 0; i < 10; i++)
        NCCL (ncclAllReduce (data, data, 1000, ncclInt32, ncclSum, comm, stream));
    NCCL (ncclGetVersion (&version));
    GIVES (version < 22300 ? ncclSuccess : ncclInProgress, ncclGroupEnd ()); /* by a thread */
    CHECK (settle (comm) == ncclSuccess);
    GIVES (ncclInProgress, ncclCommFinalize (comm));
    CHECK (settle (comm) == ncclSuccess);
    NCCL (ncclCommDestroy (comm));
}

static void many_ids (void)
{
    ncclUniqueId id[3];
    ncclComm_t comm;
    int n = ranks < 3 ? ranks : 3;

    for (int i = 0; i < n; i++) {
        if (rank == i)
            NCCL (ncclGetUniqueId (&id[i]));
        tell (i, &id[i], sizeof (*id));
    }
    NCCL (ncclCommInitRankScalable (&comm, ranks, rank, n, id, NULL));
    check_sum (comm, ranks);
    end_comm (comm);
}

/* Odd and even ranks, in reverse order; the last one of many stays out. */
static void split (bool blocking)
{
    ncclComm_t comm = make_comm (blocking), child = NULL;
    bool out = ranks > 2 && rank == ranks - 1;
    int members = (ranks - (ranks > 2) + 1 - rank % 2) / 2, value;

    NCCL (ncclCommSplit (comm, out ? NCCL_SPLIT_NOCOLOR : rank % 2, -rank, &child, NULL));
    CHECK (settle (comm) == ncclSuccess);
    CHECK (!child == out);
    if (child) {
        CHECK (settle (child) == ncclSuccess);
        NCCL (ncclCommUserRank (child, &value));
        CHECK (value == members - 1 - rank / 2);
        check_sum (child, members);
        end_comm (child);
    }
    check_sum (comm, ranks);
    end_comm (comm);
}

static void split_blocking (void)
{
    split (true);
}

static void split_not_blocking (void)
{
    split (false);
}

/* The last rank dies in the middle of everything; the others go on without it. */
static void shrink_after_loss (void)
{
    ncclComm_t comm = make_comm (true), child;
    cudaStream_t stream = make_stream ();
    int *data = make_device (NULL, 4), gone = ranks - 1, value;

    check_sum (comm, ranks); /* connects */
    if (rank == gone)
        _exit (0);
    NCCL (ncclAllReduce (data, data, 1, ncclInt32, ncclSum, comm, stream));
    NCCL (ncclCommShrink (comm, &gone, 1, &child, NULL, NCCL_SHRINK_ABORT));
    CUDA (cudaStreamSynchronize (stream));
    NCCL (ncclCommCount (child, &value));
    CHECK (value == ranks - 1);
    check_sum (child, ranks - 1);
    end_comm (child);
    NCCL (ncclCommAbort (comm));
}

static void revoke_without_peer (void)
{
    ncclComm_t comm = make_comm (true);
    cudaStream_t stream = make_stream ();
    int *data = make_device (NULL, 4);

    check_sum (comm, ranks); /* connects */
    if (rank > 0)
        NCCL (ncclAllReduce (data, data, 1, ncclInt32, ncclSum, comm, stream));
    NCCL (ncclCommRevoke (comm, NCCL_REVOKE_DEFAULT));
    CUDA (cudaStreamSynchronize (stream));
    GIVES (ncclInvalidUsage, ncclAllReduce (data, data, 1, ncclInt32, ncclSum, comm, stream));
    GIVES (ncclInvalidArgument, ncclCommFinalize (comm));
    NCCL (ncclCommDestroy (comm));
}

/* Rank 0 never comes to the collective, which stays where it is until it is aborted. */
static void abort_without_peer (void)
{
    ncclComm_t comm = make_comm (false);
    cudaStream_t stream = make_stream ();
    int *data = make_device (NULL, 4);

    GIVES (ncclInProgress, ncclAllReduce (data, data, 1, ncclInt32, ncclSum, comm, stream));
    CHECK (settle (comm) == ncclSuccess); /* connects */
    CUDA (cudaStreamSynchronize (stream));
    if (rank > 0) {
        GIVES (ncclInProgress, ncclAllReduce (data, data, 1, ncclInt32, ncclSum, comm, stream));
        CHECK (settle (comm) == ncclSuccess);
        nap ();
        CHECK (cudaStreamQuery (stream) == cudaErrorNotReady);
    }
    meet ();
    NCCL (ncclCommAbort (comm));
    CUDA (cudaStreamSynchronize (stream));
}

/*
 * As many bytes take another algorithm, whose connections are not there yet: the call itself does
 * not end without rank 0, which has taken part in all that was before.
 */
static void abort_connecting (void)
{
    ncclComm_t comm = make_comm (false);
    cudaStream_t stream = make_stream ();
    int *data = make_device (NULL, 16000000), version;
    ncclResult_t state = ncclInProgress;

    NCCL (ncclGetVersion (&version));
    GIVES (ncclInProgress, ncclAllReduce (data, data, 1, ncclInt32, ncclSum, comm, stream));
    CHECK (settle (comm) == ncclSuccess);
    CUDA (cudaStreamSynchronize (stream));
    if (rank > 0 && version >= 22300) {
        GIVES (ncclInProgress,
               ncclAllReduce (data, data, 4000000, ncclInt32, ncclSum, comm, stream));
        nanosleep (&(struct timespec){1, 0}, NULL);
        NCCL (ncclCommGetAsyncError (comm, &state));
        CHECK (state == ncclInProgress);
    }
    meet ();
    NCCL (ncclCommAbort (comm));
    CUDA (cudaStreamSynchronize (stream));
}

/* Two communicators are stuck in one stream: aborting them in a group ends both. */
static void abort_two (void)
{
    ncclComm_t comm[2] = {make_comm (true), make_comm (true)};
    cudaStream_t stream = make_stream ();
    int *data = make_device (NULL, 4);

    for (int i = 0; i < 2; i++)
        check_sum (comm[i], ranks); /* the first call waits for all ranks to connect */
    for (int i = 0; i < 2 && rank > 0; i++)
        NCCL (ncclAllReduce (data, data, 1, ncclInt32, ncclSum, comm[i], stream));
    NCCL (ncclGroupStart ());
    NCCL (ncclCommAbort (comm[0]));
    NCCL (ncclCommAbort (comm[1]));
    NCCL (ncclGroupEnd ());
    CUDA (cudaStreamSynchronize (stream));
}

static void *abort_it (void *comm)
{
    NCCL (ncclCommAbort (comm));
    return NULL;
}

/*
 * Each rank frees a communicator in which the other one's kernel runs. N.B. The free waits for
 * this rank's kernel, too, which needs the other abort.
 */
static void abort_beside_kernel (void)
{
    ncclComm_t comm[2];
    cudaStream_t stream;
    pthread_t thread;
    int *data;

    need_gpus (1); /* else the ranks are of two hosts */
    for (int i = 0; i < 2; i++) {
        comm[i] = make_comm (true);
        check_sum (comm[i], ranks);
    }
    stream = make_stream ();
    data = make_device (NULL, 4);
    NCCL (ncclAllReduce (data, data, 1, ncclInt32, ncclSum, comm[rank], stream));
    nap ();
    meet ();
    CHECK (pthread_create (&thread, NULL, abort_it, comm[1 - rank]) == 0);
    nap ();
    meet ();
    NCCL (ncclCommAbort (comm[rank]));
    pthread_join (thread, NULL);
    CUDA (cudaStreamSynchronize (stream));
}

/* Rank 0 never joins. */
static void abort_init (void)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclResult_t state;
    ncclUniqueId id;
    ncclComm_t comm;

    config.blocking = 0;
    if (rank == 0)
        NCCL (ncclGetUniqueId (&id));
    tell (0, &id, sizeof (id));
    if (rank > 0) {
        GIVES (ncclInProgress, ncclCommInitRankConfig (&comm, ranks, id, rank, &config));
        nap ();
        NCCL (ncclCommGetAsyncError (comm, &state));
        CHECK (state == ncclInProgress);
        NCCL (ncclCommAbort (comm));
    }
    meet ();
}

/* Polling a communicator that does not block never succeeds again. */
static void refusal_stays (void)
{
    ncclComm_t comm = make_comm (false);
    cudaStream_t stream = make_stream ();
    int *data = make_device (NULL, 4);
    ncclResult_t kept;

    meet ();
    GIVES (ncclInvalidArgument, ncclBroadcast (data, data, 1, ncclFloat32, -1, comm, stream));
    NCCL (ncclCommGetAsyncError (comm, &kept));
    CHECK (kept == ncclInvalidArgument);
    GIVES (ncclInvalidArgument, ncclAllReduce (data, data, 1, ncclInt32, ncclSum, comm, stream));
    NCCL (ncclCommAbort (comm));
}

/* A finalize that waits for a sum, and so for rank 0, can be aborted. */
static void abort_finalize (void)
{
    ncclComm_t comm = make_comm (false);
    cudaStream_t stream = make_stream ();
    int *data = make_device (NULL, 4);
    ncclResult_t state;

    check_sum (comm, ranks);
    if (rank > 0) {
        (void) !ncclAllReduce (data, data, 1, ncclInt32, ncclSum, comm, stream);
        CHECK (settle (comm) == ncclSuccess);
        GIVES (ncclInProgress, ncclCommFinalize (comm));
        nap ();
        NCCL (ncclCommGetAsyncError (comm, &state));
        CHECK (state == ncclInProgress);
    }
    meet ();
    NCCL (ncclCommAbort (comm));
}

/* Each rank is a host of its own, for NCCL. */
static void part_hosts (void)
{
    char host[20];

    snprintf (host, sizeof (host), "host-%d", rank);
    setenv ("NCCL_HOSTID", host, 1);
}

/* Rank 0 ends it before the others begin to; on one host its destroy would wait for them. */
static void finalize_alone (void)
{
    ncclComm_t comm;

    part_hosts ();
    comm = make_comm (true);
    check_sum (comm, ranks);
    for (int late = 0; late < 2; late++) {
        if ((rank > 0) == late) {
            NCCL (ncclCommFinalize (comm));
            NCCL (ncclCommDestroy (comm));
        }
        meet ();
    }
}

/*
 * Rank 0 vanishes: who waits for it on another host is told, and stays where it is until it
 * aborts. The real one may notice while it connects, in the call, which tries 34 times in a
 * minute where nobody says how often (v2.28.9 socket.cc:17). The call alone says so then: only a
 * communicator that does not block keeps it as the asynchronous error (group.cc:381, 628).
 */
static void remote_error (void)
{
    ncclComm_t comm;
    cudaStream_t stream;
    int *data;
    ncclResult_t state = ncclSuccess;

    part_hosts ();
    comm = make_comm (true);
    stream = make_stream ();
    data = make_device (NULL, 4);

    if (rank == 0)
        _exit (0);
    if (rank == 1) {
        ncclResult_t call = ncclRecv (data, 1, ncclInt32, 0, comm, stream);

        if (call) {
            CHECK (!is_simulated () && call == ncclRemoteError);
            NCCL (ncclCommGetAsyncError (comm, &state));
            CHECK (state == ncclSuccess);
        } else {
            while (state == ncclSuccess) {
                nap ();
                NCCL (ncclCommGetAsyncError (comm, &state));
            }
            CHECK (state == ncclRemoteError);
            CHECK (!is_simulated () || strstr (ncclGetLastError (comm), "closed by remote peer"));
            CHECK (cudaStreamQuery (stream) == cudaErrorNotReady);
            GIVES (ncclRemoteError,
                   ncclAllReduce (data, data, 1, ncclInt32, ncclSum, comm, stream));
            GIVES (ncclRemoteError, ncclCommDestroy (comm));
        }
    }
    NCCL (ncclCommAbort (comm));
    CUDA (cudaStreamSynchronize (stream));
}

/* A broadcast's root does not wait for the others, not even for one that is gone. */
static void root_runs_ahead (void)
{
    ncclComm_t comm = make_comm (true);
    cudaStream_t stream = make_stream ();
    int *data = make_device (NULL, 4);

    NCCL (ncclBroadcast (data, data, 1, ncclInt32, 0, comm, stream)); /* connects all ranks */
    if (rank == 0)
        for (int i = 0; i < 100; i++)
            NCCL (ncclBroadcast (data, data, 1, ncclInt32, 0, comm, stream));
    CUDA (cudaStreamSynchronize (stream));
    meet ();
    if (rank > 0)
        for (int i = 0; i < 100; i++)
            NCCL (ncclBroadcast (data, data, 1, ncclInt32, 0, comm, stream));
    CUDA (cudaStreamSynchronize (stream));
    end_comm (comm);
}

static ncclResult_t join_on_device_0 (const char *host)
{
    ncclUniqueId id;
    ncclComm_t comm;
    ncclResult_t result;

    if (host)
        setenv ("NCCL_HOSTID", host, 1);
    else
        unsetenv ("NCCL_HOSTID");
    CUDA (cudaSetDevice (0));
    if (rank == 0)
        NCCL (ncclGetUniqueId (&id));
    tell (0, &id, sizeof (id));
    result = ncclCommInitRank (&comm, ranks, id, rank);
    CHECK ((result == ncclSuccess) == (comm != NULL));
    if (comm) {
        check_sum (comm, ranks);
        end_comm (comm);
    }
    return result;
}

static void one_gpu_for_all (void)
{
    CHECK (join_on_device_0 (NULL) == ncclInvalidUsage);
    CHECK (strstr (ncclGetLastError (NULL), "Duplicate GPU detected"));
}

static void one_gpu_and_hostid (void)
{
    char host[16];

    snprintf (host, sizeof (host), "r%d", rank);
    CHECK (join_on_device_0 (host) == ncclSuccess);
}

/* Ranks 0 and 1 share a GPU; the others hear that they gave up. */
static void one_gpu_for_two (void)
{
    ncclUniqueId id;
    ncclComm_t comm;

    need_gpus (1);
    CUDA (cudaSetDevice (rank < 2 ? 0 : rank));
    if (rank == 0)
        NCCL (ncclGetUniqueId (&id));
    tell (0, &id, sizeof (id));
    GIVES (rank < 2 ? ncclInvalidUsage : ncclRemoteError,
           ncclCommInitRank (&comm, ranks, id, rank));
    meet ();
}

/* SIM_NCCL_VERSION and the folder of that version, both or none. */
static void versions (void)
{
    static const struct {
        const char *name;
        int since;
    } newer[] = {{"ncclMemAlloc", 21900},
                 {"ncclCommRegister", 21900},
                 {"ncclCommInitRankScalable", 22300},
                 {"ncclCommShrink", 22700},
                 {"ncclCommRevoke", 22807},
                 {"ncclCommSplit", 21800},
                 {"ncclRedOpCreatePreMulSum", 21100}};
    const char *asked = getenv ("SIM_NCCL_VERSION");
    void *library = dlopen ("libnccl.so.2", RTLD_NOW);
    int version = 0, minor = 0, patch = 0;

    CHECK (library);
    NCCL (ncclGetVersion (&version));
    if (asked && sscanf (asked, "2.%d.%d", &minor, &patch) > 0)
        CHECK (version == NCCL_VERSION (2, minor, patch));
    else
        CHECK (version == NCCL_VERSION_CODE);
    for (size_t i = 0; i < sizeof (newer) / sizeof (newer[0]); i++)
        if (!dlsym (library, newer[i].name) != (version < newer[i].since))
            FAIL ("%s is %s in %d", newer[i].name,
                  version < newer[i].since ? "to be found" : "hidden", version);
    CHECK (strcmp (ncclGetErrorString (ncclSuccess), "no error") == 0);
    dlclose (library);
}

static ncclComm_t comm; /* of several threads */
static cudaStream_t stream;
static float *data;
static _Atomic (bool) ended;

static void *abort_comm (void *unused)
{
    NCCL (ncclCommAbort (comm));
    ended = true;
    return unused;
}

/* An abort waits for the graph. */
static void abort_beside_graph (void)
{
    cudaGraph_t graph;
    pthread_t thread;

    comm = make_comm (true);
    stream = make_stream ();
    data = make_device (NULL, sizeof (*data));
    meet ();
    CUDA (cudaStreamBeginCapture (stream, cudaStreamCaptureModeThreadLocal));
    NCCL (ncclAllReduce (data, data, 1, ncclFloat32, ncclSum, comm, stream));
    CUDA (cudaStreamEndCapture (stream, &graph));
    CHECK (!pthread_create (&thread, NULL, abort_comm, NULL));
    for (int i = 0; i < 10; i++)
        nap ();
    CHECK (!ended);
    CUDA (cudaGraphDestroy (graph));
    CHECK (!pthread_join (thread, NULL) && ended);
}

static ncclResult_t outcome;

static void *sum_alone (void *unused)
{
    outcome = ncclAllReduce (data, data, 1, ncclFloat32, ncclSum, comm, stream);
    return unused;
}

/*
 * The first collective waits on the host for the others to connect. Within a group an abort tells
 * it to stop, and frees at the group's end; without, it would free what that thread is in.
 */
static void abort_beside_call (void)
{
    pthread_t thread;

    comm = make_comm (true);
    stream = make_stream ();
    data = make_device (NULL, sizeof (*data));
    meet ();
    if (rank) {
        meet ();
        NCCL (ncclCommAbort (comm));
        return;
    }
    CHECK (!pthread_create (&thread, NULL, sum_alone, NULL));
    for (int i = 0; i < 10; i++)
        nap ();
    NCCL (ncclGroupStart ());
    NCCL (ncclCommAbort (comm));
    CHECK (!pthread_join (thread, NULL) && outcome == ncclInternalError);
    NCCL (ncclGroupEnd ());
    meet ();
}

const struct test life_tests[] = {
    {"blocking", blocking, 32, 1, 0, NULL, NULL},
    {"not-blocking", not_blocking, 8, 2, 0, NULL, NULL},
    {"many-ids", many_ids, 8, 1, 0, NULL, NULL},
    {"split-blocking", split_blocking, 8, 2, 0, NULL, NULL},
    {"split-not-blocking", split_not_blocking, 8, 2, 0, NULL, NULL},
    {"shrink-after-loss", shrink_after_loss, 8, 2, 0, NULL, NULL},
    {"revoke", revoke_without_peer, 8, 2, 0, NULL, NULL},
    {"abort-without-peer", abort_without_peer, 8, 2, 0, NULL, NULL},
    {"abort-connecting", abort_connecting, 8, 3, 0, NULL, NULL},
    {"abort-two", abort_two, 8, 2, 0, NULL, NULL},
    {"abort-beside-kernel", abort_beside_kernel, 2, 2, MISUSE,
     "frees memory that a kernel of rank", "SIM_NEIGHBOURS=1"},
    {"abort-init", abort_init, 8, 2, 0, NULL, NULL},
    {"refusal-stays", refusal_stays, 2, 1, 0, NULL, NULL},
    {"abort-finalize", abort_finalize, 8, 2, 0, NULL, NULL},
    {"finalize-alone", finalize_alone, 8, 2, 0, NULL, NULL},
    {"abort-beside-graph", abort_beside_graph, 2, 1, 0, NULL, NULL},
    {"abort-beside-call", abort_beside_call, 2, 2, 0, NULL, NULL},
    {"remote-error", remote_error, 8, 2, 0, NULL, "NCCL_SOCKET_RETRY_CNT=8"},
    {"root-runs-ahead", root_runs_ahead, 8, 2, 0, NULL, NULL},
    {"one-gpu-for-all", one_gpu_for_all, 2, 2, 0, NULL, NULL},
    {"one-gpu-and-hostid", one_gpu_and_hostid, 8, 2, 0, NULL, NULL},
    {"one-gpu-for-two", one_gpu_for_two, 8, 3, 0, NULL, NULL},
    {"versions", versions, 1, 1, 0, NULL, NULL},
    {0},
};
