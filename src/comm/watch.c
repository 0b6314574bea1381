/* SPDX-License-Identifier: BSD-3-Clause */
/* watch - what happens when an operation fails or a communicator is given up. */
#include "comm/watch.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "comm/call.h"
#include "comm/mail.h"
#include "comm/queue.h"
#include "comm/sentry.h"

#define ELSEWHERE_NAMED 4                  /* missing ranks of which a text says where they are */
#define TELL_SLICES     20                 /* of 5 ms, for the rank before to give up, too; */
#define TELL_MOST       100                /* no longer than this; */
#define TOLD_SLICES     40                 /* and for one that has told others to log it */
#define CROSSED_NS      (GSI_NS_PER_S / 2) /* calls that wait for each other so long, do */
#define LISTEN_LEAST_NS GSI_NS_PER_S       /* bounds of how long a roll call waits for answers */
#define LISTEN_MOST_NS  (10 * GSI_NS_PER_S)

/*
 * Tells the other ranks, if the transport can, that this one misses all calls from number
 * [missed] on. Called with the communicator taken.
 */
static void tell_others (gs_comm_t *comm, uint64_t missed)
{
    if (comm->coll && comm->coll->ops->notify_abort)
        comm->coll->ops->notify_abort (comm->coll, missed);
}

static const char *host_of (void *context, int rank)
{
    return ((gs_comm_t *) context)->hosts[rank];
}

/* Asks who waits, too; false if the transport cannot. */
static bool call_roll (gs_comm_t *comm, const struct gsi_call *call, unsigned char *came)
{
    int64_t listen_ns = gsi_grace_of (comm->timeout_ns, LISTEN_LEAST_NS, LISTEN_MOST_NS);

    if (!comm->coll->ops->roll_call)
        return false;
    gsi_sentry_expect (comm, gsi_now_ns () + listen_ns);
    return comm->coll->ops->roll_call (comm->coll, call, listen_ns, came);
}

/* Whether rank [rank], of this node, is in a call of [comm] and goes on, but has not answered. */
static bool is_slow (const gs_comm_t *comm, const struct gsi_call *call, int rank)
{
    struct gsi_record_state other;

    return gsi_record_peek (&comm->record, rank, &other) &&
           (other.seq >= call->seq || (other.seq && !other.last.end_ns)) &&
           gsi_record_runs (&other);
}

/* Marks those, too, where others are left that this cannot be said of. */
static void mark_slow (const gs_comm_t *comm, const struct gsi_call *call, unsigned char *came)
{
    enum { SLOW = 2 };
    bool others = false;

    for (int r = 0; r < comm->team.size; r++) {
        if (!came[r] && is_slow (comm, call, r))
            came[r] = SLOW;
        others = others || !came[r];
    }
    for (int r = 0; r < comm->team.size; r++)
        if (came[r] == SLOW)
            came[r] = others;
}

/*
 * Marks the ranks that came to [call]: as the transport hears from them, else as their flight
 * records tell. Those that nothing is known of are marked, too; returns how many.
 */
static int mark_came (gs_comm_t *comm, const struct gsi_call *call, unsigned char *came)
{
    int unknown = 0;
    struct gsi_record_state other;

    if (call_roll (comm, call, came)) {
        mark_slow (comm, call, came);
        return 0;
    }
    for (int r = 0; r < comm->team.size; r++) {
        bool known = gsi_record_peek (&comm->record, r, &other);
        came[r] = !known || other.seq >= call->seq;
        unknown += !known && r != comm->team.rank;
    }
    return unknown;
}

/* "; rank 1 is in allreduce #3 of communicator 'world/column1'" for some of the [missing]. */
static void name_elsewhere (const gs_comm_t *comm, const unsigned char *missing, char *text,
                            size_t room)
{
    struct gsi_record_call call;
    size_t used = 0;
    int named = 0;

    *text = 0;
    for (int r = 0; r < comm->team.size && named < ELSEWHERE_NAMED && used < room; r++)
        if (missing[r] && gsi_record_elsewhere (&comm->record, r, &call) && ++named)
            used += (size_t) snprintf (text + used, room - used,
                                       "; rank %d %s in %s #%llu of communicator '%s'", r,
                                       call.died ? "was" : "is", gsi_record_op_name (call.op),
                                       (unsigned long long) call.seq, call.name);
}

