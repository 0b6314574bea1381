/* SPDX-License-Identifier: BSD-3-Clause */
/* feature - what features that are built on communicators have of them. */
#include "feature/feature.h"

#include "call/call.h"
#include "call/inflight.h"
#include "call/staging.h"

int64_t gsi_feature_timeout_ns (const gs_comm_t *comm)
{
    return comm->timeout_ns;
}

gs_status_t gsi_feature_alive (const gs_comm_t *comm)
{
    return gsi_comm_alive (comm);
}

const struct gsi_device *gsi_feature_device (const gs_comm_t *comm)
{
    return comm->device;
}

bool gsi_feature_mixed (const gs_comm_t *comm)
{
    return comm->coll->mixed;
}

bool gsi_feature_any_thread (const gs_comm_t *comm)
{
    return comm->coll->any_thread;
}

gs_status_t gsi_feature_check (const gs_comm_t *comm, const char *caller, const void *buf,
                               size_t count, gs_dtype_t dtype, bool *staged)
{
    struct gsi_request r = {
        .comm = (gs_comm_t *) (uintptr_t) comm, .caller = caller, .dtype = dtype}; /* only read */
    struct gsi_extent extent;
    gs_status_t st = gsi_call_check (&r, buf, count, &extent);

    if (staged)
        *staged = !st && extent.staged;
    return st;
}

gs_status_t gsi_feature_reduce (gs_comm_t *comm, void *buf, size_t count,
                                const struct gsi_reduction *how, int argument, gs_stream_t stream)
{
    struct gsi_request r = {comm, "a bucket", GSI_OP_BUCKET, count, how->dtype, argument, stream};
    struct gsi_call call;
    gs_status_t st = gsi_call_begin (&r, NULL, &call);

    if (st)
        return st;
    return gsi_call_end (comm, &call, gsi_staging_allreduce (comm, buf, count, how, &call));
}

bool gsi_feature_part (gs_comm_t *comm)
{
    return gsi_inflight_part (comm);
}
