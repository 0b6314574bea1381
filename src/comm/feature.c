/* SPDX-License-Identifier: BSD-3-Clause */
/* feature - what features that are built on communicators have of them. */
#include "comm/feature.h"

#include <math.h>

#include "base/log.h"
#include "comm/call.h"
#include "comm/carry.h"
#include "comm/queue.h"

static _Thread_local const gs_comm_t *inside; /* that this thread calls for its tenant */

gs_status_t gsi_feature_open (gs_comm_t *comm, struct gsi_tenant *tenant, const char *caller)
{
    gs_status_t st = gsi_comm_valid (comm, caller);

    if (st)
        return st;
    atomic_fetch_add (&comm->features, 1);
    atomic_init (&tenant->patient, false);
    return GS_OK;
}

void gsi_feature_close (gs_comm_t *comm, struct gsi_tenant *tenant)
{
    gsi_queue_grab (comm); /* its thread may be asking for a description */
    if (comm->tenant == tenant)
        comm->tenant = NULL;
    gsi_queue_leave (comm);
    atomic_fetch_sub (&comm->features, 1);
}

gs_status_t gsi_feature_let (gs_comm_t *comm, struct gsi_tenant *tenant, int64_t step)
{
    if (atomic_load (&comm->let))
        return gsi_fail (GS_ERR_STATE, "communicator '%s' is in a step of %s: finish it first",
                         comm->name, comm->tenant->name);
    if (comm->tenant != tenant) {
        gsi_queue_grab (comm);
        comm->tenant = tenant;
        gsi_queue_leave (comm);
    }
    comm->record.file->step = step;
    atomic_store (&comm->let, true);
    return GS_OK;
}

void gsi_feature_return (gs_comm_t *comm)
{
    if (comm->record.file->step > 0 && atomic_load (&comm->life) == GSI_ALIVE)
        comm->record.file->step = -comm->record.file->step;
    atomic_store (&comm->let, false);
}

void gsi_feature_enter (const gs_comm_t *comm)
{
    inside = comm;
}

void gsi_feature_leave (void)
{
    inside = NULL;
}

gs_status_t gsi_feature_admit (const gs_comm_t *comm, const char *call)
{
    if (!atomic_load_explicit (&comm->let, memory_order_acquire) || inside == comm)
        return GS_OK;
    return gsi_fail (GS_ERR_STATE,
                     "%s: communicator '%s' is in a step of %s, which must be finished first; "
                     "until then only its callbacks may use it",
                     call, comm->name, comm->tenant->name);
}

int64_t gsi_feature_timeout_ns (const gs_comm_t *comm)
{
    return comm->timeout_ns;
}

const struct gsi_device *gsi_feature_device (const gs_comm_t *comm)
{
    return comm->device;
}

bool gsi_feature_any_thread (const gs_comm_t *comm)
{
    return comm->coll->any_thread;
}

gs_status_t gsi_feature_check (const gs_comm_t *comm, const char *caller, const void *buf,
                               size_t count, gs_dtype_t dtype, bool *staged)
{
    struct gsi_extent extent;
    gs_status_t st = gsi_call_check (comm, caller, buf, count, dtype, &extent);

    *staged = !st && extent.staged;
    return st;
}

gs_status_t gsi_feature_reduce (gs_comm_t *comm, void *buf, size_t count,
                                const struct gsi_reduction *how, int argument, gs_stream_t stream)
{
    struct gsi_call call = {.staged = false};
    gs_status_t st =
        gsi_call_begin (comm, GSI_OP_BUCKET, count, how->dtype, argument, stream, &call);

    if (st)
        return st;
    return gsi_call_end (comm, &call, gsi_carry_allreduce (comm, buf, count, how, &call));
}

gs_status_t gsi_feature_weights (const gs_comm_t *comm, const char *caller, double *weights,
                                 double *sum)
{
    double largest = 0;

    *sum = 0;
    for (int r = 0; r < comm->team.size; r++) {
        if (!isfinite (weights[r]) || weights[r] < 0)
            return gsi_fail (GS_ERR_ARG,
                             "%s: rank %d (host %s) gives weight %g: weights are finite and not "
                             "negative",
                             caller, r, comm->hosts[r], weights[r]);
        if (weights[r] > largest)
            largest = weights[r];
    }
    for (int r = 0; r < comm->team.size && largest > 0; r++) {
        weights[r] /= largest;
        *sum += weights[r];
    }
    return GS_OK;
}

void gsi_feature_weightless (gs_comm_t *comm, const char *caller)
{
    if (!comm->team.rank && !comm->weightless)
        gsi_log (GS_LOG_WARN, "comm",
                 "%s on '%s': all weights are 0, so the average is 0; this is not said again",
                 caller, comm->name);
    comm->weightless = true;
}
