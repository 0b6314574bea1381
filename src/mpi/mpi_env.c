/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi_env - how the module lives in a process with MPI. */
#include "mpi/mpi_env.h"

#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/timed_call.h"
#include "base/log.h"
#include "base/process.h"
#include "base/status.h"
#include "boot/launch.h"
#include "host/net.h"

#define ERRHANDLER    "OMPI_MCA_mpi_initial_errhandler" /* of MPI_COMM_WORLD, until it is set */
#define LEAST_NS      GSI_NS_PER_S /* for a call of MPI to return, however late it begins */
#define LIBRARY_BYTES 80           /* of the name of an MPI library, "Open MPI v5.0.7" */

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER; /* start */
static atomic_bool transfers_left;                        /* MPI_Finalize could wait for ever */
static atomic_int transports;                             /* likewise, for ranks that go on */
static atomic_int left_behind;                            /* threads that are inside MPI */
static atomic_bool started;                               /* MPI, by us */
static atomic_bool running;                               /* MPI, since a start, until its end */

static struct gsi_timed_call *start; /* of MPI, until a create has taken note of its end */

bool gsi_mpi_env_up (void)
{
    int initialized = 0, finalized = 0;

    MPI_Initialized (&initialized);
    if (initialized)
        MPI_Finalized (&finalized);
    return initialized && !finalized;
}

/* N.B. MPI deletes the attributes of MPI_COMM_SELF before all else that MPI_Finalize does. */
static int note_end (MPI_Comm comm, int key, void *value, void *unused)
{
    (void) comm, (void) key, (void) value, (void) unused;
    atomic_store (&running, false);
    return MPI_SUCCESS;
}

/* Called with the guard, with MPI up. */
static gs_status_t await_end (void)
{
    int key, rc;

    if (atomic_load (&running))
        return GS_OK;
    if ((rc = MPI_Comm_create_keyval (MPI_COMM_NULL_COPY_FN, note_end, &key, NULL)) ||
        (rc = MPI_Comm_set_attr (MPI_COMM_SELF, key, NULL)) ||
        (rc = MPI_Comm_free_keyval (&key))) /* it goes with the attribute */
        return gsi_mpi_env_fail ("an attribute of MPI_COMM_SELF", rc);
    atomic_store (&running, true);
    return GS_OK;
}

/* Whether no thread is inside a call of MPI that keeps others out. */
static bool is_free (void)
{
    int level = MPI_THREAD_MULTIPLE;

    if (atomic_load (&left_behind))
        MPI_Query_thread (&level);
    return level == MPI_THREAD_MULTIPLE;
}

bool gsi_mpi_env_usable (void)
{
    return atomic_load_explicit (&running, memory_order_relaxed) && is_free ();
}

gs_status_t gsi_mpi_env_enter (void)
{
    return is_free () ? GS_OK
                      : gsi_fail (GS_ERR_TRANSPORT,
                                  "MPI is inside a call that did not return by its deadline, and "
                                  "was not initialised with MPI_THREAD_MULTIPLE: it takes no "
                                  "other call");
}

/* ---- Calls that may not return ---- */

struct inside {
    int (*work) (void *argument);
    void *argument;
    atomic_bool apart; /* the caller has left the thread, or that its call */
};

/* In a thread of its own; if it was left behind MPI takes other calls from here on. */
static int work_inside (void *call)
{
    struct inside *in = call;
    int rc = in->work (in->argument);

    if (atomic_exchange (&in->apart, true))
        atomic_fetch_sub (&left_behind, 1);
    return rc;
}

gs_status_t gsi_mpi_env_by (const char *what, int (*work) (void *), void *argument,
                            int64_t deadline_ns)
{
    struct gsi_timed_call *e = NULL;
    int64_t least_ns = gsi_now_ns () + LEAST_NS;
    struct inside *in;
    int rc = 0;
    gs_status_t st = gsi_mpi_env_enter ();

    if (st)
        return st;
    if (!(in = calloc (1, sizeof (*in))))
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", what);
    in->work = work;
    in->argument = argument;
    st = gsi_timed_call_run (&e, what, work_inside, in,
                             deadline_ns > least_ns ? deadline_ns : least_ns, &rc);
    if (st != GS_ERR_TIMEOUT) {
        free (in);
        return !st && rc ? gsi_mpi_env_fail (what, rc) : st;
    }
    gsi_timed_call_leave (e);
    atomic_fetch_add (&left_behind, 1);
    if (atomic_exchange (&in->apart, true)) /* it has just returned */
        atomic_fetch_sub (&left_behind, 1);
    gsi_mpi_env_keep (in);
    gsi_mpi_env_keep (argument);
    return gsi_fail (st, "%s: " GSI_LATE, what);
}

/* Without other calls than these: the thread that waits may be inside any of them. */
static int collective (void *argument)
{
    struct gsi_mpi_collective *c = argument;
    MPI_Request request;
    unsigned spins = 0;
    int done = 0;
    int rc = c->all ? MPI_Iallgather (c->own, c->bytes, MPI_BYTE, c->all, c->bytes, MPI_BYTE,
                                      c->comm, &request)
                    : MPI_Comm_idup (c->comm, &c->made, &request);

    while (!rc && !(rc = MPI_Test (&request, &done, MPI_STATUS_IGNORE)) && !done &&
           gsi_now_ns () <= c->deadline_ns)
        gsi_net_spin (&spins);
    c->late = !rc && !done;
    return rc;
}

