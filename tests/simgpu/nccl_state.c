/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_state - what may be called when: versions, faults, and the states of a communicator.
 * Handles are never freed, so the use of one after its end is seen for certain.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "nccl_sim.h"

/* Of the library's folder: the build sets it for the older ones. */
#ifndef NSIM_VERSION
#define NSIM_VERSION NCCL_VERSION_CODE
#endif

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static struct ncclComm *comms;
static int comms_n;
static char warning[1024];

static int version;

static void read_version (void)
{
    const char *text = getenv ("SIM_NCCL_VERSION");
    int major = 0, minor = 0, patch = 0;

    version = NSIM_VERSION;
    if (!text || !*text)
        return;
    if (sscanf (text, "%d.%d.%d", &major, &minor, &patch) >= 2 && major == 2 && minor >= 9 &&
        minor < 100 && patch >= 0 && patch < 100)
        version = NCCL_VERSION (major, minor, patch);
    else
        sim_misuse ("SIM_NCCL_VERSION=%s: a version like 2.18 or 2.23.4 is needed", text);
}

int nsim_version (void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once (&once, read_version);
    return version;
}

void nsim_warn (const char *format, ...)
{
    char text[sizeof (warning)];
    va_list args;

    va_start (args, format);
    vsnprintf (text, sizeof (text), format, args);
    va_end (args);
    pthread_mutex_lock (&mutex);
    memcpy (warning, text, sizeof (warning));
    pthread_mutex_unlock (&mutex);
}

/* One text for the process, as in NCCL; the next failure replaces it, but not in the caller's
 * hands: there it stays until this thread asks again. */
const char *nsim_last_warning (void)
{
    static _Thread_local char copy[sizeof (warning)];

    pthread_mutex_lock (&mutex);
    memcpy (copy, warning, sizeof (copy));
    pthread_mutex_unlock (&mutex);
    return copy;
}

/* A version that is hidden cannot be called by name; this is for callers that do not ask. */
ncclResult_t nsim_enter (const char *who, int since, struct nsim_fate *fate)
{
    int code = ncclSystemError;
    enum sim_fault fault;

    *fate = (struct nsim_fate){0};
    if (nsim_version () < since) {
        sim_misuse ("%s came with NCCL %d.%d; this one is %d.%d", who, since / 10000,
                    since / 100 % 100, nsim_version () / 10000, nsim_version () / 100 % 100);
        return ncclInvalidUsage;
    }
    fault = sim_fault (who, &code);
    if (fault == SIM_FAULT_STALL)
        fate->stall = true;
    if (fault != SIM_FAULT_ERROR && fault != SIM_FAULT_LATE)
        return ncclSuccess;
    if (code <= ncclSuccess || code >= ncclNumResults || code == ncclInProgress)
        code = ncclSystemError;
    if (fault == SIM_FAULT_LATE) {
        fate->late = (ncclResult_t) code;
        return ncclSuccess;
    }
    nsim_warn ("%s: SIM_FAULT asked for error %d", who, code);
    return (ncclResult_t) code;
}

ncclComm_t nsim_comm_new (int rank, int ranks, bool blocking)
{
    ncclComm_t comm = calloc (1, sizeof (*comm));

    comm->rank = rank;
    comm->ranks = ranks;
    comm->blocking = blocking;
    comm->card = calloc ((size_t) ranks, sizeof (*comm->card));
    comm->fd = malloc ((size_t) ranks * sizeof (*comm->fd));
    for (int i = 0; i < ranks; i++)
        comm->fd[i] = -1;
    comm->wake = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init (&comm->mutex, NULL);
    pthread_cond_init (&comm->cond, NULL);
    pthread_mutex_lock (&mutex);
    comm->number = ++comms_n;
    comm->next = comms;
    comms = comm;
    pthread_mutex_unlock (&mutex);
    return comm;
}

void nsim_comm_each (void (*visit) (ncclComm_t comm, void *arg), void *arg)
{
    struct ncclComm *first;

    pthread_mutex_lock (&mutex);
    first = comms;
    pthread_mutex_unlock (&mutex);
    for (ncclComm_t comm = first; comm; comm = comm->next)
        visit (comm, arg);
}

static void match (ncclComm_t comm, void *arg)
{
    ncclComm_t *sought = arg;

    if (comm == *sought)
        *sought = NULL;
}

static bool known (ncclComm_t comm)
{
    ncclComm_t sought = comm;

    nsim_comm_each (match, &sought);
    return sought == NULL;
}

static const char *ending (enum nsim_phase phase)
{
    switch (phase) {
    case NSIM_FINALIZED: return "finalized";
    case NSIM_DESTROYED: return "destroyed";
    case NSIM_ABORTED: return "aborted";
    default: return NULL;
    }
}

