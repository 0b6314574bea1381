/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node_call - calls of a feature whose ranks wait for others of their node in memory of the
 * feature's that they share. They are recorded, numbered and have a deadline as collectives do,
 * so who does not come is named and the communicator ends; no transport has a part in them.
 */
#ifndef GS_FEATURE_NODE_CALL_H
#define GS_FEATURE_NODE_CALL_H

#include <stdint.h>

#include "base/record.h"
#include "gradsync.h"
#include "transport/coll.h"

/* A call, from begin to end. */
struct gsi_node_call {
    gs_comm_t *comm;
    struct gsi_call call;
    int64_t begin_ns, asked_ns;
};

/*
 * Begins one, which all ranks of the communicator make, [op] with the same [argument]. On failure
 * it has ended already; else gsi_node_call_end must follow.
 */
gs_status_t gsi_node_call_begin (struct gsi_node_call *c, gs_comm_t *comm, const char *caller,
                                 enum gsi_record_op op, int argument, gs_stream_t stream);

/*
 * Between two looks at what other ranks are to write: lets a moment pass; or tells why the wait
 * has no end: a rank that gave up or died, the deadline.
 */
gs_status_t gsi_node_call_pause (struct gsi_node_call *c);

/* (GPUs) Waits for what was queued before [event]. */
gs_status_t gsi_node_call_await (struct gsi_node_call *c, struct gsi_event *event);

/* Ends it with [st], a failure after which the communicator is dead. Returns [st]. */
gs_status_t gsi_node_call_end (struct gsi_node_call *c, gs_status_t st);

/* The same for a failure that all ranks see, and after which it goes on. */
gs_status_t gsi_node_call_refuse (struct gsi_node_call *c, gs_status_t st);

#endif /* GS_FEATURE_NODE_CALL_H */
