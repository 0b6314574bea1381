/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control_messages - what ranks of different nodes tell each other of messages.
 *
 * A control message has the headers of one call to one rank, of messages in both directions, with
 * what is short. A call may take less than its control messages have: the rest waits in queues of
 * unexpected headers. What a call takes itself needs no memory, so that it fails on no rank for
 * want of that.
 */
#ifndef GS_HOST_CONTROL_MESSAGES_H
#define GS_HOST_CONTROL_MESSAGES_H

#include <stdbool.h>

#include "gradsync.h"
#include "host/route.h"

#define GSI_CONTROL_BYTES ((size_t) 60 << 10) /* at most: MPI libraries send as much at once */
#define GSI_EAGER_BYTES   ((size_t) 16 << 10) /* what goes with a header */

/* A header that has come. */
struct gsi_unexpected {
    struct gsi_unexpected *next;
    struct gsi_p2p_header header;
    char data[];
};

/* Those of one rank, of messages in one direction. */
struct gsi_unexpected_queue {
    struct gsi_unexpected *first, *last;
};

/* Begins [control], and appends a header with [n] bytes; return what it has by then. */
size_t gsi_control_begin (char *control);
size_t gsi_control_append (char *control, size_t used, const struct gsi_p2p_header *header,
                           bool send, const void *data, size_t n);

/* What a control message grows by. */
static inline size_t gsi_control_needs (size_t n)
{
    return 2 * sizeof (uint64_t) + sizeof (struct gsi_p2p_header) + (n + 7) / 8 * 8;
}

/* Takes the first header of this end out of [control], where its data stay; false: there is none.
 */
bool gsi_control_take (char *control, enum gsi_route_end end, struct gsi_p2p_header *header,
                       const char **data);

/* Puts what was not taken out of [control] into [queue], of senders and of receivers. */
gs_status_t gsi_control_read (const char *control,
                              struct gsi_unexpected_queue queue[GSI_ROUTE_ENDS]);

/* The oldest one, to be freed; NULL: none. */
struct gsi_unexpected *gsi_unexpected_take (struct gsi_unexpected_queue *queue);
void gsi_unexpected_free (struct gsi_unexpected_queue *queue);

#endif /* GS_HOST_CONTROL_MESSAGES_H */
