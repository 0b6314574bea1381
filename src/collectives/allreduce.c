/* SPDX-License-Identifier: BSD-3-Clause */
/* allreduce - reductions over the ranks: average, weighted average, sum, product, min, max. */
#include "base/dtype.h"
#include "call/call.h"
#include "call/staging.h"
#include "collectives/reduce.h"
#include "collectives/weights.h"

static gs_status_t no_average (const char *caller, gs_dtype_t dtype)
{
    return gsi_fail (GS_ERR_UNSUPPORTED,
                     "%s: the average of %s would have to round: use "
                     "gs_allreduce with GS_SUM and divide as the program needs, or average in "
                     "a floating type",
                     caller, gsi_dtype_name (dtype));
}

gs_status_t gs_allreduce_avg (gs_comm_t *comm, void *buf, size_t count, gs_dtype_t dtype,
                              gs_stream_t stream)
{
    struct gsi_request r = {comm,  "gs_allreduce_avg", GSI_OP_ALLREDUCE_AVG, count, dtype, 0,
                            stream};
    struct gsi_reduction how = {.dtype = dtype, .op = GS_SUM};
    struct gsi_call call;
    struct gsi_extent extent;
    gs_status_t st = gsi_call_check (&r, buf, count, &extent);

    if (!st && gsi_dtype_is_integer (dtype))
        st = no_average (r.caller, dtype);
    if (st || (st = gsi_call_begin (&r, &extent, &call)))
        return gsi_result (st);
    how.divisor = comm->topo.size;
    if (count)
        st = gsi_staging_allreduce (comm, buf, count, &how, &call);
    return gsi_result (gsi_call_end (comm, &call, st));
}

gs_status_t gs_allreduce_wavg (gs_comm_t *comm, void *buf, size_t count, gs_dtype_t dtype,
                               double weight, gs_stream_t stream)
{
    struct gsi_request r = {comm,  "gs_allreduce_wavg", GSI_OP_ALLREDUCE_WAVG, count, dtype, 0,
                            stream};
    struct gsi_reduction how = {.dtype = dtype, .op = GS_SUM};
    struct gsi_call call;
    struct gsi_extent extent;
    double *weights;
    gs_status_t st = gsi_call_check (&r, buf, count, &extent);

    if (!st && gsi_dtype_is_integer (dtype))
        st = no_average (r.caller, dtype);
    if (st || (st = gsi_call_begin (&r, &extent, &call)))
        return gsi_result (st);
    weights = comm->scratch;
    if ((st = gsi_staging_control (comm, &weight, weights, sizeof (weight), &call)))
        return gsi_result (gsi_call_end (comm, &call, st));
    if ((st = gsi_weights_scale (comm, r.caller, weights, &how.divisor)))
        return gsi_result (gsi_call_refuse (comm, st));
    how.scale = weights;
    if (how.divisor == 0) {
        gsi_weights_warn (comm, r.caller);
        how.divisor = 1;
    }
    if (count)
        st = gsi_staging_allreduce (comm, buf, count, &how, &call);
    return gsi_result (gsi_call_end (comm, &call, st));
}

gs_status_t gsi_reduction_of (const struct gsi_request *r, gs_op_t op, struct gsi_reduction *how)
{
    *how = (struct gsi_reduction){.dtype = r->dtype, .op = op, .divisor = 1};
    if ((int) op < GS_SUM || (int) op > GS_AVG)
        return gsi_fail (GS_ERR_ARG, "%s: unknown op %d; see gs_op_t in gradsync.h", r->caller,
                         (int) op);
    if (gsi_dtype_is_complex (r->dtype) && (op == GS_MIN || op == GS_MAX))
        return gsi_fail (GS_ERR_UNSUPPORTED,
                         "%s: %s of %s does not exist, complex "
                         "numbers have no order: reduce real and imaginary parts, or absolute "
                         "values, as reals",
                         r->caller, gsi_op_name (op), gsi_dtype_name (r->dtype));
    if (op != GS_AVG)
        return GS_OK;
    how->op = GS_SUM;
    how->divisor = r->comm->topo.size;
    return gsi_dtype_is_integer (r->dtype) ? no_average (r->caller, r->dtype) : GS_OK;
}

gs_status_t gs_allreduce (gs_comm_t *comm, void *buf, size_t count, gs_dtype_t dtype, gs_op_t op,
                          gs_stream_t stream)
{
    struct gsi_request r = {comm,     "gs_allreduce", GSI_OP_ALLREDUCE, count, dtype,
                            (int) op, stream};
    struct gsi_reduction how;
    struct gsi_call call;
    struct gsi_extent extent;
    gs_status_t st = gsi_call_check (&r, buf, count, &extent);

    if (st || (st = gsi_reduction_of (&r, op, &how)) ||
        (st = gsi_call_begin (&r, &extent, &call)))
        return gsi_result (st);
    if (count)
        st = gsi_staging_allreduce (comm, buf, count, &how, &call);
    return gsi_result (gsi_call_end (comm, &call, st));
}
