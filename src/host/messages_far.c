/* SPDX-License-Identifier: BSD-3-Clause */
/* messages_far - messages of which the network carries the headers, as control messages, or what
 * is long, in pieces. */
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/status.h"
#include "host/messages.h"

/* ---- Pieces ---- */

static int tag_of (const struct gsi_delivery *w, enum gsi_tag tag)
{
    return (int) tag + (w->call->message ? 0 : GSI_TAG_ALL);
}

static gs_status_t post (struct gsi_delivery *w, bool send, void *data, size_t bytes, int peer,
                         enum gsi_tag tag, int slot)
{
    struct gsi_net *net = w->c->net;
    int rc;

    if (gsi_fault ("messages.post"))
        rc = GSI_NET_FAULT;
    else if (send)
        rc = net->ops->isend (net, w->o->batch, slot, data, bytes, peer, tag_of (w, tag));
    else
        rc = net->ops->irecv (net, w->o->batch, slot, data, bytes, peer, tag_of (w, tag));
    return rc ? gsi_transfer_fail (w->c, net->ops->words[send ? GSI_NET_ISEND : GSI_NET_IRECV],
                                   peer, rc)
              : GS_OK;
}

static int lane_slot (const struct gsi_delivery *w, int channel, int lane)
{
    return w->controls + w->partners + GSI_CHANNEL_LANES * channel + lane;
}

static size_t piece_of (const struct gsi_delivery *w, int i)
{
    size_t other = w->o->link[i].other.piece;

    return w->piece < other ? w->piece : other;
}

/* The head goes in pieces. */
gs_status_t gsi_far_advance (struct gsi_delivery *w, int number, bool *ended)
{
    struct gsi_channel *channel = &w->o->channel[number];
    const struct gsi_message *m = &w->list[channel->head];
    size_t piece = piece_of (w, channel->head), pieces = (m->bytes + piece - 1) / piece;
    gs_status_t st = GS_OK;

    while (channel->begun < pieces && !channel->busy[channel->begun % GSI_CHANNEL_LANES] && !st) {
        int lane = (int) (channel->begun % GSI_CHANNEL_LANES);
        size_t at = channel->begun * piece, n = m->bytes - at < piece ? m->bytes - at : piece;
        char *memory = channel->memory + (size_t) lane * w->piece;
        if (channel->send)
            memcpy (memory, (const char *) m->buf + at, n);
        st = post (w, channel->send, memory, n, m->peer, GSI_TAG_MESSAGE,
                   lane_slot (w, number, lane));
        channel->busy[lane] = true;
        channel->begun++;
    }
    *ended = channel->ended == pieces;
    return st;
}

/* A piece has left, or has come. */
static void piece_ended (struct gsi_delivery *w, int number, int lane)
{
    struct gsi_channel *channel = &w->o->channel[number];
    const struct gsi_message *m = &w->list[channel->head];
    size_t piece = piece_of (w, channel->head), k, at, n;

    if (!channel->send) {
        k = channel->begun - 1; /* the newest in this lane: of two, one or the other */
        while ((int) (k % GSI_CHANNEL_LANES) != lane)
            k--;
        at = k * piece;
        n = m->bytes - at < piece ? m->bytes - at : piece;
        memcpy ((char *) m->buf + at, channel->memory + (size_t) lane * w->piece, n);
    }
    channel->busy[lane] = false;
    channel->ended++;
}

/* ---- Control messages ---- */

/* The unexpected headers of a rank, of the messages that this call is one of. */
static struct gsi_unexpected_queue *unexpected_of (const struct gsi_delivery *w, int peer)
{
    return w->o->unexpected + GSI_ROUTE_ENDS * (w->call->message ? peer : w->c->size + peer);
}

static gs_status_t put_by (struct gsi_delivery *w, struct gsi_partner *partner)
{
    if (!partner->came)
        return GS_OK;
    partner->came = false;
    return gsi_control_read (partner->control, unexpected_of (w, partner->peer));
}

gs_status_t gsi_far_end (struct gsi_delivery *w)
{
    gs_status_t st = GS_OK;

    for (int p = 0; p < w->partners && !st; p++)
        st = put_by (w, &w->o->partner[p]);
    return st;
}

