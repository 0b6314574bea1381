/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * messages - between pairs of ranks, any number at a time.
 *
 * Both ends of a message send the other one a ticket: how long it is, and of what. So both know
 * that the other has come, and whether they agree, before anything is written. What is short goes
 * with the sender's ticket. Of what is long, those of a pair in one direction form a chain and go
 * one after the other, in pieces; each chain has memory of its own, so that none waits for
 * another. Within a node the receiver reads from the sender's memory, and then tells it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/record.h"
#include "base/status.h"
#include "mpi/coll_mpi.h"
#include "mpi/guest.h"
#include "mpi/pull.h"

#define SHORT_BYTES 2048u                /* what goes with a ticket */
#define MOST_PIECE  ((size_t) 256 << 10) /* bytes of a piece, */
#define LEAST_PIECE ((size_t) 4 << 10)   /* where there are many chains */
#define LANES       2                    /* pieces of a chain that are on their way */
#define LANES_BYTES ((size_t) 64 << 20)  /* of all chains, if their pieces can be small enough */
#define PULL_BYTES  ((size_t) 4 << 20)   /* between two looks at the other chains */
#define LOOK_EVERY  64u                  /* polls between looks at the clock */
#define NONE        (-1)

/* What the ends of a message tell each other. */
struct ticket {
    uint64_t bytes, at; /* address on the sender */
    uint64_t piece;     /* bytes that this end has room for */
    int64_t dtype;
    char data[SHORT_BYTES];
};
#define TICKET_BYTES offsetof (struct ticket, data)

/* The long messages of a pair in one direction. */
struct chain {
    int peer, head, last; /* numbers of messages */
    bool send, near;
    size_t begun, ended; /* pieces of the head, or bytes that were read */
    char *memory;        /* [LANES * piece] */
    bool busy[LANES];
};

/* A message's place in its chain. */
struct link {
    int chain, next;
    bool heard; /* the other end's ticket is here */
};

struct gsi_post_office {
    char *memory; /* everything that MPI may hold is in here: tickets, then lanes */
    size_t room;
    MPI_Request *request; /* [2 * most messages + LANES * most chains] */
    MPI_Status *status;
    int *index;
    struct chain *chain;
    struct link *link;
    int most; /* messages, and so chains */
};

/* A call. */
struct work {
    struct gsi_coll_mpi *c;
    struct gsi_post_office *o;
    const struct gsi_call *call;
    struct gsi_message *list;
    int number, chains, requests;
    size_t piece;
    struct ticket *own, *other; /* [number] */
};

/* ---- Memory ---- */

static void drop_arrays (struct gsi_post_office *o)
{
    free (o->status);
    free (o->index);
    free (o->chain);
    free (o->link);
}

void gsi_messages_close (struct gsi_coll_mpi *c)
{
    struct gsi_post_office *o = c->post;

    if (!o)
        return;
    if (c->unfinished) {
        gsi_guest_keep (o->memory);
        gsi_guest_keep (o->request);
    } else {
        free (o->memory);
        free (o->request);
    }
    drop_arrays (o);
    free (o);
    c->post = NULL;
}

/* Room for as many messages; between calls, when MPI holds nothing. */
static gs_status_t reserve (struct gsi_coll_mpi *c, int number)
{
    struct gsi_post_office *o = c->post;
    size_t n = (size_t) (number > 64 ? number : 64);

    if (o && o->most >= number)
        return GS_OK;
    gsi_messages_close (c);
    if (!gsi_fault ("messages.memory") && (o = c->post = calloc (1, sizeof (*o)))) {
        o->most = (int) n;
        o->request = calloc ((2 + LANES) * n, sizeof (*o->request));
        o->status = calloc ((2 + LANES) * n, sizeof (*o->status));
        o->index = calloc ((2 + LANES) * n, sizeof (*o->index));
        o->chain = calloc (n, sizeof (*o->chain));
        o->link = calloc (n, sizeof (*o->link));
        if (o->request && o->status && o->index && o->chain && o->link)
            return GS_OK;
        gsi_messages_close (c);
    }
    return gsi_fail (GS_ERR_NOMEM, "transport mpi: no memory for %d messages", number);
}

