/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * messages - between pairs of ranks, any number at a time.
 *
 * Both ends of a message send the other one a header (a request to send, and a clear to send):
 * how long it is, and of what. So both know that the other has come, and whether they agree,
 * before anything is written. What is short is eager: it goes with the sender's header. The
 * messages of a pair in one direction form a channel, whose long ones go one after the other;
 * none waits for another channel.
 *
 * Within a node headers are posted in shared memory (route.h), and of what is long the receiver
 * reads the sender's memory. Else the network carries the headers, those for a rank in one
 * control message (control_messages.h), and what is long in pieces, through memory that each
 * channel has of its own.
 */
#include "host/messages.h"

#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/status.h"
#include "host/cma.h"

#define MOST_PIECE  ((size_t) 256 << 10) /* bytes of a piece, */
#define LEAST_PIECE ((size_t) 4 << 10)   /* where there are many channels */
#define LANES_BYTES ((size_t) 64 << 20)  /* of all channels, if pieces can be small enough */
#define PULL_BYTES  ((size_t) 4 << 20)   /* between two looks at the other channels */
#define LOOK_EVERY  64u                  /* polls between looks at the clock */

/* ---- Memory ---- */

static void drop_arrays (const struct gsi_coll_host *c, struct gsi_p2p_state *o)
{
    if (c->unfinished)
        c->net->ops->keep (o->batch);
    else
        free (o->batch);
    free (o->index);
    free (o->channel);
    free (o->link);
    free (o->partner);
    o->most = 0;
}

void gsi_messages_close (struct gsi_coll_host *c)
{
    struct gsi_p2p_state *o = c->p2p;

    if (!o)
        return;
    if (c->unfinished)
        c->net->ops->keep (o->memory);
    else
        free (o->memory);
    drop_arrays (c, o);
    for (int i = 0; o->unexpected && i < 2 * c->size * GSI_ROUTE_ENDS; i++)
        gsi_unexpected_free (&o->unexpected[i]);
    free (o->unexpected);
    free (o);
    c->p2p = NULL;
}

static bool make_arrays (const struct gsi_net *net, struct gsi_p2p_state *o, size_t n)
{
    o->batch = gsi_net_batch (net, (int) ((2 + GSI_CHANNEL_LANES) * n));
    o->index = calloc ((2 + GSI_CHANNEL_LANES) * n, sizeof (*o->index));
    o->channel = calloc (n, sizeof (*o->channel));
    o->link = calloc (n, sizeof (*o->link));
    o->partner = calloc (n, sizeof (*o->partner));
    o->most = (int) n;
    return o->batch && o->index && o->channel && o->link && o->partner;
}

/* Room for as many messages; between calls, when the network holds nothing. */
static gs_status_t reserve_messages (struct gsi_coll_host *c, int number)
{
    size_t queues = 2 * (size_t) c->size * GSI_ROUTE_ENDS;
    struct gsi_p2p_state *o = c->p2p;

    if (o && o->most >= number)
        return GS_OK;
    if (!o && !gsi_fault ("messages.memory") && (o = c->p2p = calloc (1, sizeof (*o))))
        o->unexpected = calloc (queues, sizeof (*o->unexpected));
    if (o)
        drop_arrays (c, o);
    if (o && o->unexpected && make_arrays (c->net, o, number > 64 ? (size_t) number : 64))
        return GS_OK;
    gsi_messages_close (c);
    return gsi_fail (GS_ERR_NOMEM, "between hosts: no memory for %d messages", number);
}

/* What the control messages of this rank can have, each with room for the last header that it has
 * not. */
static size_t controls_bytes (const struct gsi_delivery *w)
{
    size_t bytes = 0;

    for (int k = 0; k < w->channels; k++) {
        const struct gsi_channel *channel = &w->o->channel[k];
        for (int i = channel->head; !channel->route && i != GSI_NO_MESSAGE;
             i = w->o->link[i].next)
            bytes +=
                sizeof (uint64_t) + gsi_control_needs (gsi_message_eager (channel, &w->list[i]));
    }
    return bytes;
}

