/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * route - what ranks of a node tell each other of messages, in memory that they share.
 *
 * A route leads from one rank to another one. Its messages are numbered from 1. Of each, the
 * sender posts a header, with what is short, and so does the receiver; each then takes the
 * other one's. Headers have places in turn, and a place is free again when the other end is done
 * with the message: what it is done with it says in its own headers, too.
 */
#ifndef GS_HOST_ROUTE_H
#define GS_HOST_ROUTE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GSI_ROUTE_SLOTS      8     /* headers that one end may be ahead */
#define GSI_NODE_EAGER_BYTES 4096u /* what goes with a header */

enum gsi_route_end { GSI_ROUTE_SENDS, GSI_ROUTE_RECEIVES, GSI_ROUTE_ENDS };

/* What the ends of a message tell each other, also between nodes. */
struct gsi_p2p_header {
    uint64_t bytes, at; /* address on the sender */
    uint64_t piece;     /* bytes that this end has room for, where it goes in pieces */
    int32_t dtype;
    uint32_t call; /* fingerprint of an operation of all ranks; 0: it is a message */
};

/* A header that is posted: a cache line. */
struct gsi_posted {
    _Alignas(64) atomic_uint_fast64_t number; /* of the message */
    uint64_t done;                            /* by this end, so far */
    struct gsi_p2p_header header;
};

struct gsi_route {
    struct {
        _Alignas(64) atomic_uint_fast64_t done; /* number of the last message */
        uint64_t seen;                          /* what the other end is known to have done */
    } end[GSI_ROUTE_ENDS];                      /* each is written by that end alone */
    struct gsi_posted want[GSI_ROUTE_SLOTS];
    struct {
        struct gsi_posted posted;
        char data[GSI_NODE_EAGER_BYTES];
    } offer[GSI_ROUTE_SLOTS];
};

/* What this [end] is done with, and the other one. */
uint64_t gsi_route_done (const struct gsi_route *route, enum gsi_route_end end);

/* Posts the header of message [number], with [n] bytes; false: there is no place yet. */
bool gsi_route_put (struct gsi_route *route, enum gsi_route_end end, uint64_t number,
                    const struct gsi_p2p_header *header, const void *data, size_t n);

/* Takes that of the other end; false: it is not there. What is short is at gsi_route_data. */
bool gsi_route_get (struct gsi_route *route, enum gsi_route_end end, uint64_t number,
                    struct gsi_p2p_header *header);
const void *gsi_route_data (const struct gsi_route *route, uint64_t number);

/* This end is done with message [number]. */
void gsi_route_end (struct gsi_route *route, enum gsi_route_end end, uint64_t number);

#endif /* GS_HOST_ROUTE_H */
