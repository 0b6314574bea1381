/* SPDX-License-Identifier: BSD-3-Clause */
/* inflight_ring - what the files of inflight share: the calls that are queued, and who looks. */
#ifndef GS_CALL_INFLIGHT_RING_H
#define GS_CALL_INFLIGHT_RING_H

#include "base/clock.h"
#include "core/comm.h"

#define GSI_INFLIGHT_SLOTS  64                    /* of calls that are watched; a power of two */
#define GSI_LOOK_LONGEST_NS (100 * GSI_NS_PER_MS) /* between two looks */

/* A call that was queued, or several, of which the oldest and the newest are known. */
struct gsi_inflight_slot {
    struct gsi_event *event; /* behind the newest in its stream */
    struct gsi_call call;    /* the newest */
    uint64_t seq;            /* of the oldest */
    uint64_t ops, messages;  /* first operation and message here; 0: none */
    uint64_t last_op, last_message;
    uint64_t number;  /* of calls */
    int64_t since_ns; /* when the oldest was queued, or the newest bucket */
    int64_t begun_ns; /* when the oldest was */
    bool open;        /* the event is being recorded */
    bool buckets;     /* there are some among them */
    bool deferred;    /* of the newest slot alone: buckets whose event is not recorded yet */
};

/*
 * N.B. A call of CUDA or NCCL may block: behind a queue of launches that is full, or a lock of
 * the context. So none is made with [ring] held, which is all that deadlines need; [looking] is
 * held while somebody asks for events, and whoever comes beside goes on without.
 */
struct gsi_inflight {
    pthread_mutex_t ring; /* of the slots, and what follows down to [now] */
    struct gsi_inflight_slot slot[GSI_INFLIGHT_SLOTS];
    uint64_t first, next; /* numbers of the oldest slot in use and of the one to use */
    uint64_t stride;      /* calls that a slot takes: twice as many whenever all are in use */
    int64_t moved_ns;     /* when the call before the oldest one was seen to have ended */
    int64_t slow_ns;      /* what slots of buckets took at most lately, from queued to ended */
    bool counted;         /* gsi_inflight_count */
    bool calling;         /* a thread is in [now] */
    atomic_bool left;     /* a call has failed, and what it gave the GPU may go on */
    struct gsi_call now;

    pthread_mutex_t looking;
    bool resting;                   /* there is no transport to ask; [looking] */
    _Atomic int64_t looks_since_ns; /* when the look under way began; 0: none is */
    atomic_flag peeking;            /* of the next, and of comm->crossed */
    int64_t peeked_ns[2]; /* when the records of other ranks were looked at: by calls, by it */
    int64_t replays_ns;   /* and by it, though no call was under way; [looking] */
    bool marked;          /* the thread's: it saw that the communicator, */
    bool settled;         /* and that the GPUs of the node have ended */
    struct gsi_event *waiter; /* of gsi_inflight_wait, */
    struct gsi_event *last;   /* and with [to_free] */

    pthread_t thread;
    pthread_mutex_t bell_guard; /* of the two below */
    pthread_cond_t bell;
    bool stop;
};

static inline struct gsi_inflight_slot *gsi_inflight_slot_at (struct gsi_inflight *q,
                                                              uint64_t number)
{
    return &q->slot[number % GSI_INFLIGHT_SLOTS];
}

/* [ring] is held. */
static inline bool gsi_slots_are_full (const struct gsi_inflight *q)
{
    return q->next - q->first == GSI_INFLIGHT_SLOTS;
}

/*
 * The slot for a call: the newest one, [*shared], if it takes more, else the next; open. The call
 * is then noted in it: its event stands behind the call, too, if [st] is GS_OK, unless it
 * [defers] that.
 */
struct gsi_inflight_slot *gsi_slot_take (gs_comm_t *comm, const struct gsi_call *call,
                                         bool *shared, bool *defers);
void gsi_slot_fill (gs_comm_t *comm, struct gsi_inflight_slot *slot, const struct gsi_call *call,
                    bool shared, bool defers, gs_status_t st);

/*
 * An event behind each bucket would cost the host more than all else that a bucket needs. It is
 * deferred to the next call that is no bucket: the one that ends the step is in the same stream,
 * a reducer's own, and its event stands for all. Whether a stream has ended can be asked without
 * one, so that buckets of a step that does not go on have their deadline. All buckets of a slot
 * have it together; so where steps take long, each has a slot and an event of its own.
 *
 * Whether [call], a bucket, joins those before it.
 */
bool gsi_slot_join (gs_comm_t *comm, const struct gsi_call *call);

/* Takes note of how long a slot took, if it has buckets; [ring] is held. */
void gsi_slot_timed (struct gsi_inflight *q, const struct gsi_inflight_slot *slot,
                     int64_t now_ns);

/* Records what was deferred, unless that is in the stream of [call], which does so (or NULL). */
gs_status_t gsi_slot_mark (gs_comm_t *comm, const struct gsi_call *call);

/* How often the thread looks; a slot takes buckets no longer than this. */
int64_t gsi_inflight_period_ns (const gs_comm_t *comm);

/* Whether what is queued counts as work of the device; [ring] is held. */
void gsi_inflight_count (gs_comm_t *comm, bool yes);

static inline const struct gsi_stream_ops *gsi_streams_of (const gs_comm_t *comm)
{
    return comm->device->ops->streams;
}

#endif /* GS_CALL_INFLIGHT_RING_H */
