/* SPDX-License-Identifier: BSD-3-Clause */
/* alltoall - pieces of the same length between ranks: gather, scatter, all-to-all. */
#include "base/dtype.h"
#include "call/staging.h"
#include "collectives/pieces.h"

gs_status_t gs_gather (gs_comm_t *comm, const void *send, void *recv, size_t count,
                       gs_dtype_t dtype, int root, gs_stream_t stream)
{
    struct gsi_request r = {comm, "gs_gather", GSI_OP_GATHER, count, dtype, root, stream};
    struct gsi_pieces all = {.what = "recv", .buf = recv, .each = count};
    struct gsi_extent in, out = {0};
    struct gsi_alltoallv x;
    struct gsi_call call;
    bool is_root;
    gs_status_t st = gsi_comm_valid (comm, r.caller);

    if (st || (st = gsi_comm_has_rank (comm, r.caller, "root", root)) ||
        (st = gsi_call_check (&r, send, count, &in)))
        return gsi_result (st);
    is_root = comm->topo.rank == root;
    if (is_root && ((st = gsi_pieces_check (&r, &all, true, &out)) ||
                    (st = gsi_pieces_pair (&r, send, &in, recv, &out,
                                           send == (char *) recv + (size_t) root * in.bytes))))
        return gsi_result (st);
    if ((st = gsi_call_begin (&r, &in, &call)))
        return gsi_result (st);
    x = gsi_pieces_alltoallv (comm, send, recv);
    x.block = in.bytes;
    gsi_pieces_send_same (comm, in.bytes, root);
    gsi_pieces_recv (&r, &all, is_root ? GSI_PIECES_ALL : GSI_PIECES_NONE);
    if (count)
        st = gsi_staging_alltoallv (comm, &x, &call);
    return gsi_result (gsi_call_end (comm, &call, st));
}

gs_status_t gs_scatter (gs_comm_t *comm, const void *send, void *recv, size_t count,
                        gs_dtype_t dtype, int root, gs_stream_t stream)
{
    struct gsi_request r = {comm, "gs_scatter", GSI_OP_SCATTER, count, dtype, root, stream};
    struct gsi_pieces all = {.what = "send", .buf = send, .each = count};
    struct gsi_extent in = {0}, out;
    struct gsi_alltoallv x;
    struct gsi_call call;
    bool is_root;
    gs_status_t st = gsi_comm_valid (comm, r.caller);

    if (st || (st = gsi_comm_has_rank (comm, r.caller, "root", root)) ||
        (st = gsi_call_check (&r, recv, count, &out)))
        return gsi_result (st);
    is_root = comm->topo.rank == root;
    if (is_root &&
        ((st = gsi_pieces_check (&r, &all, false, &in)) ||
         (st = gsi_pieces_pair (&r, send, &in, recv, &out,
                                recv == (const char *) send + (size_t) root * out.bytes))))
        return gsi_result (st);
    if ((st = gsi_call_begin (&r, &out, &call)))
        return gsi_result (st);
    x = gsi_pieces_alltoallv (comm, send, recv);
    x.block = out.bytes * (size_t) comm->topo.size;
    x.pick = out.bytes * (size_t) comm->topo.rank;
    gsi_pieces_send (&r, &all, is_root ? GSI_PIECES_ALL : GSI_PIECES_NONE);
    gsi_pieces_recv_same (comm, out.bytes, root);
    if (count)
        st = gsi_staging_alltoallv (comm, &x, &call);
    return gsi_result (gsi_call_end (comm, &call, st));
}

gs_status_t gs_alltoall (gs_comm_t *comm, const void *send, void *recv, size_t count,
                         gs_dtype_t dtype, gs_stream_t stream)
{
    struct gsi_request r = {comm, "gs_alltoall", GSI_OP_ALLTOALL, count, dtype, 0, stream};
    struct gsi_pieces from = {.what = "send", .buf = send, .each = count};
    struct gsi_pieces to = {.what = "recv", .buf = recv, .each = count};
    struct gsi_extent in, out;
    struct gsi_alltoallv x;
    struct gsi_call call;
    gs_status_t st = gsi_pieces_check (&r, &from, false, &in);

    if (st || (st = gsi_pieces_check (&r, &to, true, &out)) ||
        (st = gsi_pieces_pair (&r, send, &in, recv, &out, false)) ||
        (st = gsi_call_begin (&r, &in, &call)))
        return gsi_result (st);
    x = gsi_pieces_alltoallv (comm, send, recv);
    x.block = in.bytes;
    x.pick = count * gs_dtype_size (dtype) * (size_t) comm->topo.rank;
    gsi_pieces_send (&r, &from, GSI_PIECES_ALL);
    gsi_pieces_recv (&r, &to, GSI_PIECES_ALL);
    if (count)
        st = gsi_staging_alltoallv (comm, &x, &call);
    return gsi_result (gsi_call_end (comm, &call, st));
}
