/* SPDX-License-Identifier: BSD-3-Clause */
/* messages_far - messages of which the network carries the tickets, as letters, or what is long,
 * in pieces. */
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

static int lane_slot (const struct gsi_delivery *w, int chain, int lane)
{
    return w->letters + w->partners + GSI_POST_LANES * chain + lane;
}

static size_t piece_of (const struct gsi_delivery *w, int i)
{
    size_t other = w->o->link[i].other.piece;

    return w->piece < other ? w->piece : other;
}

/* The head goes in pieces. */
gs_status_t gsi_far_advance (struct gsi_delivery *w, int number, bool *ended)
{
    struct gsi_chain *chain = &w->o->chain[number];
    const struct gsi_message *m = &w->list[chain->head];
    size_t piece = piece_of (w, chain->head), pieces = (m->bytes + piece - 1) / piece;
    gs_status_t st = GS_OK;

    while (chain->begun < pieces && !chain->busy[chain->begun % GSI_POST_LANES] && !st) {
        int lane = (int) (chain->begun % GSI_POST_LANES);
        size_t at = chain->begun * piece, n = m->bytes - at < piece ? m->bytes - at : piece;
        char *memory = chain->memory + (size_t) lane * w->piece;
        if (chain->send)
            memcpy (memory, (const char *) m->buf + at, n);
        st = post (w, chain->send, memory, n, m->peer, GSI_TAG_MESSAGE,
                   lane_slot (w, number, lane));
        chain->busy[lane] = true;
        chain->begun++;
    }
    *ended = chain->ended == pieces;
    return st;
}

/* A piece has left, or has come. */
static void piece_ended (struct gsi_delivery *w, int number, int lane)
{
    struct gsi_chain *chain = &w->o->chain[number];
    const struct gsi_message *m = &w->list[chain->head];
    size_t piece = piece_of (w, chain->head), k, at, n;

    if (!chain->send) {
        k = chain->begun - 1; /* the newest in this lane: of two, one or the other */
        while ((int) (k % GSI_POST_LANES) != lane)
            k--;
        at = k * piece;
        n = m->bytes - at < piece ? m->bytes - at : piece;
        memcpy ((char *) m->buf + at, chain->memory + (size_t) lane * w->piece, n);
    }
    chain->busy[lane] = false;
    chain->ended++;
}

/* ---- Letters ---- */

/* The notes of a rank, of the messages that this call is one of. */
static struct gsi_notes *notes_of (const struct gsi_delivery *w, int peer)
{
    return w->o->notes + GSI_ROUTE_ENDS * (w->call->message ? peer : w->c->size + peer);
}

static gs_status_t put_by (struct gsi_delivery *w, struct gsi_partner *partner)
{
    if (!partner->came)
        return GS_OK;
    partner->came = false;
    return gsi_letter_read (partner->letter, notes_of (w, partner->peer));
}

gs_status_t gsi_far_end (struct gsi_delivery *w)
{
    gs_status_t st = GS_OK;

    for (int p = 0; p < w->partners && !st; p++)
        st = put_by (w, &w->o->partner[p]);
    return st;
}

gs_status_t gsi_far_meet (struct gsi_delivery *w, struct gsi_chain *chain)
{
    enum gsi_route_end other = chain->send ? GSI_ROUTE_RECEIVES : GSI_ROUTE_SENDS;
    struct gsi_partner *partner = &w->o->partner[chain->partner];
    struct gsi_ticket ticket;
    struct gsi_note *note;
    const char *data;
    gs_status_t st;

    if (chain->head == GSI_POST_NONE || w->o->link[chain->head].heard)
        return GS_OK;
    if ((note = gsi_notes_take (notes_of (w, chain->peer) + other))) {
        gsi_message_hear (w, chain, &note->ticket, note->data);
        free (note);
        return GS_OK;
    }
    if (partner->came && gsi_letter_take (partner->letter, other, &ticket, &data)) {
        gsi_message_hear (w, chain, &ticket, data);
        return GS_OK;
    }
    if (partner->coming)
        return GS_OK;
    if ((st = put_by (w, partner)))
        return st;
    partner->coming = true;
    return post (w, false, partner->letter, GSI_LETTER_BYTES, chain->peer, GSI_TAG_LETTER,
                 w->letters + chain->partner);
}

