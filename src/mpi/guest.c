/* SPDX-License-Identifier: BSD-3-Clause */
/* guest - how the module lives in a process with MPI. */
#include "mpi/guest.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER; /* the start of MPI */
static atomic_bool transfers_left;                        /* MPI_Finalize could wait for ever */
static atomic_int transports;                             /* likewise, for ranks that go on */

/* Memory that MPI still owns. Reachable, so that leak checkers know it is meant to stay. */
static struct kept {
    struct kept *next;
    void *memory;
} * kept;

bool gsi_guest_up (void)
{
    int initialized = 0, finalized = 0;

    MPI_Initialized (&initialized);
    if (initialized)
        MPI_Finalized (&finalized);
    return initialized && !finalized;
}

static void finalize_at_exit (void)
{
    if (gsi_guest_up () && !atomic_load (&transfers_left) && !atomic_load (&transports))
        MPI_Finalize ();
}

void gsi_guest_opened (void)
{
    atomic_fetch_add (&transports, 1);
}

void gsi_guest_closed (void)
{
    atomic_fetch_sub (&transports, 1);
}

static gs_status_t initialise (void)
{
    int finalized = 0, provided, rc;

    MPI_Finalized (&finalized);
    if (finalized)
        return gsi_fail (GS_ERR_STATE, "MPI was finalized already and cannot start again: make "
                                       "communicators before MPI_Finalize");
    rc = MPI_Init_thread (NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    if (rc)
        return gsi_guest_fail ("MPI_Init_thread", rc);
    atexit (finalize_at_exit);
    return GS_OK;
}

/* Below MPI_THREAD_SERIALIZED only the thread that initialised MPI may call it. */
static gs_status_t check_thread (void)
{
    int level = MPI_THREAD_SINGLE, is_main = 1;

    MPI_Query_thread (&level);
    if (level < MPI_THREAD_SERIALIZED)
        MPI_Is_thread_main (&is_main);
    if (!is_main)
        return gsi_fail (GS_ERR_STATE,
                         "MPI was initialised below MPI_THREAD_SERIALIZED, so only "
                         "the main thread may use gradsync: ask for MPI_THREAD_MULTIPLE");
    return GS_OK;
}

gs_status_t gsi_guest_start (void)
{
    gs_status_t st = GS_OK;

    pthread_mutex_lock (&guard);
    if (!gsi_guest_up ())
        st = initialise ();
    pthread_mutex_unlock (&guard);
    return st ? st : check_thread ();
}

gs_status_t gsi_guest_fail (const char *what, int rc)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length, class = MPI_ERR_OTHER;

    MPI_Error_string (rc, text, &length);
    MPI_Error_class (rc, &class);
    if (class == MPI_ERR_TRUNCATE)
        return gsi_fail (GS_ERR_MISMATCH,
                         "%s: %s: the ranks disagree on count or dtype; "
                         "GS_CHECK=collective tells which",
                         what, text);
    return gsi_fail (GS_ERR_TRANSPORT, "%s: %s", what, text);
}

void gsi_guest_keep (void *memory)
{
    struct kept *k;

    atomic_store (&transfers_left, true);
    if (!memory || !(k = malloc (sizeof (*k))))
        return;
    pthread_mutex_lock (&guard);
    *k = (struct kept){.next = kept, .memory = memory};
    kept = k;
    pthread_mutex_unlock (&guard);
}

void gsi_guest_pause (unsigned *spins)
{
    if (++*spins > GSI_GUEST_SPINS)
        sched_yield ();
}

gs_status_t gsi_guest_wait (const char *what, MPI_Request *request, int64_t deadline_ns)
{
    unsigned spins = 0;
    int done = 0, rc;

    for (;;) {
        if ((rc = MPI_Test (request, &done, MPI_STATUS_IGNORE)))
            return gsi_guest_fail (what, rc);
        if (done)
            return GS_OK;
        if (gsi_now_ns () > deadline_ns)
            return gsi_fail (GS_ERR_TIMEOUT, "%s: the deadline passed", what);
        gsi_guest_pause (&spins);
    }
}
