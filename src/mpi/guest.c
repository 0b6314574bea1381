/* SPDX-License-Identifier: BSD-3-Clause */
/* guest - how the module lives in a process with MPI. */
#include "mpi/guest.h"

#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "base/status.h"
#include "base/thread.h"
#include "boot/launch.h"

#define LIBRARY_BYTES 80 /* of the name of an MPI library, "Open MPI v5.0.7" */

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER; /* the start of MPI */
static atomic_bool transfers_left;                        /* MPI_Finalize could wait for ever */
static atomic_int transports;                             /* likewise, for ranks that go on */

/* The start of MPI in a thread of its own. */
static enum { START_NONE, START_GOING, START_ENDED } start; /* under the guard */
static int start_rc;

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
    if (!gsi_process_is_child () && gsi_guest_up () && !atomic_load (&transfers_left) &&
        !atomic_load (&transports))
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

/* The name and version of the MPI library, without what follows them. */
static const char *library (char *text)
{
    char whole[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;

    MPI_Get_library_version (whole, &length);
    whole[strcspn (whole, ",\r\n")] = 0;
    for (char *c = whole; (c = strchr (c, '\t'));)
        *c = ' ';
    snprintf (text, LIBRARY_BYTES, "%s", *whole ? whole : "the MPI library");
    return text;
}

/* N.B. It may divide 0 by 0 (see boot_pmix.c): programs with -ffpe-trap would end there. */
static int init_mpi (void)
{
    fenv_t traps;
    int provided, rc;

    feholdexcept (&traps);
    rc = MPI_Init_thread (NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    fesetenv (&traps);
    return rc;
}

static gs_status_t initialised (int rc)
{
    if (rc)
        return gsi_guest_fail ("MPI_Init_thread", rc);
    /* Nobody else uses it: what MPI finds out there is an error of ours, and not the end. */
    MPI_Comm_set_errhandler (MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    atexit (finalize_at_exit);
    return GS_OK;
}

static gs_status_t initialise (void)
{
    int finalized = 0;

    MPI_Finalized (&finalized);
    if (finalized)
        return gsi_fail (GS_ERR_STATE, "MPI was finalized already and cannot start again: make "
                                       "communicators before MPI_Finalize");
    if (start == START_GOING)
        return gsi_fail (GS_ERR_STATE, "MPI still starts: the deadline of an earlier create "
                                       "passed while it waited for other ranks");
    return initialised (init_mpi ());
}

bool gsi_guest_before_pmix (void)
{
    char name[LIBRARY_BYTES];
    int initialized = 0, version = 0;

    MPI_Initialized (&initialized);
    return !initialized && sscanf (library (name), "Open MPI v%d", &version) == 1 && version >= 5;
}

static void *start_thread (void *unused)
{
    int rc = init_mpi ();

    pthread_mutex_lock (&guard);
    start_rc = rc;
    start = START_ENDED;
    pthread_mutex_unlock (&guard);
    return unused;
}

/* How far the start is, which the first call begins. */
static gs_status_t start_going (bool *going)
{
    gs_status_t st = GS_OK;
    pthread_t thread;

    pthread_mutex_lock (&guard);
    if (start == START_NONE &&
        !(st = gsi_thread_start (&thread, start_thread, NULL, "the start of MPI"))) {
        start = START_GOING;
        pthread_detach (thread);
    }
    *going = start == START_GOING;
    if (!st && !*going) {
        st = initialised (start_rc);
        start = START_NONE;
    }
    pthread_mutex_unlock (&guard);
    return st;
}

/* N.B. Open MPI always has MPI_THREAD_MULTIPLE, so the thread that starts it does not matter. */
gs_status_t gsi_guest_start_by (int64_t deadline_ns)
{
    static const struct timespec slice = {.tv_nsec = GSI_NS_PER_MS};
    gs_status_t st;
    bool going;

    while (!(st = start_going (&going)) && going && gsi_now_ns () < deadline_ns)
        nanosleep (&slice, NULL);
    if (!st && going)
        st = gsi_fail (GS_ERR_TIMEOUT,
                       "bootstrap: the deadline passed (GS_BOOT_TIMEOUT_MS) while MPI started, "
                       "which waits for all ranks. Does every rank of the job step call "
                       "gs_comm_create?");
    return st;
}

gs_status_t gsi_guest_check_world (int ranks)
{
    char name[LIBRARY_BYTES], cure[512];
    int size;

    MPI_Comm_size (MPI_COMM_WORLD, &size);
    library (name);
    if (size < ranks)
        return gsi_fail (GS_ERR_BOOT,
                         "%s, which gradsync-mpi.so is built for, has %d of the %d ranks in its "
                         "MPI_COMM_WORLD: it does not understand this launcher. Launch with its "
                         "own mpirun or mpiexec or in a way that both know (srun --mpi=list), or "
                         "set GS_MPI_MODULE to a module for the launcher's MPI",
                         name, size, ranks);
    snprintf (cure, sizeof (cure),
              "it does not understand this launcher. Launch with the library's own mpirun or "
              "mpiexec or with srun --mpi=pmix (srun --mpi=list shows what the site has), or use "
              "a program and a gradsync-mpi.so (GS_MPI_MODULE) for the launcher's MPI");
    return gsi_launch_check (size, name, cure);
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
                         "%s: %s: a rank has sent more than this call takes: do all do as many "
                         "steps? GS_CHECK=collective tells who makes which call",
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
