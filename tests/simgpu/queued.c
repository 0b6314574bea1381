/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queued - the program of queued.sh: calls on arrays in device memory, in ways that only a count
 * of what reaches CUDA and NCCL, or a graph, can judge. Runs on real GPUs as well.
 *
 *   queued average COUNT CALLS        averages of a device array, one behind the other, and what
 *                                     the library says that it has sent
 *   queued graph                      calls captured into a graph and replayed, and those refused
 *   queued busy                       a capture that lasts longer than the watch thread sleeps
 *   queued freed                      a gradient whose memory is freed before its bucket leaves
 *   queued late                       rank 0 comes too late to a call that the others have queued
 *   queued shrunk                     the same, and a call smaller than all that were before
 *   queued ahead                      rank 0 is ahead by more than its deadline, and connects
 *   queued flood GOOD CALLS [graph]   rank 0 stops after GOOD of the CALLS that the others queue
 *   queued many CALLS                 the calls take longer than the deadline, none of them does
 *   queued no-group                   a split that stalls, in which rank 1 has no group
 *   queued killed [slowly]            rank 0 is killed, and the others wait for it; slowly: its
 *                                     connections are closed half a second before it is gone
 *   queued stuck [beside]             work of the program's does not end, and memory is freed;
 *                                     beside: on a stream that does not block
 *   queued crossed                    ranks free and destroy behind averages of two
 *                                     communicators, which the other rank queues after its free
 *   queued contexts                   a rank has a context on its GPU alone, on hosts none
 *
 * GS_TEST_DTYPE is the type of what average, graph, late, flood and killed average, f32 by
 * default.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "simgpu/check_cuda.h"

#define COUNT 5000

static gs_comm_t *comm;
static int rank, size;
static gs_dtype_t dtype = GS_F32;

/* A device array with [count] times [value]. */
static float *make_floats (size_t count, float value)
{
    float *host = malloc (count * sizeof (*host));
    void *device = NULL;

    CHECK_OK (gs_device_alloc (comm, count * sizeof (*host), &device));
    for (size_t i = 0; i < count && host; i++)
        host[i] = value;
    CHECK_OK (gs_device_copy (comm, device, host, count * sizeof (*host), NULL));
    free (host);
    return device;
}

/* Whether all of [count] floats on the device are [value], after what is queued. */
static void check_floats (const float *device, size_t count, float value)
{
    float *host = malloc (count * sizeof (*host));
    size_t wrong = 0;

    CHECK_CUDA (cudaDeviceSynchronize ());
    CHECK_OK (gs_device_copy (comm, host, device, count * sizeof (*host), NULL));
    for (size_t i = 0; i < count && host; i++)
        wrong += host[i] != value;
    CHECK (!wrong, "%zu of %zu are not %g; the first is %g", wrong, count, value, host[0]);
    free (host);
}

/* Averages the bytes of COUNT floats. */
static gs_status_t average_floats (float *x, gs_stream_t stream)
{
    return gs_allreduce_avg (comm, x, COUNT * sizeof (float) / gs_dtype_size (dtype), dtype,
                             stream);
}

static void average (size_t count, int calls)
{
    gs_traffic_t sent = {.size = sizeof (sent)};
    void *x = NULL;

    CHECK_OK (gs_device_alloc (comm, count * gs_dtype_size (dtype), &x));
    CHECK_CUDA (cudaMemset (x, 0, count * gs_dtype_size (dtype)));
    for (int i = 0; i < 2; i++) /* the first two calls are compared */
        CHECK_OK (gs_barrier (comm, NULL));
    for (int i = 0; i < calls; i++)
        CHECK_OK (gs_allreduce_avg (comm, x, count, dtype, NULL));
    CHECK_OK (gs_comm_wait (comm, NULL));
    CHECK_OK (gs_device_free (comm, x));
    CHECK_OK (gs_comm_get_traffic (comm, "allreduce_avg", &sent));
    printf ("rank %d: %" PRIu64 " within, %" PRIu64 " between, all known: %d\n", rank,
            sent.within, sent.between, sent.within_known && sent.between_known);
}

static void check_refused (cudaStream_t stream, float *device)
{
    float host = 1;

    CHECK_FAILS (gs_allreduce_avg (comm, &host, 1, GS_F32, stream), GS_ERR_UNSUPPORTED,
                 "allreduce_avg", "graph", "host memory");
    CHECK_FAILS (gs_allreduce_wavg (comm, device, COUNT, GS_F32, 1, stream), GS_ERR_UNSUPPORTED,
                 "allreduce_wavg", "graph", "waits");
    CHECK_FAILS (gs_comm_wait (comm, stream), GS_ERR_UNSUPPORTED, "gs_comm_wait", "graph");
}

