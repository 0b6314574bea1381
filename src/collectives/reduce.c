/* SPDX-License-Identifier: BSD-3-Clause */
/* reduce - reductions that end on one rank, or in parts. */
#include "collectives/reduce.h"

#include "call/staging.h"
#include "collectives/pieces.h"

gs_status_t gs_reduce (gs_comm_t *comm, const void *send, void *recv, size_t count,
                       gs_dtype_t dtype, gs_op_t op, int root, gs_stream_t stream)
{
    static const char caller[] = "gs_reduce";
    struct gsi_extent in, out = {0};
    struct gsi_reduction how;
    struct gsi_call call;
    gs_status_t st = gsi_pieces_root (comm, caller, root);

    if (st || (st = gsi_call_check (comm, caller, send, count, dtype, &in)) ||
        (st = gsi_reduction_of (caller, op, dtype, comm->topo.size, &how)))
        return gsi_result (st);
    if (comm->topo.rank == root &&
        ((st = gsi_call_check (comm, caller, recv, count, dtype, &out)) ||
         (st = gsi_pieces_pair (comm, caller, send, &in, recv, &out, send == recv))))
        return gsi_result (st);
    call.staged = in.staged;
    if ((st = gsi_call_begin (comm, GSI_OP_REDUCE, count, dtype, root << 3 | (int) op, stream,
                              &call)))
        return gsi_result (st);
    if (count)
        st = gsi_staging_reduce (comm, send, recv, count, &how, root, &call);
    return gsi_result (gsi_call_end (comm, &call, st));
}

gs_status_t gsi_reduce_scatter (gs_comm_t *comm, const struct gsi_face *as, const void *send,
                                void *recv, size_t count, gs_dtype_t dtype, gs_op_t op,
                                gs_stream_t stream)
{
    const char *caller = as->caller;
    struct gsi_pieces all = {.what = "send", .buf = send, .each = count};
    struct gsi_extent in, out;
    struct gsi_reduction how;
    struct gsi_call call;
    bool in_place;
    gs_status_t st = gsi_call_check (comm, caller, recv, count, dtype, &out);

    if (st || (st = gsi_pieces_check (comm, caller, &all, dtype, false, &in)) ||
        (st = gsi_reduction_of (caller, op, dtype, comm->topo.size, &how)))
        return st;
    in_place = recv == (const char *) send + (size_t) comm->topo.rank * out.bytes;
    if ((st = gsi_pieces_pair (comm, caller, send, &in, recv, &out, in_place)))
        return st;
    call.staged = in.staged;
    if ((st = gsi_call_begin (comm, as->op, count, dtype, as->argument, stream, &call)))
        return st;
    if (count)
        st = gsi_staging_reduce_scatter (comm, send, recv, count, &how, &call);
    return gsi_call_end (comm, &call, st);
}

gs_status_t gs_reduce_scatter (gs_comm_t *comm, const void *send, void *recv, size_t count,
                               gs_dtype_t dtype, gs_op_t op, gs_stream_t stream)
{
    struct gsi_face as = {"gs_reduce_scatter", GSI_OP_REDUCE_SCATTER, (int) op};

    return gsi_result (gsi_reduce_scatter (comm, &as, send, recv, count, dtype, op, stream));
}
