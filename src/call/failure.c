/* SPDX-License-Identifier: BSD-3-Clause */
/* failure - what happens when an operation fails or a communicator is given up. */
#include "call/failure.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "boot/missing.h"
#include "call/describe.h"
#include "call/gpu_lock.h"
#include "call/peers.h"

#define TELL_SLICES 20                     /* of 5 ms, for the rank before to give up, too; */
#define TELL_MOST   100                    /* no longer than this; */
#define TOLD_SLICES 40                     /* and for one that has told others to log it */
#define LOOK_NS     (2 * GSI_NS_PER_S)     /* for a process to end, which is slow with a GPU; */
#define HEAR_NS     (3 * GSI_NS_PER_S / 2) /* for a rank of its node to tell which one that is */
#define REPORT_NS   (60 * GSI_NS_PER_S)    /* more than a report of another thread takes */

/* The rank that others are told it is because of: this one, where all that is known of the
 * culprit is that something of its own had ended. */
static int told_culprit (const gs_comm_t *comm)
{
    return atomic_load (&comm->vague) ? comm->topo.rank : atomic_load (&comm->culprit);
}

void gsi_failure_record (gs_comm_t *comm, gs_status_t st, uint64_t missed)
{
    gsi_record_give_up (&comm->record, st, told_culprit (comm), missed);
}

static struct gsi_ending ending_of (const gs_comm_t *comm, gs_status_t st, uint64_t missed)
{
    int culprit = told_culprit (comm), own = comm->topo.rank;

    return (struct gsi_ending){
        .status = st, .culprit = culprit == own ? -1 : culprit, .by = own, .missed = missed};
}

void gsi_failure_tell_others (gs_comm_t *comm, gs_status_t st, uint64_t missed)
{
    const struct gsi_ending how = ending_of (comm, st, missed);

    if (comm->coll && comm->coll->ops->notify_abort)
        comm->coll->ops->notify_abort (comm->coll, &how);
}

void gsi_failure_silence (gs_comm_t *comm, gs_status_t st, uint64_t missed)
{
    const struct gsi_ending how = ending_of (comm, st, missed);

    if (comm->coll && comm->coll->ops->silence)
        comm->coll->ops->silence (comm->coll, &how);
}

static const char *failure_host (void *context, int rank)
{
    return ((gs_comm_t *) context)->hosts[rank];
}

/* Of each node whether it does not answer; to be freed. NULL: that cannot be told. */
static unsigned char *find_gone (const gs_comm_t *comm)
{
    unsigned char *ranks, *nodes;

    if (!comm->coll || !comm->coll->ops->find_gone || comm->topo.nodes == 1)
        return NULL;
    ranks = calloc ((size_t) comm->topo.size, 1);
    nodes = calloc ((size_t) comm->topo.nodes, 1);
    if (ranks && nodes)
        comm->coll->ops->find_gone (comm->coll, ranks);
    for (int r = 0; ranks && nodes && r < comm->topo.size; r++)
        nodes[comm->topo.node_of[r]] |= ranks[r];
    free (ranks);
    return nodes;
}

/* This rank has found out that it is because of [rank]. */
static void set_culprit (gs_comm_t *comm, int rank)
{
    comm->culprit = rank;
    comm->vague = false;
    if (comm->coll)
        comm->coll->culprit = rank;
}

/* Marks ranks of nodes that do not answer; the first is the culprit if no [other] is missing. */
static void mark_gone (gs_comm_t *comm, unsigned char *marks, bool other)
{
    unsigned char *gone = find_gone (comm);
    int first = -1;

    for (int r = comm->topo.size - 1; r >= 0 && gone; r--)
        if (gone[comm->topo.node_of[r]]) {
            marks[r] = 1;
            first = r;
        }
    free (gone);
    if (first >= 0 && !other && comm->culprit == comm->topo.rank)
        set_culprit (comm, first);
}

