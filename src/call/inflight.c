/* SPDX-License-Identifier: BSD-3-Clause */
/* inflight - what a communicator on GPUs has queued: a thread watches that it ends in time. */
#include "call/inflight.h"

#include "base/status.h"
#include "call/failure.h"
#include "call/gpu_lock.h"
#include "call/inflight_ring.h"
#include "call/peers.h"
#include "call/watchdog.h"

#define LATE_NS   (GSI_NS_PER_S / 2) /* a call may see to its own deadline so long */
#define STUCK_NS  GSI_NS_PER_S       /* a look that takes longer is blocked in the driver */
#define REPLAY_NS GSI_NS_PER_S       /* between two looks at other ranks, where graphs may run */

/* ---- The thread ---- */

/* The calls of the oldest slot have ended: so do their entries, if they were not overwritten. */
static void retire (gs_comm_t *comm, int64_t now_ns)
{
    struct gsi_inflight *q = comm->inflight;
    const struct gsi_inflight_slot *slot = gsi_inflight_slot_at (q, q->first);

    for (uint64_t seq = slot->ops; seq && seq <= slot->last_op; seq++)
        gsi_record_done (&comm->record, GSI_OP_NONE, seq, now_ns);
    for (uint64_t seq = slot->messages; seq && seq <= slot->last_message; seq++)
        gsi_record_done (&comm->record, GSI_OP_MESSAGES, seq, now_ns);
    gsi_slot_timed (q, slot, now_ns);
    q->first++;
    atomic_store (&comm->gpu.oldest,
                  q->first == q->next ? 0 : gsi_inflight_slot_at (q, q->first)->seq);
    gsi_inflight_count (comm, q->first != q->next);
    q->moved_ns = now_ns;
    if (q->calling && q->now.op != GSI_OP_SPLIT &&
        q->now.deadline_ns < now_ns + comm->timeout_ns) {
        /* NCCL may connect in it, and wait for a rank that is at what has ended now. A split's
         * rounds see to their deadline themselves. */
        q->now.deadline_ns = now_ns + comm->timeout_ns;
        gsi_watchdog_expect (comm, q->now.deadline_ns);
    }
}

/* The oldest slot as it is now; false: there is none to ask for. */
static bool copy_oldest (struct gsi_inflight *q, struct gsi_inflight_slot *slot)
{
    bool there;

    pthread_mutex_lock (&q->ring);
    *slot = *gsi_inflight_slot_at (q, q->first);
    there = q->first != q->next && !slot->open;
    pthread_mutex_unlock (&q->ring);
    return there;
}

/* Retires what has ended; the device is entered, and [looking] held. */
static gs_status_t advance (gs_comm_t *comm)
{
    struct gsi_inflight *q = comm->inflight;
    const struct gsi_stream_ops *ops = gsi_streams_of (comm);
    struct gsi_inflight_slot slot, *now;
    bool done = true;
    gs_status_t st = GS_OK;

    while (done && !st && copy_oldest (q, &slot)) {
        st = slot.deferred ? ops->stream_done (slot.call.stream, &done)
                           : ops->event_done (slot.event, &done);
        if (st || !done || (st = gsi_peers_sound (comm)))
            break;
        pthread_mutex_lock (&q->ring);
        now = gsi_inflight_slot_at (q, q->first);
        if (!now->open && now->number == slot.number && now->deferred == slot.deferred)
            retire (comm, gsi_now_ns ()); /* it is what was asked for */
        pthread_mutex_unlock (&q->ring);
    }
    return st;
}

/* The same inside a call, unless another thread is at it. */
static gs_status_t try_advance (gs_comm_t *comm)
{
    gs_status_t st;

    if (pthread_mutex_trylock (&comm->inflight->looking))
        return GS_OK;
    st = advance (comm);
    pthread_mutex_unlock (&comm->inflight->looking);
    return st;
}

/*
 * The newest call of the oldest slot, or else the one under way; false: there is none. [slot] is
 * that one, its number 0 if nothing is queued.
 */
