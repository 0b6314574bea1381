/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_shared_ops - operations between ranks that share GPUs, by way of their hosts.
 *
 * An array on the GPU goes in pieces: while one is between the hosts, the next one is on its way
 * out of the GPU. One in host memory (call->staged) is handed on as it is, or in the same pieces
 * where some ranks have no GPU.
 */
#include "base/status.h"
#include "transport/coll_shared.h"
#include "transport/staged_op.h"

#define PIECE_BYTES ((size_t) 4 << 20)

/* Sends the piece of [bytes] at [at] on its way out of the GPU. */
static gs_status_t fetch (struct gsi_coll_shared *c, const struct gsi_staged_op *op, int turn,
                          size_t at, size_t bytes, const struct gsi_call *call)
{
    gs_status_t st = gsi_bounce_take (c, turn, gsi_staged_parts (op) * bytes, call);

    for (int i = 0; op->in && i < op->ins && !st; i++)
        st = gsi_bounce_fetch (c, turn, gsi_staged_at (op, op->ins, i, bytes),
                               op->in + (size_t) i * op->bytes + at, bytes, call);
    return st ? st : gsi_bounce_fetched (c, turn, call);
}

/* Has the hosts work on a piece that is there, and sends it back. */
static gs_status_t work (struct gsi_coll_shared *c, const struct gsi_staged_op *op, int turn,
                         size_t at, size_t bytes, const struct gsi_call *call)
{
    char *memory = c->bounce[turn].memory;
    gs_status_t st = gsi_bounce_await (c, turn, call);

    if (st || (st = gsi_shared_enter (c, call)))
        return st;
    st = gsi_shared_leave (c, op->run (op, c->hosts, memory, bytes, call));
    for (int i = 0; op->out && i < op->outs && !st; i++)
        st = gsi_bounce_return (c, turn, gsi_staged_at (op, op->outs, i, bytes),
                                op->out + (size_t) i * op->bytes + at, bytes, call);
    return st ? st : gsi_bounce_returned (c, turn, call);
}

/* An array in host memory, where it is: [buf] is all of it, on all ranks. */
static gs_status_t pass_in_place (struct gsi_coll_shared *c, const struct gsi_staged_op *op,
                                  char *buf, const struct gsi_call *call)
{
    size_t piece = gsi_staged_piece (op, PIECE_BYTES);
    gs_status_t st = GS_OK;

    for (size_t at = 0, n; at < op->bytes && !st; at += n) {
        n = gsi_step_of (op->bytes, at, piece);
        if (!(st = gsi_shared_enter (c, call)))
            st = gsi_shared_leave (c, op->run (op, c->hosts, buf + at, n, call));
    }
    return st;
}

static gs_status_t pass (struct gsi_coll_shared *c, struct gsi_staged_op op,
                         const struct gsi_call *call)
{
    size_t piece = gsi_staged_piece (&op, PIECE_BYTES), next;
    gs_status_t st = gsi_bounce_begin (c, call);
    int turn = 0;

    if (!st)
        st = fetch (c, &op, turn, 0, gsi_step_of (op.bytes, 0, piece), call);
    for (size_t at = 0; at < op.bytes && !st; at = next, turn = 1 - turn) {
        next = at + gsi_step_of (op.bytes, at, piece);
        if (next < op.bytes)
            st = fetch (c, &op, 1 - turn, next, gsi_step_of (op.bytes, next, piece), call);
        if (!st)
            st = work (c, &op, turn, at, next - at, call);
    }
    return st;
}

/* ---- Sums and copies ---- */

gs_status_t gsi_shared_allreduce (struct gsi_coll *coll, void *buf, size_t count,
                                  const struct gsi_reduction *how, const struct gsi_call *call)
{
    struct gsi_coll_shared *c = (struct gsi_coll_shared *) coll;
    struct gsi_staged_op op;
    gs_status_t st;

    if (gsi_shared_sums (c, how, call))
        return gsi_shared_sum (c, buf, count, how, call);
    if (!gsi_shared_whole (c, call)) {
        op = gsi_staged_allreduce (buf, count, how);
        return gsi_shared_on_host (c, call) ? pass_in_place (c, &op, buf, call)
                                            : pass (c, op, call);
    }
    st = gsi_shared_enter (c, call);
    return st ? st
              : gsi_shared_leave (c, c->hosts->ops->allreduce (c->hosts, buf, count, how, call));
}

