/* SPDX-License-Identifier: BSD-3-Clause */
/* messages - what messages*.c share: a call that carries messages, and what stays between calls.
 */
#ifndef GS_HOST_MESSAGES_H
#define GS_HOST_MESSAGES_H

#include "host/coll_host.h"
#include "host/control_messages.h"
#include "host/route.h"

#define GSI_POST_LANES 2    /* pieces of a chain that are on their way */
#define GSI_POST_NONE  (-1) /* no message */

/* A rank of another node. */
struct gsi_partner {
    int peer;
    char *letter; /* [GSI_LETTER_BYTES] that comes, */
    bool coming;  /* if this rank waits for one; */
    bool came;    /* one is there */
};

/* The messages of a pair in one direction. */
struct gsi_chain {
    int peer, head, last; /* numbers of messages in the list */
    bool send, pieces;    /* messages carry what is long */
    size_t begun, ended;  /* pieces of the head, or bytes that were read */
    char *memory;         /* (pieces) [GSI_POST_LANES * piece] */
    bool busy[GSI_POST_LANES];

    size_t most;             /* bytes that go with a ticket */
    int partner;             /* (no route) which of them the peer is */
    struct gsi_route *route; /* NULL: letters have the tickets */
    enum gsi_route_end end;  /* of it, that this rank is */
    int place;               /* of the peer on the node */
    int next;                /* message whose ticket is to be laid out, or GSI_POST_NONE */
    uint64_t number, laid;   /* on the route: of the head, and of that message */
};

/* A message's place in its chain. */
struct gsi_link {
    int next;
    bool heard; /* the other end's ticket is here: */
    struct gsi_ticket other;
};

struct gsi_post_office {
    char *memory; /* everything that the network may hold is in here: letters, then lanes */
    size_t room;
    void *batch; /* [(2 + GSI_POST_LANES) * most] */
    int *index;
    struct gsi_chain *chain;
    struct gsi_link *link;
    struct gsi_partner *partner;
    int most;                /* messages, and so chains, partners and letters */
    struct gsi_notes *notes; /* [2 * size] by end: of messages, and of those of all ranks */
};

/* A call. */
struct gsi_delivery {
    struct gsi_coll_host *c;
    struct gsi_post_office *o;
    const struct gsi_call *call;
    struct gsi_message *list;
    int number, chains, partners, letters;
    int lanes, requests; /* chains that requests are kept for, if one has lanes; all requests */
    size_t piece;
    char *own; /* the letters of this rank */
};

static inline bool gsi_message_agrees (const struct gsi_message *m)
{
    return m->bytes == m->other_bytes && m->dtype == m->other_dtype;
}

/* What goes with a ticket. */
static inline size_t gsi_message_enclosed (const struct gsi_chain *chain,
                                           const struct gsi_message *m)
{
    return m->send && m->bytes <= chain->most ? m->bytes : 0;
}

/* The ticket of [m]. */
struct gsi_ticket gsi_message_ticket (const struct gsi_delivery *w, const struct gsi_message *m);

/* The other end's ticket of the head has come, with [data]. */
void gsi_message_hear (struct gsi_delivery *w, const struct gsi_chain *chain,
                       const struct gsi_ticket *ticket, const void *data);

/* messages_far.c: what the network carries. Begins a call: the letters of this rank. */
gs_status_t gsi_far_begin (struct gsi_delivery *w);

/* Takes what has ended there; [active] is whether there was anything. */
gs_status_t gsi_far_take (struct gsi_delivery *w, bool *active);

/* Takes the ticket of a chain's head if it has come, else waits for the next letter. */
gs_status_t gsi_far_meet (struct gsi_delivery *w, struct gsi_chain *chain);

/* Keeps what letters have for later calls. */
gs_status_t gsi_far_end (struct gsi_delivery *w);

/* Begins pieces of the head of chain [number]; whether all have ended. */
gs_status_t gsi_far_advance (struct gsi_delivery *w, int number, bool *ended);

#endif /* GS_HOST_MESSAGES_H */