/* Memory for tickets and lanes. */
static gs_status_t reserve_bytes (struct work *w)
{
    struct gsi_post_office *o = w->o;
    size_t tickets = 2 * (size_t) w->number * sizeof (struct ticket), lanes = 0, total;

    for (int i = 0; i < w->chains; i++)
        lanes += !o->chain[i].near;
    w->piece = lanes ? LANES_BYTES / (LANES * lanes) / 64 * 64 : MOST_PIECE;
    w->piece = w->piece > MOST_PIECE    ? MOST_PIECE
               : w->piece < LEAST_PIECE ? LEAST_PIECE
                                        : w->piece;
    total = tickets + lanes * LANES * w->piece;
    if (o->room < total) {
        free (o->memory);
        o->room = 0;
        if (!(o->memory = malloc (total)))
            return gsi_fail (GS_ERR_NOMEM, "transport mpi: no memory for messages (%zu bytes)",
                             total);
        o->room = total;
    }
    w->own = (struct ticket *) (void *) o->memory;
    w->other = w->own + w->number;
    lanes = 0;
    for (int i = 0; i < w->chains; i++)
        if (!o->chain[i].near)
            o->chain[i].memory = o->memory + tickets + lanes++ * LANES * w->piece;
    return GS_OK;
}

/* ---- Chains ---- */

static int find_chain (struct work *w, const struct gsi_message *m)
{
    const struct gsi_team *team = w->c->base.team;
    struct chain *chain = w->o->chain;

    for (int i = 0; i < w->chains; i++)
        if (chain[i].peer == m->peer && chain[i].send == m->send)
            return i;
    chain[w->chains] =
        (struct chain){.peer = m->peer,
                       .send = m->send,
                       .head = NONE,
                       .near = gsi_pull_can (w->c) && team->node_of[m->peer] == team->node};
    return w->chains++;
}

static void make_chains (struct work *w)
{
    for (int i = 0; i < w->number; i++) {
        struct link *link = &w->o->link[i];
        struct chain *chain;
        *link = (struct link){.chain = NONE, .next = NONE};
        if (w->list[i].bytes <= SHORT_BYTES)
            continue;
        link->chain = find_chain (w, &w->list[i]);
        chain = &w->o->chain[link->chain];
        if (chain->head == NONE)
            chain->head = i;
        else
            w->o->link[chain->last].next = i;
        chain->last = i;
    }
}

static int tag_of (const struct work *w, enum gsi_tag tag)
{
    return (int) tag + (w->call->message ? 0 : GSI_TAG_ALL);
}

static gs_status_t post (struct work *w, bool send, void *data, size_t bytes, int peer,
                         enum gsi_tag tag, int slot)
{
    MPI_Request *request = &w->o->request[slot];
    int rc;

    if (gsi_fault ("messages.post"))
        rc = MPI_ERR_OTHER;
    else if (send)
        rc = MPI_Isend (data, (int) bytes, MPI_BYTE, peer, tag_of (w, tag), w->c->comm, request);
    else
        rc = MPI_Irecv (data, (int) bytes, MPI_BYTE, peer, tag_of (w, tag), w->c->comm, request);
    return rc ? gsi_guest_fail (send ? "MPI_Isend" : "MPI_Irecv", rc) : GS_OK;
}

static int lane_slot (const struct work *w, int chain, int lane)
{
    return 2 * w->number + LANES * chain + lane;
}

static bool agree (const struct gsi_message *m)
{
    return m->bytes == m->other_bytes && m->dtype == m->other_dtype;
}

static size_t piece_of (const struct work *w, int i)
{
    return w->own[i].piece < w->other[i].piece ? w->own[i].piece : w->other[i].piece;
}