/* Memory for control messages, and for lanes of the channels that need them. */
static gs_status_t reserve_bytes (struct gsi_delivery *w)
{
    struct gsi_p2p_state *o = w->o;
    size_t partners = (size_t) w->partners * GSI_CONTROL_BYTES, lanes = 0, total;
    char *at;

    for (int i = 0; i < w->channels; i++)
        lanes += o->channel[i].pieces;
    w->lanes = lanes ? w->channels : 0;
    w->piece = lanes ? LANES_BYTES / (GSI_CHANNEL_LANES * lanes) / 64 * 64 : MOST_PIECE;
    w->piece = w->piece > MOST_PIECE    ? MOST_PIECE
               : w->piece < LEAST_PIECE ? LEAST_PIECE
                                        : w->piece;
    if (!(total = controls_bytes (w) + partners + lanes * GSI_CHANNEL_LANES * w->piece))
        return GS_OK;
    if (o->room < total) {
        free (o->memory);
        o->room = 0;
        if (!(o->memory = malloc (total)))
            return gsi_fail (GS_ERR_NOMEM, "between hosts: no memory for messages (%zu bytes)",
                             total);
        o->room = total;
    }
    at = o->memory;
    for (int i = 0; i < w->channels; i++)
        if (o->channel[i].pieces) {
            o->channel[i].memory = at;
            at += GSI_CHANNEL_LANES * w->piece;
        }
    for (int i = 0; i < w->partners; i++, at += GSI_CONTROL_BYTES)
        o->partner[i].control = at;
    w->own = at;
    return GS_OK;
}

/* ---- Channels ---- */

/* The messages on a route follow those that this end has done. */
static void find_route (const struct gsi_delivery *w, struct gsi_channel *channel)
{
    const struct gsi_node *node = &w->c->node;
    bool all = !w->call->message;

    while (node->rank[channel->place] != channel->peer)
        channel->place++;
    channel->end = channel->send ? GSI_ROUTE_SENDS : GSI_ROUTE_RECEIVES;
    channel->route = channel->send ? gsi_node_route (node, node->index, channel->place, all)
                                   : gsi_node_route (node, channel->place, node->index, all);
    channel->number = channel->posted = gsi_route_done (channel->route, channel->end) + 1;
}

static int find_partner (struct gsi_delivery *w, int peer)
{
    struct gsi_partner *partner = w->o->partner;

    for (int i = 0; i < w->partners; i++)
        if (partner[i].peer == peer)
            return i;
    partner[w->partners] = (struct gsi_partner){.peer = peer};
    return w->partners++;
}

static struct gsi_channel *find_channel (struct gsi_delivery *w, const struct gsi_message *m)
{
    const struct gsi_topo *topo = w->c->base.topo;
    struct gsi_channel *channel = w->o->channel;

    for (int i = 0; i < w->channels; i++, channel++)
        if (channel->peer == m->peer && channel->send == m->send)
            return channel;
    *channel = (struct gsi_channel){
        .peer = m->peer, .send = m->send, .head = GSI_NO_MESSAGE, .eager = GSI_NODE_EAGER_BYTES};
    if (w->c->node.shm.base && topo->node_of[m->peer] == topo->node) {
        find_route (w, channel);
    } else {
        channel->eager = GSI_EAGER_BYTES;
        channel->partner = find_partner (w, m->peer);
    }
    w->channels++;
    return channel;
}