/* x becomes the mean of rank + 1, in floats, which may be averaged as pairs of bf16. */
static void graph (void)
{
    float mean = (float) (size + 1) / 2, *x = make_floats (COUNT, 0);
    float *one = make_floats (COUNT, (float) rank + 1);
    cudaStream_t stream;
    cudaGraph_t captured;
    cudaGraphExec_t exec;

    CHECK_CUDA (cudaStreamCreateWithFlags (&stream, cudaStreamNonBlocking));
    for (int i = 0; i < 2; i++) /* the first two calls are compared */
        CHECK_OK (average_floats (x, stream));
    CHECK_OK (gs_comm_wait (comm, stream));
    CHECK_CUDA (cudaStreamBeginCapture (stream, cudaStreamCaptureModeThreadLocal));
    CHECK_OK (gs_device_copy (comm, x, one, COUNT * sizeof (float), stream));
    CHECK_OK (average_floats (x, stream));
    CHECK_OK (gs_broadcast (comm, x, COUNT, GS_F32, size - 1, stream));
    CHECK_OK (gs_barrier (comm, stream));
    check_refused (stream, x);
    CHECK_CUDA (cudaStreamEndCapture (stream, &captured));
    CHECK_CUDA (cudaGraphInstantiate (&exec, captured, 0));
    for (int i = 0; i < 3; i++) {
        CHECK_CUDA (cudaMemsetAsync (x, 0xff, COUNT * sizeof (float), stream));
        CHECK_CUDA (cudaGraphLaunch (exec, stream));
        CHECK_OK (gs_comm_wait (comm, stream));
        check_floats (x, COUNT, mean);
    }
    CHECK_OK (average_floats (x, stream)); /* and as before outside */
    CHECK_OK (gs_comm_wait (comm, stream));
    check_floats (x, COUNT, mean);
    CHECK_CUDA (cudaGraphExecDestroy (exec));
    CHECK_CUDA (cudaGraphDestroy (captured));
    CHECK_CUDA (cudaStreamDestroy (stream));
    CHECK_OK (gs_device_free (comm, x));
    CHECK_OK (gs_device_free (comm, one));
}

/* The thread that watches looks at a queued call while this one captures in the strictest mode.
 */