static bool oldest_call (struct gsi_inflight *q, struct gsi_inflight_slot *slot,
                         struct gsi_call *call)
{
    bool queued, any;

    pthread_mutex_lock (&q->ring);
    queued = q->first != q->next;
    any = queued || q->calling;
    *slot = *gsi_inflight_slot_at (q, q->first);
    if (!queued)
        slot->number = 0;
    if (any)
        *call = queued ? slot->call : q->now;
    pthread_mutex_unlock (&q->ring);
    return any;
}

/*
 * The GPU cannot be used any more, or what it has done not be trusted, seen before [call] or,
 * without one, by the thread that watches or between calls: the communicator dies. What is under
 * way, the create's end too, never ends.
 */
static gs_status_t give_up_gpu (gs_comm_t *comm, const struct gsi_call *call, gs_status_t st)
{
    uint64_t begun = comm->record.seq; /* none: the others may be in the end of the create */
    struct gsi_call last = {.seq = begun ? begun + 1 : 0}, now;
    struct gsi_inflight_slot slot;

    if (!comm->coll || atomic_load (&comm->life) != GSI_ALIVE)
        return st;
    if (call)
        last.op = call->op;
    else if (oldest_call (comm->inflight, &slot, &now) && !now.message)
        last.seq = now.seq;
    return gsi_failure_report (comm, &last, st);
}

/*
 * Of the calls of a slot that one does not end which a rank of this node has not begun: those
 * before it have ended. Takes it for [call], which is the newest. False: it cannot be told.
 */
static bool find_stuck (const gs_comm_t *comm, const struct gsi_inflight_slot *slot,
                        struct gsi_call *call)
{
    uint64_t least = gsi_peers_least (comm);
    struct gsi_record_entry e;

    if (slot->number < 2)
        return true;
    if (!slot->ops || call->message || least + 1 < slot->ops || least >= slot->last_op)
        return false;
    e = gsi_record_load (gsi_record_entry (comm->record.file, GSI_OP_NONE, least + 1));
    if (e.seq != least + 1)
        return false;
    call->seq = e.seq;
    call->op = e.op;
    call->argument = e.argument;
    return true;
}

/*
 * Whether a call has not ended in time, and which: a queued one has its time from when it was
 * queued or the one before it ended, and one under way from when it began.
 */
static gs_status_t find_late (gs_comm_t *comm, struct gsi_call *call)
{
    struct gsi_inflight *q = comm->inflight;
    int64_t now_ns = gsi_now_ns ();
    struct gsi_inflight_slot slot;
    bool queued = false, blocked = false;

    pthread_mutex_lock (&q->ring);
    if (q->first != q->next) {
        slot = *gsi_inflight_slot_at (q, q->first);
        queued = now_ns - (slot.since_ns > q->moved_ns ? slot.since_ns : q->moved_ns) >
                 comm->timeout_ns;
    }
    blocked = !queued && q->calling && now_ns > q->now.deadline_ns + LATE_NS;
    if (blocked)
        *call = q->now;
    pthread_mutex_unlock (&q->ring);
    if (queued) {
        *call = slot.call;
        return gsi_fail (GS_ERR_TIMEOUT,
                         find_stuck (comm, &slot, call)
                             ? "it was queued, but did not end within %lld ms"
                             : "it was queued behind others, and all did not end within %lld ms",
                         (long long) (comm->timeout_ns / GSI_NS_PER_MS));
    }
    if (blocked)
        return gsi_fail (GS_ERR_TIMEOUT,
                         "it is blocked in CUDA or NCCL since before its deadline");
    return GS_OK;
}

gs_status_t gsi_inflight_peek (gs_comm_t *comm, const struct gsi_call *call)
{
    struct gsi_inflight *q = comm->inflight;
    bool watches = pthread_equal (pthread_self (), q->thread);
    int64_t now_ns = gsi_now_ns ();
    gs_status_t st = GS_OK;

    if (atomic_flag_test_and_set (&q->peeking))
        return GS_OK; /* another thread asks, and says what it finds */
    if (now_ns - q->peeked_ns[watches] >= GSI_LOOK_LONGEST_NS) {
        q->peeked_ns[watches] = now_ns; /* who is in a call alone sees what it waits for */
        st = gsi_peers_end_wait (comm, call->seq, call->message);
    }
    atomic_flag_clear (&q->peeking);
    return st;
}