static ncclResult_t misused (ncclComm_t comm, const char *who, const char *why)
{
    sim_misuse ("%s: communicator %d %s", who, comm->number, why);
    nsim_warn ("%s: communicator %d %s", who, comm->number, why);
    return ncclInvalidArgument;
}

/* Whether [comm] is one that has not been destroyed or aborted. */
ncclResult_t nsim_check_end (ncclComm_t comm, const char *who)
{
    char text[64];

    if (!known (comm)) {
        sim_misuse ("%s: %p is no communicator", who, (void *) comm);
        nsim_warn ("%s: %p is no communicator", who, (void *) comm);
        return ncclInvalidArgument;
    }
    if (comm->phase < NSIM_DESTROYED)
        return ncclSuccess;
    snprintf (text, sizeof (text), "was %s before", ending (comm->phase));
    return misused (comm, who, text);
}

/*
 * Whether [comm] may be used: not while its last call is in progress and until the program has
 * asked for the outcome, which is the one way to know. An error of its own is returned again.
 */
ncclResult_t nsim_check (ncclComm_t comm, const char *who)
{
    ncclResult_t result = ncclSuccess;
    bool in_progress;

    if (!comm) {
        nsim_warn ("%s : comm argument is NULL", who);
        return ncclInvalidArgument;
    }
    result = nsim_check_end (comm, who);
    if (result != ncclSuccess)
        return result;
    pthread_mutex_lock (&comm->mutex);
    in_progress = comm->jobs > 0 || comm->unpolled || comm->phase == NSIM_STARTING;
    result = comm->error;
    pthread_mutex_unlock (&comm->mutex);
    if (in_progress)
        return misused (comm, who,
                        "was still ncclInProgress, or was not asked whether it is: "
                        "call ncclCommGetAsyncError until it is not");
    nsim_leave_list (comm);
    return result;
}

static void wake_all (ncclComm_t comm)
{
    uint64_t one = 1;

    (void) !write (comm->wake, &one, sizeof (one));
    pthread_cond_broadcast (&comm->cond);
}

/* The first error stays. */
void nsim_set_error (ncclComm_t comm, ncclResult_t code)
{
    pthread_mutex_lock (&comm->mutex);
    if (comm->error == ncclSuccess)
        comm->error = code;
    pthread_cond_broadcast (&comm->cond);
    pthread_mutex_unlock (&comm->mutex);
}

/* A communicator that does not block keeps why a call was refused, ncclInvalidArgument too. */
void nsim_refuse (ncclComm_t comm, ncclResult_t code)
{
    if (!comm->blocking && code != ncclSuccess)
        nsim_set_error (comm, code);
}

void nsim_break (ncclComm_t comm, ncclResult_t code)
{
    pthread_mutex_lock (&comm->mutex);
    if (comm->phase < NSIM_DESTROYED) {
        if (comm->error == ncclSuccess || comm->error == ncclRemoteError)
            comm->error = code; /* a peer that heard of it first may be gone already */
        comm->broken = true;
        wake_all (comm);
    }
    pthread_mutex_unlock (&comm->mutex);
    nsim_meet_wake ();
}

void nsim_stop (ncclComm_t comm)
{
    pthread_mutex_lock (&comm->mutex);
    comm->stop = true;
    wake_all (comm);
    if (comm->child) {
        comm->child->stop = true;
        wake_all (comm->child);
    }
    pthread_mutex_unlock (&comm->mutex);
    nsim_meet_wake ();
}

void nsim_await_stop (ncclComm_t comm)
{
    pthread_mutex_lock (&comm->mutex);
    while (!comm->stop && !comm->broken)
        pthread_cond_wait (&comm->cond, &comm->mutex);
    pthread_mutex_unlock (&comm->mutex);
}

/* Nothing of it runs any more. */
void nsim_comm_close (ncclComm_t comm, enum nsim_phase phase)
{
    pthread_mutex_lock (&comm->mutex);
    comm->phase = phase;
    nsim_leave_list (comm);
    for (int i = 0; i < comm->ranks; i++) {
        if (comm->fd[i] >= 0)
            close (comm->fd[i]);
        comm->fd[i] = -1;
    }
    if (phase >= NSIM_DESTROYED) {
        close (comm->wake);
        comm->wake = -1;
        free (comm->owed);
        comm->owed = NULL;
        comm->owed_n = comm->owed_room = 0;
        nsim_forget_registered (comm);
        nsim_part (comm);
    }
    pthread_mutex_unlock (&comm->mutex);
}
