/* SPDX-License-Identifier: BSD-3-Clause */
/* allgather - moving data without arithmetic: broadcast, allgather, barrier. */
#include "base/dtype.h"
#include "call/call.h"
#include "call/staging.h"

gs_status_t gs_broadcast (gs_comm_t *comm, void *buf, size_t count, gs_dtype_t dtype, int root,
                          gs_stream_t stream)
{
    struct gsi_call call;
    struct gsi_extent extent;
    gs_status_t st = gsi_call_check (comm, "gs_broadcast", buf, count, dtype, &extent);

    if (st)
        return gsi_result (st);
    if (root < 0 || root >= comm->topo.size)
        return gsi_fail (GS_ERR_ARG, "gs_broadcast: root %d is not a rank of '%s' (0 to %d)",
                         root, comm->name, comm->topo.size - 1);
    call.staged = extent.staged;
    if ((st = gsi_call_begin (comm, GSI_OP_BROADCAST, count, dtype, root, stream, &call)))
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
    struct gsi_call call;
    struct gsi_extent in, out;
    gs_status_t st = gsi_call_check (comm, "gs_allgather", send, count, dtype, &in);

    if (st)
        return gsi_result (st);
    if (count > (size_t) PTRDIFF_MAX / (size_t) comm->topo.size)
        return gsi_fail (GS_ERR_ARG,
                         "gs_allgather: count %zu of %d ranks is more than memory can "
                         "hold",
                         count, comm->topo.size);
    if ((st = gsi_call_check (comm, "gs_allgather", recv, count * (size_t) comm->topo.size, dtype,
                              &out)))
        return gsi_result (st);
    if (in.staged != out.staged)
        return gsi_fail (GS_ERR_DEVICE,
                         "gs_allgather: send is in %s memory, recv in %s memory: put both into "
                         "the same",
                         in.staged ? "host" : "device", out.staged ? "host" : "device");
    if (comm->check != GSI_CHECK_OFF && overlaps (comm, send, recv, in.bytes))
        return gsi_fail (GS_ERR_ARG, "gs_allgather: send and recv overlap: send may only be this "
                                     "rank's own place, recv + rank * count");
    call.staged = in.staged;
    if ((st = gsi_call_begin (comm, GSI_OP_ALLGATHER, count, dtype, 0, stream, &call)))
        return gsi_result (st);
    if (count)
        st = gsi_staging_allgather (comm, send, recv, in.bytes, &call);
    return gsi_result (gsi_call_end (comm, &call, st));
}

gs_status_t gs_barrier (gs_comm_t *comm, gs_stream_t stream)
{
    struct gsi_call call = {.staged = false};
    gs_status_t st = gsi_comm_valid (comm, "gs_barrier");

    if (st)
        return gsi_result (st);
    if ((st = gsi_call_begin (comm, GSI_OP_BARRIER, 0, (gs_dtype_t) 0, 0, stream, &call)))
        return gsi_result (st);
    return gsi_result (gsi_call_end (comm, &call, comm->coll->ops->barrier (comm->coll, &call)));
}
