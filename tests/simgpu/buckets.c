/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * buckets - the program of buckets.sh: what a bucket of a reducer costs in calls of CUDA, and
 * that buckets which have no event of their own are watched like all that is queued. Runs on real
 * GPUs as well.
 *
 *   buckets counted       the calls of a step's buckets; on a real GPU only that sums are right
 *   buckets slow          (SIM_DELAY_US) a step outlasts the deadline, no bucket of it does
 *   buckets late          rank 0 stops amid a step, in which the others go on
 *   buckets paused        a program does something else amid a step, for longer than the deadline
 *   buckets aborted       a communicator is given up amid a step, and its reducer destroyed
 *   buckets captured      a stream with gradients is captured before their buckets are launched
 *   buckets relaid        the program still has work on gradients that get another place
 *   buckets threaded      two threads have the gradients of a bucket, each in its default stream
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "simgpu/check_cuda.h"

#define BUCKETS 20
#define COUNT   1000
#define SETTLED 33 /* steps: buckets are made anew after 1, 2, 4, ..., one of eight is timed */

static gs_comm_t *comm;
static gs_reducer_t *reducer;
static int rank, size;
static float *x[BUCKETS];

/* How often [name] was called on simulated GPUs; *known: these are. */
static unsigned long calls (const char *name, bool *known)
{
    unsigned long (*sim_calls) (const char *) = NULL;

    *(void **) &sim_calls = dlsym (RTLD_DEFAULT, "sim_calls");
    *known = sim_calls != NULL;
    return sim_calls ? sim_calls (name) : 0;
}

/* A reducer with a gradient for each bucket, in the order in which they are ready. */
static void open_reducer (void)
{
    gs_reducer_opts_t opts = GS_REDUCER_OPTS_INIT;
    size_t count = COUNT;
    char name[32];

    opts.first_bytes = opts.bucket_bytes = opts.last_bytes = COUNT * sizeof (float);
    opts.forward = 1;
    CHECK_OK (gs_reducer_create (comm, &opts, &reducer));
    for (int b = 0; b < BUCKETS; b++) {
        snprintf (name, sizeof (name), "g%d", b);
        CHECK_OK (gs_device_alloc (comm, COUNT * sizeof (float), (void **) &x[b]));
        CHECK_OK (gs_reducer_add (reducer, name, 1, &count, GS_F32, x[b], NULL));
    }
    CHECK_OK (gs_reducer_commit (reducer));
}

static void close_reducer (void)
{
    CHECK_OK (gs_reducer_destroy (reducer));
    for (int b = 0; b < BUCKETS; b++)
        CHECK_OK (gs_device_free (comm, x[b]));
}

static void fill (void)
{
    float values[COUNT];

    for (int b = 0; b < BUCKETS; b++) {
        for (int i = 0; i < COUNT; i++)
            values[i] = (float) (rank + b);
        CHECK_OK (gs_device_copy (comm, x[b], values, sizeof (values), NULL));
    }
}

static void ready (int from, int to)
{
    for (int b = from; b < to; b++)
        CHECK_OK (gs_reducer_ready (reducer, b, NULL));
}

/*
 * The same; whether each bucket has the event that its gradients are ready by, and none for the
 * watch but for one after each tenth of a second. True on real GPUs, where that is not known.
 */
static bool ready_cheaply (int from, int to)
{
    static const char *const names[] = {"cudaStreamWaitEvent", "cudaStreamIsCapturing",
                                        "cudaEventRecord"};
    unsigned long before[3], made, number = (unsigned long) (to - from), more;
    double begin = multi_seconds ();
    bool known, cheap = true;

    for (int n = 0; n < 3; n++)
        before[n] = calls (names[n], &known);
    ready (from, to);
    for (int n = 0; n < 3 && known; n++) {
        made = calls (names[n], &known) - before[n];
        more = n == 2 ? (unsigned long) ((multi_seconds () - begin) / 0.1) : 0;
        cheap = cheap && made >= number && made <= number + more;
    }
    return cheap;
}

static void finish (void)
{
    CHECK_OK (gs_reducer_finish (reducer, NULL));
    CHECK_OK (gs_comm_wait (comm, NULL));
}

static void check_averages (void)
{
    float values[COUNT], mean = (float) (size - 1) / 2;

    for (int b = 0; b < BUCKETS; b++) {
        CHECK_OK (gs_device_copy (comm, values, x[b], sizeof (values), NULL));
        for (int i = 0; i < COUNT; i++)
            if (values[i] != mean + (float) b) {
                CHECK (false, "element %d of bucket %d is %g", i, b, values[i]);
                break;
            }
    }
}