static void busy (void)
{
    float *x = make_floats (COUNT, 1), *y = make_floats (COUNT, 1);
    cudaStream_t stream;
    cudaGraph_t captured;

    CHECK_CUDA (cudaStreamCreateWithFlags (&stream, cudaStreamNonBlocking));
    for (int i = 0; i < 3; i++)
        CHECK_OK (gs_allreduce_avg (comm, x, COUNT, GS_F32, NULL));
    CHECK_OK (gs_comm_wait (comm, NULL));
    CHECK_CUDA (cudaStreamBeginCapture (stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < 5; i++) {
        CHECK_OK (gs_allreduce_avg (comm, y, COUNT, GS_F32, stream));
        usleep (100000);
        CHECK_OK (gs_comm_check (comm));
    }
    CHECK_CUDA (cudaStreamEndCapture (stream, &captured));
    CHECK_CUDA (cudaGraphDestroy (captured));
    CHECK_CUDA (cudaStreamDestroy (stream));
    check_floats (x, COUNT, 1);
    CHECK_OK (gs_device_free (comm, x));
    CHECK_OK (gs_device_free (comm, y));
}

/* The others' call returns at once and fails later; so does whatever they call then. */
static void late (void)
{
    float *x = make_floats (COUNT, 1);

    for (int i = 0; i < 3; i++)
        CHECK_OK (average_floats (x, NULL));
    CHECK_OK (gs_comm_wait (comm, NULL));
    if (rank) {
        CHECK_OK (average_floats (x, NULL));
        CHECK_OK (gs_comm_check (comm));
        CHECK_FAILS (gs_comm_wait (comm, NULL), GS_ERR_TIMEOUT, "allreduce_avg #4",
                     "did not come: rank 0");
        CHECK_FAILS (gs_barrier (comm, NULL), GS_ERR_TIMEOUT, "dead", "allreduce_avg #4");
        multi_signal ("gave-up", rank);
    } else {
        multi_await_others ("gave-up", 0);
        multi_wait (comm, average_floats (x, NULL));
        CHECK_FAILS (gs_comm_check (comm), GS_ERR_TIMEOUT, "the deadline passed on rank");
    }
    CHECK_OK (gs_device_free (comm, x));
}

/*
 * Rank 0 has taken part in large averages, and then stays away from a small one, of the size that
 * a tree is for: NCCL's call itself may not return, for it connects the tree. The create and
 * large averages have connected rings.
 */
static void shrunk (void)
{
    const size_t count = 4 << 20;
    float *x = make_floats (count, 1);

    for (int i = 0; i < 10; i++)
        CHECK_OK (gs_allreduce_avg (comm, x, count, GS_F32, NULL));
    CHECK_OK (gs_comm_wait (comm, NULL));
    if (rank) {
        CHECK_FAILS (multi_wait (comm, gs_allreduce_avg (comm, x, 8, GS_F32, NULL)),
                     GS_ERR_TIMEOUT, "allreduce_avg #11", "did not come: rank 0");
        multi_signal ("gave-up", rank);
    } else {
        multi_await_others ("gave-up", 0);
        multi_wait (comm, gs_allreduce_avg (comm, x, 8, GS_F32, NULL));
        CHECK_FAILS (gs_comm_check (comm), GS_ERR_TIMEOUT, "rank");
    }
    gs_device_free (comm, x);
}

/*
 * Rank 0 is further ahead of the others than its deadline, which is no failure: what it has
 * queued ends call by call, also while its last call waits for them, as that connects a tree.
 */
static void ahead (void)
{
    const size_t count = 1 << 18;
    float *x = make_floats (count, 1);
    double begin;

    for (int i = 0; i < 600; i++) {
        if (rank)
            usleep (6000);
        CHECK_OK (gs_allreduce_avg (comm, x, count, GS_F32, NULL));
    }
    begin = multi_seconds ();
    CHECK_OK (gs_allreduce_avg (comm, x, 8, GS_F32, NULL));
    CHECK (rank || multi_seconds () - begin > 2, "rank 0 was not ahead, or nothing connected");
    CHECK_OK (gs_comm_wait (comm, NULL));
    CHECK_OK (gs_device_free (comm, x));
}

/* The bucket has both gradients: it leaves when the memory of one is gone. */
static void freed (void)
{
    static const char *const names[] = {"kept", "freed"};
    size_t shape = COUNT;
    gs_reducer_t *r;
    float *x[2];

    CHECK_OK (gs_reducer_create (comm, NULL, &r));
    for (int g = 0; g < 2; g++) {
        x[g] = make_floats (COUNT, 1);
        CHECK_OK (gs_reducer_add (r, names[g], 1, &shape, GS_F32, x[g], NULL));
    }
    CHECK_OK (gs_reducer_commit (r));
    CHECK_OK (gs_reducer_ready (r, 1, NULL));
    CHECK_OK (gs_device_free (comm, x[1]));
    CHECK_OK (gs_reducer_ready (r, 0, NULL));
    CHECK_OK (gs_reducer_finish (r, NULL));
    CHECK_OK (gs_comm_wait (comm, NULL));
    CHECK_OK (gs_reducer_destroy (r));
    CHECK_OK (gs_device_free (comm, x[0]));
}

/* Rank 0 stops after [good] of [calls] averages; the others queue all of them, in a graph or not.
 */
static void flood (int good, int calls, bool in_graph)
{
    int mine = rank ? calls : good;
    float *x = make_floats (COUNT, 1);
    cudaGraphExec_t exec = NULL;
    cudaGraph_t captured = NULL;
    cudaStream_t stream;
    gs_status_t st = GS_OK;

    CHECK_CUDA (cudaStreamCreateWithFlags (&stream, cudaStreamNonBlocking));
    for (int i = 0; i < 3; i++)
        CHECK_OK (average_floats (x, stream));
    CHECK_OK (gs_comm_wait (comm, stream));
    if (in_graph) {
        CHECK_CUDA (cudaStreamBeginCapture (stream, cudaStreamCaptureModeThreadLocal));
        CHECK_OK (average_floats (x, stream));
        CHECK_CUDA (cudaStreamEndCapture (stream, &captured));
        CHECK_CUDA (cudaGraphInstantiate (&exec, captured, 0));
    }
    for (int i = 0; i < mine && !st; i++)
        st = average_floats (x, stream);
    if (rank) {
        st = st ? st : gs_comm_wait (comm, stream);
        CHECK (st == GS_ERR_TIMEOUT, "the others end with %s, %s", gs_status_string (st),
               gs_last_error ());
        CHECK_FAILS (gs_comm_check (comm), GS_ERR_TIMEOUT, "rank 0");
        multi_signal ("gave-up", rank);
    } else {
        multi_await_others ("gave-up", 0);
        gs_comm_abort (comm);
    }
    gs_device_free (comm, x);
    gs_comm_destroy (comm); /* does not wait for the graph */
    if (exec) {
        CHECK_CUDA (cudaGraphExecDestroy (exec));
        CHECK_CUDA (cudaGraphDestroy (captured));
    }
    CHECK_CUDA (cudaStreamDestroy (stream));
}

/* All of what is queued takes longer than the deadline, none of it does (SIM_DELAY). */
static void many (int calls)
{
    float *x = make_floats (COUNT, 1);
    double begin = multi_seconds ();

    for (int i = 0; i < calls; i++)
        CHECK_OK (average_floats (x, NULL));
    CHECK_OK (gs_comm_wait (comm, NULL));
    CHECK (multi_seconds () - begin > 2, "only %.3f s", multi_seconds () - begin);
    check_floats (x, COUNT, 1);
    CHECK_OK (gs_device_free (comm, x));
}

/* NCCL's split never ends on rank 0 (SIM_FAULT), and rank 1 has no group. */
static void no_group (void)
{
    double begin = multi_seconds ();
    gs_comm_t *group;
    gs_status_t st = gs_comm_split (comm, rank == 1 ? GS_COLOR_NONE : 0, 0, &group);

    CHECK (multi_seconds () - begin > 5, "a split has GS_BOOT_TIMEOUT_MS, not %.3f s",
           multi_seconds () - begin);
    CHECK (st == GS_ERR_TIMEOUT || st == GS_ERR_STATE, "the split gives %s: %s",
           gs_status_string (st), gs_last_error ());
    gs_comm_destroy (comm);
}

/* As the end of a process does that has much of a GPU to give back. */
static void close_sockets (void)
{
    struct stat what;

    for (int fd = 3; fd < 1024; fd++)
        if (!fstat (fd, &what) && S_ISSOCK (what.st_mode))
            shutdown (fd, SHUT_RDWR);
    usleep (500000);
}

/* Rank 0 is killed while the others wait for it; the deadline is far. */
static void killed (bool slowly)
{
    float *x = make_floats (COUNT, 1);
    double begin;

    for (int i = 0; i < 3; i++)
        CHECK_OK (average_floats (x, NULL));
    CHECK_OK (gs_comm_wait (comm, NULL));
    if (!rank && slowly)
        close_sockets ();
    if (!rank)
        raise (SIGKILL);
    begin = multi_seconds ();
    CHECK_FAILS (multi_wait (comm, average_floats (x, NULL)), GS_ERR_TRANSPORT, "rank 0 (host",
                 "has ended");
    printf ("rank %d knows it after %.2f s\n", rank, multi_seconds () - begin);
    gs_device_free (comm, x);
    gs_comm_destroy (comm);
}

/* A context takes some 500 MiB of a GPU, which may be another process's. */
static void contexts (void)
{
    int (*get_state) (int device, unsigned *flags, int *active) = NULL;
    void *driver = dlopen ("libcuda.so.1", RTLD_NOW);
    int own = gs_comm_device (comm), devices = 0;
    float host[COUNT] = {0}, *x = make_floats (COUNT, 1);

    for (int i = 0; i < 3; i++) {
        CHECK_OK (gs_allreduce_avg (comm, x, COUNT, GS_F32, NULL));
        CHECK_OK (multi_wait (comm, gs_allreduce_avg (comm, host, COUNT, GS_F32, NULL)));
    }
    CHECK_OK (gs_device_free (comm, x));
    if (driver)
        *(void **) (&get_state) = dlsym (driver, "cuDevicePrimaryCtxGetState");
    CHECK (get_state, "libcuda.so.1 has no cuDevicePrimaryCtxGetState");
    CHECK_CUDA (cudaGetDeviceCount (&devices));
    for (int device = 0; device < devices && get_state; device++) {
        unsigned flags;
        int active = -1, error = get_state (device, &flags, &active);
        CHECK (!error && active == (device == own),
               "on GPU %d of %d, with GPU %d for this rank: error %d, %d contexts", device,
               devices, own, error, active);
    }
}

static sem_t gate;

static void hold (void *unused)
{
    (void) unused;
    while (sem_wait (&gate))
        ;
}

/* The memory is still there, and is freed once it can be. */
static void stuck (void)
{
    float *x = make_floats (COUNT, 1);

    sem_init (&gate, 0, 0);
    CHECK_CUDA (cudaLaunchHostFunc (NULL, hold, NULL));
    CHECK_FAILS (gs_device_free (comm, x), GS_ERR_TIMEOUT, "did not end its work");
    CHECK_OK (gs_comm_check (comm));
    sem_post (&gate);
    CHECK_OK (average_floats (x, NULL));
    CHECK_OK (gs_device_free (comm, x));
}

static gs_status_t free_late (float *x)
{
    double until = multi_seconds () + 30;
    gs_status_t st;

    while ((st = gs_device_free (comm, x)) == GS_ERR_TIMEOUT && multi_seconds () < until)
        usleep (10000);
    return st;
}

static void *free_it (void *x)
{
    return (void *) (intptr_t) gs_device_free (comm, x);
}

static void *open_later (void *unused)
{
    usleep (700000); /* half of the deadline */
    sem_post (&gate);
    return unused;
}

/* A free by another thread keeps a call waiting, no longer than the work that it waits for. */
static void stuck_a_while (cudaStream_t stream)
{
    float *x = make_floats (COUNT, 1), *y = make_floats (COUNT, 2);
    pthread_t freeing, opening;
    void *st;

    CHECK_CUDA (cudaLaunchHostFunc (stream, hold, NULL));
    CHECK (!pthread_create (&freeing, NULL, free_it, x), "no thread");
    usleep (100000);
    CHECK (!pthread_create (&opening, NULL, open_later, NULL), "no thread");
    CHECK_OK (average_floats (y, NULL));
    CHECK_OK (gs_comm_wait (comm, NULL));
    pthread_join (opening, NULL);
    pthread_join (freeing, &st);
    CHECK_OK ((gs_status_t) (intptr_t) st);
    CHECK_OK (gs_device_free (comm, y));
}

/*
 * The same on a stream that no other one waits for: CUDA alone knows of it, and keeps every call
 * waiting while it waits in a free. Ours end, and what comes when the work has ended is as ever.
 */
static void stuck_beside (void)
{
    float *x = make_floats (COUNT, 1), *y = make_floats (COUNT, 2);
    float *z = make_floats (COUNT, 3), *last = make_floats (COUNT, 4);
    cudaStream_t stream;

    sem_init (&gate, 0, 0);
    CHECK_CUDA (cudaStreamCreateWithFlags (&stream, cudaStreamNonBlocking));
    stuck_a_while (stream);
    CHECK_CUDA (cudaLaunchHostFunc (stream, hold, NULL));
    CHECK_OK (gs_device_free (comm, x)); /* when it can be: else it is a leak */
    CHECK_FAILS (gs_device_free (comm, y), GS_ERR_TIMEOUT, "is kept");
    CHECK_FAILS (gs_comm_wait (comm, NULL), GS_ERR_DEVICE, "CUDA takes no other call");
    CHECK_OK (gs_comm_check (comm));
    sem_post (&gate);
    CHECK_OK (free_late (y));
    CHECK_OK (average_floats (z, NULL));
    CHECK_OK (gs_comm_wait (comm, NULL));
    CHECK_CUDA (cudaLaunchHostFunc (stream, hold, NULL));
    CHECK_OK (gs_device_free (comm, z));
    CHECK_FAILS (gs_barrier (comm, NULL), GS_ERR_DEVICE, "CUDA takes no other call");
    CHECK_FAILS (gs_comm_check (comm), GS_ERR_DEVICE, "CUDA takes no other call");
    sem_post (&gate);
    CHECK_OK (free_late (last));
    CHECK_CUDA (cudaStreamDestroy (stream));
}

/* A communicator whose averages do not wait for each other, as its first ones do. */
static gs_comm_t *split_settled (void)
{
    gs_comm_t *whole = comm, *part = NULL;
    float *x = make_floats (COUNT, 1);

    CHECK_OK (gs_comm_split (whole, 0, 0, &part));
    comm = part;
    for (int i = 0; i < 10; i++)
        CHECK_OK (average_floats (x, NULL));
    CHECK_OK (gs_comm_wait (part, NULL));
    comm = whole;
    CHECK_OK (gs_device_free (whole, x));
    return part;
}

/*
 * Each rank frees and destroys between two averages, which the other one takes in the other
 * order: a free that waits for the first would never end. What was kept is freed when nothing is
 * under way.
 */
static void crossed (void)
{
    float *x = make_floats (COUNT, (float) rank), *y = make_floats (COUNT, (float) rank);
    float *z = make_floats (COUNT, 1), *last = make_floats (COUNT, 1);
    struct cudaPointerAttributes of_z;
    gs_comm_t *one = split_settled (), *other = split_settled (), *third = split_settled ();
    gs_comm_t *whole = comm, *part = NULL;
    cudaStream_t stream[2];

    for (int i = 0; i < 2; i++)
        CHECK_CUDA (cudaStreamCreateWithFlags (&stream[i], cudaStreamNonBlocking));
    comm = rank ? other : one;
    CHECK_OK (average_floats (rank ? y : x, stream[0]));
    CHECK_OK (gs_device_free (whole, z));
    CHECK_OK (gs_comm_destroy (third)); /* which NCCL frees, as it does what follows on rank 0 */
    CHECK_OK (gs_comm_split (whole, rank ? 0 : GS_COLOR_NONE, 0, &part));
    comm = rank ? one : other;
    CHECK_OK (average_floats (rank ? x : y, stream[1]));
    CHECK_OK (gs_comm_wait (rank ? other : one, stream[0]));
    CHECK_OK (gs_comm_wait (comm, stream[1]));
    comm = whole;
    check_floats (x, COUNT, (float) (size - 1) / 2);
    check_floats (y, COUNT, (float) (size - 1) / 2);
    CHECK_OK (gs_comm_destroy (one));
    CHECK_OK (gs_comm_destroy (other));
    CHECK_OK (gs_comm_destroy (part));
    CHECK_OK (gs_device_free (comm, last));
    CHECK_CUDA (cudaPointerGetAttributes (&of_z, z));
    CHECK (of_z.type == cudaMemoryTypeUnregistered, "the memory is still there");
    CHECK_OK (gs_device_free (comm, x));
    CHECK_OK (gs_device_free (comm, y));
    for (int i = 0; i < 2; i++)
        CHECK_CUDA (cudaStreamDestroy (stream[i]));
}

int main (int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "", *type = getenv ("GS_TEST_DTYPE");

    if (type)
        dtype = (gs_dtype_t) atoi (type);
    if (!strcmp (mode, "late") || !strcmp (mode, "shrunk") || !strcmp (mode, "stuck"))
        setenv ("GS_TIMEOUT_MS", "1500", 1);
    else if (!strcmp (mode, "flood"))
        setenv ("GS_TIMEOUT_MS", "3000", 1);
    else if (!strcmp (mode, "no-group"))
        setenv ("GS_BOOT_TIMEOUT_MS", "6000", 1);
    if (!strcmp (mode, "no-group") || !strcmp (mode, "many") || !strcmp (mode, "ahead"))
        setenv ("GS_TIMEOUT_MS", "1500", 1);
    comm = create_on_gpu (&rank, &size);
    if (!strcmp (mode, "graph"))
        graph ();
    else if (!strcmp (mode, "contexts"))
        contexts ();
    else if (!strcmp (mode, "freed"))
        freed ();
    else if (!strcmp (mode, "busy"))
        busy ();
    else if (!strcmp (mode, "stuck"))
        argc > 2 ? stuck_beside () : stuck ();
    else if (!strcmp (mode, "crossed"))
        crossed ();
    else if (!strcmp (mode, "late"))
        late ();
    else if (!strcmp (mode, "ahead"))
        ahead ();
    else if (!strcmp (mode, "shrunk"))
        shrunk ();
    else if (!strcmp (mode, "flood") && argc >= 4)
        flood (atoi (argv[2]), atoi (argv[3]), argc > 4);
    else if (!strcmp (mode, "many") && argc == 3)
        many (atoi (argv[2]));
    else if (!strcmp (mode, "no-group"))
        no_group ();
    else if (!strcmp (mode, "killed"))
        killed (argc > 2);
    else if (!strcmp (mode, "average") && argc == 4)
        average ((size_t) atoll (argv[2]), atoi (argv[3]));
    else
        CHECK (false, "no such mode: '%s'", mode);
    if (!strcmp (mode, "late") || !strcmp (mode, "shrunk") ||
        (!strcmp (mode, "stuck") && argc > 2))
        gs_comm_destroy (comm);
    else if (strcmp (mode, "flood") && strcmp (mode, "no-group") && strcmp (mode, "killed"))
        CHECK_OK (gs_comm_destroy (comm));
    return multi_end (mode);
}