/*
 * No call is under way, but there are graphs with some: where they run they wait for a rank that
 * has died, and nobody but this thread would see it.
 */
static gs_status_t look_for_replays (gs_comm_t *comm)
{
    struct gsi_inflight *q = comm->inflight;
    int64_t now_ns = gsi_now_ns ();
    gs_status_t st;

    if (!comm->coll->captured)
        return GS_OK;
    if ((st = gsi_peers_sound (comm)) || now_ns - q->replays_ns < REPLAY_NS)
        return st;
    q->replays_ns = now_ns;
    return gsi_peers_end_wait (comm, UINT64_MAX, true); /* replays have no number */
}

/* One look: what ended, what failed, what is late. The device is entered, and [looking] held. */
static void look_at_oldest (gs_comm_t *comm)
{
    struct gsi_call call = {.seq = comm->record.seq}, late;
    struct gsi_inflight_slot slot;
    gs_status_t st = advance (comm);
    bool any;

    if (!st)
        st = comm->coll->ops->poll (comm->coll);
    any = oldest_call (comm->inflight, &slot, &call);
    if (!st)
        st = any ? gsi_inflight_peek (comm, &call) : look_for_replays (comm);
    if (st && (gsi_record_verdict (&comm->record) || atomic_load (&comm->life) != GSI_ALIVE))
        return; /* by this rank's own end: who gave up tells */
    if (st)
        find_stuck (comm, &slot, &call);
    else if ((st = find_late (comm, &late)))
        call = late;
    if (st)
        gsi_failure_report (comm, &call, st);
}

void gsi_inflight_look (gs_comm_t *comm)
{
    struct gsi_inflight *q = comm->inflight;
    int previous;
    gs_status_t st;

    if (!q || pthread_mutex_trylock (&q->looking))
        return;
    if (!q->resting && comm->coll && atomic_load (&comm->life) == GSI_ALIVE) {
        atomic_store (&q->looks_since_ns, gsi_now_ns ());
        if ((st = gsi_streams_of (comm)->enter_to_ask (comm->device, &previous))) {
            give_up_gpu (comm, NULL, st);
        } else {
            look_at_oldest (comm);
            gsi_streams_of (comm)->leave (comm->device, previous);
        }
        atomic_store (&q->looks_since_ns, 0);
    }
    pthread_mutex_unlock (&q->looking);
}

void gsi_inflight_overdue (gs_comm_t *comm)
{
    struct gsi_inflight *q = comm->inflight;
    struct gsi_call call;
    int64_t since_ns;
    gs_status_t st;

    if (!q || atomic_load (&comm->life) != GSI_ALIVE)
        return;
    since_ns = atomic_load (&q->looks_since_ns);
    if (!since_ns || gsi_now_ns () - since_ns < STUCK_NS)
        return; /* its thread sees to it */
    if ((st = find_late (comm, &call)))
        gsi_failure_report (comm, &call, st);
}

void gsi_inflight_rest (gs_comm_t *comm, bool yes)
{
    if (!comm->inflight)
        return;
    pthread_mutex_lock (&comm->inflight->looking);
    comm->inflight->resting = yes;
    pthread_mutex_unlock (&comm->inflight->looking);
}

void gsi_inflight_now (gs_comm_t *comm, const struct gsi_call *call)
{
    struct gsi_inflight *q = comm->inflight;

    if (!q)
        return;
    pthread_mutex_lock (&q->ring);
    if (call)
        q->now = *call;
    q->calling = call != NULL;
    pthread_mutex_unlock (&q->ring);
}

void gsi_inflight_leave (gs_comm_t *comm)
{
    if (comm->inflight)
        atomic_store (&comm->inflight->left, true);
}

bool gsi_inflight_is_busy (gs_comm_t *comm)
{
    struct gsi_inflight_slot slot;
    struct gsi_call call;

    return comm->inflight &&
           (atomic_load (&comm->inflight->left) || oldest_call (comm->inflight, &slot, &call));
}