/* Steps, until the watch has seen that they are quick: later where processes wait for cores. */
static void settle (void)
{
    int32_t cheap = 0; /* on all ranks */

    for (int tries = 0; tries < 20 && !cheap; tries++) {
        for (int step = 0; step < SETTLED; step++) {
            ready (0, BUCKETS);
            finish ();
        }
        usleep (400000);
        cheap = ready_cheaply (0, BUCKETS);
        finish ();
        CHECK_OK (gs_allreduce (comm, &cheap, 1, GS_I32, GS_MIN, NULL));
    }
    CHECK (cheap, "a bucket has an event of its own");
}

/* What is settled is right as well. */
static void counted (void)
{
    settle ();
    fill ();
    ready (0, BUCKETS);
    finish ();
    check_averages ();
}

static void slow (void)
{
    double begin;

    for (int s = 0; s < 3; s++) {
        fill ();
        begin = multi_seconds ();
        ready (0, BUCKETS);
        finish ();
        CHECK (multi_seconds () - begin > 1.6, "a step of %g s", multi_seconds () - begin);
        check_averages ();
    }
}

static gs_status_t await_failure (void)
{
    double begin = multi_seconds ();
    gs_status_t st;

    while (!(st = gs_comm_check (comm)) && multi_seconds () - begin < 20)
        usleep (10000);
    return st;
}

/* The step does not end, so that nobody waits for what is queued: the watch alone sees it. */
static void late (void)
{
    gs_status_t st;
    double begin;

    settle ();
    begin = multi_seconds ();
    ready (0, rank ? 6 : 2);
    if (rank) {
        st = await_failure ();
        CHECK (st == GS_ERR_TIMEOUT && strstr (gs_last_error (), "bucket 3 of 20") &&
                   strstr (gs_last_error (), "did not come: rank 0"),
               "%s: %s", gs_status_string (st), gs_last_error ());
        CHECK (multi_seconds () - begin > 1.4, "after %g s", multi_seconds () - begin);
        multi_signal ("gave-up", rank);
    } else {
        multi_await_others ("gave-up", 0);
        gs_reducer_ready (reducer, 2, NULL); /* which the others have given up */
        st = await_failure ();
        CHECK (st == GS_ERR_TIMEOUT, "rank 0: %s", gs_status_string (st));
    }
}

/* Buckets that have ended are not late, whatever the program does then; nor are those that come
 * one by one. */
static void paused (void)
{
    settle ();
    fill ();
    ready (0, 2);
    usleep (2500000);
    for (int b = 2; b < BUCKETS; b++) {
        ready (b, b + 1);
        usleep (b % 3 ? 150000 : 1000);
    }
    finish ();
    check_averages ();
}

/* What was queued may run on, on a stream that nobody closes under it. */
static void aborted (void)
{
    settle ();
    ready (0, 5);
    multi_signal ("queued", rank);
    multi_await_others ("queued", rank);
    CHECK_OK (gs_comm_abort (comm));
    close_reducer ();
}

/* What a bucket waits for cannot be awaited: nothing is left out, and it is tried again. */
static void captured (void)
{
    cudaStream_t stream;
    cudaGraph_t graph;

    fill ();
    CHECK_CUDA (cudaStreamSynchronize (NULL));
    CHECK_CUDA (cudaStreamCreateWithFlags (&stream, cudaStreamNonBlocking));
    CHECK_OK (gs_reducer_ready (reducer, 1, stream));
    CHECK_CUDA (cudaStreamBeginCapture (stream, cudaStreamCaptureModeThreadLocal));
    CHECK_FAILS (gs_reducer_ready (reducer, 0, stream), GS_ERR_UNSUPPORTED, "captured");
    CHECK_OK (gs_reducer_ready (reducer, 0, NULL)); /* bucket 1 is next */
    CHECK_OK (gs_reducer_ready (reducer, 2, NULL));
    CHECK_CUDA (cudaStreamEndCapture (stream, &graph));
    CHECK_CUDA (cudaGraphDestroy (graph));
    ready (3, BUCKETS);
    finish ();
    check_averages ();
    CHECK_CUDA (cudaStreamDestroy (stream));
}

static void hold (void *unused)
{
    (void) unused;
    usleep (500000);
}