/* Completes the text of a timeout with who did not come, as far as that can be found out. */
static void name_missing_ranks (gs_comm_t *comm, const struct gsi_call *call)
{
    unsigned char *marks = calloc ((size_t) comm->topo.size, 1);
    char deadline[256], names[GSI_TEXT_MAX / 2] = "who did not come is not known";
    char elsewhere[GSI_TEXT_MAX / 4] = "";
    int unknown, missing = 0;

    snprintf (deadline, sizeof (deadline), "%.255s", gsi_last_text ());
    if (marks) {
        unknown = gsi_peers_mark_missing (comm, call, marks);
        marks[comm->topo.rank] = 0;
        if (unknown)
            mark_gone (comm, marks, memchr (marks, 1, (size_t) comm->topo.size));
        for (int r = 0; r < comm->topo.size; r++)
            missing += marks[r];
        if (missing)
            gsi_peers_name_elsewhere (comm, marks, elsewhere, sizeof (elsewhere));
        if (missing)
            gsi_missing_list (marks, comm->topo.size, failure_host, comm, names, sizeof (names));
        else if (unknown)
            snprintf (names, sizeof (names),
                      "all ranks of this node came; of %d others it is not known here: look at "
                      "the messages and flight records of their nodes",
                      unknown);
        else
            snprintf (names, sizeof (names),
                      "all ranks came, but too late or not to the same operation: "
                      "GS_CHECK=collective compares what they call");
    }
    free (marks);
    gsi_fail (GS_ERR_TIMEOUT, "%s; %s%s%s", deadline, names,
              missing && call->op == GSI_OP_DESTROY ? ", or had ended it already" : "",
              elsewhere);
}

/*
 * Completes the text of a failure with the first rank that is in another call, if it is known. It
 * is the cause where the transport only saw that rank end (Open MPI 5). Returns the status.
 */
static gs_status_t name_other_call (gs_comm_t *comm, const struct gsi_call *call, gs_status_t st)
{
    struct gsi_wait wait = gsi_wait_for (st == GS_ERR_MISMATCH ? GSI_NS_PER_S : 0, 0);
    char differ[GSI_TEXT_MAX / 3], mine[GSI_DESCRIBE_TEXT], theirs[GSI_DESCRIBE_TEXT];
    struct gsi_told own, told;
    int rank;

    snprintf (differ, sizeof (differ), "%s", gsi_last_text ());
    gsi_peers_own (comm, &own);
    if (own.seq != call->seq)
        return st;
    if (st == GS_ERR_MISMATCH) /* ranks of other nodes then tell theirs */
        gsi_failure_tell_others (comm, st, call->seq);
    while ((rank = gsi_peers_find_other_call (comm, &own, st != GS_ERR_MISMATCH, &told)) < 0 &&
           gsi_wait_on (&wait))
        ;
    if (rank < 0)
        return st;
    gsi_describe_told (comm, &own, mine, sizeof (mine));
    gsi_describe_told (comm, &told, theirs, sizeof (theirs));
    if (st == GS_ERR_TRANSPORT)
        st = GS_ERR_MISMATCH;
    return gsi_fail (st, "%s. This is call #%llu, %s; rank %d (host %s) is in call #%llu, %s",
                     differ, (unsigned long long) own.seq, mine, rank, comm->hosts[rank],
                     (unsigned long long) told.seq, theirs);
}

/* The same for messages, whose ends are two ranks. */
static void name_ends (gs_comm_t *comm, const struct gsi_call *call)
{
    unsigned char *came = calloc ((size_t) comm->topo.size, 1);
    char deadline[256], ends[GSI_TEXT_MAX / 2] = "its ends are not known";

    snprintf (deadline, sizeof (deadline), "%.255s", gsi_last_text ());
    if (came)
        gsi_peers_call_roll (comm, call, came);
    if (comm->name_ends)
        comm->name_ends (comm, call, came, ends, sizeof (ends));
    free (came);
    gsi_fail (GS_ERR_TIMEOUT, "%s; %s", deadline, ends);
}

