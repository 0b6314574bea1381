/* SPDX-License-Identifier: BSD-3-Clause */
/* alltoall - pieces of the same length between ranks: gather, scatter, all-to-all. */
#include "base/dtype.h"
#include "call/staging.h"
#include "collectives/pieces.h"

gs_status_t gs_gather (gs_comm_t *comm, const void *send, void *recv, size_t count,
                       gs_dtype_t dtype, int root, gs_stream_t stream)
{
    struct gsi_pieces all = {.what = "recv", .buf = recv, .each = count};
    struct gsi_extent in, out = {0};
    struct gsi_exchange x;
    struct gsi_call call;
    bool is_root;
    gs_status_t st = gsi_pieces_root (comm, "gs_gather", root);

    if (st || (st = gsi_call_check (comm, "gs_gather", send, count, dtype, &in)))
        return gsi_result (st);
    is_root = comm->topo.rank == root;
    if (is_root && ((st = gsi_pieces_check (comm, "gs_gather", &all, dtype, true, &out)) ||
                    (st = gsi_pieces_pair (comm, "gs_gather", send, &in, recv, &out,
                                           send == (char *) recv + (size_t) root * in.bytes))))
        return gsi_result (st);
    call.staged = in.staged;
    if ((st = gsi_call_begin (comm, GSI_OP_GATHER, count, dtype, root, stream, &call)))
        return gsi_result (st);
    x = gsi_pieces_exchange (comm, send, recv);
    x.block = in.bytes;
    gsi_pieces_send_same (comm, in.bytes, root);
    gsi_pieces_recv (comm, &all, gs_dtype_size (dtype),
                     is_root ? GSI_PIECES_ALL : GSI_PIECES_NONE);
    if (count)
        st = gsi_staging_exchange (comm, &x, &call);
    return gsi_result (gsi_call_end (comm, &call, st));
}

gs_status_t gs_scatter (gs_comm_t *comm, const void *send, void *recv, size_t count,
                        gs_dtype_t dtype, int root, gs_stream_t stream)
{
    struct gsi_pieces all = {.what = "send", .buf = send, .each = count};
    struct gsi_extent in = {0}, out;
    struct gsi_exchange x;
    struct gsi_call call;
    bool is_root;
    gs_status_t st = gsi_pieces_root (comm, "gs_scatter", root);

    if (st || (st = gsi_call_check (comm, "gs_scatter", recv, count, dtype, &out)))
        return gsi_result (st);
    is_root = comm->topo.rank == root;
    if (is_root &&
        ((st = gsi_pieces_check (comm, "gs_scatter", &all, dtype, false, &in)) ||
         (st = gsi_pieces_pair (comm, "gs_scatter", send, &in, recv, &out,
                                recv == (const char *) send + (size_t) root * out.bytes))))
        return gsi_result (st);
    call.staged = out.staged;
    if ((st = gsi_call_begin (comm, GSI_OP_SCATTER, count, dtype, root, stream, &call)))
        return gsi_result (st);
    x = gsi_pieces_exchange (comm, send, recv);
    x.block = out.bytes * (size_t) comm->topo.size;
    x.pick = out.bytes * (size_t) comm->topo.rank;
    gsi_pieces_send (comm, &all, gs_dtype_size (dtype),
                     is_root ? GSI_PIECES_ALL : GSI_PIECES_NONE);
    gsi_pieces_recv_same (comm, out.bytes, root);
    if (count)
        st = gsi_staging_exchange (comm, &x, &call);
    return gsi_result (gsi_call_end (comm, &call, st));
}

gs_status_t gs_alltoall (gs_comm_t *comm, const void *send, void *recv, size_t count,
                         gs_dtype_t dtype, gs_stream_t stream)
{
    struct gsi_pieces from = {.what = "send", .buf = send, .each = count};
    struct gsi_pieces to = {.what = "recv", .buf = recv, .each = count};
    struct gsi_extent in, out;
    struct gsi_exchange x;
    struct gsi_call call;
    size_t width = gs_dtype_size (dtype);
    gs_status_t st = gsi_pieces_check (comm, "gs_alltoall", &from, dtype, false, &in);

    if (st || (st = gsi_pieces_check (comm, "gs_alltoall", &to, dtype, true, &out)) ||
        (st = gsi_pieces_pair (comm, "gs_alltoall", send, &in, recv, &out, false)))
        return gsi_result (st);
    call.staged = in.staged;
    if ((st = gsi_call_begin (comm, GSI_OP_ALLTOALL, count, dtype, 0, stream, &call)))
        return gsi_result (st);
    x = gsi_pieces_exchange (comm, send, recv);
    x.block = in.bytes;
    x.pick = count * width * (size_t) comm->topo.rank;
    gsi_pieces_send (comm, &from, width, GSI_PIECES_ALL);
    gsi_pieces_recv (comm, &to, width, GSI_PIECES_ALL);
    if (count)
        st = gsi_staging_exchange (comm, &x, &call);
    return gsi_result (gsi_call_end (comm, &call, st));
}
