/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * given_up - the program of given_up.sh: kernels of a rank that gives up wait for nobody any more
 * and hand on what memory holds. No other rank takes that for a result: neither one that waits
 * with it for the last rank, nor the last rank, which comes too late. Runs on real GPUs as well.
 *
 *   given_up abort ROUNDS [CALL [RANK]]     a thread of rank 0 gives up while that waits
 *   given_up deadline ROUNDS [CALL [RANK]]  the deadline of rank 0 passes
 *
 * CALL is one of those below, such as sum: no other is made. RANK, not the last: it gives up, not
 * rank 0.
 */
#include <pthread.h>

#include "simgpu/check_cuda.h"

#define COUNT    ((size_t) 3000)
#define GIVEN    1.0f /* what every rank has */
#define COMPARED 2    /* calls of a communicator that are always compared */
#define SHORT_MS 400
#define LONG_MS  30000

static gs_comm_t *comm;
static int rank, size, quitter;
static float *given, *result; /* on the device, or the host */

static gs_status_t sum (cudaStream_t stream)
{
    return gs_allreduce (comm, result, COUNT, GS_F32, GS_SUM, stream);
}

static gs_status_t allgather (cudaStream_t stream)
{
    return gs_allgather (comm, given, result, COUNT, GS_F32, stream);
}

static gs_status_t broadcast (cudaStream_t stream)
{
    return gs_broadcast (comm, rank == size - 1 ? given : result, COUNT, GS_F32, size - 1,
                         stream);
}

static gs_status_t reduce_scatter (cudaStream_t stream)
{
    return gs_reduce_scatter (comm, given, result, COUNT / (size_t) size, GS_F32, GS_SUM, stream);
}

static gs_status_t alltoall (cudaStream_t stream)
{
    return gs_alltoall (comm, given, result, COUNT / (size_t) size, GS_F32, stream);
}

static const struct {
    const char *name;
    gs_status_t (*call) (cudaStream_t stream);
    bool sums;
} calls[] = {{"sum", sum, true},
             {"allgather", allgather, false},
             {"broadcast", broadcast, false},
             {"reduce_scatter", reduce_scatter, true},
             {"alltoall", alltoall, false}};

#define CALLS (int) (sizeof (calls) / sizeof (calls[0]))

static void fill (float *array, size_t count, float value)
{
    float *host = malloc (count * sizeof (*host));

    for (size_t i = 0; i < count; i++)
        host[i] = value;
    CHECK_CUDA (cudaMemcpy (array, host, count * sizeof (*host), cudaMemcpyDefault));
    free (host);
}

static float *make (bool on_host, size_t count, float value)
{
    void *memory;

    if (on_host)
        memory = malloc (count * sizeof (float));
    else
        CHECK_CUDA (cudaMalloc (&memory, count * sizeof (float)));
    fill (memory, count, value);
    return memory;
}

static void release (float *array, bool on_host)
{
    if (on_host)
        free (array);
    else
        CHECK_CUDA (cudaFree (array));
}

/* What a call that went well has made is what was given. */
static void check (const char *when, int which, gs_status_t st)
{
    size_t count = calls[which].call == reduce_scatter || calls[which].call == alltoall
                       ? COUNT / (size_t) size
                       : COUNT;
    float host[COUNT], wanted = calls[which].sums ? GIVEN * (float) size : GIVEN;
    bool has_it = calls[which].call != broadcast || rank < size - 1;

    if (st || !has_it)
        return;
    CHECK_CUDA (cudaMemcpy (host, result, count * sizeof (*host), cudaMemcpyDefault));
    for (size_t i = 0; i < count; i++)
        if (host[i] != wanted) {
            CHECK (false, "%s, %s gives GS_OK, and element %zu is %g", when, calls[which].name, i,
                   host[i]);
            return;
        }
}

static void *abort_soon (void *unused)
{
    (void) unused;
    usleep (50000);
    CHECK_OK (gs_comm_abort (comm));
    return NULL;
}

/* The quitter and those that wait with it for the last rank; what that one makes of it. */
static void wait_or_come (int round, int which, bool aborts)
{
    char gone[64], came[64];
    pthread_t thread;
    gs_status_t st;

    snprintf (gone, sizeof (gone), "gone-%d-%d", round, which);
    snprintf (came, sizeof (came), "came-%d-%d", round, which);
    if (rank == size - 1) {
        multi_await (gone, quitter);
        usleep ((unsigned) (round % 4 * 7000)); /* while some have ended and some have not */
        st = multi_wait (comm, calls[which].call (NULL));
        check ("late", which, st);
        multi_signal (came, rank);
        return;
    }
    if (rank == quitter && aborts)
        CHECK (!pthread_create (&thread, NULL, abort_soon, NULL), "no thread");
    st = multi_wait (comm, calls[which].call (NULL));
    if (rank == quitter)
        multi_signal (gone, rank);
    if (rank == quitter && aborts)
        pthread_join (thread, NULL);
    CHECK (st || rank != quitter, "who gives up gets GS_OK");
    check ("beside who gave up", which, st);
    multi_await (came, size - 1);
}

/* All have ended the calls before: who gives up is to spoil none of these. */
static void meet (int round, int which)
{
    char ready[64];

    snprintf (ready, sizeof (ready), "ready-%d-%d", round, which);
    multi_signal (ready, rank);
    if (rank == quitter)
        multi_await_others (ready, quitter);
}

static void run (int round, int which, bool aborts)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    bool on_host = round % 2;
    int one = 1;

    opts.timeout_ms = rank != quitter || aborts ? LONG_MS : SHORT_MS;
    comm = multi_create (&opts);
    for (int i = 0; i < COMPARED; i++)
        CHECK_OK (gs_allreduce (comm, &one, 1, GS_I32, GS_MAX, NULL));
    meet (round, which);
    if (gs_comm_device (comm) >= 0)
        CHECK_CUDA (cudaSetDevice (gs_comm_device (comm)));
    given = make (on_host, COUNT, GIVEN);
    result = make (on_host, COUNT * (size_t) size, calls[which].call == sum ? GIVEN : 0);
    wait_or_come (round, which, aborts);
    gs_comm_destroy (comm);
    release (given, on_host);
    release (result, on_host);
}

int main (int argc, char **argv)
{
    int rounds = argc > 2 ? atoi (argv[2]) : 0;
    const char *only = argc > 3 ? argv[3] : NULL;

    quitter = argc > 4 ? atoi (argv[4]) : 0;
    if (!rounds || (strcmp (argv[1], "abort") && strcmp (argv[1], "deadline")))
        return 99;
    setenv ("GS_DEBUG", "warn", 0);
    rank = multi_rank ();
    size = multi_size ();
    for (int round = 0; round < rounds; round++)
        for (int which = 0; which < CALLS; which++)
            if (!only || !strcmp (only, calls[which].name))
                run (round, which, !strcmp (argv[1], "abort"));
    return multi_end ("nobody takes for a result what a rank hands on that gives up");
}
