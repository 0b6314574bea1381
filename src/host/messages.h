/* SPDX-License-Identifier: BSD-3-Clause */
/* messages - what messages*.c share: a call that carries messages, and what stays between calls.
 */
#ifndef GS_HOST_MESSAGES_H
#define GS_HOST_MESSAGES_H

#include "host/coll_host.h"
#include "host/control_messages.h"
#include "host/route.h"

#define GSI_CHANNEL_LANES 2    /* pieces of a channel that are on their way */
#define GSI_NO_MESSAGE    (-1) /* no message */

/* A rank of another node. */
struct gsi_partner {
    int peer;
    char *control; /* [GSI_CONTROL_BYTES] that comes, */
    bool coming;   /* if this rank waits for one; */
    bool came;     /* one is there */
};

/* The messages of a pair in one direction. */
struct gsi_channel {
    int peer, head, last; /* numbers of messages in the list */
    bool send, pieces;    /* messages carry what is long */
    size_t begun, ended;  /* pieces of the head, or bytes that were read */
    char *memory;         /* (pieces) [GSI_CHANNEL_LANES * piece] */
    bool busy[GSI_CHANNEL_LANES];

    size_t eager;            /* most bytes that go with a header */
    int partner;             /* (no route) which of them the peer is */
    struct gsi_route *route; /* NULL: control messages have the headers */
    enum gsi_route_end end;  /* of it, that this rank is */
    int place;               /* of the peer on the node */
    int next;                /* message whose header is to be posted, or GSI_NO_MESSAGE */
    uint64_t number, posted; /* on the route: of the head, and of that message */
};

/* A message's place in its channel. */
struct gsi_link {
    int next;
    bool matched; /* the other end's header is here: */
    struct gsi_p2p_header other;
};

struct gsi_p2p_state {
    char *memory; /* all that the network may hold: control messages, then lanes */
    size_t room;
    void *batch; /* [(2 + GSI_CHANNEL_LANES) * most] */
    int *index;
    struct gsi_channel *channel;
    struct gsi_link *link;
    struct gsi_partner *partner;
    int most; /* messages, and so channels, partners and control messages */
    /* [2 * size] by end: of messages, and of those of all ranks */
    struct gsi_unexpected_queue *unexpected;
};

/* A call. */
struct gsi_delivery {
    struct gsi_coll_host *c;
    struct gsi_p2p_state *o;
    const struct gsi_call *call;
    struct gsi_message *list;
    int number, channels, partners, controls;
    int lanes, requests; /* channels that requests are kept for, if one has lanes; all requests */
    size_t piece;
    char *own; /* the control messages of this rank */
};

static inline bool gsi_message_agrees (const struct gsi_message *m)
{
    return m->bytes == m->other_bytes && m->dtype == m->other_dtype;
}

/* What goes with a header. */
static inline size_t gsi_message_eager (const struct gsi_channel *channel,
                                        const struct gsi_message *m)
{
    return m->send && m->bytes <= channel->eager ? m->bytes : 0;
}

/* The header of [m]. */
struct gsi_p2p_header gsi_message_header (const struct gsi_delivery *w,
                                          const struct gsi_message *m);

/* The other end's header of the head has come, with [data]. */
void gsi_message_match (struct gsi_delivery *w, const struct gsi_channel *channel,
                        const struct gsi_p2p_header *header, const void *data);

/* messages_far.c: what the network carries. Begins a call: the control messages of this rank. */
gs_status_t gsi_far_begin (struct gsi_delivery *w);

/* Takes what has ended there; [active] is whether there was anything. */
gs_status_t gsi_far_take (struct gsi_delivery *w, bool *active);

/* Takes the header of a channel's head if it has come, else awaits the next control message. */
gs_status_t gsi_far_match (struct gsi_delivery *w, struct gsi_channel *channel);

/* Keeps what control messages have for later calls. */
gs_status_t gsi_far_end (struct gsi_delivery *w);

/* Begins pieces of the head of channel [number]; whether all have ended. */
gs_status_t gsi_far_advance (struct gsi_delivery *w, int number, bool *ended);

#endif /* GS_HOST_MESSAGES_H */
