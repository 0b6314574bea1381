/* SPDX-License-Identifier: BSD-3-Clause */
/* reduce - reductions that end on one rank, or in parts. */
#include "collectives/reduce.h"

#include "call/staging.h"
#include "collectives/pieces.h"

gs_status_t gs_reduce (gs_comm_t *comm, const void *send, void *recv, size_t count,
                       gs_dtype_t dtype, gs_op_t op, int root, gs_stream_t stream)
{
    struct gsi_request r = {comm,  "gs_reduce",          GSI_OP_REDUCE, count,
                            dtype, root << 3 | (int) op, stream};
    struct gsi_extent in, out = {0};
    struct gsi_reduction how;
    struct gsi_call call;
    gs_status_t st = gsi_comm_valid (comm, r.caller);

    if (st || (st = gsi_comm_has_rank (comm, r.caller, "root", root)) ||
        (st = gsi_call_check (&r, send, count, &in)) || (st = gsi_reduction_of (&r, op, &how)))
        return gsi_result (st);
    if (comm->topo.rank == root &&
        ((st = gsi_call_check (&r, recv, count, &out)) ||
         (st = gsi_pieces_pair (&r, send, &in, recv, &out, send == recv))))
        return gsi_result (st);
    if ((st = gsi_call_begin (&r, &in, &call)))
        return gsi_result (st);
    if (count)
        st = gsi_staging_reduce (comm, send, recv, count, &how, root, &call);
    return gsi_result (gsi_call_end (comm, &call, st));
}

gs_status_t gsi_reduce_scatter (const struct gsi_request *r, const void *send, void *recv,
                                gs_op_t op)
{
    struct gsi_pieces all = {.what = "send", .buf = send, .each = r->count};
    struct gsi_extent in, out;
    struct gsi_reduction how;
    struct gsi_call call;
    bool in_place;
    gs_status_t st = gsi_call_check (r, recv, r->count, &out);

    if (st || (st = gsi_pieces_check (r, &all, false, &in)) ||
        (st = gsi_reduction_of (r, op, &how)))
        return st;
    in_place = recv == (const char *) send + (size_t) r->comm->topo.rank * out.bytes;
    if ((st = gsi_pieces_pair (r, send, &in, recv, &out, in_place)) ||
        (st = gsi_call_begin (r, &in, &call)))
        return st;
    if (r->count)
        st = gsi_staging_reduce_scatter (r->comm, send, recv, r->count, &how, &call);
    return gsi_call_end (r->comm, &call, st);
}

gs_status_t gs_reduce_scatter (gs_comm_t *comm, const void *send, void *recv, size_t count,
                               gs_dtype_t dtype, gs_op_t op, gs_stream_t stream)
{
    struct gsi_request r = {
        comm, "gs_reduce_scatter", GSI_OP_REDUCE_SCATTER, count, dtype, (int) op, stream};

    return gsi_result (gsi_reduce_scatter (&r, send, recv, op));
}
