/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * messages - between pairs of ranks, any number at a time.
 *
 * Both ends of a message send the other one a ticket: how long it is, and of what. So both know
 * that the other has come, and whether they agree, before anything is written. What is short goes
 * with the sender's ticket. The messages of a pair in one direction form a chain, whose long ones
 * go one after the other; none waits for another chain.
 *
 * Within a node tickets are laid out in shared memory (route.h), and of what is long the receiver
 * reads the sender's memory. Else the network carries the tickets, those for a rank in one letter
 * (control_messages.h), and what is long in pieces, through memory that each chain has of its
 * own.
 */
#include "host/messages.h"

#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/status.h"
#include "host/cma.h"

#define MOST_PIECE  ((size_t) 256 << 10) /* bytes of a piece, */
#define LEAST_PIECE ((size_t) 4 << 10)   /* where there are many chains */
#define LANES_BYTES ((size_t) 64 << 20)  /* of all chains, if their pieces can be small enough */
#define PULL_BYTES  ((size_t) 4 << 20)   /* between two looks at the other chains */
#define LOOK_EVERY  64u                  /* polls between looks at the clock */

/* ---- Memory ---- */

static void drop_arrays (const struct gsi_coll_host *c, struct gsi_post_office *o)
{
    if (c->unfinished)
        c->net->ops->keep (o->batch);
    else
        free (o->batch);
    free (o->index);
    free (o->chain);
    free (o->link);
    free (o->partner);
    o->most = 0;
}

void gsi_messages_close (struct gsi_coll_host *c)
{
    struct gsi_post_office *o = c->post;

    if (!o)
        return;
    if (c->unfinished)
        c->net->ops->keep (o->memory);
    else
        free (o->memory);
    drop_arrays (c, o);
    for (int i = 0; o->notes && i < 2 * c->size * GSI_ROUTE_ENDS; i++)
        gsi_notes_free (&o->notes[i]);
    free (o->notes);
    free (o);
    c->post = NULL;
}

static bool make_arrays (const struct gsi_net *net, struct gsi_post_office *o, size_t n)
{
    o->batch = gsi_net_batch (net, (int) ((2 + GSI_POST_LANES) * n));
    o->index = calloc ((2 + GSI_POST_LANES) * n, sizeof (*o->index));
    o->chain = calloc (n, sizeof (*o->chain));
    o->link = calloc (n, sizeof (*o->link));
    o->partner = calloc (n, sizeof (*o->partner));
    o->most = (int) n;
    return o->batch && o->index && o->chain && o->link && o->partner;
}

/* Room for as many messages; between calls, when the network holds nothing. */
static gs_status_t reserve_messages (struct gsi_coll_host *c, int number)
{
    size_t notes = 2 * (size_t) c->size * GSI_ROUTE_ENDS;
    struct gsi_post_office *o = c->post;

    if (o && o->most >= number)
        return GS_OK;
    if (!o && !gsi_fault ("messages.memory") && (o = c->post = calloc (1, sizeof (*o))))
        o->notes = calloc (notes, sizeof (*o->notes));
    if (o)
        drop_arrays (c, o);
    if (o && o->notes && make_arrays (c->net, o, number > 64 ? (size_t) number : 64))
        return GS_OK;
    gsi_messages_close (c);
    return gsi_fail (GS_ERR_NOMEM, "between hosts: no memory for %d messages", number);
}

/* What the letters of this rank can have, each with room for the last ticket that it has not. */
static size_t letters_bytes (const struct gsi_delivery *w)
{
    size_t bytes = 0;

    for (int k = 0; k < w->chains; k++) {
        const struct gsi_chain *chain = &w->o->chain[k];
        for (int i = chain->head; !chain->route && i != GSI_POST_NONE; i = w->o->link[i].next)
            bytes +=
                sizeof (uint64_t) + gsi_letter_needs (gsi_message_enclosed (chain, &w->list[i]));
    }
    return bytes;
}