/* Completes the text of a timeout with who did not come, as far as that can be found out. */
static void name_missing (gs_comm_t *comm, const struct gsi_call *call)
{
    unsigned char *marks = calloc ((size_t) comm->team.size, 1);
    char deadline[256], names[GSI_TEXT_MAX / 2] = "who did not come is not known";
    char elsewhere[GSI_TEXT_MAX / 4] = "";
    int unknown, missing = 0;

    snprintf (deadline, sizeof (deadline), "%.255s", gsi_last_text ());
    if (marks) {
        unknown = mark_came (comm, call, marks);
        marks[comm->team.rank] = 1;
        for (int r = 0; r < comm->team.size; r++)
            missing += marks[r] = !marks[r]; /* came -> missing */
        if (missing)
            name_elsewhere (comm, marks, elsewhere, sizeof (elsewhere));
        if (missing)
            gsi_boot_name_missing (marks, comm->team.size, host_of, comm, names, sizeof (names));
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

static struct gsi_told told_of (const struct gsi_record_entry *e, int64_t step)
{
    return (struct gsi_told){.seq = e->seq,
                             .count = e->count,
                             .step = step,
                             .op = e->op,
                             .dtype = e->dtype,
                             .argument = e->argument};
}

void gsi_watch_own (const gs_comm_t *comm, struct gsi_told *own)
{
    struct gsi_record_file *file = comm->record.file;

    *own = told_of (gsi_record_entry (file, GSI_OP_NONE, comm->record.seq), file->step);
}

/* The call that rank [rank] is in, or was in last, from its record or its notice. */
static bool find_told (const gs_comm_t *comm, int rank, struct gsi_told *told)
{
    struct gsi_record_state other;

    if (!gsi_record_peek (&comm->record, rank, &other))
        return comm->coll && comm->coll->ops->heard &&
               comm->coll->ops->heard (comm->coll, rank, told);
    *told = told_of (&other.last, other.step);
    return told->seq != 0;
}

/* The first rank that is known to be in another call than [own], of the same number if [same]. */
static int find_other_call (const gs_comm_t *comm, const struct gsi_told *own, bool same,
                            struct gsi_told *told)
{
    for (int r = 0; r < comm->team.size; r++)
        if (r != comm->team.rank && find_told (comm, r, told) && gsi_call_differs (own, told) &&
            (!same || told->seq == own->seq))
            return r;
    return -1;
}

/* Completes the text of a failure with the first rank that is in another call, if it is known. */
static void name_other_call (gs_comm_t *comm, const struct gsi_call *call, gs_status_t st)
{
    int64_t until_ns = gsi_now_ns () + (st == GS_ERR_MISMATCH ? GSI_NS_PER_S : 0);
    char differ[GSI_TEXT_MAX / 3], mine[GSI_CALL_TEXT], theirs[GSI_CALL_TEXT];
    struct gsi_told own, told;
    int rank;

    snprintf (differ, sizeof (differ), "%s", gsi_last_text ());
    gsi_watch_own (comm, &own);
    if (own.seq != call->seq)
        return;
    if (st == GS_ERR_MISMATCH) /* ranks of other nodes then tell theirs */
        tell_others (comm, call->seq);
    while ((rank = find_other_call (comm, &own, st != GS_ERR_MISMATCH, &told)) < 0 &&
           gsi_now_ns () < until_ns)
        nanosleep (&(struct timespec){.tv_nsec = 10 * GSI_NS_PER_MS}, NULL);
    if (rank < 0)
        return;
    gsi_call_describe (comm, &own, mine, sizeof (mine));
    gsi_call_describe (comm, &told, theirs, sizeof (theirs));
    gsi_fail (st, "%s. This is call #%llu, %s; rank %d (host %s) is in call #%llu, %s", differ,
              (unsigned long long) own.seq, mine, rank, comm->hosts[rank],
              (unsigned long long) told.seq, theirs);
}

/* The same for messages, whose ends are two ranks. */
static void name_ends (gs_comm_t *comm, const struct gsi_call *call)
{
    unsigned char *came = calloc ((size_t) comm->team.size, 1);
    char deadline[256], ends[GSI_TEXT_MAX / 2];

    snprintf (deadline, sizeof (deadline), "%.255s", gsi_last_text ());
    if (came)
        call_roll (comm, call, came);
    gsi_mail_name (comm, call, came, ends, sizeof (ends));
    free (came);
    gsi_fail (GS_ERR_TIMEOUT, "%s; %s", deadline, ends);
}

/* [verdict] of another rank, with a text that says whose failure it is. */
static gs_status_t name_culprit (const gs_comm_t *comm, gs_status_t verdict)
{
    const char *host = comm->hosts[comm->culprit];

    if (verdict == GS_ERR_STATE)
        return gsi_fail (verdict, "rank %d gave the communicator up (host %s)", comm->culprit,
                         host);
    if (verdict == GS_ERR_TIMEOUT)
        return gsi_fail (verdict, "the deadline passed on rank %d (host %s)", comm->culprit,
                         host);
    return gsi_fail (verdict, "%s on rank %d (host %s); its own text says why",
                     gs_status_string (verdict), comm->culprit, host);
}

gs_status_t gsi_watch_others (gs_comm_t *comm, uint64_t seq)
{
    struct gsi_record_state other;

    for (int r = 0; r < comm->team.size; r++) {
        if (r == comm->team.rank || !gsi_record_peek (&comm->record, r, &other) ||
            !other.verdict || other.missed > seq || other.culprit == comm->team.rank)
            continue;      /* also who gave up because of this rank, which knows more */
        comm->culprit = r; /* or a rank because of which it gave up itself */
        if (other.culprit >= 0 && other.culprit < comm->team.size)
            comm->culprit = other.culprit;
        return name_culprit (comm, other.verdict);
    }
    return GS_OK;
}

gs_status_t gsi_watch_order (gs_comm_t *comm, uint64_t seq)
{
    struct gsi_record_state other;
    struct gsi_record_call call;

    for (int r = 0; r < comm->team.size && comm->check == GSI_CHECK_COLLECTIVE; r++) {
        if (r == comm->team.rank || !gsi_record_peek (&comm->record, r, &other) ||
            other.seq >= seq || !gsi_record_elsewhere (&comm->record, r, &call) ||
            !call.awaits_us)
            continue;
        /* The root of a broadcast, for one, does not wait: what holds for a while is a wait. */
        if (comm->crossed.seq != seq || comm->crossed.rank != r ||
            comm->crossed.theirs != call.seq) {
            comm->crossed.seq = seq;
            comm->crossed.theirs = call.seq;
            comm->crossed.rank = r;
            comm->crossed.since_ns = gsi_now_ns ();
        }
        if (gsi_now_ns () - comm->crossed.since_ns < CROSSED_NS)
            return GS_OK;
        return gsi_fail (
            GS_ERR_MISMATCH,
            "rank %d (host %s) is in %s #%llu of communicator '%s' instead, and waits "
            "there for this rank: all ranks must call on communicators that share "
            "ranks in one order, see gs_comm_split(3)",
            r, comm->hosts[r], gsi_record_op_name (call.op), (unsigned long long) call.seq,
            call.name);
    }
    return GS_OK;
}

gs_status_t gsi_watch_blame (gs_comm_t *comm, gs_status_t st)
{
    gs_status_t others = GS_OK;

    if (comm->queue && st == GS_ERR_TRANSPORT)
        others = gsi_watch_others (comm, UINT64_MAX);
    return others ? others : st;
}

/* "bucket #57 (step 9 of reducer 'x', bucket 3 of 7, conv1_w to conv2_w) of " */
static void name_call (const gs_comm_t *comm, const struct gsi_call *call, char *text,
                       size_t room)
{
    const struct gsi_tenant *tenant = comm->tenant;
    char what[256] = "";
    size_t used = 0;

    if (call->message) {
        snprintf (text, room, "%s of ", gsi_record_op_name (call->op));
        return;
    }
    if (call->op == GSI_OP_BUCKET && tenant && tenant->describe) {
        if (!comm->queue && comm->record.file->step > 0) /* else the step may be a later one */
            used = (size_t) snprintf (what, sizeof (what), "step %lld of ",
                                      (long long) comm->record.file->step);
        tenant->describe (tenant->context, call->argument, what + used, sizeof (what) - used);
    }
    snprintf (text, room, "%s #%llu %s%s%sof ", gsi_record_op_name (call->op),
              (unsigned long long) call->seq, *what ? "(" : "", what, *what ? ") " : "");
}

/* Whether rank [r] of this node has given up by itself with [st], and says so. */
static bool says_so (const gs_comm_t *comm, int r, gs_status_t st)
{
    struct gsi_record_state other;

    return gsi_record_peek (&comm->record, r, &other) && other.verdict == st &&
           other.culprit == r;
}

/*
 * Whether another rank tells why: the culprit, or the first of this node's that found out by
 * themselves. They wait a moment for each other; and who was told waits until that was logged,
 * for with --kill-on-bad-exit the first to end takes all with it.
 */
static bool is_told (const gs_comm_t *comm, gs_status_t st)
{
    static const struct timespec slice = {.tv_nsec = 5 * GSI_NS_PER_MS};
    bool told = st != GS_ERR_STATE && comm->culprit != comm->team.rank, heard = false;
    int slices = told ? TOLD_SLICES : comm->team.local_rank * TELL_SLICES;

    slices = slices < TELL_MOST ? slices : TELL_MOST;

    while (slices-- && !heard) {
        for (int r = 0; r < comm->team.rank && !heard && !told; r++)
            heard = says_so (comm, r, st);
        if (!heard)
            nanosleep (&slice, NULL);
    }
    return told || heard;
}

gs_status_t gsi_watch_failed (gs_comm_t *comm, const struct gsi_call *call, gs_status_t st)
{
    char reason[GSI_TEXT_MAX], where[320] = "";
    const char *path;
    int alive = GSI_ALIVE;
    uint64_t missed = comm->queue ? gsi_queue_missed (comm, call->seq) : call->seq;

    st = gsi_watch_blame (comm, st);
    if (comm->coll && comm->coll->told_by)
        comm->culprit = comm->coll->told_by - 1;
    if (st == GS_ERR_TIMEOUT && call->message)
        name_ends (comm, call);
    else if (st == GS_ERR_TIMEOUT)
        name_missing (comm, call);
    if (!call->message && call->op != GSI_OP_NONE && !comm->queue)
        name_other_call (comm, call, st);
    if (call->op != GSI_OP_NONE)
        name_call (comm, call, where, sizeof (where));
    snprintf (reason, sizeof (reason), "%scommunicator '%s' on rank %d (host %s): %s", where,
              comm->name, comm->team.rank, comm->hosts[comm->team.rank], gsi_last_text ());
    path = gsi_record_dump (&comm->record, reason);
    if (*path) {
        size_t used = strlen (reason);
        snprintf (reason + used, sizeof (reason) - used, ". Flight record: %s", path);
    }
    gsi_boot_told ();
    gsi_log (is_told (comm, st) ? GS_LOG_INFO : GS_LOG_ERROR, "comm", "%s", reason);
    gsi_record_give_up (&comm->record, st, comm->culprit, missed); /* by which others know that */
    comm->death = st;
    memcpy (comm->death_text, reason, sizeof (reason));
    atomic_compare_exchange_strong (&comm->life, &alive, GSI_DEAD);
    if (comm->boot->ops->show)
        comm->boot->ops->show (comm->boot);
    if (st != GS_ERR_TIMEOUT || !comm->coll->ops->roll_call) /* which has told them */
        tell_others (comm, missed);
    return gsi_fail (st, "%s", reason);
}

void gsi_watch_tell (gs_comm_t *comm)
{
    if (atomic_flag_test_and_set (&comm->busy))
        return;
    gsi_queue_grab (comm);
    tell_others (comm, comm->record.seq + 1);
    gsi_queue_leave (comm);
    atomic_flag_clear (&comm->busy);
}

gs_status_t gs_comm_abort (gs_comm_t *comm)
{
    gs_status_t st = gsi_comm_valid (comm, "gs_comm_abort");
    int alive = GSI_ALIVE;

    if (st || !atomic_compare_exchange_strong (&comm->life, &alive, GSI_ABORTED))
        return gsi_result (st);
    gsi_record_give_up (&comm->record, GS_ERR_STATE, comm->team.rank, gsi_queue_oldest (comm));
    gsi_watch_tell (comm);
    return gsi_result (GS_OK);
}

gs_status_t gs_comm_check (gs_comm_t *comm)
{
    gs_status_t st = gsi_comm_valid (comm, "gs_comm_check");

    if (st)
        return gsi_result (st);
    gsi_queue_look (comm);
    switch ((enum gsi_life) atomic_load_explicit (&comm->life, memory_order_acquire)) {
    case GSI_ALIVE: break;
    case GSI_ABORTED: return gsi_fail (GS_ERR_STATE, "communicator '%s' was aborted", comm->name);
    case GSI_DEAD: return gsi_fail (comm->death, "%s", comm->death_text);
    }
    return gsi_result (GS_OK);
}

gs_status_t gs_comm_wait (gs_comm_t *comm, gs_stream_t stream)
{
    gs_status_t st = gs_comm_check (comm), failed = GS_OK;

    if (st || !comm->queue) /* calls on hosts are complete when they return */
        return gsi_result (st);
    failed = gsi_queue_wait (comm, stream);
    st = gs_comm_check (comm);
    return gsi_result (st ? st : failed);
}