/* Completes [text], that of [st], with a rank of which nothing is heard any more. */
static gs_status_t name_gone (gs_comm_t *comm, gs_status_t st, const char *text)
{
    unsigned char *gone = find_gone (comm);
    int number = 0, first = 0;
    char others[60] = "";
    gs_status_t known = GS_OK;

    for (int r = comm->topo.size - 1; r >= 0 && gone; r--)
        if (gone[comm->topo.node_of[r]]) {
            number++;
            first = r;
        }
    free (gone);
    if (!number || (known = gsi_peers_cause (comm))) /* who answers no more has told others */
        return known;
    set_culprit (comm, first);
    if (number > 1)
        snprintf (others, sizeof (others), ", nor do %d others", number - 1);
    return gsi_fail (st, "%s; rank %d (host %s) does not answer any more%s", text, first,
                     comm->hosts[first], others);
}

/*
 * Waits until it is known who failed first: a rank that tells why, or whose process ends or, on
 * another node, has ended, which a rank of that node will tell.
 */
static gs_status_t await_cause (gs_comm_t *comm)
{
    static const struct timespec slice = {.tv_nsec = 5 * GSI_NS_PER_MS};
    bool hears = comm->coll && comm->topo.nodes > 1, heard, looked, go_on;
    struct gsi_grace look, hear;
    gs_status_t st;

    gsi_grace_begin (&look, comm->topo.local_size > 1 ? LOOK_NS : 0);
    gsi_grace_begin (&hear, hears ? HEAR_NS : 0);
    for (;; nanosleep (&slice, NULL)) {
        if (hears && atomic_load (&comm->life) == GSI_ALIVE)
            comm->coll->ops->poll (comm->coll); /* which hears; what it says is known */
        heard = gsi_grace_is_over (&hear);
        looked = gsi_grace_is_over (&look);
        go_on = gsi_peers_go_on (comm); /* asked first: who ends meanwhile is looked at again */
        st = gsi_peers_cause (comm);
        if (st || (heard && (looked || !go_on)))
            return st;
    }
}

/*
 * Who failed first, of whom [st] is, with [text]; or else a rank that saw something end. GS_OK:
 * nobody is known, or the culprit that [text] names. A rank that is named for its word alone has
 * asked all nodes.
 */
static gs_status_t find_cause (gs_comm_t *comm, gs_status_t st, const char *text)
{
    bool named = comm->culprit != comm->topo.rank;
    gs_status_t others = gsi_peers_cause (comm);

    if (others || (named && !comm->vague))
        return others;
    if ((!named && (others = name_gone (comm, st, text))) || (others = await_cause (comm)))
        return others;
    return named ? GS_OK : gsi_peers_any_cause (comm);
}

/* The rank that the transport knows the failure to be because of, if it is another one. */
static void take_culprit (gs_comm_t *comm)
{
    int culprit = comm->coll ? atomic_load (&comm->coll->culprit) : -1;

    if (culprit >= 0 && comm->culprit == comm->topo.rank)
        set_culprit (comm, culprit);
}

gs_status_t gsi_failure_blame (gs_comm_t *comm, gs_status_t st)
{
    gs_status_t others = GS_OK;
    char text[GSI_TEXT_MAX];

    snprintf (text, sizeof (text), "%s", gsi_last_text ());
    if (gsi_record_verdict (&comm->record))
        others = GS_OK; /* it was looked for as this rank gave up */
    else if (comm->inflight && st == GS_ERR_TRANSPORT)
        others = find_cause (comm, st, text);
    else if (comm->inflight && st == GS_ERR_STATE && atomic_load (&comm->life) == GSI_ALIVE)
        others = gsi_peers_gave_up (comm, UINT64_MAX); /* whose record is older than its word */
    if (others)
        return others;
    take_culprit (comm);
    return gsi_fail (st, "%s", text);
}

/*
 * Whether another rank tells why: the culprit, if it lives, or the first of this node's that
 * found out by themselves, as the transport does that was not told. They wait a moment for each
 * other; and who was told waits until that was logged, for with --kill-on-bad-exit the first to
 * end takes all with it.
 */
