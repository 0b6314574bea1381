/* SPDX-License-Identifier: BSD-3-Clause */
/* inflight_ring - the slots of the calls that are queued, with an event each. */
#include "call/inflight_ring.h"

/* What two slots stand for, in one, whose event is that of [newer]. */
static struct gsi_slot join_slots (const struct gsi_slot *older, const struct gsi_slot *newer)
{
    struct gsi_slot both = *newer;

    both.seq = older->seq;
    both.ops = older->ops ? older->ops : newer->ops;
    both.messages = older->messages ? older->messages : newer->messages;
    both.last_op = newer->last_op ? newer->last_op : older->last_op;
    both.last_message = newer->last_message ? newer->last_message : older->last_message;
    both.number += older->number;
    both.since_ns = older->since_ns;
    return both;
}

/* Joins slots by two, so that half are free; not the oldest, which somebody may be looking at. */
static void thin_out (struct gsi_inflight *q)
{
    struct gsi_event *spare[GSI_INFLIGHT_SLOTS];
    uint64_t to = q->first + 1, from = to;
    int spares = 0;

    for (; from + 1 < q->next; from += 2, to++) {
        struct gsi_slot older = *gsi_slot_at (q, from);
        *gsi_slot_at (q, to) = join_slots (&older, gsi_slot_at (q, from + 1));
        spare[spares++] = older.event;
    }
    for (; from < q->next; from++, to++)
        *gsi_slot_at (q, to) = *gsi_slot_at (q, from);
    q->next = to;
    while (spares)
        gsi_slot_at (q, to++)->event = spare[--spares];
}

struct gsi_slot *gsi_slot_take (gs_comm_t *comm, const struct gsi_call *call, bool *shared)
{
    struct gsi_inflight *q = comm->inflight;
    struct gsi_slot *slot;

    pthread_mutex_lock (&q->ring);
    if (q->first == q->next)
        q->stride = 1;
    *shared = q->next - q->first > 1 && gsi_slot_at (q, q->next - 1)->number < q->stride;
    if (!*shared && gsi_slots_are_full (q)) {
        thin_out (q);
        q->stride *= 2;
    }
    slot = gsi_slot_at (q, q->next - *shared);
    slot->open = true;
    if (!*shared) {
        slot->seq = call->seq;
        slot->number = 0;
        slot->ops = slot->messages = slot->last_op = slot->last_message = 0;
        slot->since_ns = call->deadline_ns - comm->timeout_ns;
    }
    pthread_mutex_unlock (&q->ring);
    return slot;
}

void gsi_slot_fill (gs_comm_t *comm, struct gsi_slot *slot, const struct gsi_call *call,
                    bool shared, gs_status_t st)
{
    struct gsi_inflight *q = comm->inflight;

    pthread_mutex_lock (&q->ring);
    slot->open = false;
    if (!st) {
        slot->call = *call;
        slot->number++;
        if (call->message) {
            slot->messages = slot->messages ? slot->messages : call->message;
            slot->last_message = call->message;
        } else {
            slot->ops = slot->ops ? slot->ops : call->seq;
            slot->last_op = call->seq;
        }
        if (!shared && q->first == q->next++) {
            atomic_store (&comm->gpu.oldest, slot->seq);
            gsi_inflight_count (comm, atomic_load (&comm->life) == GSI_ALIVE);
        }
        gsi_record_queued (&comm->record);
    }
    pthread_mutex_unlock (&q->ring);
}
