/* SPDX-License-Identifier: BSD-3-Clause */
/* inflight - what a communicator on GPUs has queued: a thread watches that it ends in time. */
#include "call/inflight.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/thread.h"
#include "call/failure.h"
#include "call/gpu_lock.h"
#include "call/peers.h"

#define SLOTS       64                    /* calls that are watched at a time; a power of two */
#define LONGEST_NS  (100 * GSI_NS_PER_MS) /* between two looks */
#define SHORTEST_NS GSI_NS_PER_MS
#define SPIN_NS     (GSI_NS_PER_MS / 10) /* a wait spins that long before it pauses */
#define SETTLE_NS   GSI_NS_PER_S         /* what NCCL aborts ends much sooner */

/* A call that was queued. */
struct slot {
    struct gsi_event *event; /* behind it in its stream */
    struct gsi_call call;
    int64_t since_ns; /* when it was queued */
};

struct gsi_inflight {
    struct slot slot[SLOTS];
    uint64_t first, next;     /* numbers of the oldest slot in use and of the one to use */
    int64_t moved_ns;         /* when the call before the oldest one was seen to have ended */
    int64_t peeked_ns;        /* when the records of the other ranks were looked at */
    struct gsi_event *waiter; /* of gsi_inflight_wait */
    void (*mark) (const gs_comm_t *comm); /* of gsi_inflight_add */
    bool (*ended) (const gs_comm_t *comm);

    gs_stream_t bridge; /* stands in for the per-thread stream, see cross */
    struct gsi_event *there, *back;
    bool crossed;
    gs_stream_t shore; /* where the running call comes back to */

    pthread_t thread;
    pthread_mutex_t bell_guard; /* of the two below */
    pthread_cond_t bell;
    bool stop;
};

static const struct gsi_stream_ops *ops_of (const gs_comm_t *comm)
{
    return comm->device->ops->streams;
}

/*
 * The GPU cannot be used any more, seen before [call] or, without one, between calls: the
 * communicator dies. The queue is held.
 */
static gs_status_t give_up_gpu (gs_comm_t *comm, const struct gsi_call *call, gs_status_t st)
{
    struct gsi_call last = {.seq = comm->record.seq + 1};

    if (!comm->coll || atomic_load (&comm->life) != GSI_ALIVE)
        return st;
    if (call)
        last.op = call->op;
    return gsi_failure_report (comm, &last, st);
}

/* ---- The thread ---- */

/* The oldest call has ended: its entry in the record ends, if it has not been overwritten. */
static void retire (gs_comm_t *comm, int64_t now_ns)
{
    struct gsi_inflight *q = comm->inflight;
    const struct gsi_call *call = &q->slot[q->first % SLOTS].call;

    gsi_record_done (&comm->record, call->op, call->message ? call->message : call->seq, now_ns);
    q->first++;
    atomic_store (&comm->gpu.oldest,
                  q->first == q->next ? 0 : q->slot[q->first % SLOTS].call.seq);
    q->moved_ns = now_ns;
}

/* Retires what has ended; the queue is held and the device entered. */
static gs_status_t advance (gs_comm_t *comm)
{
    struct gsi_inflight *q = comm->inflight;
    int64_t now_ns = gsi_now_ns ();
    bool done = true;
    gs_status_t st = GS_OK;

    while (q->first != q->next && !st) {
        st = ops_of (comm)->event_done (q->slot[q->first % SLOTS].event, &done);
        if (st || !done)
            break;
        retire (comm, now_ns);
    }
    return st;
}

/* The oldest call has its time from when it was queued, or the one before it ended. */
static bool is_late (const gs_comm_t *comm)
{
    const struct gsi_inflight *q = comm->inflight;
    int64_t since_ns = q->slot[q->first % SLOTS].since_ns;

    if (since_ns < q->moved_ns)
        since_ns = q->moved_ns;
    return q->first != q->next && gsi_now_ns () - since_ns > comm->timeout_ns;
}

gs_status_t gsi_inflight_peek (gs_comm_t *comm, const struct gsi_call *call)
{
    int64_t now_ns = gsi_now_ns ();
    gs_status_t st;

    if (now_ns - comm->inflight->peeked_ns < LONGEST_NS)
        return GS_OK;
    comm->inflight->peeked_ns = now_ns;
    st = gsi_peers_gave_up (comm, call->seq);
    return st || call->message ? st : gsi_peers_crossed (comm, call->seq);
}