uint64_t gsi_inflight_oldest (gs_comm_t *comm)
{
    uint64_t oldest = comm->inflight ? atomic_load (&comm->gpu.oldest) : 0;
    struct gsi_inflight_slot slot;
    struct gsi_call call;

    if (oldest || !comm->inflight)
        return oldest ? oldest : comm->record.seq;
    return oldest_call (comm->inflight, &slot, &call) ? call.seq : comm->record.seq + 1;
}

/* ---- What calls do ---- */

/* A graph takes what is queued, on arrays that the GPU reaches by itself. */
static gs_status_t check_capture (gs_comm_t *comm, const struct gsi_call *call)
{
    bool waits = call->staged || call->op == GSI_OP_ALLREDUCE_WAVG ||
                 call->op == GSI_OP_DESTROY || call->op == GSI_OP_SPLIT;

    if (!call->capturing || !waits)
        return GS_OK;
    return gsi_fail (GS_ERR_UNSUPPORTED,
                     "%s of communicator '%s' cannot be captured into a CUDA graph: %s",
                     gsi_record_op_name (call->op), comm->name,
                     call->staged && call->op != GSI_OP_POOL
                         ? "its array is in host memory and is staged by the host; "
                           "put it into device memory"
                         : "the host waits in it for the other ranks");
}

/* The lock is held, but the device cannot be entered. */
static gs_status_t lost_gpu (gs_comm_t *comm, gs_status_t st)
{
    st = give_up_gpu (comm, NULL, st);
    gsi_gpu_release (comm);
    return st;
}

gs_status_t gsi_inflight_hold (gs_comm_t *comm)
{
    gs_status_t st = gsi_gpu_lock (comm);

    return st ? lost_gpu (comm, st) : GS_OK;
}

gs_status_t gsi_inflight_enter (gs_comm_t *comm, struct gsi_call *call)
{
    gs_status_t st = gsi_inflight_hold (comm);

    if (st || !comm->inflight)
        return st;
    if (call->op != GSI_OP_BUCKET) /* else the stream is a reducer's own, which is never */
        st = gsi_streams_of (comm)->is_capturing (call->stream, &call->capturing);
    if (!st)
        st = check_capture (comm, call);
    if (!st && call->capturing && comm->coll)
        comm->coll->captured = true;
    if (st == GS_ERR_DEVICE)
        st = give_up_gpu (comm, call, st);
    if (st)
        gsi_gpu_unlock (comm);
    return st;
}

gs_status_t gsi_inflight_watch (gs_comm_t *comm, const struct gsi_call *call)
{
    struct gsi_inflight *q = comm->inflight;
    struct gsi_inflight_slot *slot;
    bool full, shared, defers;
    gs_status_t st;

    if (call->capturing) { /* it does not run now */
        gsi_record_end (&comm->record, GS_OK);
        return GS_OK;
    }
    if (call->op == GSI_OP_BUCKET && gsi_slot_join (comm, call))
        return GS_OK;
    if ((st = gsi_slot_mark (comm, call)))
        return st;
    pthread_mutex_lock (&q->ring);
    full = gsi_slots_are_full (q);
    pthread_mutex_unlock (&q->ring);
    if (full && (st = try_advance (comm)))
        return st;
    slot = gsi_slot_take (comm, call, &shared, &defers);
    st = defers ? GS_OK : gsi_streams_of (comm)->event_record (slot->event, call->stream);
    gsi_slot_fill (comm, slot, call, shared, defers, st);
    return st;
}

/* Whether a wait must end without success; else a pause has passed. */
static gs_status_t wait_on (gs_comm_t *comm, int64_t begin_ns, const struct gsi_call *call)
{
    int64_t now_ns = gsi_now_ns ();
    gs_status_t st;

    if (atomic_load (&comm->life) != GSI_ALIVE)
        return gsi_fail (GS_ERR_STATE, "the communicator was aborted");
    if (now_ns >= call->deadline_ns)
        return gsi_fail (GS_ERR_TIMEOUT, GSI_LATE_CALL);
    gsi_pause (now_ns - begin_ns, GSI_SPIN_NS);
    if (now_ns - begin_ns < GSI_SPIN_NS)
        return GS_OK;
    st = gsi_inflight_peek (comm, call);
    return st ? st : comm->coll->ops->poll (comm->coll);
}