gs_status_t gsi_far_match (struct gsi_delivery *w, struct gsi_channel *channel)
{
    enum gsi_route_end other = channel->send ? GSI_ROUTE_RECEIVES : GSI_ROUTE_SENDS;
    struct gsi_partner *partner = &w->o->partner[channel->partner];
    struct gsi_p2p_header header;
    struct gsi_unexpected *item;
    const char *data;
    gs_status_t st;

    if (channel->head == GSI_NO_MESSAGE || w->o->link[channel->head].matched)
        return GS_OK;
    if ((item = gsi_unexpected_take (unexpected_of (w, channel->peer) + other))) {
        gsi_message_match (w, channel, &item->header, item->data);
        free (item);
        return GS_OK;
    }
    if (partner->came && gsi_control_take (partner->control, other, &header, &data)) {
        gsi_message_match (w, channel, &header, data);
        return GS_OK;
    }
    if (partner->coming)
        return GS_OK;
    if ((st = put_by (w, partner)))
        return st;
    partner->coming = true;
    return post (w, false, partner->control, GSI_CONTROL_BYTES, channel->peer, GSI_TAG_CONTROL,
                 w->controls + channel->partner);
}

/* A control message that is written: from w->own on. */
struct draft {
    size_t used; /* 0: none has been begun */
    int peer;
};

static gs_status_t post_control (struct gsi_delivery *w, struct draft *draft)
{
    gs_status_t st;

    if (!draft->used)
        return GS_OK;
    st = post (w, true, w->own, draft->used, draft->peer, GSI_TAG_CONTROL, w->controls++);
    w->own += draft->used;
    draft->used = 0;
    return st;
}

/* Tells the peer of a channel's messages; control messages are in order, and so are these. */
static gs_status_t write_to (struct gsi_delivery *w, const struct gsi_channel *channel,
                             struct draft *draft)
{
    gs_status_t st = GS_OK;

    for (int i = channel->head; i != GSI_NO_MESSAGE && !st; i = w->o->link[i].next) {
        const struct gsi_message *m = &w->list[i];
        struct gsi_p2p_header header = gsi_message_header (w, m);
        size_t n = gsi_message_eager (channel, m);
        if (draft->used + gsi_control_needs (n) > GSI_CONTROL_BYTES)
            st = post_control (w, draft);
        if (!draft->used)
            draft->used = gsi_control_begin (w->own);
        draft->used = gsi_control_append (w->own, draft->used, &header, channel->send, m->buf, n);
    }
    return st;
}

/* Then come the requests for control messages of others, and for pieces. */
gs_status_t gsi_far_begin (struct gsi_delivery *w)
{
    gs_status_t st = GS_OK;

    for (int p = 0; p < w->partners && !st; p++) {
        struct draft draft = {.peer = w->o->partner[p].peer};
        for (int k = 0; k < w->channels && !st; k++)
            if (!w->o->channel[k].route && w->o->channel[k].partner == p)
                st = write_to (w, &w->o->channel[k], &draft);
        st = st ? st : post_control (w, &draft);
    }
    w->requests = w->controls + w->partners + GSI_CHANNEL_LANES * w->lanes;
    for (int i = w->controls; i < w->requests; i++)
        w->c->net->ops->make_void (w->o->batch, i);
    return st;
}

/* Whom request [i] is with; -1 for a control message of this rank. */
static int peer_of (const struct gsi_delivery *w, int i)
{
    int k = i - w->controls, lane = k - w->partners;

    if (lane >= 0)
        return w->o->channel[lane / GSI_CHANNEL_LANES].peer;
    return k >= 0 ? w->o->partner[k].peer : -1;
}

gs_status_t gsi_far_take (struct gsi_delivery *w, bool *active)
{
    struct gsi_p2p_state *o = w->o;
    struct gsi_net *net = w->c->net;
    int ended = 0, which = -1;
    int rc = net->ops->test_some (net, o->batch, w->requests, &ended, o->index, &which);

    *active = ended >= 0;
    if (rc)
        return gsi_transfer_fail (w->c,
                                  which >= 0 ? "transfer" : net->ops->words[GSI_NET_TEST_SOME],
                                  which >= 0 ? peer_of (w, which) : -1, rc);
    for (int i = 0; i < ended; i++) {
        int k = o->index[i] - w->controls, lane = k - w->partners;
        if (lane >= 0)
            piece_ended (w, lane / GSI_CHANNEL_LANES, lane % GSI_CHANNEL_LANES);
        else if (k >= 0) {
            o->partner[k].coming = false;
            o->partner[k].came = true;
        }
    }
    return GS_OK;
}