/* A letter that is written: from w->own on. */
struct sheet {
    size_t used; /* 0: none has been begun */
    int peer;
};

static gs_status_t post_letter (struct gsi_delivery *w, struct sheet *sheet)
{
    gs_status_t st;

    if (!sheet->used)
        return GS_OK;
    st = post (w, true, w->own, sheet->used, sheet->peer, GSI_TAG_LETTER, w->letters++);
    w->own += sheet->used;
    sheet->used = 0;
    return st;
}

/* Tells the peer of a chain's messages; letters are in order, and so are these. */
static gs_status_t write_to (struct gsi_delivery *w, const struct gsi_chain *chain,
                             struct sheet *sheet)
{
    gs_status_t st = GS_OK;

    for (int i = chain->head; i != GSI_POST_NONE && !st; i = w->o->link[i].next) {
        const struct gsi_message *m = &w->list[i];
        struct gsi_ticket ticket = gsi_message_ticket (w, m);
        size_t n = gsi_message_enclosed (chain, m);
        if (sheet->used + gsi_letter_needs (n) > GSI_LETTER_BYTES)
            st = post_letter (w, sheet);
        if (!sheet->used)
            sheet->used = gsi_letter_begin (w->own);
        sheet->used = gsi_letter_append (w->own, sheet->used, &ticket, chain->send, m->buf, n);
    }
    return st;
}

/* Then come the requests for letters of others, and for pieces. */
gs_status_t gsi_far_begin (struct gsi_delivery *w)
{
    gs_status_t st = GS_OK;

    for (int p = 0; p < w->partners && !st; p++) {
        struct sheet sheet = {.peer = w->o->partner[p].peer};
        for (int k = 0; k < w->chains && !st; k++)
            if (!w->o->chain[k].route && w->o->chain[k].partner == p)
                st = write_to (w, &w->o->chain[k], &sheet);
        st = st ? st : post_letter (w, &sheet);
    }
    w->requests = w->letters + w->partners + GSI_POST_LANES * w->lanes;
    for (int i = w->letters; i < w->requests; i++)
        w->c->net->ops->make_void (w->o->batch, i);
    return st;
}

/* Whom request [i] is with; -1 for a letter of this rank's. */
static int peer_of (const struct gsi_delivery *w, int i)
{
    int k = i - w->letters, lane = k - w->partners;

    if (lane >= 0)
        return w->o->chain[lane / GSI_POST_LANES].peer;
    return k >= 0 ? w->o->partner[k].peer : -1;
}

gs_status_t gsi_far_take (struct gsi_delivery *w, bool *active)
{
    struct gsi_post_office *o = w->o;
    struct gsi_net *net = w->c->net;
    int ended = 0, which = -1;
    int rc = net->ops->test_some (net, o->batch, w->requests, &ended, o->index, &which);

    *active = ended >= 0;
    if (rc)
        return gsi_transfer_fail (w->c,
                                  which >= 0 ? "transfer" : net->ops->words[GSI_NET_TEST_SOME],
                                  which >= 0 ? peer_of (w, which) : -1, rc);
    for (int i = 0; i < ended; i++) {
        int k = o->index[i] - w->letters, lane = k - w->partners;
        if (lane >= 0)
            piece_ended (w, lane / GSI_POST_LANES, lane % GSI_POST_LANES);
        else if (k >= 0) {
            o->partner[k].coming = false;
            o->partner[k].came = true;
        }
    }
    return GS_OK;
}