static void make_channels (struct gsi_delivery *w)
{
    for (int i = 0; i < w->number; i++) {
        struct gsi_message *m = &w->list[i];
        struct gsi_channel *channel = find_channel (w, m);
        m->met = false;
        w->o->link[i].next = GSI_NO_MESSAGE;
        w->o->link[i].matched = false;
        if (channel->head == GSI_NO_MESSAGE)
            channel->head = channel->next = i;
        else
            w->o->link[channel->last].next = i;
        channel->last = i;
        if (m->bytes > channel->eager && !(channel->route && gsi_cma_can (w->c)))
            channel->pieces = true;
    }
}

/* ---- Headers ---- */

/* What the headers of both ends must tell: halos are exchanged by all ranks in one order. */
static uint32_t call_of (const struct gsi_delivery *w)
{
    return w->call->message ? 0 : w->call->fingerprint;
}

struct gsi_p2p_header gsi_message_header (const struct gsi_delivery *w,
                                          const struct gsi_message *m)
{
    return (struct gsi_p2p_header){.bytes = m->bytes,
                                   .at = (uint64_t) (uintptr_t) m->buf,
                                   .piece = w->piece,
                                   .dtype = (int32_t) m->dtype,
                                   .call = call_of (w)};
}

void gsi_message_match (struct gsi_delivery *w, const struct gsi_channel *channel,
                        const struct gsi_p2p_header *header, const void *data)
{
    struct gsi_message *m = &w->list[channel->head];
    struct gsi_link *link = &w->o->link[channel->head];

    link->matched = true;
    link->other = *header;
    m->met = true;
    m->other_bytes = header->bytes;
    m->other_dtype = (gs_dtype_t) header->dtype;
    if (!m->send && gsi_message_agrees (m) && m->bytes && m->bytes <= channel->eager &&
        header->call == call_of (w))
        memcpy (m->buf, data, m->bytes);
}

/*
 * On a route: posts the headers for which there is a place, and takes that of the head; not of
 * a rank that gave up before it was done with the message: its notice will come.
 */
static gs_status_t match_near (struct gsi_delivery *w, struct gsi_channel *channel)
{
    enum gsi_route_end other = channel->send ? GSI_ROUTE_RECEIVES : GSI_ROUTE_SENDS;
    struct gsi_p2p_header header;

    for (; channel->next != GSI_NO_MESSAGE;
         channel->next = w->o->link[channel->next].next, channel->posted++) {
        const struct gsi_message *m = &w->list[channel->next];
        if (gsi_fault ("messages.post"))
            return gsi_fail (GS_ERR_TRANSPORT, "a header cannot be posted");
        header = gsi_message_header (w, m);
        if (!gsi_route_put (channel->route, channel->end, channel->posted, &header, m->buf,
                            gsi_message_eager (channel, m)))
            break;
    }
    if (channel->head == GSI_NO_MESSAGE || channel->number == channel->posted ||
        w->o->link[channel->head].matched ||
        !gsi_route_get (channel->route, channel->end, channel->number, &header))
        return GS_OK;
    if (!gsi_node_revoked (&w->c->node, channel->place) ||
        gsi_route_done (channel->route, other) >= channel->number)
        gsi_message_match (w, channel, &header, gsi_route_data (channel->route, channel->number));
    return GS_OK;
}

/* The head goes from memory to memory: the receiver reads some, and is done when it has all. */
static gs_status_t advance_near (const struct gsi_delivery *w, struct gsi_channel *channel,
                                 bool *ended)
{
    const struct gsi_message *m = &w->list[channel->head];
    size_t left = m->bytes - channel->begun, n = left < PULL_BYTES ? left : PULL_BYTES;
    gs_status_t st;

    if (channel->send) {
        *ended = gsi_route_done (channel->route, GSI_ROUTE_RECEIVES) >= channel->number;
        return GS_OK;
    }
    st = gsi_cma_from (w->c, channel->place, w->o->link[channel->head].other.at + channel->begun,
                       (char *) m->buf + channel->begun, n);
    channel->begun += n;
    *ended = n == left;
    return st;
}