gs_status_t gsi_inflight_await (gs_comm_t *comm, struct gsi_event *event,
                                const struct gsi_call *call)
{
    int64_t begin_ns = gsi_now_ns ();
    bool done;
    gs_status_t st = gsi_streams_of (comm)->event_done (event, &done);

    while (!st && !done && !(st = wait_on (comm, begin_ns, call)))
        st = gsi_streams_of (comm)->event_done (event, &done);
    return st ? st : gsi_peers_sound (comm);
}

gs_status_t gsi_inflight_drain (gs_comm_t *comm, const struct gsi_call *call)
{
    int64_t begin_ns = gsi_now_ns ();
    gs_status_t st = GS_OK;

    while (comm->inflight && !(st = try_advance (comm)) && atomic_load (&comm->gpu.oldest) &&
           !(st = wait_on (comm, begin_ns, call)))
        ;
    return st;
}

/* Whether the work that [waiter] stands behind is done. */
static gs_status_t ask_waiter (gs_comm_t *comm, struct gsi_event *waiter, bool *done)
{
    gs_status_t st;

    if (!gsi_gpu_lock_alive (comm, true, &st))
        return GS_OK; /* another thread is blocked in a call, and the communicator has ended */
    if (st)
        return lost_gpu (comm, st);
    st = gsi_streams_of (comm)->event_done (waiter, done);
    gsi_gpu_unlock (comm);
    return st;
}

static gs_status_t begin_wait (gs_comm_t *comm, struct gsi_event *waiter, gs_stream_t stream)
{
    bool capturing, closed = gsi_streams_of (comm)->is_closed (comm->device);
    gs_status_t st;

    if (!gsi_gpu_lock_alive (comm, false, &st))
        return GS_OK;
    if (st && (closed || gsi_streams_of (comm)->is_closed (comm->device))) {
        gsi_gpu_release (comm); /* no other rank waits for this */
        return st;
    }
    if (st)
        return lost_gpu (comm, st);
    st = gsi_streams_of (comm)->is_capturing (stream, &capturing);
    if (!st && capturing)
        st = gsi_fail (GS_ERR_UNSUPPORTED, "gs_comm_wait: the stream is captured into a CUDA "
                                           "graph, in which nothing runs now");
    if (!st)
        st = gsi_streams_of (comm)->event_record (waiter, stream);
    gsi_gpu_unlock (comm);
    return st;
}

gs_status_t gsi_inflight_wait (gs_comm_t *comm, gs_stream_t stream, bool to_free)
{
    struct gsi_event *waiter = to_free ? comm->inflight->last : comm->inflight->waiter;
    int64_t begin_ns = gsi_now_ns (), now_ns = begin_ns, asked_ns = begin_ns;
    bool done = false;
    gs_status_t st = begin_wait (comm, waiter, stream);

    while (!st && !(st = ask_waiter (comm, waiter, &done)) && !done) {
        if (atomic_load (&comm->life) != GSI_ALIVE)
            return GS_OK;                    /* the caller says why */
        if (atomic_load (&comm->gpu.oldest)) /* the thread sees to the deadline of calls */
            begin_ns = gsi_now_ns ();
        if ((now_ns = gsi_now_ns ()) - begin_ns > comm->timeout_ns)
            return gsi_fail (GS_ERR_TIMEOUT,
                             "gs_comm_wait: the stream's work did not end within %lld ms",
                             (long long) (comm->timeout_ns / GSI_NS_PER_MS));
        gsi_pause (now_ns - asked_ns, GSI_SPIN_NS);
    }
    if (!st && !to_free && (st = gsi_peers_sound (comm)))
        st = give_up_gpu (comm, NULL, st);
    return st;
}
