/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * abort - one rank gives up: the others, waiting for it with a long deadline, return at once and
 * name it. Also by another thread, while the rank itself is inside a call.
 */
#include <pthread.h>

#include "multi.h"

#define COUNT 100000

static int rank, size;
static float x[COUNT];

/* Checks that a call that has waited since [begin] ended by the abort, not by the deadline. */
static void check_told (gs_status_t st, double begin)
{
    CHECK (st == GS_ERR_STATE, "the waiting call gives %s: %s", gs_status_string (st),
           gs_last_error ());
    CHECK (multi_seconds () - begin < 20, "told after %g s", multi_seconds () - begin);
}

static void check_ended (gs_comm_t *comm)
{
    CHECK_FAILS (gs_barrier (comm, NULL), GS_ERR_STATE, "barrier", "communicator 'world'");
    CHECK_FAILS (gs_comm_check (comm), GS_ERR_STATE, "world");
    CHECK_FAILS (gs_allreduce_avg (comm, x, 1, GS_F32, NULL), GS_ERR_STATE, "world");
    CHECK (gs_comm_size (comm) == size, "the size is forgotten");
    CHECK_OK (gs_comm_abort (comm));
    gs_comm_destroy (comm); /* local now: it waits for nobody */
}

static gs_status_t call (gs_comm_t *comm, int kind)
{
    switch (kind) {
    case 0: return multi_barrier (comm);
    case 1: return gs_allreduce_avg (comm, x, COUNT, GS_F32, NULL);
    default: return gs_broadcast (comm, x, COUNT, GS_F32, size - 1, NULL);
    }
}

/* The last rank aborts instead of calling. */
static void from_outside (int kind)
{
    gs_comm_t *comm = multi_create (NULL);
    char name[64];
    double begin;

    for (int i = 0; i < 3; i++)
        CHECK_OK (gs_barrier (comm, NULL));
    begin = multi_seconds ();
    snprintf (name, sizeof (name), "rank %d gave the communicator up", size - 1);
    if (rank == size - 1) {
        usleep (200000);
        CHECK_OK (gs_comm_abort (comm));
    } else {
        check_told (call (comm, kind), begin);
        CHECK (strstr (gs_last_error (), name) || size > 2, "no '%s' in '%s'", name,
               gs_last_error ());
    }
    check_ended (comm);
}

static void *abort_soon (void *comm)
{
    usleep (200000);
    CHECK_OK (gs_comm_abort (comm));
    return NULL;
}

/* The first rank waits for the last one, and is aborted by a thread of its own. */
static void from_a_thread (int kind)
{
    gs_comm_t *comm = multi_create (NULL);
    pthread_t thread;
    char told[32], came[32];
    double begin;

    snprintf (told, sizeof (told), "told%d", kind);
    snprintf (came, sizeof (came), "came%d", kind);
    for (int i = 0; i < 3; i++)
        CHECK_OK (gs_barrier (comm, NULL));
    begin = multi_seconds ();
    if (!rank && pthread_create (&thread, NULL, abort_soon, comm)) {
        CHECK (false, "no thread");
        gs_comm_abort (comm);
        return;
    }
    if (rank < size - 1)
        check_told (call (comm, kind), begin);
    if (!rank)
        pthread_join (thread, NULL);
    if (rank < size - 1)
        multi_signal (told, rank);
    multi_await_others (told, size - 1);
    if (rank == size - 1)
        call (comm, kind); /* it comes when all is over, and is told now or in its next call */
    CHECK_FAILS (multi_barrier (comm), GS_ERR_STATE,
                 "world");     /* queued, it is told in the wait */
    multi_signal (came, rank); /* MPI kills who sends to a process that ended, or tells of that */
    multi_await_others (came, rank);
    check_ended (comm);
}

static void *wait_inside (void *comm)
{
    if (gs_barrier (comm, NULL) == GS_OK) /* queued */
        gs_comm_wait (comm, NULL);
    return NULL;
}

/* A communicator is aborted and destroyed at once, while another thread is inside a call. */
static void destroyed_beside (void)
{
    gs_comm_t *comm = multi_create (NULL);
    pthread_t thread;

    if (!rank && !pthread_create (&thread, NULL, wait_inside, comm)) {
        usleep (200000);
        CHECK_OK (gs_comm_abort (comm));
        CHECK_OK (gs_comm_destroy (comm));
        pthread_join (thread, NULL);
    }
    multi_signal ("beside", rank);
    multi_await_others ("beside", rank);
    if (rank) {
        CHECK_OK (gs_comm_abort (comm));
        CHECK_OK (gs_comm_destroy (comm));
    }
}

int main (void)
{
    setenv ("GS_TIMEOUT_MS", "60000", 1);
    setenv ("GS_DEBUG", "error", 1);
    rank = multi_rank ();
    size = multi_size ();
    for (int kind = 0; kind < 3; kind++) {
        from_outside (kind);
        from_a_thread (kind);
    }
    destroyed_beside ();
    return multi_end ("aborts of three operations, from outside and from a thread");
}