/* One look: what ended, what failed, what is late. The queue is held and the device entered. */
static void look_at_oldest (gs_comm_t *comm)
{
    struct gsi_inflight *q = comm->inflight;
    struct gsi_call call = {.seq = comm->record.seq};
    gs_status_t st;

    if (!comm->coll || atomic_load (&comm->life) != GSI_ALIVE)
        return;
    st = advance (comm);
    if (!st)
        st = comm->coll->ops->poll (comm->coll);
    if (!st && q->first != q->next)
        st = gsi_inflight_peek (comm, &q->slot[q->first % SLOTS].call);
    if (!st && is_late (comm))
        st = gsi_fail (GS_ERR_TIMEOUT, "it was queued, but did not end within %lld ms",
                       (long long) (comm->timeout_ns / GSI_NS_PER_MS));
    if (!st)
        return;
    if (q->first != q->next)
        call = q->slot[q->first % SLOTS].call;
    gsi_failure_report (comm, &call, st);
}

static void look_if_free (gs_comm_t *comm)
{
    bool free;
    gs_status_t st = gsi_gpu_try_lock (comm, &free);

    if (!free)
        return; /* a call is at work, which sees to its own end */
    if (st) {
        give_up_gpu (comm, NULL, st);
        gsi_gpu_release (comm);
        return;
    }
    look_at_oldest (comm);
    gsi_gpu_unlock (comm);
}

uint64_t gsi_inflight_oldest (gs_comm_t *comm)
{
    uint64_t oldest = comm->inflight ? atomic_load (&comm->gpu.oldest) : 0;

    if (oldest || !comm->inflight || pthread_mutex_trylock (&comm->gpu.guard))
        return oldest ? oldest : comm->record.seq; /* of the call at work */
    gsi_gpu_release (comm);
    return comm->record.seq + 1;
}

void gsi_inflight_poll (gs_comm_t *comm)
{
    if (comm->inflight)
        look_if_free (comm);
}

static int64_t period_ns (const gs_comm_t *comm)
{
    int64_t period = comm->timeout_ns / 10;

    return period > LONGEST_NS ? LONGEST_NS : period < SHORTEST_NS ? SHORTEST_NS : period;
}

static void *watch (void *argument)
{
    gs_comm_t *comm = argument;
    struct gsi_inflight *q = comm->inflight;
    int unused;

    if (!ops_of (comm)->enter (comm->device, &unused)) /* for good: else it begins on GPU 0 */
        ops_of (comm)->stand_apart ();
    pthread_mutex_lock (&q->bell_guard);
    while (!q->stop) {
        gsi_condition_wait (&q->bell, &q->bell_guard, gsi_now_ns () + period_ns (comm));
        pthread_mutex_unlock (&q->bell_guard);
        look_if_free (comm);
        pthread_mutex_lock (&q->bell_guard);
    }
    pthread_mutex_unlock (&q->bell_guard);
    return NULL;
}

/* ---- Life ---- */

static gs_status_t start_thread (gs_comm_t *comm)
{
    gs_status_t st;

    gsi_condition_init (&comm->inflight->bell);
    if ((st = gsi_thread_start (&comm->inflight->thread, watch, comm, comm->name)))
        comm->inflight->stop = true; /* there is nothing to join */
    return st;
}

gs_status_t gsi_inflight_open (gs_comm_t *comm)
{
    struct gsi_inflight *q;
    int previous;
    gs_status_t st;

    if (!ops_of (comm))
        return GS_OK;
    if (!(q = calloc (1, sizeof (*q))))
        return gsi_fail (GS_ERR_NOMEM, "out of memory");
    pthread_mutex_init (&comm->gpu.guard, NULL);
    pthread_mutex_init (&q->bell_guard, NULL);
    q->stop = true;
    comm->inflight = q;
    if ((st = ops_of (comm)->enter (comm->device, &previous)))
        return st;
    if (!(st = ops_of (comm)->event_open (&q->waiter)) &&
        !(st = ops_of (comm)->event_open (&q->there)) &&
        !(st = ops_of (comm)->event_open (&q->back)))
        st = ops_of (comm)->stream_open (&q->bridge);
    for (int i = 0; i < SLOTS && !st; i++)
        st = ops_of (comm)->event_open (&q->slot[i].event);
    ops_of (comm)->leave (comm->device, previous);
    if (st)
        return st;
    q->stop = false;
    return start_thread (comm);
}

static void stop_thread (struct gsi_inflight *q)
{
    bool runs;

    pthread_mutex_lock (&q->bell_guard);
    runs = !q->stop;
    q->stop = true;
    pthread_cond_signal (&q->bell);
    pthread_mutex_unlock (&q->bell_guard);
    if (runs) {
        pthread_join (q->thread, NULL);
        pthread_cond_destroy (&q->bell);
    }
}