/* Memory for letters, and for lanes of the chains that need them. */
static gs_status_t reserve_bytes (struct gsi_delivery *w)
{
    struct gsi_post_office *o = w->o;
    size_t partners = (size_t) w->partners * GSI_LETTER_BYTES, lanes = 0, total;
    char *at;

    for (int i = 0; i < w->chains; i++)
        lanes += o->chain[i].pieces;
    w->lanes = lanes ? w->chains : 0;
    w->piece = lanes ? LANES_BYTES / (GSI_POST_LANES * lanes) / 64 * 64 : MOST_PIECE;
    w->piece = w->piece > MOST_PIECE    ? MOST_PIECE
               : w->piece < LEAST_PIECE ? LEAST_PIECE
                                        : w->piece;
    if (!(total = letters_bytes (w) + partners + lanes * GSI_POST_LANES * w->piece))
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
    for (int i = 0; i < w->chains; i++)
        if (o->chain[i].pieces) {
            o->chain[i].memory = at;
            at += GSI_POST_LANES * w->piece;
        }
    for (int i = 0; i < w->partners; i++, at += GSI_LETTER_BYTES)
        o->partner[i].letter = at;
    w->own = at;
    return GS_OK;
}

/* ---- Chains ---- */

/* The messages on a route follow those that this end has done. */
static void find_route (const struct gsi_delivery *w, struct gsi_chain *chain)
{
    const struct gsi_node *node = &w->c->node;
    bool all = !w->call->message;

    while (node->rank[chain->place] != chain->peer)
        chain->place++;
    chain->end = chain->send ? GSI_ROUTE_SENDS : GSI_ROUTE_RECEIVES;
    chain->route = chain->send ? gsi_node_route (node, node->index, chain->place, all)
                               : gsi_node_route (node, chain->place, node->index, all);
    chain->number = chain->laid = gsi_route_done (chain->route, chain->end) + 1;
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

static struct gsi_chain *find_chain (struct gsi_delivery *w, const struct gsi_message *m)
{
    const struct gsi_topo *topo = w->c->base.topo;
    struct gsi_chain *chain = w->o->chain;

    for (int i = 0; i < w->chains; i++, chain++)
        if (chain->peer == m->peer && chain->send == m->send)
            return chain;
    *chain = (struct gsi_chain){
        .peer = m->peer, .send = m->send, .head = GSI_POST_NONE, .most = GSI_SHORT_BYTES};
    if (w->c->node.shm.base && topo->node_of[m->peer] == topo->node) {
        find_route (w, chain);
    } else {
        chain->most = GSI_ENCLOSED_BYTES;
        chain->partner = find_partner (w, m->peer);
    }
    w->chains++;
    return chain;
}

static void make_chains (struct gsi_delivery *w)
{
    for (int i = 0; i < w->number; i++) {
        struct gsi_message *m = &w->list[i];
        struct gsi_chain *chain = find_chain (w, m);
        m->met = false;
        w->o->link[i].next = GSI_POST_NONE;
        w->o->link[i].heard = false;
        if (chain->head == GSI_POST_NONE)
            chain->head = chain->next = i;
        else
            w->o->link[chain->last].next = i;
        chain->last = i;
        if (m->bytes > chain->most && !(chain->route && gsi_cma_can (w->c)))
            chain->pieces = true;
    }
}

/* ---- Tickets ---- */

struct gsi_ticket gsi_message_ticket (const struct gsi_delivery *w, const struct gsi_message *m)
{
    return (struct gsi_ticket){.bytes = m->bytes,
                               .at = (uint64_t) (uintptr_t) m->buf,
                               .piece = w->piece,
                               .dtype = m->dtype};
}

void gsi_message_hear (struct gsi_delivery *w, const struct gsi_chain *chain,
                       const struct gsi_ticket *ticket, const void *data)
{
    struct gsi_message *m = &w->list[chain->head];
    struct gsi_link *link = &w->o->link[chain->head];

    link->heard = true;
    link->other = *ticket;
    m->met = true;
    m->other_bytes = ticket->bytes;
    m->other_dtype = (gs_dtype_t) ticket->dtype;
    if (!m->send && gsi_message_agrees (m) && m->bytes && m->bytes <= chain->most)
        memcpy (m->buf, data, m->bytes);
}

/*
 * On a route: lays the tickets out for which there is a place, and takes that of the head; not of
 * a rank that gave up before it was done with the message: its notice will come.
 */
static gs_status_t meet_near (struct gsi_delivery *w, struct gsi_chain *chain)
{
    enum gsi_route_end other = chain->send ? GSI_ROUTE_RECEIVES : GSI_ROUTE_SENDS;
    struct gsi_ticket ticket;

    for (; chain->next != GSI_POST_NONE;
         chain->next = w->o->link[chain->next].next, chain->laid++) {
        const struct gsi_message *m = &w->list[chain->next];
        if (gsi_fault ("messages.post"))
            return gsi_fail (GS_ERR_TRANSPORT, "a ticket cannot be laid out");
        ticket = gsi_message_ticket (w, m);
        if (!gsi_route_put (chain->route, chain->end, chain->laid, &ticket, m->buf,
                            gsi_message_enclosed (chain, m)))
            break;
    }
    if (chain->head == GSI_POST_NONE || chain->number == chain->laid ||
        w->o->link[chain->head].heard ||
        !gsi_route_get (chain->route, chain->end, chain->number, &ticket))
        return GS_OK;
    if (!gsi_node_revoked (&w->c->node, chain->place) ||
        gsi_route_done (chain->route, other) >= chain->number)
        gsi_message_hear (w, chain, &ticket, gsi_route_data (chain->route, chain->number));
    return GS_OK;
}

/* The head goes from memory to memory: the receiver reads some, and is done when it has all. */
static gs_status_t advance_near (const struct gsi_delivery *w, struct gsi_chain *chain,
                                 bool *ended)
{
    const struct gsi_message *m = &w->list[chain->head];
    size_t left = m->bytes - chain->begun, n = left < PULL_BYTES ? left : PULL_BYTES;
    gs_status_t st;

    if (chain->send) {
        *ended = gsi_route_done (chain->route, GSI_ROUTE_RECEIVES) >= chain->number;
        return GS_OK;
    }
    st = gsi_cma_from (w->c, chain->place, w->o->link[chain->head].other.at + chain->begun,
                       (char *) m->buf + chain->begun, n);
    chain->begun += n;
    *ended = n == left;
    return st;
}

/* The head, whose ends have met, goes on. */
static gs_status_t advance_head (struct gsi_delivery *w, int number, bool *ended)
{
    struct gsi_chain *chain = &w->o->chain[number];
    const struct gsi_message *m = &w->list[chain->head];

    *ended = true;
    if (!gsi_message_agrees (m) || m->bytes <= chain->most)
        return GS_OK;
    return chain->pieces ? gsi_far_advance (w, number, ended) : advance_near (w, chain, ended);
}

/* Begins what can be. */
static gs_status_t advance (struct gsi_delivery *w, int number)
{
    struct gsi_chain *chain = &w->o->chain[number];
    gs_status_t st = GS_OK;
    bool ended = true;

    while (ended && chain->head != GSI_POST_NONE) {
        st = chain->route ? meet_near (w, chain) : gsi_far_meet (w, chain);
        if (st || !w->o->link[chain->head].heard || (st = advance_head (w, number, &ended)) ||
            !ended)
            return st;
        if (chain->route)
            gsi_route_end (chain->route, chain->end, chain->number++);
        chain->head = w->o->link[chain->head].next;
        chain->begun = chain->ended = 0;
    }
    return st;
}

/* ---- Progress ---- */

/* Fails where a rank that is waited for gave up, at whatever call. */
static gs_status_t look_for_notices (const struct gsi_delivery *w)
{
    for (int i = 0; i < w->number; i++)
        if (!w->o->link[i].heard && w->c->heard[w->list[i].peer].kind != GSI_NOTICE_NONE)
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
        for (int i = 0; i < w->chains && !st; i++) {
            st = advance (w, i);
            left = left || w->o->chain[i].head != GSI_POST_NONE;
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
    w.o = c->post;
    make_chains (&w);
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
        else if (list[i].send) /* tickets are not counted */
            gsi_coll_sent (&c->base, list[i].peer, list[i].bytes);
    }
    return alike ? GS_OK : gsi_fail (GS_ERR_MISMATCH, "the ends of a message disagree");
}