/*
 * The head goes from memory to memory: the receiver reads some, and at the end tells the sender
 * by a message without content. Returns whether it has ended.
 */
static gs_status_t advance_near (struct work *w, int number, bool *ended)
{
    struct chain *chain = &w->o->chain[number];
    const struct gsi_message *m = &w->list[chain->head];
    const struct gsi_node *node = &w->c->node;
    size_t left = m->bytes - chain->begun, n = left < PULL_BYTES ? left : PULL_BYTES;
    int slot = lane_slot (w, number, 0), i = 0;
    gs_status_t st;

    *ended = chain->ended;
    if (chain->send) {
        if (chain->begun)
            return GS_OK;
        chain->begun = 1;
        return post (w, false, NULL, 0, m->peer, GSI_TAG_MESSAGE, slot);
    }
    if (!left)
        return GS_OK;
    while (node->rank[i] != m->peer)
        i++;
    if ((st = gsi_pull_from (w->c, i, w->other[chain->head].at + chain->begun,
                             (char *) m->buf + chain->begun, n)))
        return st;
    chain->begun += n;
    return n < left ? GS_OK : post (w, true, NULL, 0, m->peer, GSI_TAG_MESSAGE, slot);
}

/* The head goes in pieces. */
static gs_status_t advance_far (struct work *w, int number, bool *ended)
{
    struct chain *chain = &w->o->chain[number];
    const struct gsi_message *m = &w->list[chain->head];
    size_t piece = piece_of (w, chain->head), pieces = (m->bytes + piece - 1) / piece;
    gs_status_t st = GS_OK;

    while (chain->begun < pieces && !chain->busy[chain->begun % LANES] && !st) {
        int lane = (int) (chain->begun % LANES);
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

/* Begins what can be. */
static gs_status_t advance (struct work *w, int number)
{
    struct chain *chain = &w->o->chain[number];
    gs_status_t st = GS_OK;
    bool ended = true;

    while (ended && chain->head != NONE && w->o->link[chain->head].heard && !st) {
        if (agree (&w->list[chain->head]))
            st = chain->near ? advance_near (w, number, &ended) : advance_far (w, number, &ended);
        if (!ended)
            break;
        chain->head = w->o->link[chain->head].next;
        chain->begun = chain->ended = 0;
    }
    return st;
}

/* A piece has left, or has come. */
static void piece_ended (struct work *w, int number, int lane)
{
    struct chain *chain = &w->o->chain[number];
    const struct gsi_message *m = &w->list[chain->head];
    size_t piece = piece_of (w, chain->head), k, at, n;

    if (!chain->near && !chain->send) {
        k = chain->begun - 1; /* the newest in this lane: of two, one or the other */
        while ((int) (k % LANES) != lane)
            k--;
        at = k * piece;
        n = m->bytes - at < piece ? m->bytes - at : piece;
        memcpy ((char *) m->buf + at, chain->memory + (size_t) lane * w->piece, n);
    }
    chain->busy[lane] = false;
    chain->ended++;
}

/* ---- Tickets ---- */

static void hear (struct work *w, int i)
{
    struct gsi_message *m = &w->list[i];
    const struct ticket *ticket = &w->other[i];

    w->o->link[i].heard = true;
    m->met = true;
    m->other_bytes = ticket->bytes;
    m->other_dtype = (gs_dtype_t) ticket->dtype;
    if (!m->send && agree (m) && m->bytes && m->bytes <= SHORT_BYTES)
        memcpy (m->buf, ticket->data, m->bytes);
}

/* Tickets of each pair in one direction are in order, and so are matched. */
static gs_status_t post_tickets (struct work *w)
{
    gs_status_t st = GS_OK;

    for (int i = 0; i < w->number && !st; i++)
        st = post (w, false, &w->other[i], sizeof (w->other[i]), w->list[i].peer,
                   w->list[i].send ? GSI_TAG_WANT : GSI_TAG_OFFER, w->number + i);
    for (int i = 0; i < w->number && !st; i++) {
        const struct gsi_message *m = &w->list[i];
        struct ticket *own = &w->own[i];
        size_t n = m->send && m->bytes <= SHORT_BYTES ? m->bytes : 0;
        own->bytes = m->bytes;
        own->at = (uint64_t) (uintptr_t) m->buf;
        own->piece = w->piece;
        own->dtype = m->dtype;
        if (n)
            memcpy (own->data, m->buf, n);
        st = post (w, true, own, TICKET_BYTES + n, m->peer,
                   m->send ? GSI_TAG_OFFER : GSI_TAG_WANT, i);
    }
    return st;
}

/* ---- Progress ---- */

/* Takes what MPI has ended; [active] is whether there was anything. */
static gs_status_t take (struct work *w, bool *active)
{
    struct gsi_post_office *o = w->o;
    int ended = 0, rc = MPI_Testsome (w->requests, o->request, &ended, o->index, o->status);

    *active = ended != MPI_UNDEFINED;
    for (int i = 0; rc == MPI_ERR_IN_STATUS && i < ended; i++)
        if (o->status[i].MPI_ERROR != MPI_SUCCESS)
            return gsi_guest_fail ("transfer", o->status[i].MPI_ERROR);
    if (rc)
        return gsi_guest_fail ("MPI_Testsome", rc);
    for (int i = 0; *active && i < ended; i++) {
        int slot = o->index[i], lane = slot - 2 * w->number;
        if (lane >= 0)
            piece_ended (w, lane / LANES, lane % LANES);
        else if (slot >= w->number)
            hear (w, slot - w->number);
    }
    return GS_OK;
}

/* Whether the wait must end: also where a rank that is waited for gave up, at whatever call. */
static gs_status_t interrupted (struct work *w)
{
    gs_status_t st = gsi_p2p_interrupted (w->c, w->call);

    for (int i = 0; i < w->number && w->c->notice && !st; i++)
        if (!w->o->link[i].heard && w->c->heard[w->list[i].peer].kind != GSI_NOTICE_NONE)
            st = gsi_notice_fail (w->c, w->list[i].peer);
    return st;
}

static gs_status_t carry (struct work *w)
{
    unsigned spins = w->c->spins;
    gs_status_t st = post_tickets (w);
    bool active = true;

    for (unsigned polls = 1; !st; polls++) {
        bool left = false;
        st = take (w, &active);
        for (int i = 0; i < w->chains && !st; i++) {
            st = advance (w, i);
            left = left || w->o->chain[i].head != NONE;
        }
        if (st || (!active && !left))
            return st;
        if (gsi_p2p_should_look (polls, spins, LOOK_EVERY))
            st = interrupted (w);
        gsi_p2p_pause (w->call, &spins);
    }
    return st;
}

gs_status_t gsi_messages (struct gsi_coll_mpi *c, struct gsi_message *list, int number,
                          const struct gsi_call *call)
{
    struct work w = {.c = c, .call = call, .list = list, .number = number};
    gs_status_t st = reserve (c, number);

    if (st)
        return st;
    w.o = c->post;
    make_chains (&w);
    if ((st = reserve_bytes (&w)))
        return st;
    w.requests = 2 * number + LANES * w.chains;
    for (int i = 0; i < w.requests; i++)
        w.o->request[i] = MPI_REQUEST_NULL;
    for (int i = 0; i < number; i++)
        list[i].met = false;
    if ((st = carry (&w))) {
        c->unfinished = true;
        gsi_node_revoke (&c->node, st, c->culprit);
        return st;
    }
    for (int i = 0; i < number; i++) /* tickets are not counted */
        if (list[i].send && agree (&list[i]))
            gsi_coll_sent (&c->base, list[i].peer, list[i].bytes);
    for (int i = 0; i < number; i++)
        if (!agree (&list[i]))
            return gsi_fail (GS_ERR_MISMATCH, "the ends of a message disagree");
    return GS_OK;
}
