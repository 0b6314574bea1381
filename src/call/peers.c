/* SPDX-License-Identifier: BSD-3-Clause */
/* peers - what the other ranks are known to do, from their flight records and notices. */
#include "call/peers.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/status.h"
#include "boot/missing.h"
#include "call/describe.h"
#include "call/watchdog.h"

#define ELSEWHERE_NAMED 4                  /* missing ranks of which a text says where they are */
#define CROSSED_NS      (GSI_NS_PER_S / 2) /* calls that wait for each other so long, do */
#define LISTEN_LEAST_NS GSI_NS_PER_S       /* bounds of how long a roll call waits for answers */
#define LISTEN_MOST_NS  (10 * GSI_NS_PER_S)

bool gsi_peers_call_roll (gs_comm_t *comm, const struct gsi_call *call, unsigned char *came)
{
    int64_t listen_ns = gsi_grace_of (comm->timeout_ns, LISTEN_LEAST_NS, LISTEN_MOST_NS);

    if (!comm->coll->ops->roll_call)
        return false;
    gsi_watchdog_expect (comm, gsi_now_ns () + listen_ns);
    return comm->coll->ops->roll_call (comm->coll, call, listen_ns, came);
}

/* A rank that has not answered to a roll call. */
struct silent {
    const gs_comm_t *comm;
    const struct gsi_call *call;
};

/* Whether rank [rank], of this node, is in a call of the communicator and goes on. */
static bool is_slow (const void *silent, int rank)
{
    const struct silent *s = silent;
    struct gsi_record_state other;

    return gsi_record_peek (&s->comm->record, rank, &other) &&
           (other.seq >= s->call->seq || (other.seq && !other.last.end_ns)) &&
           gsi_record_runs (&other);
}

/*
 * Takes for missing those alone that ranks of this node have given up because of: they were told.
 * Who told them has left, and its word to this rank may have gone with its connection.
 */
static void leave_out_tellers (const gs_comm_t *comm, unsigned char *missing)
{
    enum { SILENT = 1, BLAMED };
    struct gsi_record_state other;
    bool blamed = false;

    for (int r = 0; r < comm->topo.size; r++)
        if (gsi_record_peek (&comm->record, r, &other)) {
            if (other.verdict && other.culprit != r && other.culprit >= 0 &&
                other.culprit < comm->topo.size && missing[other.culprit])
                missing[other.culprit] = BLAMED;
            else if (missing[r] && gsi_record_died (&other))
                missing[r] = BLAMED;
        }
    for (int r = 0; r < comm->topo.size; r++)
        blamed = blamed || missing[r] == BLAMED;
    for (int r = 0; r < comm->topo.size && blamed; r++)
        missing[r] = missing[r] == BLAMED;
}

int gsi_peers_mark_missing (gs_comm_t *comm, const struct gsi_call *call, unsigned char *missing)
{
    const struct silent silent = {comm, call};
    struct gsi_record_state other;
    int unknown = 0, size = comm->topo.size;

    if (gsi_peers_call_roll (comm, call, missing)) {
        for (int r = 0; r < size; r++)
            missing[r] = !missing[r]; /* it marks who came */
        gsi_missing_leave_out_slow (missing, size, is_slow, &silent);
        leave_out_tellers (comm, missing);
        return 0;
    }
    for (int r = 0; r < size; r++) {
        bool known = gsi_record_peek (&comm->record, r, &other);
        missing[r] = known && other.seq < call->seq;
        unknown += !known && r != comm->topo.rank;
    }
    return unknown;
}