void gsi_inflight_close (gs_comm_t *comm)
{
    struct gsi_inflight *q = comm->inflight;
    int previous;

    if (!q)
        return;
    stop_thread (q);
    if (!ops_of (comm)->enter (comm->device, &previous)) {
        for (int i = 0; i < SLOTS; i++)
            ops_of (comm)->event_close (q->slot[i].event);
        ops_of (comm)->event_close (q->waiter);
        ops_of (comm)->event_close (q->there);
        ops_of (comm)->event_close (q->back);
        ops_of (comm)->stream_close (q->bridge);
        ops_of (comm)->leave (comm->device, previous);
    }
    pthread_mutex_destroy (&comm->gpu.guard);
    pthread_mutex_destroy (&q->bell_guard);
    comm->inflight = NULL;
    free (q);
}

static bool all_have_ended (const gs_comm_t *comm)
{
    struct gsi_inflight *q = comm->inflight;
    struct gsi_event *others[] = {q->waiter, q->there, q->back};
    bool done = true;

    for (size_t i = 0; i < SLOTS + 3 && done; i++) {
        struct gsi_event *event = i < SLOTS ? q->slot[i].event : others[i - SLOTS];
        if (event && ops_of (comm)->event_done (event, &done))
            return true; /* a GPU that failed does no more work */
    }
    return done && (!q->ended || q->ended (comm));
}

/* Waits until the calls that are watched have ended, or the communicator has. */
static void await_calls (gs_comm_t *comm)
{
    int64_t begin_ns = gsi_now_ns ();

    while (atomic_load (&comm->life) == GSI_ALIVE && atomic_load (&comm->gpu.oldest)) {
        look_if_free (comm);
        if (atomic_load (&comm->gpu.oldest))
            gsi_pause (gsi_now_ns () - begin_ns, SPIN_NS);
    }
}

void gsi_inflight_settle (gs_comm_t *comm)
{
    struct gsi_inflight *q = comm->inflight;
    int64_t until_ns;
    gs_status_t st;

    if (!q)
        return;
    await_calls (comm);
    if (atomic_load (&comm->life) == GSI_ALIVE)
        return;
    st = gsi_gpu_lock (comm);
    until_ns = gsi_now_ns () + SETTLE_NS;
    if (!comm->device->stuck && !st) {
        if (q->mark)
            q->mark (comm);
        while (!all_have_ended (comm) && !comm->device->stuck) {
            gsi_pause (GSI_NS_PER_MS, 0);
            comm->device->stuck = gsi_now_ns () > until_ns;
        }
        if (comm->device->stuck)
            gsi_log (GS_LOG_WARN, "comm",
                     "GPU %d does not end what was queued by '%s' or before it: memory of the "
                     "communicator is kept until the process ends",
                     comm->device->ordinal, comm->name);
    }
    if (st)
        gsi_gpu_release (comm);
    else
        gsi_gpu_unlock (comm);
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
                     call->staged ? "its array is in host memory and is staged by the host; "
                                    "put it into device memory"
                                  : "the host waits in it for the other ranks");
}

gs_status_t gsi_inflight_hold (gs_comm_t *comm)
{
    gs_status_t st = gsi_gpu_lock (comm);

    if (!st)
        return GS_OK;
    st = give_up_gpu (comm, NULL, st);
    gsi_gpu_release (comm);
    return st;
}

/*
 * N.B. The per-thread stream is another one on each thread, and NCCL launches from a thread of
 * its own when its calls do not block (2.28). So the call goes to a stream of ours that waits for
 * it.
 */
static gs_status_t cross (gs_comm_t *comm, struct gsi_call *call)
{
    struct gsi_inflight *q = comm->inflight;
    gs_status_t st;

    q->crossed = ops_of (comm)->is_per_thread (call->stream);
    if (!q->crossed)
        return GS_OK;
    q->shore = call->stream;
    call->stream = q->bridge;
    st = ops_of (comm)->event_record (q->there, q->shore);
    return st ? st : ops_of (comm)->stream_wait (q->bridge, q->there);
}

/* What is queued behind the call waits for it. */
static gs_status_t come_back (gs_comm_t *comm)
{
    struct gsi_inflight *q = comm->inflight;
    gs_status_t st;

    if (!q->crossed)
        return GS_OK;
    st = ops_of (comm)->event_record (q->back, q->bridge);
    return st ? st : ops_of (comm)->stream_wait (q->shore, q->back);
}

gs_status_t gsi_inflight_enter (gs_comm_t *comm, struct gsi_call *call)
{
    gs_status_t st = gsi_inflight_hold (comm);

    if (st || !comm->inflight)
        return st;
    if (!(st = ops_of (comm)->is_capturing (call->stream, &call->capturing)) &&
        !(st = check_capture (comm, call)))
        st = cross (comm, call);
    if (st == GS_ERR_DEVICE)
        st = give_up_gpu (comm, call, st);
    if (st)
        gsi_gpu_unlock (comm);
    return st;
}