/* The head, whose ends have met, goes on. */
static gs_status_t advance_head (struct gsi_delivery *w, int number, bool *ended)
{
    struct gsi_channel *channel = &w->o->channel[number];
    const struct gsi_message *m = &w->list[channel->head];

    *ended = true;
    if (!gsi_message_agrees (m) || m->bytes <= channel->eager)
        return GS_OK;
    return channel->pieces ? gsi_far_advance (w, number, ended)
                           : advance_near (w, channel, ended);
}

/* Begins what can be. */
static gs_status_t advance (struct gsi_delivery *w, int number)
{
    struct gsi_channel *channel = &w->o->channel[number];
    gs_status_t st = GS_OK;
    bool ended = true;

    while (ended && channel->head != GSI_NO_MESSAGE) {
        st = channel->route ? match_near (w, channel) : gsi_far_match (w, channel);
        if (st || !w->o->link[channel->head].matched)
            return st;
        if (w->o->link[channel->head].other.call != call_of (w))
            return gsi_net_differ (w->c, channel->peer);
        if ((st = advance_head (w, number, &ended)) || !ended)
            return st;
        if (channel->route)
            gsi_route_end (channel->route, channel->end, channel->number++);
        channel->head = w->o->link[channel->head].next;
        channel->begun = channel->ended = 0;
    }
    return st;
}

/* ---- Progress ---- */

/* Fails where a rank that is waited for gave up, at whatever call. */
static gs_status_t look_for_notices (const struct gsi_delivery *w)
{
    for (int i = 0; i < w->number; i++)
        if (!w->o->link[i].matched && w->c->heard[w->list[i].peer].kind != GSI_NOTICE_NONE)
            return gsi_notice_fail (w->c, w->list[i].peer);
    return GS_OK;
}

/* One round, number [polls] from 1, of waiting; why it should end. */
static gs_status_t pause_once (struct gsi_delivery *w, unsigned polls, unsigned *spins)
{
    gs_status_t st = GS_OK;

    if (!w->requests) {
        st = gsi_node_pause (w->c, polls, spins, w->call);
    } else {
        if (gsi_net_should_look (polls, *spins, LOOK_EVERY))
            st = gsi_net_interrupted (w->c, w->call);
        gsi_net_pause (w->call, spins);
    }
    return st || !w->c->notice ? st : look_for_notices (w);
}

static gs_status_t deliver (struct gsi_delivery *w)
{
    unsigned spins = w->c->spins;
    gs_status_t st = gsi_far_begin (w);
    bool active = false;

    for (unsigned polls = 1; !st; polls++) {
        bool left = false;
        if (w->requests)
            st = gsi_far_take (w, &active);
        for (int i = 0; i < w->channels && !st; i++) {
            st = advance (w, i);
            left = left || w->o->channel[i].head != GSI_NO_MESSAGE;
        }
        if (!st && !active && !left)
            return gsi_far_end (w);
        if (st)
            return st;
        st = pause_once (w, polls, &spins);
    }
    return st;
}

gs_status_t gsi_messages (struct gsi_coll_host *c, struct gsi_message *list, int number,
                          const struct gsi_call *call)
{
    struct gsi_delivery w = {.c = c, .call = call, .list = list, .number = number};
    gs_status_t st = reserve_messages (c, number);
    bool alike = true;

    if (st)
        return st;
    w.o = c->p2p;
    make_channels (&w);
    if ((st = reserve_bytes (&w)))
        return st;
    if ((st = deliver (&w))) {
        c->unfinished = true;
        gsi_node_revoke (&c->node, st, c->base.culprit);
        return st;
    }
    for (int i = 0; i < number; i++) {
        if (!gsi_message_agrees (&list[i]))
            alike = false;
        else if (list[i].send) /* headers are not counted */
            gsi_coll_sent (&c->base, list[i].peer, list[i].bytes);
    }
    return alike ? GS_OK : gsi_fail (GS_ERR_MISMATCH, "the ends of a message disagree");
}