static bool is_told (const gs_comm_t *comm, gs_status_t st)
{
    static const struct timespec slice = {.tv_nsec = 5 * GSI_NS_PER_MS};
    const struct gsi_coll *coll = comm->coll;
    bool found = coll && !coll->told && coll->culprit == comm->culprit,
         told = st != GS_ERR_STATE && comm->culprit != comm->topo.rank && !found &&
                !gsi_peers_died (comm, comm->culprit),
         heard = false;
    int slices = told ? TOLD_SLICES : comm->topo.local_rank * TELL_SLICES;

    slices = slices < TELL_MOST ? slices : TELL_MOST;

    while (slices-- && !heard) {
        for (int r = 0; r < comm->topo.rank && !heard && !told; r++)
            heard = gsi_peers_says_so (comm, r, st);
        if (!heard)
            nanosleep (&slice, NULL);
    }
    return told || heard;
}

/* Another thread reports a failure: what it says, once it has. A sink may hold it up for ever. */
static gs_status_t other_report (gs_comm_t *comm)
{
    struct gsi_wait wait = gsi_wait_for (REPORT_NS, 0);

    while (!atomic_load (&comm->told) && gsi_wait_on (&wait))
        ;
    if (!atomic_load (&comm->told))
        return gsi_fail (GS_ERR_STATE,
                         "communicator '%s' has failed; another thread has not yet "
                         "reported why",
                         comm->name);
    return gsi_fail (comm->death, "%s", comm->death_text);
}

gs_status_t gsi_failure_report (gs_comm_t *comm, const struct gsi_call *call, gs_status_t st)
{
    char reason[GSI_TEXT_MAX], where[320] = "";
    const char *path;
    int alive = GSI_ALIVE;
    uint64_t missed;

    if (atomic_flag_test_and_set (&comm->failing))
        return other_report (comm);
    missed = comm->inflight ? gsi_gpu_missed (comm, call->seq) : call->seq;
    st = gsi_failure_blame (comm, st);
    if (st == GS_ERR_TIMEOUT && call->message)
        name_ends (comm, call);
    else if (st == GS_ERR_TIMEOUT)
        name_missing_ranks (comm, call);
    if (!call->message && call->op != GSI_OP_NONE && !comm->inflight)
        st = name_other_call (comm, call, st);
    if (call->op != GSI_OP_NONE)
        gsi_describe_call (comm, call, where, sizeof (where));
    snprintf (reason, sizeof (reason), "%scommunicator '%s' on rank %d (host %s): %s", where,
              comm->name, comm->topo.rank, comm->hosts[comm->topo.rank], gsi_last_text ());
    path = gsi_record_dump (&comm->record, reason);
    if (*path) {
        size_t used = strlen (reason);
        snprintf (reason + used, sizeof (reason) - used, ". Flight record: %s", path);
    }
    gsi_process_told ();
    gsi_log (is_told (comm, st) ? GS_LOG_INFO : GS_LOG_ERROR, "comm", "%s", reason);
    gsi_failure_record (comm, st, missed); /* by which others know that */
    comm->death = st;
    memcpy (comm->death_text, reason, sizeof (reason));
    if (comm->boot->ops->show)
        comm->boot->ops->show (comm->boot);
    gsi_failure_silence (comm, st, missed);
    atomic_compare_exchange_strong (&comm->life, &alive, GSI_DEAD);
    atomic_store (&comm->told, true);
    if (st != GS_ERR_TIMEOUT || !comm->coll->ops->roll_call /* which has told them, */ ||
        comm->inflight) /* but ended nothing that is queued */
        gsi_failure_tell_others (comm, st, missed);
    return gsi_fail (st, "%s", reason);
}

void gsi_failure_tell (gs_comm_t *comm)
{
    if (comm->inflight) { /* whoever is in a call may be blocked there until this ends it */
        gsi_failure_tell_others (comm, GS_ERR_STATE, comm->record.seq + 1);
        return;
    }
    if (atomic_flag_test_and_set (&comm->busy))
        return;
    gsi_failure_tell_others (comm, GS_ERR_STATE, comm->record.seq + 1);
    atomic_flag_clear (&comm->busy);
}
