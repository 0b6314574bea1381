/* SPDX-License-Identifier: BSD-3-Clause */
/* allgather - moving data without arithmetic: broadcast, allgather, barrier. */
#include "base/dtype.h"
#include "call/staging.h"
#include "collectives/pieces.h"

gs_status_t gs_broadcast (gs_comm_t *comm, void *buf, size_t count, gs_dtype_t dtype, int root,
                          gs_stream_t stream)
{
    struct gsi_request r = {comm, "gs_broadcast", GSI_OP_BROADCAST, count, dtype, root, stream};
    struct gsi_call call;
    struct gsi_extent extent;
    gs_status_t st = gsi_call_check (&r, buf, count, &extent);

    if (st || (st = gsi_comm_has_rank (comm, r.caller, "root", root)) ||
        (st = gsi_call_begin (&r, &extent, &call)))
        return gsi_result (st);
    if (count)
        st = gsi_staging_broadcast (comm, buf, extent.bytes, root, &call);
    return gsi_result (gsi_call_end (comm, &call, st));
}

/* Whether [bytes] at [send] touch the [size] places at [recv] other than as this rank's own. */
static bool overlaps (const gs_comm_t *comm, const char *send, const char *recv, size_t bytes)
{
    if (send == recv + (size_t) comm->topo.rank * bytes)
        return false;
    return send < recv + (size_t) comm->topo.size * bytes && recv < send + bytes;
}

gs_status_t gs_allgather (gs_comm_t *comm, const void *send, void *recv, size_t count,
                          gs_dtype_t dtype, gs_stream_t stream)
{
    struct gsi_request r = {comm, "gs_allgather", GSI_OP_ALLGATHER, count, dtype, 0, stream};
    struct gsi_call call;
    struct gsi_extent in, out;
    gs_status_t st = gsi_call_check (&r, send, count, &in);

    if (st)
        return gsi_result (st);
    if (count > (size_t) PTRDIFF_MAX / (size_t) comm->topo.size)
        return gsi_fail (GS_ERR_ARG,
                         "gs_allgather: count %zu of %d ranks is more than memory can "
                         "hold",
                         count, comm->topo.size);
    if ((st = gsi_call_check (&r, recv, count * (size_t) comm->topo.size, &out)) ||
        (st = gsi_pieces_pair (&r, send, &in, recv, &out, true)))
        return gsi_result (st);
    if (comm->check != GSI_CHECK_OFF && overlaps (comm, send, recv, in.bytes))
        return gsi_fail (GS_ERR_ARG, "gs_allgather: send and recv overlap: send may only be this "
                                     "rank's own place, recv + rank * count");
    if ((st = gsi_call_begin (&r, &in, &call)))
        return gsi_result (st);
    if (count)
        st = gsi_staging_allgather (comm, send, recv, in.bytes, &call);
    return gsi_result (gsi_call_end (comm, &call, st));
}

gs_status_t gs_barrier (gs_comm_t *comm, gs_stream_t stream)
{
    struct gsi_request r = {
        .comm = comm, .caller = "gs_barrier", .op = GSI_OP_BARRIER, .stream = stream};
    struct gsi_call call;
    gs_status_t st = gsi_comm_valid (comm, r.caller);

    if (st || (st = gsi_call_begin (&r, NULL, &call)))
        return gsi_result (st);
    return gsi_result (gsi_call_end (comm, &call, comm->coll->ops->barrier (comm->coll, &call)));
}