void gsi_peers_name_elsewhere (const gs_comm_t *comm, const unsigned char *missing, char *text,
                               size_t room)
{
    struct gsi_record_call call;
    size_t used = 0;
    int named = 0;

    *text = 0;
    for (int r = 0; r < comm->topo.size && named < ELSEWHERE_NAMED && used < room; r++)
        if (missing[r] && gsi_record_elsewhere (&comm->record, r, &call) && ++named)
            used += (size_t) snprintf (text + used, room - used,
                                       "; rank %d %s in %s #%llu of communicator '%s'", r,
                                       call.died ? "was" : "is", gsi_record_op_name (call.op),
                                       (unsigned long long) call.seq, call.name);
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

void gsi_peers_own (const gs_comm_t *comm, struct gsi_told *own)
{
    struct gsi_record_file *file = comm->record.file;

    *own = (struct gsi_told){.seq = 0};
    if (file)
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

int gsi_peers_find_other_call (const gs_comm_t *comm, const struct gsi_told *own, bool same,
                               struct gsi_told *told)
{
    for (int r = 0; r < comm->topo.size; r++)
        if (r != comm->topo.rank && find_told (comm, r, told) && gsi_told_differs (own, told) &&
            (!same || told->seq == own->seq))
            return r;
    return -1;
}

/* Whether [r] of this node has ended without a word. Looked at twice: it may just have ended
 * well, or given up. */
static bool has_died (const gs_comm_t *comm, int r, struct gsi_record_state *other)
{
    return gsi_record_peek (&comm->record, r, other) && gsi_record_died (other) &&
           gsi_record_peek (&comm->record, r, other) && !other->verdict;
}

uint64_t gsi_peers_least (const gs_comm_t *comm)
{
    struct gsi_record_state other;
    uint64_t least = UINT64_MAX;

    for (int r = 0; r < comm->topo.size; r++)
        if (r != comm->topo.rank && gsi_record_peek (&comm->record, r, &other) &&
            other.seq < least)
            least = other.seq;
    return least;
}

static gs_status_t name_dead (const gs_comm_t *comm, gs_status_t st, int r, int pid)
{
    return gsi_fail (st, "rank %d (host %s) is gone: its process %d has ended", r, comm->hosts[r],
                     pid);
}

/* [verdict] of another rank, with a text that says whose failure it is: [culprit]'s. */
static gs_status_t name_culprit (const gs_comm_t *comm, gs_status_t verdict, int culprit)
{
    const char *host = comm->hosts[culprit];
    struct gsi_record_state other;

    if (has_died (comm, culprit, &other))
        return name_dead (comm, verdict, culprit, other.pid);
    if (verdict == GS_ERR_STATE)
        return gsi_fail (verdict, "rank %d gave the communicator up (host %s)", culprit, host);
    if (verdict == GS_ERR_TIMEOUT)
        return gsi_fail (verdict, GSI_LATE " on rank %d (host %s)", culprit, host);
    return gsi_fail (verdict, "%s on rank %d (host %s); its own text says why",
                     gs_status_string (verdict), culprit, host);
}

/* What rank [by] gave up with: the failure of a rank because of which it did, or its own. */
static gs_status_t name_first (gs_comm_t *comm, gs_status_t verdict, int culprit, int by)
{
    bool vague = verdict == GS_ERR_TRANSPORT && (culprit < 0 || culprit == by);
    int known = atomic_load (&comm->culprit);

    if (culprit < 0 || culprit >= comm->topo.size || culprit == comm->topo.rank)
        culprit = by;
    if (vague && known != comm->topo.rank && !atomic_load (&comm->vague))
        return name_culprit (comm, verdict, known); /* another thread has found it */
    if (vague) /* before, and else behind: who reads both in between takes it for vague */
        comm->vague = true;
    comm->culprit = culprit;
    if (!vague)
        comm->vague = false;
    return name_culprit (comm, verdict, culprit);
}

/*
 * Whose word counts: who gave up because a connection had ended, and no more, knows less than a
 * rank of the node of the one that has died; on this node it has looked for that.
 */
enum heed { HEED_CLEAR, HEED_NEAR, HEED_ANY };

static bool is_heeded (const gs_comm_t *comm, const struct gsi_record_state *other, int r,
                       enum heed heed)
{
    bool vague = other->verdict == GS_ERR_TRANSPORT && other->culprit == r;

    return heed == HEED_ANY || !vague ||
           (heed == HEED_NEAR && comm->topo.node_of[r] == comm->topo.node);
}

/* [ours]: also who gave up because of this rank, which knows more. */
static gs_status_t find_gave_up (gs_comm_t *comm, uint64_t seq, bool ours, enum heed heed)
{
    struct gsi_record_state other;

    for (int r = 0; r < comm->topo.size; r++)
        if (r != comm->topo.rank && gsi_record_peek (&comm->record, r, &other) && other.verdict &&
            other.missed <= seq && (ours || other.culprit != comm->topo.rank) &&
            is_heeded (comm, &other, r, heed))
            return name_first (comm, other.verdict, other.culprit, r);
    return GS_OK;
}

gs_status_t gsi_peers_gave_up (gs_comm_t *comm, uint64_t seq)
{
    return find_gave_up (comm, seq, false, HEED_ANY);
}

/* What the transport has heard of any rank, this one too. */
static enum gsi_gave_up heard_of (const gs_comm_t *comm, struct gsi_ending *how)
{
    struct gsi_coll *coll = comm->coll;

    return coll && coll->ops->gave_up ? coll->ops->gave_up (coll, how) : GSI_NONE_GAVE_UP;
}

/* Whether it is a cause: of another rank, that did not give up because of this one. */
static bool hears_cause (const gs_comm_t *comm, struct gsi_ending *how)
{
    return heard_of (comm, how) == GSI_GAVE_UP && how->by != comm->topo.rank &&
           how->culprit != comm->topo.rank;
}

gs_status_t gsi_peers_cause (gs_comm_t *comm)
{
    struct gsi_ending how;
    gs_status_t st;

    if ((st = find_gave_up (comm, UINT64_MAX, false, HEED_CLEAR)) ||
        (st = gsi_peers_vanished (comm)) ||
        (st = find_gave_up (comm, UINT64_MAX, false, HEED_NEAR)) || !hears_cause (comm, &how) ||
        gsi_ending_is_vague (&how))
        return st;
    return name_first (comm, how.status, how.culprit, how.by);
}

gs_status_t gsi_peers_any_cause (gs_comm_t *comm)
{
    gs_status_t st = gsi_peers_gave_up (comm, UINT64_MAX);
    struct gsi_ending how;

    if (st || !hears_cause (comm, &how))
        return st;
    return name_first (comm, how.status, how.culprit, how.by);
}

/*
 * N.B. A kernel of NCCL that is told to end goes on, without waiting, and writes what it has to
 * its peers, flags and all (v2.28.9 prims_ll.h, prims_simple.h): theirs end as if all was well.
 * It may write where they have not read yet, so also calls before the one it was in are spoilt.
 */
gs_status_t gsi_peers_sound (gs_comm_t *comm)
{
    enum gsi_gave_up gave_up;
    struct gsi_ending how;
    gs_status_t st;

    if (atomic_load (&comm->life) != GSI_ALIVE || gsi_record_verdict (&comm->record))
        return gsi_fail (GS_ERR_STATE, "the communicator was aborted");
    gave_up = heard_of (comm, &how);
    if (gave_up == GSI_NONE_GAVE_UP)
        return GS_OK;
    if ((st = find_gave_up (comm, UINT64_MAX, false, HEED_ANY)) ||
        (st = find_gave_up (comm, UINT64_MAX, true, HEED_ANY)) || gave_up == GSI_GAVE_UP_UNKNOWN)
        return st;
    if (how.by == comm->topo.rank) /* another thread breaks a split up, and tells why */
        return gsi_fail (how.status, "this rank has given the communicator up");
    /* Of another node's ranks this one knows no more. */
    return name_first (comm, how.status, how.culprit, how.by);
}

gs_status_t gsi_peers_vanished (gs_comm_t *comm)
{
    struct gsi_record_state other;

    for (int r = 0; r < comm->topo.size; r++) {
        if (r == comm->topo.rank || comm->topo.node_of[r] != comm->topo.node ||
            !has_died (comm, r, &other))
            continue;
        comm->culprit = r;
        comm->vague = false;
        return name_dead (comm, GS_ERR_TRANSPORT, r, other.pid);
    }
    return GS_OK;
}

bool gsi_peers_go_on (const gs_comm_t *comm)
{
    struct gsi_record_state other;

    for (int r = 0; r < comm->topo.size; r++)
        if (r != comm->topo.rank && comm->topo.node_of[r] == comm->topo.node &&
            gsi_record_peek (&comm->record, r, &other) && !other.verdict &&
            !gsi_record_ended (&other))
            return true;
    return false;
}

bool gsi_peers_work (const gs_comm_t *comm)
{
    struct gsi_record_state other;

    for (int r = 0; r < comm->topo.size; r++)
        if (r != comm->topo.rank && comm->topo.node_of[r] == comm->topo.node &&
            gsi_record_peek (&comm->record, r, &other) && !other.settled &&
            (other.verdict || (other.last.seq && !other.last.end_ns)) &&
            !gsi_record_ended (&other))
            return true;
    return false;
}

gs_status_t gsi_peers_crossed (gs_comm_t *comm, uint64_t seq)
{
    struct gsi_record_state other;
    struct gsi_record_call call;

    for (int r = 0; r < comm->topo.size && comm->check == GSI_CHECK_COLLECTIVE; r++) {
        if (r == comm->topo.rank || !gsi_record_peek (&comm->record, r, &other) ||
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

gs_status_t gsi_peers_end_wait (gs_comm_t *comm, uint64_t seq, bool message)
{
    gs_status_t st;

    if ((st = gsi_peers_gave_up (comm, seq)) || (st = gsi_peers_vanished (comm)) ||
        (st = gsi_peers_sound (comm)) /* also a rank of another node */ || message)
        return st;
    return gsi_peers_crossed (comm, seq);
}

bool gsi_peers_says_so (const gs_comm_t *comm, int r, gs_status_t st)
{
    struct gsi_record_state other;

    return gsi_record_peek (&comm->record, r, &other) && other.verdict == st &&
           (other.culprit == r ||
            (comm->culprit != comm->topo.rank && other.culprit == comm->culprit));
}

bool gsi_peers_died (const gs_comm_t *comm, int r)
{
    struct gsi_record_state other;

    return has_died (comm, r, &other);
}