gs_status_t gsi_mpi_env_collective (const char *what, struct gsi_mpi_collective *c,
                                    int64_t deadline_ns)
{
    gs_status_t st;
    int rc;

    c->deadline_ns = deadline_ns;
    st = gsi_mpi_env_by (what, collective, c, deadline_ns + LEAST_NS);
    if (st == GS_ERR_NOMEM) /* the others are in it: without a thread, and so a deadline */
        st = (rc = collective (c)) ? gsi_mpi_env_fail (what, rc) : GS_OK;
    return !st && c->late ? gsi_fail (GS_ERR_TIMEOUT, "%s: " GSI_LATE, what) : st;
}

static int finalize_mpi (void *unused)
{
    (void) unused;
    return MPI_Finalize ();
}

static void finalize_at_exit (void)
{
    int64_t wait_ns = gsi_env_int (GSI_ENV_BOOT_TIMEOUT_MS) * GSI_NS_PER_MS;

    if (gsi_process_is_child () || !gsi_mpi_env_up () || atomic_load (&transfers_left) ||
        atomic_load (&transports) ||
        !gsi_mpi_env_by ("MPI_Finalize", finalize_mpi, NULL, gsi_now_ns () + wait_ns))
        return;
    if (atomic_load (&left_behind))
        gsi_process_leave_behind ();
    gsi_log (GS_LOG_WARN, "mpi",
             "%s; the process ends without it: another rank has ended otherwise, or died",
             gsi_last_text ());
}

void gsi_mpi_env_count (int by)
{
    atomic_fetch_add (&transports, by);
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
static int init_mpi (void *unused)
{
    bool chosen = getenv (ERRHANDLER);
    fenv_t traps;
    int provided, rc;

    (void) unused;
    if (!chosen) /* else a failure would end the process: Open MPI from 5 on */
        setenv (ERRHANDLER, "mpi_errors_return", 1);
    feholdexcept (&traps);
    rc = MPI_Init_thread (NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    fesetenv (&traps);
    if (!chosen) /* programs that this one starts are not meant */
        unsetenv (ERRHANDLER);
    return rc;
}

static gs_status_t initialised (int rc)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;

    if (rc)
        MPI_Error_string (rc, text, &length);
    if (rc && !gsi_launch_shares_security ())
        return gsi_launch_refused ("MPI_Init_thread", text);
    if (rc)
        return gsi_fail (GS_ERR_TRANSPORT, "MPI_Init_thread: %s; MPI's own lines say why", text);
    /* Nobody else uses it: what MPI finds out there is an error of ours, and not the end. */
    MPI_Comm_set_errhandler (MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    atomic_store (&started, true);
    atexit (finalize_at_exit);
    return GS_OK;
}

bool gsi_mpi_env_before_pmix (void)
{
    char name[LIBRARY_BYTES];
    int initialized = 0, version = 0;

    MPI_Initialized (&initialized);
    return !initialized && sscanf (library (name), "Open MPI v%d", &version) == 1 && version >= 5;
}

gs_status_t gsi_mpi_env_not_finalized (void)
{
    int finalized = 0;

    MPI_Finalized (&finalized);
    return finalized ? gsi_fail (GS_ERR_STATE, "MPI was finalized already and cannot start "
                                               "again: make communicators before MPI_Finalize")
                     : GS_OK;
}

/* Makes MPI up, which the first call begins; the next one waits on. Called with the guard. */
static gs_status_t initialise (int64_t deadline_ns)
{
    gs_status_t st = gsi_mpi_env_not_finalized ();
    int rc;

    if (st)
        return st;
    st = gsi_timed_call_run (&start, "the start of MPI", init_mpi, NULL, deadline_ns, &rc);
    if (st == GS_ERR_TIMEOUT)
        return gsi_fail (st, "bootstrap: " GSI_LATE_BOOT " while MPI started, "
                             "which waits for all ranks. Does every rank of the job step call "
                             "gs_comm_create?");
    return st ? st : initialised (rc);
}

gs_status_t gsi_mpi_env_check_world (int ranks)
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

/*
 * Below MPI_THREAD_SERIALIZED only the thread that initialised MPI may call it. Where that was
 * ours it has ended, and one other may.
 */
static gs_status_t check_thread (void)
{
    int level = MPI_THREAD_SINGLE, is_main = 1;
    gs_status_t st;

    MPI_Query_thread (&level);
    if ((st = gsi_mpi_env_enter ()))
        return st;
    if (level < MPI_THREAD_SERIALIZED && !atomic_load (&started))
        MPI_Is_thread_main (&is_main);
    if (!is_main)
        return gsi_fail (GS_ERR_STATE,
                         "MPI was initialised below MPI_THREAD_SERIALIZED, so only "
                         "the main thread may use gradsync: ask for MPI_THREAD_MULTIPLE");
    return GS_OK;
}

gs_status_t gsi_mpi_env_start (int64_t deadline_ns)
{
    gs_status_t st = GS_OK;

    gsi_process_outlive_pipes ();
    pthread_mutex_lock (&guard);
    if (!gsi_mpi_env_up () || start)
        st = initialise (deadline_ns);
    if (!st && !(st = check_thread ()))
        st = await_end ();
    pthread_mutex_unlock (&guard);
    return st;
}

gs_status_t gsi_mpi_env_fail (const char *what, int rc)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length, class = MPI_ERR_OTHER;

    MPI_Error_string (rc, text, &length);
    MPI_Error_class (rc, &class);
    if (class == MPI_ERR_TRUNCATE)
        return gsi_net_too_long (what, text);
    return gsi_fail (GS_ERR_TRANSPORT, "%s: %s", what, text);
}

void gsi_mpi_env_keep (void *memory)
{
    atomic_store (&transfers_left, true);
    gsi_keep (memory);
}