/* The last gradients of a reducer that has their memory; they are one bucket. */
static void relaid (void)
{
    static float ones[COUNT];
    gs_reducer_t *own;
    size_t count = COUNT;
    cudaStream_t stream;
    float values[COUNT];
    void *at;

    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
    CHECK_CUDA (cudaStreamCreateWithFlags (&stream, cudaStreamNonBlocking));
    CHECK_OK (gs_reducer_create (comm, NULL, &own));
    CHECK_OK (gs_reducer_add (own, "first", 1, &count, GS_F32, NULL, NULL));
    CHECK_OK (gs_reducer_add (own, "last", 1, &count, GS_F32, NULL, NULL));
    CHECK_OK (gs_reducer_commit (own));
    for (int g = 1; g >= 0; g--)
        CHECK_OK (gs_reducer_ready (own, g, stream));
    CHECK_OK (gs_reducer_finish (own, stream));
    CHECK_OK (gs_reducer_get_grad (own, 0, &at));
    CHECK_CUDA (cudaLaunchHostFunc (stream, hold, NULL));
    CHECK_CUDA (cudaMemcpyAsync (at, ones, sizeof (ones), cudaMemcpyDefault, stream));
    CHECK_OK (gs_reducer_relayout (own));
    CHECK_OK (gs_reducer_get_grad (own, 0, &at));
    CHECK_OK (gs_device_copy (comm, values, at, sizeof (values), NULL));
    CHECK (!memcmp (values, ones, sizeof (values)), "element 0 is %g behind the relayout",
           values[0]);
    CHECK_OK (gs_reducer_destroy (own));
    CHECK_CUDA (cudaStreamDestroy (stream));
}

/* A gradient that a thread computes, slowly. */
struct part {
    gs_reducer_t *reducer;
    int index;
    float *from; /* on the GPU: a copy from the host's memory would be waited for */
    atomic_int given, ended;
};

static void give (struct part *p)
{
    void *at;

    CHECK_OK (gs_reducer_get_grad (p->reducer, p->index, &at));
    CHECK_CUDA (cudaMemcpyAsync (at, p->from, COUNT * sizeof (float), cudaMemcpyDefault,
                                 cudaStreamPerThread));
    CHECK_OK (gs_reducer_ready (p->reducer, p->index, cudaStreamPerThread));
}

static void *give_slowly (void *part)
{
    struct part *p = part;

    CHECK_CUDA (cudaSetDevice (gs_comm_device (comm)));
    CHECK_CUDA (cudaLaunchHostFunc (cudaStreamPerThread, hold, NULL));
    give (p);
    p->given = 1;
    while (!p->ended)
        usleep (1000);
    return NULL;
}

/* One handle, and two streams: that of the thread which launches the bucket is the wrong one for
 * the other. */
static void threaded (void)
{
    static struct part part[2];
    size_t count = COUNT;
    float values[COUNT];
    gs_reducer_t *own;
    pthread_t thread;
    void *at;

    CHECK_OK (gs_reducer_create (comm, NULL, &own));
    for (int g = 0; g < 2; g++) {
        part[g].reducer = own;
        part[g].index = g;
        for (int i = 0; i < COUNT; i++)
            values[i] = (float) (rank + 1 + g);
        CHECK_OK (gs_device_alloc (comm, sizeof (values), (void **) &part[g].from));
        CHECK_OK (gs_device_copy (comm, part[g].from, values, sizeof (values), NULL));
        CHECK_OK (gs_reducer_add (own, g ? "second" : "first", 1, &count, GS_F32, NULL, NULL));
    }
    CHECK_OK (gs_reducer_commit (own));
    CHECK (!pthread_create (&thread, NULL, give_slowly, &part[0]), "no thread");
    while (!part[0].given)
        usleep (1000);
    give (&part[1]);
    CHECK_OK (gs_reducer_finish (own, NULL));
    CHECK_OK (gs_comm_wait (comm, NULL));
    for (int g = 0; g < 2; g++) {
        CHECK_OK (gs_reducer_get_grad (own, g, &at));
        CHECK_OK (gs_device_copy (comm, values, at, sizeof (values), NULL));
        CHECK (values[COUNT - 1] == (float) (size + 1) / 2 + (float) g, "gradient %d is %g", g,
               values[COUNT - 1]);
    }
    part[0].ended = 1;
    pthread_join (thread, NULL);
    CHECK_OK (gs_reducer_destroy (own));
    for (int g = 0; g < 2; g++)
        CHECK_OK (gs_device_free (comm, part[g].from));
}

int main (int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";

    if (strcmp (mode, "counted"))
        setenv ("GS_TIMEOUT_MS", "1500", 1);
    comm = create_on_gpu (&rank, &size);
    open_reducer ();
    if (!strcmp (mode, "counted"))
        counted ();
    else if (!strcmp (mode, "slow"))
        slow ();
    else if (!strcmp (mode, "late"))
        late ();
    else if (!strcmp (mode, "paused"))
        paused ();
    else if (!strcmp (mode, "aborted"))
        aborted ();
    else if (!strcmp (mode, "captured"))
        captured ();
    else if (!strcmp (mode, "relaid"))
        relaid ();
    else if (!strcmp (mode, "threaded"))
        threaded ();
    else
        CHECK (false, "no such mode: '%s'", mode);
    if (strcmp (mode, "aborted"))
        close_reducer ();
    if (!strcmp (mode, "late"))
        gs_comm_destroy (comm);
    else
        CHECK_OK (gs_comm_destroy (comm));
    return multi_end (mode);
}
