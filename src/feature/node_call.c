/* SPDX-License-Identifier: BSD-3-Clause */
/* node_call - calls of a feature whose ranks wait for others of their node in shared memory. */
#include "feature/node_call.h"

#include "base/clock.h"
#include "call/call.h"
#include "call/inflight.h"
#include "call/peers.h"

#define ASK_NS (20 * GSI_NS_PER_MS) /* from one look at the records of others to the next */

gs_status_t gsi_node_call_begin (struct gsi_node_call *c, gs_comm_t *comm, const char *caller,
                                 enum gsi_record_op op, int argument, gs_stream_t stream)
{
    struct gsi_request r = {
        .comm = comm, .caller = caller, .op = op, .argument = argument, .stream = stream};
    const struct gsi_extent host = {.staged = true};

    c->comm = comm;
    c->begin_ns = c->asked_ns = gsi_now_ns ();
    return gsi_call_begin (&r, &host, &c->call); /* it has ended when it returns, also on GPUs */
}

/* Whether another rank of the node, by its record, will not come. */
static gs_status_t ask_others (struct gsi_node_call *c)
{
    return c->comm->inflight ? gsi_inflight_peek (c->comm, &c->call)
                             : gsi_peers_end_wait (c->comm, c->call.seq, false);
}

gs_status_t gsi_node_call_pause (struct gsi_node_call *c)
{
    int64_t now_ns = gsi_now_ns ();
    gs_status_t st;

    if (atomic_load_explicit (&c->comm->life, memory_order_relaxed) != GSI_ALIVE)
        return gsi_fail (GS_ERR_STATE, "the communicator was aborted on this rank");
    if (now_ns - c->asked_ns > ASK_NS) {
        c->asked_ns = now_ns;
        if ((st = ask_others (c)))
            return st;
    }
    if (now_ns > c->call.deadline_ns)
        return gsi_fail (GS_ERR_TIMEOUT, GSI_LATE_CALL);
    gsi_pause (now_ns - c->begin_ns, GSI_SPIN_NS);
    return GS_OK;
}

gs_status_t gsi_node_call_await (struct gsi_node_call *c, struct gsi_event *event)
{
    return gsi_inflight_await (c->comm, event, &c->call);
}

gs_status_t gsi_node_call_end (struct gsi_node_call *c, gs_status_t st)
{
    return gsi_call_end (c->comm, &c->call, st);
}

gs_status_t gsi_node_call_refuse (struct gsi_node_call *c, gs_status_t st)
{
    return gsi_call_refuse (c->comm, st);
}
