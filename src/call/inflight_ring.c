/* SPDX-License-Identifier: BSD-3-Clause */
/* inflight_ring - the slots of the calls that are queued, each with an event behind them. */
#include "call/inflight_ring.h"

#define SHORTEST_NS GSI_NS_PER_MS /* between two looks */
#define SHARE       8 /* of the deadline: buckets that took less lately have it together */

void gsi_inflight_count (gs_comm_t *comm, bool yes)
{
    if (comm->inflight->counted != yes)
        gsi_streams_of (comm)->work (comm->device, GSI_WORK_QUEUES, yes ? 1 : -1);
    comm->inflight->counted = yes;
}

int64_t gsi_inflight_period_ns (const gs_comm_t *comm)
{
    int64_t period = comm->timeout_ns / 10;

    return period > GSI_LOOK_LONGEST_NS ? GSI_LOOK_LONGEST_NS
           : period < SHORTEST_NS       ? SHORTEST_NS
                                        : period;
}

/* What two slots stand for, in one, whose event is that of [newer]. */
static struct gsi_inflight_slot join_slots (const struct gsi_inflight_slot *older,
                                            const struct gsi_inflight_slot *newer)
{
    struct gsi_inflight_slot both = *newer;

    both.seq = older->seq;
    both.ops = older->ops ? older->ops : newer->ops;
    both.messages = older->messages ? older->messages : newer->messages;
    both.last_op = newer->last_op ? newer->last_op : older->last_op;
    both.last_message = newer->last_message ? newer->last_message : older->last_message;
    both.number += older->number;
    both.since_ns = older->since_ns;
    both.begun_ns = older->begun_ns;
    both.buckets = older->buckets || newer->buckets;
    return both;
}

/* Joins slots by two, so that half are free; not the oldest, which somebody may be looking at. */
static void thin_out (struct gsi_inflight *q)
{
    struct gsi_event *spare[GSI_INFLIGHT_SLOTS];
    uint64_t to = q->first + 1, from = to;
    int spares = 0;

    for (; from + 1 < q->next; from += 2, to++) {
        struct gsi_inflight_slot older = *gsi_inflight_slot_at (q, from);
        *gsi_inflight_slot_at (q, to) = join_slots (&older, gsi_inflight_slot_at (q, from + 1));
        spare[spares++] = older.event;
    }
    for (; from < q->next; from++, to++)
        *gsi_inflight_slot_at (q, to) = *gsi_inflight_slot_at (q, from);
    q->next = to;
    while (spares)
        gsi_inflight_slot_at (q, to++)->event = spare[--spares];
}

/* The newest slot if its event is deferred, and nobody records it; else NULL. [ring] is held. */
static struct gsi_inflight_slot *deferred_slot (struct gsi_inflight *q)
{
    struct gsi_inflight_slot *newest = gsi_inflight_slot_at (q, q->next - 1);

    return q->first != q->next && newest->deferred && !newest->open ? newest : NULL;
}

static bool takes_more (struct gsi_inflight *q, const struct gsi_call *call)
{
    const struct gsi_inflight_slot *deferred = deferred_slot (q);

    if (deferred)
        return deferred->call.stream == call->stream && call->op != GSI_OP_BUCKET;
    return q->next - q->first > 1 && gsi_inflight_slot_at (q, q->next - 1)->number < q->stride;
}

/* Whether [call] is a bucket, and need not have its deadline alone. [ring] is held. */
static bool is_deferred (const gs_comm_t *comm, const struct gsi_call *call)
{
    return call->op == GSI_OP_BUCKET && comm->inflight->slow_ns < comm->timeout_ns / SHARE;
}

struct gsi_inflight_slot *gsi_slot_take (gs_comm_t *comm, const struct gsi_call *call,
                                         bool *shared, bool *defers)
{
    struct gsi_inflight *q = comm->inflight;
    struct gsi_inflight_slot *slot;

    pthread_mutex_lock (&q->ring);
    if (q->first == q->next)
        q->stride = 1;
    *shared = takes_more (q, call);
    *defers = is_deferred (comm, call);
    if (!*shared && gsi_slots_are_full (q)) {
        thin_out (q);
        q->stride *= 2;
    }
    slot = gsi_inflight_slot_at (q, q->next - *shared);
    slot->open = true;
    if (!*shared) {
        slot->seq = call->seq;
        slot->number = 0;
        slot->ops = slot->messages = slot->last_op = slot->last_message = 0;
        slot->since_ns = slot->begun_ns = call->deadline_ns - comm->timeout_ns;
        slot->deferred = slot->buckets = false;
    }
    pthread_mutex_unlock (&q->ring);
    return slot;
}

/* [ring] is held. */
static void note_call (gs_comm_t *comm, struct gsi_inflight_slot *slot,
                       const struct gsi_call *call)
{
    slot->call = *call;
    slot->number++;
    slot->buckets = slot->buckets || call->op == GSI_OP_BUCKET;
    if (call->message) {
        slot->messages = slot->messages ? slot->messages : call->message;
        slot->last_message = call->message;
    } else {
        slot->ops = slot->ops ? slot->ops : call->seq;
        slot->last_op = call->seq;
    }
    gsi_record_queued (&comm->record);
}

void gsi_slot_fill (gs_comm_t *comm, struct gsi_inflight_slot *slot, const struct gsi_call *call,
                    bool shared, bool defers, gs_status_t st)
{
    struct gsi_inflight *q = comm->inflight;

    pthread_mutex_lock (&q->ring);
    slot->open = false;
    if (!st) {
        slot->deferred = defers;
        note_call (comm, slot, call);
        if (!shared && q->first == q->next++) {
            atomic_store (&comm->gpu.oldest, slot->seq);
            gsi_inflight_count (comm, atomic_load (&comm->life) == GSI_ALIVE);
        }
    }
    pthread_mutex_unlock (&q->ring);
}

void gsi_slot_timed (struct gsi_inflight *q, const struct gsi_inflight_slot *slot, int64_t now_ns)
{
    int64_t took_ns = now_ns - slot->begun_ns;

    if (slot->buckets)
        q->slow_ns = took_ns > q->slow_ns / 2 ? took_ns : q->slow_ns / 2;
}

bool gsi_slot_join (gs_comm_t *comm, const struct gsi_call *call)
{
    int64_t now_ns = call->deadline_ns - comm->timeout_ns;
    struct gsi_inflight_slot *slot;

    pthread_mutex_lock (&comm->inflight->ring);
    slot = deferred_slot (comm->inflight);
    if (slot &&
        (slot->call.stream != call->stream ||
         now_ns - slot->begun_ns > gsi_inflight_period_ns (comm) || !is_deferred (comm, call)))
        slot = NULL;
    if (slot) {
        note_call (comm, slot, call);
        slot->since_ns = now_ns;
    }
    pthread_mutex_unlock (&comm->inflight->ring);
    return slot != NULL;
}

gs_status_t gsi_slot_mark (gs_comm_t *comm, const struct gsi_call *call)
{
    struct gsi_inflight *q = comm->inflight;
    struct gsi_inflight_slot *slot;
    gs_status_t st;

    pthread_mutex_lock (&q->ring);
    slot = deferred_slot (q);
    if (slot && call && takes_more (q, call))
        slot = NULL;
    if (slot)
        slot->open = true;
    pthread_mutex_unlock (&q->ring);
    if (!slot)
        return GS_OK;
    st = gsi_streams_of (comm)->event_record (slot->event, slot->call.stream);
    pthread_mutex_lock (&q->ring);
    slot->open = false;
    slot->deferred = st != GS_OK;
    pthread_mutex_unlock (&q->ring);
    return st;
}