gs_status_t gsi_inflight_watch (gs_comm_t *comm, const struct gsi_call *call)
{
    struct gsi_inflight *q = comm->inflight;
    struct slot *slot;
    gs_status_t st = come_back (comm);

    if (st)
        return st;
    /* A captured call does not run now; where calls run far ahead, the older ones are watched. */
    if (call->capturing || (q->next - q->first == SLOTS && (st = advance (comm))) ||
        q->next - q->first == SLOTS) {
        gsi_record_end (&comm->record, GS_OK);
        return GS_OK;
    }
    slot = &q->slot[q->next % SLOTS];
    slot->call = *call;
    slot->since_ns = call->deadline_ns - comm->timeout_ns;
    if ((st = ops_of (comm)->event_record (slot->event, call->stream)))
        return st;
    if (q->first == q->next++)
        atomic_store (&comm->gpu.oldest, call->seq);
    gsi_record_queued (&comm->record);
    return GS_OK;
}

/* Whether a wait must end without success; else a pause has passed. */
static gs_status_t wait_on (gs_comm_t *comm, int64_t begin_ns, const struct gsi_call *call)
{
    int64_t now_ns = gsi_now_ns ();
    gs_status_t st;

    if (atomic_load (&comm->life) != GSI_ALIVE)
        return gsi_fail (GS_ERR_STATE, "the communicator was aborted");
    if (now_ns >= call->deadline_ns)
        return gsi_fail (GS_ERR_TIMEOUT, "the deadline passed (GS_TIMEOUT_MS)");
    gsi_pause (now_ns - begin_ns, SPIN_NS);
    if (now_ns - begin_ns < SPIN_NS)
        return GS_OK;
    st = gsi_inflight_peek (comm, call);
    return st ? st : comm->coll->ops->poll (comm->coll);
}

gs_status_t gsi_inflight_await (gs_comm_t *comm, struct gsi_event *event,
                                const struct gsi_call *call)
{
    int64_t begin_ns = gsi_now_ns ();
    bool done;
    gs_status_t st = ops_of (comm)->event_done (event, &done);

    while (!st && !done && !(st = wait_on (comm, begin_ns, call)))
        st = ops_of (comm)->event_done (event, &done);
    return st;
}

gs_status_t gsi_inflight_drain (gs_comm_t *comm, const struct gsi_call *call)
{
    struct gsi_inflight *q = comm->inflight;
    gs_status_t st = GS_OK;

    while (q && q->first != q->next && !st)
        if (!(st = gsi_inflight_await (comm, q->slot[q->first % SLOTS].event, call)))
            retire (comm, gsi_now_ns ());
    return st;
}

void gsi_inflight_add (gs_comm_t *comm, void (*mark) (const gs_comm_t *comm),
                       bool (*ended) (const gs_comm_t *comm))
{
    comm->inflight->mark = mark;
    comm->inflight->ended = ended;
}

/* Whether the work that [waiter] stands behind is done. */
static gs_status_t ask_waiter (gs_comm_t *comm, bool *done)
{
    gs_status_t st = gsi_inflight_hold (comm);

    if (st)
        return st;
    st = ops_of (comm)->event_done (comm->inflight->waiter, done);
    gsi_gpu_unlock (comm);
    return st;
}

static gs_status_t begin_wait (gs_comm_t *comm, gs_stream_t stream)
{
    bool capturing;
    gs_status_t st = gsi_inflight_hold (comm);

    if (st)
        return st;
    st = ops_of (comm)->is_capturing (stream, &capturing);
    if (!st && capturing)
        st = gsi_fail (GS_ERR_UNSUPPORTED, "gs_comm_wait: the stream is captured into a CUDA "
                                           "graph, in which nothing runs now");
    if (!st)
        st = ops_of (comm)->event_record (comm->inflight->waiter, stream);
    gsi_gpu_unlock (comm);
    return st;
}

gs_status_t gsi_inflight_wait (gs_comm_t *comm, gs_stream_t stream)
{
    int64_t begin_ns = gsi_now_ns (), now_ns = begin_ns;
    bool done = false;
    gs_status_t st = begin_wait (comm, stream);

    while (!st && !(st = ask_waiter (comm, &done)) && !done) {
        if (atomic_load (&comm->life) != GSI_ALIVE)
            return GS_OK; /* the caller says why */
        if ((now_ns = gsi_now_ns ()) - begin_ns > comm->timeout_ns)
            return gsi_fail (GS_ERR_TIMEOUT,
                             "gs_comm_wait: the stream's work did not end within %lld ms",
                             (long long) (comm->timeout_ns / GSI_NS_PER_MS));
        gsi_pause (now_ns - begin_ns, SPIN_NS);
    }
    return st;
}
