/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watchdog - ends the process where a call does not come back from a foreign library, and fails
 * calls on GPUs whose own thread is blocked there.
 */
#include "call/watchdog.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/thread.h"
#include "boot/missing.h"
#include "call/inflight.h"

#define TICK_NS GSI_NS_PER_S

static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER;  /* of the thread, that of the first */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER; /* all below */
static pthread_cond_t changed;
static pthread_t thread;
static gs_comm_t *list;
static int64_t stuck_ns;
static bool stop;

static const char *watchdog_host (void *context, int rank)
{
    return ((gs_comm_t *) context)->hosts[rank];
}

/* The same where the records of this node are all there is to go by. */
static gs_status_t blame_by_records (gs_comm_t *comm, gs_status_t st)
{
    unsigned char *missing = calloc ((size_t) comm->topo.size, 1);
    char what[GSI_TEXT_MAX / 2], names[GSI_TEXT_MAX / 4] = "";
    struct gsi_record_state other;
    int unknown = 0, number = 0;

    snprintf (what, sizeof (what), "%s", gsi_last_text ());
    for (int r = 0; r < comm->topo.size && missing; r++) {
        bool known = r == comm->topo.rank || gsi_record_peek (&comm->record, r, &other);
        unknown += !known;
        if (!known || r == comm->topo.rank)
            continue;
        missing[r] = other.seq < comm->record.seq || (kill (other.pid, 0) && errno == ESRCH);
        number += missing[r];
    }
    if (number)
        gsi_missing_list (missing, comm->topo.size, watchdog_host, comm, names, sizeof (names));
    free (missing);
    return gsi_fail (st, "%s%s%s; of %d ranks it is not known here", what, number ? "; " : "",
                     names, unknown);
}

/* Says which rank it is because of, as far as that can be found out without MPI. */
static gs_status_t blame_peer (gs_comm_t *comm, gs_status_t st)
{
    const struct gsi_boot_ops *ops = comm->boot->ops;

    return ops->blame ? ops->blame (comm->boot, st, 0) : blame_by_records (comm, st);
}

/* Ends the process, unless the call comes back meanwhile. */
static void end_process (gs_comm_t *comm)
{
    const struct gsi_record_entry *open = comm->record.open;
    struct gsi_record_entry e = {0};
    char reason[GSI_TEXT_MAX];
    const char *path;
    sigset_t aborts;

    if (open)
        e = gsi_record_load (open);
    gsi_fail (GS_ERR_TIMEOUT,
              "%s #%llu of communicator '%s' on rank %d (host %s): " GSI_LATE ", and the "
              "call is still inside MPI or another library, which does not return",
              open ? gsi_record_op_name (e.op) : "the create", (unsigned long long) e.seq,
              comm->name, comm->topo.rank, comm->hosts[comm->topo.rank]);
    blame_peer (comm, GS_ERR_TIMEOUT);
    if (atomic_load (&comm->watchdog.until_ns) != comm->watchdog.seen_ns)
        return;
    snprintf (reason, sizeof (reason), "%s%s. The process is ended (GS_STUCK_MS)",
              gsi_last_text (),
              strstr (gsi_last_text (), "did not come") ? ", or have ended meanwhile" : "");
    path = gsi_record_dump (&comm->record, reason);
    gsi_record_give_up (&comm->record, GS_ERR_TIMEOUT, comm->culprit, comm->record.seq);
    gsi_log (GS_LOG_ERROR, "comm", "%s%s%s", reason, *path ? ". Flight record: " : "", path);
    sigemptyset (&aborts); /* a handler of the application's runs only where it is not blocked */
    sigaddset (&aborts, SIGABRT);
    pthread_sigmask (SIG_UNBLOCK, &aborts, NULL);
    abort ();
}

static void look_at_calls (gs_comm_t *comm)
{
    int64_t until_ns = atomic_load (&comm->watchdog.until_ns);

    gsi_inflight_overdue (comm);
    if (!until_ns || until_ns != comm->watchdog.seen_ns || gsi_now_ns () < until_ns) {
        comm->watchdog.seen_ns = until_ns;
        comm->watchdog.ticks = 0;
    } else if (++comm->watchdog.ticks * TICK_NS >= stuck_ns) {
        end_process (comm);
    }
}

static void *watch (void *unused)
{
    pthread_mutex_lock (&guard);
    while (!stop) {
        gsi_condition_wait (&changed, &guard, gsi_now_ns () + TICK_NS);
        for (gs_comm_t *comm = list; comm && !stop; comm = comm->watchdog.next)
            look_at_calls (comm);
    }
    pthread_mutex_unlock (&guard);
    return unused;
}

void gsi_watchdog_open (gs_comm_t *comm)
{
    int64_t wait_ns = gsi_env_int (GSI_ENV_STUCK_MS) * GSI_NS_PER_MS;
    gs_status_t st = GS_OK;

    if (comm->boot->size == 1 || !wait_ns)
        return;
    pthread_mutex_lock (&life);
    if (!list) {
        gsi_condition_init (&changed);
        stop = false;
        st = gsi_thread_start (&thread, watch, NULL, "the watch over calls");
    }
    if (st)
        gsi_log (GS_LOG_WARN, "comm", "%s: one that MPI does not return from may never end",
                 gsi_last_text ());
    pthread_mutex_lock (&guard);
    if (!st) {
        stuck_ns = wait_ns;
        comm->watchdog.next = list;
        comm->watchdog.open = true;
        list = comm;
    }
    pthread_mutex_unlock (&guard);
    pthread_mutex_unlock (&life);
}

void gsi_watchdog_close (gs_comm_t *comm)
{
    gs_comm_t **at = &list;

    if (!comm->watchdog.open)
        return;
    pthread_mutex_lock (&life);
    pthread_mutex_lock (&guard);
    while (*at != comm)
        at = &(*at)->watchdog.next;
    *at = comm->watchdog.next;
    stop = !list;
    if (stop)
        pthread_cond_signal (&changed);
    pthread_mutex_unlock (&guard);
    if (stop) {
        pthread_join (thread, NULL);
        pthread_cond_destroy (&changed);
    }
    pthread_mutex_unlock (&life);
    comm->watchdog.open = false;
}