gs_status_t gsi_shared_broadcast (struct gsi_coll *coll, void *buf, size_t bytes, int root,
                                  const struct gsi_call *call)
{
    struct gsi_coll_shared *c = (struct gsi_coll_shared *) coll;
    struct gsi_staged_op op;
    gs_status_t st;

    if (!gsi_shared_whole (c, call)) {
        op = gsi_staged_broadcast (buf, bytes, root, c->rank);
        return gsi_shared_on_host (c, call) ? pass_in_place (c, &op, buf, call)
                                            : pass (c, op, call);
    }
    st = gsi_shared_enter (c, call);
    return st ? st
              : gsi_shared_leave (c, c->hosts->ops->broadcast (c->hosts, buf, bytes, root, call));
}

gs_status_t gsi_shared_allgather (struct gsi_coll *coll, const void *send, void *recv,
                                  size_t bytes, const struct gsi_call *call)
{
    struct gsi_coll_shared *c = (struct gsi_coll_shared *) coll;
    gs_status_t st;

    if (!gsi_shared_whole (c, call))
        return pass (c, gsi_staged_allgather (send, recv, bytes, c->rank, c->size), call);
    st = gsi_shared_enter (c, call);
    return st ? st
              : gsi_shared_leave (c,
                                  c->hosts->ops->allgather (c->hosts, send, recv, bytes, call));
}

gs_status_t gsi_shared_reduce_scatter (struct gsi_coll *coll, const void *send, void *recv,
                                       size_t count, const struct gsi_reduction *how,
                                       const struct gsi_call *call)
{
    struct gsi_coll_shared *c = (struct gsi_coll_shared *) coll;
    gs_status_t st;

    if (!gsi_shared_whole (c, call))
        return pass (c, gsi_staged_reduce_scatter (send, recv, count, how, c->rank, c->size),
                     call);
    st = gsi_shared_enter (c, call);
    return st ? st
              : gsi_shared_leave (
                    c, c->hosts->ops->reduce_scatter (c->hosts, send, recv, count, how, call));
}

gs_status_t gsi_shared_reduce (struct gsi_coll *coll, const void *send, void *recv, size_t count,
                               const struct gsi_reduction *how, int root,
                               const struct gsi_call *call)
{
    struct gsi_coll_shared *c = (struct gsi_coll_shared *) coll;
    gs_status_t st;

    if (!gsi_shared_whole (c, call))
        return pass (c, gsi_staged_reduce (send, recv, count, how, root, c->rank), call);
    st = gsi_shared_enter (c, call);
    return st ? st
              : gsi_shared_leave (
                    c, c->hosts->ops->reduce (c->hosts, send, recv, count, how, root, call));
}

/* On the GPU it is one reduction to each rank. */
gs_status_t gsi_shared_reduce_scatterv (struct gsi_coll *coll, const void *send, const size_t *at,
                                        const size_t *count, void *recv,
                                        const struct gsi_reduction *how,
                                        const struct gsi_call *call)
{
    struct gsi_coll_shared *c = (struct gsi_coll_shared *) coll;
    gs_status_t st = GS_OK;

    if (gsi_shared_whole (c, call)) {
        st = gsi_shared_enter (c, call);
        return st ? st
                  : gsi_shared_leave (c, c->hosts->ops->reduce_scatterv (c->hosts, send, at,
                                                                         count, recv, how, call));
    }
    for (int r = 0; r < c->size && !st; r++)
        if (count[r])
            st = gsi_shared_reduce (coll, (const char *) send + at[r], recv, count[r], how, r,
                                    call);
    return st;
}

/* What this rank's stream had to do before is done when others pass it. */
gs_status_t gsi_shared_barrier (struct gsi_coll *coll, const struct gsi_call *call)
{
    struct gsi_coll_shared *c = (struct gsi_coll_shared *) coll;
    gs_status_t st = gsi_bounce_begin (c, call);

    if (!st && !(st = gsi_bounce_fetched (c, 0, call)))
        st = gsi_bounce_await (c, 0, call);
    if (st || (st = gsi_shared_enter (c, call)))
        return st;
    return gsi_shared_leave (c, c->hosts->ops->barrier (c->hosts, call));
}
