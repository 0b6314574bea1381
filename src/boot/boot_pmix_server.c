/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot_pmix_server - the connection of this process with its PMIx server.
 *
 * PMIx stays open to the end of the process: opening it again is fragile in several versions
 * (openpmix#1558, #1581, #2202). A process that exits while a communicator is open does not
 * finalize, so that the launcher sees a failed rank.
 */
#include "boot/boot_pmix_server.h"

#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "base/status.h"
#include "base/timed_call.h"
#include "boot/boot.h"
#include "boot/launch.h"

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER; /* all below */
static bool initialised, unreachable; /* a server was announced, and does not answer */
static int users;
static atomic_bool silent;              /* it does not answer any more */
static struct gsi_timed_call *starting; /* PMIx_Init, until a create has taken note of its end */
static pmix_proc_t started;             /* what it tells */

static void finalize_at_exit (void)
{
    if (gsi_process_is_child ())
        return; /* what is open is the parent's */
    pthread_mutex_lock (&guard);
    if (initialised && users)
        gsi_log (gsi_process_is_told () ? GS_LOG_INFO : GS_LOG_WARN, "boot",
                 "the process ends with %d communicators open: the launcher "
                 "will take it for a failed rank. Call gs_comm_destroy",
                 users);
    else if (initialised && !atomic_load (&silent) && !gsi_process_has_left_behind ())
        PMIx_Finalize (NULL, 0);
    initialised = false;
    pthread_mutex_unlock (&guard);
}

/* N.B. It may divide 0 by 0 (hwloc, 5.0): programs with -ffpe-trap would end there. */
static int init_pmix (void *me)
{
    fenv_t traps;
    int rc;

    gsi_process_outlive_pipes ();
    feholdexcept (&traps);
    rc = PMIx_Init (me, NULL, 0); /* counted by PMIx itself: cheap when open */
    fesetenv (&traps);
    return rc;
}

/*
 * The first time in a thread that can be left behind: PMIx_Init has no deadline of its own, and
 * waits for ever for a server that was stopped (4.2).
 */
static gs_status_t start_pmix (int64_t deadline_ns, pmix_proc_t *me, pmix_status_t *rc)
{
    const char *job = getenv ("PMIX_NAMESPACE");
    gs_status_t st;

    if (!starting && PMIx_Initialized ()) {
        *rc = init_pmix (me);
        return GS_OK;
    }
    st = gsi_timed_call_run (&starting, "PMIx_Init", init_pmix, &started, deadline_ns, rc);
    if (st == GS_ERR_TIMEOUT)
        return gsi_fail (
            st,
            "bootstrap: " GSI_LATE_BOOT " in PMIx_Init: the "
            "PMIx server of job %s (PMIX_NAMESPACE) does not answer. Is it that of a "
            "launcher that has ended? Start the program with srun --mpi=pmix or "
            "mpirun, or set GS_BOOT=single for one rank in each process",
            job ? job : "without a name");
    *me = started;
    return st;
}

/* Called with [guard] held. */
static gs_status_t connect_server (int64_t deadline_ns, pmix_proc_t *me)
{
    pmix_status_t rc = PMIX_ERR_UNREACH;
    gs_status_t st;

    if (!unreachable && (st = start_pmix (deadline_ns, me, &rc)))
        return st;
    if (rc == PMIX_ERR_UNREACH) {
        /* N.B. Without a job's name it is usable as a singleton, and to be finalized; with one
         * that crashes, and another PMIx_Init would seem to succeed (4.2). */
        unreachable = getenv ("PMIX_NAMESPACE") != NULL;
        if (!unreachable)
            PMIx_Finalize (NULL, 0);
        return gsi_fail (GS_ERR_UNSUPPORTED, "no PMIx server answers (PMIx_Init: %s)",
                         PMIx_Error_string (rc));
    }
    if (rc != PMIX_SUCCESS)
        return gsi_launch_refused ("PMIx_Init", PMIx_Error_string (rc));
    if (!initialised)
        atexit (finalize_at_exit);
    else
        PMIx_Finalize (NULL, 0); /* gives back the count just taken */
    initialised = true;
    users++;
    return GS_OK;
}

gs_status_t gsi_pmix_connect (int64_t deadline_ns, pmix_proc_t *me)
{
    gs_status_t st;

    pthread_mutex_lock (&guard);
    st = connect_server (deadline_ns, me);
    pthread_mutex_unlock (&guard);
    return st;
}

static int commit (void *unused)
{
    (void) unused;
    return PMIx_Commit ();
}

gs_status_t gsi_pmix_commit (int64_t deadline_ns)
{
    struct gsi_timed_call *timed_call = NULL;
    pmix_status_t rc = PMIX_SUCCESS;
    gs_status_t st = GS_ERR_TIMEOUT;

    if (!atomic_load (&silent))
        st = gsi_timed_call_run (&timed_call, "PMIx_Commit", commit, NULL, deadline_ns, &rc);
    if (st == GS_ERR_TIMEOUT) {
        atomic_store (&silent, true);
        if (timed_call)
            gsi_timed_call_leave (timed_call);
        return gsi_fail (st, "bootstrap: " GSI_LATE_BOOT " in PMIx_Commit: "
                             "the PMIx server, a part of the launcher, does not answer any more");
    }
    if (st) /* no memory for a thread */
        rc = PMIx_Commit ();
    if (rc != PMIX_SUCCESS)
        return gsi_fail (GS_ERR_BOOT, "PMIx_Commit: %s (%d)", PMIx_Error_string (rc), rc);
    return GS_OK;
}

void gsi_pmix_disconnect (void)
{
    pthread_mutex_lock (&guard);
    users--;
    pthread_mutex_unlock (&guard);
}

void gsi_pmix_local_ranks (const pmix_proc_t *me, int size, unsigned char *local)
{
    pmix_value_t *value = NULL;
    pmix_proc_t job;

    PMIX_LOAD_PROCID (&job, me->nspace, PMIX_RANK_WILDCARD);
    if (PMIx_Get (&job, PMIX_LOCAL_PEERS, NULL, 0, &value) == PMIX_SUCCESS && value &&
        value->type == PMIX_STRING) {
        char *text = value->data.string, *end;
        for (long r = strtol (text, &end, 10); end != text; r = strtol (text, &end, 10)) {
            if (r >= 0 && r < size)
                local[r] = 1;
            text = *end ? end + 1 : end;
        }
    }
    if (value)
        PMIX_VALUE_RELEASE (value);
}

static int ask_initialized (void *unused)
{
    (void) unused;
    return PMIx_Initialized ();
}

/*
 * N.B. PMIx_Initialized takes the lock that PMIx_Init holds until its server has answered: where
 * MPI's thread is in there and that is never, so would this one.
 */
bool gsi_boot_pmix_is_open (void)
{
    static pthread_mutex_t asks = PTHREAD_MUTEX_INITIALIZER;
    static struct gsi_timed_call *asking; /* one thread, however often it is asked */
    static bool is_open;
    bool open;
    int found = 0;

    pthread_mutex_lock (&asks);
    is_open = is_open || (!gsi_timed_call_run (&asking, "PMIx_Initialized", ask_initialized, NULL,
                                               gsi_now_ns () + GSI_NS_PER_S, &found) &&
                          found);
    open = is_open;
    pthread_mutex_unlock (&asks);
    return open;
}
