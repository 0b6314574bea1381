/* SPDX-License-Identifier: BSD-3-Clause */
/* adjoint - the gradients of collectives, each by another collective; own slots of gathers. */
#include "collectives/adjoint.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/dtype.h"
#include "call/inflight.h"
#include "call/staging.h"
#include "collectives/pieces.h"
#include "collectives/reduce.h"
#include "device/element.h"
#include "device/runs.h"

gs_status_t gsi_gradient_dtype (const char *caller, gs_dtype_t dtype)
{
    if (!gs_dtype_size (dtype) || !gsi_dtype_is_integer (dtype))
        return GS_OK;
    return gsi_fail (GS_ERR_UNSUPPORTED,
                     "%s: %s has no gradients: give a floating or complex type", caller,
                     gsi_dtype_name (dtype));
}

/* ---- The own slot of a gather ---- */

/* Of gs_allgather, where [counts] is NULL, or gs_allgatherv. */
struct slot {
    struct gsi_request as;
    struct gsi_pieces from; /* grad_y */
    void *to;               /* grad_x, */
    size_t count;           /* of the request's dtype */
    const char *own;        /* this rank's place in grad_y */
    void *sum;              /* [count] the adjoint, to compare with; NULL: there is none */
    struct gsi_call call;
};

/* What a rank tells about its slot. */
struct excess_word {
    double excess; /* by which it differs from the average, over what is allowed; NaN: unknown */
    int32_t status;
};
_Static_assert(sizeof (struct excess_word) <= GSI_SCRATCH_BYTES, "words are gathered in scratch");

static double precision (gs_dtype_t dtype)
{
    switch ((int) gsi_part_of (dtype)) {
#define GSI_REDUCED(NAME, name, value, T, exponent, fraction, ...) \
    GSI_CASE (NAME, ldexp (1, -fraction - 1));
#define GSI_FLOATING(NAME, name, value, T, digits, ...) GSI_CASE (NAME, ldexp (1, -digits));
#include "base/dtype.def"
    }
    return 0;
}

static double largest (gs_dtype_t dtype)
{
    switch ((int) gsi_part_of (dtype)) {
#define GSI_REDUCED(NAME, name, value, T, exponent, fraction, largest, ...) \
    GSI_CASE (NAME, largest);
#define GSI_FLOATING(NAME, name, value, T, digits, largest, ...) GSI_CASE (NAME, largest);
#include "base/dtype.def"
    }
    return 0;
}

/* In units of this, squares are within the range of f64. */
static double unit_of (const struct slot *s, const double *own, const double *sum, size_t count)
{
    double most = 0;

    for (size_t i = 0; i < count; i++)
        if (isfinite (own[i]) && isfinite (sum[i]))
            most = fmax (most, fmax (fabs (own[i]), fabs (sum[i] / s->as.comm->topo.size)));
    return most > 0 ? most : 1;
}

/* How far [sum], that of all ranks, is from this rank's slot times their number, by norms. Both
 * contracts give an infinity or a NaN where both are none of the type's numbers. */
static double excess (const struct slot *s, const double *own, const double *sum, size_t count)
{
    double most = 0, norm = 0, limit = sqrt (precision (s->as.dtype)),
           end = largest (s->as.dtype), unit = unit_of (s, own, sum, count);

    for (size_t i = 0; i < count; i++) {
        double average = sum[i] / s->as.comm->topo.size / unit, ours = own[i] / unit,
               off = ours - average;
        if (!isfinite (sum[i]) && !(fabs (own[i]) * s->as.comm->topo.size <= end))
            continue;
        most += off * off;
        norm += average * average > ours * ours ? average * average : ours * ours;
    }
    return norm > 0 || isnan (norm) ? sqrt (most / norm) / limit : 0;
}

/* [count] numbers at [data], of the device or not, as doubles in [out]; [staging] is as large. */
static gs_status_t to_doubles (struct slot *s, const void *data, void *staging, double *out)
{
    bool complex = gsi_dtype_is_complex (s->as.dtype);
    struct gsi_conversion how = {s->as.dtype, complex ? GS_C128 : GS_F64, 1};
    struct gsi_run run = {data, out, s->count};
    gs_status_t st = GS_OK;

    if (s->as.comm->inflight && !s->call.staged) {
        st = gsi_staging_fetch (s->as.comm, staging, data, s->count * gs_dtype_size (s->as.dtype),
                                &s->call);
        run.src = staging;
    }
    if (!st)
        gsi_host_convert (&how, &run, 1);
    return st;
}

/* The adjoint, to compare with, into [sum]. */
static gs_status_t make_adjoint (struct slot *s, void *sum)
{
    struct gsi_reduction how = {.dtype = s->as.dtype, .op = GS_SUM, .divisor = 1};
    const void *send = s->from.buf;
    struct gsi_alltoallv x;

    if (!s->from.counts)
        return s->count
                   ? gsi_staging_reduce_scatter (s->as.comm, send, sum, s->count, &how, &s->call)
                   : GS_OK;
    x = gsi_pieces_alltoallv (s->as.comm, send, NULL);
    gsi_pieces_send (&s->as, &s->from, GSI_PIECES_ALL);
    return gsi_staging_reduce_scatterv (s->as.comm, send, x.send_at, s->from.counts, sum, &how,
                                        &s->call);
}

/* What all ranks tell; [bad] becomes the first one with an excess or a failure. */
static gs_status_t tell_excess (struct slot *s, double excess, gs_status_t own, int *bad)
{
    struct excess_word mine = {excess, (int32_t) own};
    const struct excess_word *all = s->as.comm->scratch;
    gs_status_t st =
        gsi_staging_control (s->as.comm, &mine, s->as.comm->scratch, sizeof (mine), &s->call);

    *bad = -1;
    for (int r = 0; r < s->as.comm->topo.size && !st && *bad < 0; r++)
        if (all[r].status || !(all[r].excess <= 1))
            *bad = r;
    return st;
}

/* The work of verify with its memory: the adjoint, a copy of an array, and two of doubles. */
static gs_status_t compare_adjoints (struct slot *s, void *sum, void *staging, double *numbers,
                                     double *result)
{
    size_t parts = s->count * (gsi_dtype_is_complex (s->as.dtype) ? 2 : 1);
    gs_status_t st = make_adjoint (s, sum);

    if (st || !s->count || (st = to_doubles (s, s->own, staging, numbers)) ||
        (st = to_doubles (s, sum, staging, numbers + parts)))
        return st;
    *result = excess (s, numbers, numbers + parts, parts);
    return GS_OK;
}

/*
 * With GS_CHECK=collective: whether the contract gives what the adjoint would; the same on all
 * ranks. [*refused]: it does not, but the communicator goes on.
 */
static gs_status_t verify (struct slot *s, bool *refused)
{
    gs_comm_t *comm = s->as.comm;
    size_t bytes = s->count * gs_dtype_size (s->as.dtype) + 1;
    bool queued = comm->inflight && !s->call.staged;
    const struct excess_word *all = comm->scratch;
    void *staging = queued ? malloc (bytes) : NULL;
    double *numbers = malloc (4 * sizeof (double) * s->count + 1), result = 0;
    gs_status_t st, own = (staging || !queued) && numbers ? GS_OK : GS_ERR_NOMEM;
    int bad;

    if (!own && queued)
        own = comm->device->ops->alloc (comm->device, bytes, &s->sum);
    else if (!own)
        own = (s->sum = malloc (bytes)) ? GS_OK : GS_ERR_NOMEM;
    if (!(st = tell_excess (s, 0, own, &bad)) && bad < 0 &&
        !(st = compare_adjoints (s, s->sum, staging, numbers, &result)))
        st = tell_excess (s, result, GS_OK, &bad);
    if (!st && bad >= 0) {
        *refused = true;
        st = all[bad].status
                 ? gsi_fail ((gs_status_t) all[bad].status,
                             "%s: rank %d (host %s) has no memory for what GS_CHECK=collective "
                             "compares",
                             s->as.caller, bad, comm->hosts[bad])
                 : gsi_fail (GS_ERR_MISMATCH,
                             "%s: GS_GRAD_OWN_SLOT is not the gradient: the own part of rank %d "
                             "(host %s) is not the average of what all ranks have there, so they "
                             "do not compute the same loss: give GS_GRAD_ADJOINT",
                             s->as.caller, bad, comm->hosts[bad]);
    }
    free (staging);
    free (numbers);
    return st;
}

/* What verify has made, when the call has ended: before, a free would wait for work that a failed
 * call has left on the GPU. */
static void free_sum (struct slot *s)
{
    if (!s->as.comm->inflight || s->call.staged)
        free (s->sum);
    else if (!gsi_device_is_stuck (s->as.comm->device))
        s->as.comm->device->ops->free (s->as.comm->device, s->sum);
}

/* This rank's part, times the number of ranks. */
static gs_status_t scale (struct slot *s)
{
    struct gsi_conversion how = {s->as.dtype, s->as.dtype, s->as.comm->topo.size};
    struct gsi_run run = {s->own, s->to, s->count};
    gs_status_t st;

    if (!s->count)
        return GS_OK;
    if (s->as.comm->inflight && !s->call.staged)
        return s->as.comm->device->ops->streams->convert (&how, &run, 1, s->call.stream);
    if (s->as.comm->inflight && (st = gsi_staging_catch_up (s->as.comm, &s->call)))
        return st;
    gsi_host_convert (&how, &run, 1);
    return GS_OK;
}

static gs_status_t own_slot (struct slot *s)
{
    gs_comm_t *comm = s->as.comm;
    struct gsi_extent in, out;
    bool refused = false;
    gs_status_t st = gsi_pieces_check (&s->as, &s->from, false, &in);

    if (st || (st = gsi_call_check (&s->as, s->to, s->count, &out)) ||
        (st = gsi_pieces_pair (&s->as, s->from.buf, &in, s->to, &out, s->to == s->own)) ||
        (st = gsi_call_begin (&s->as, &in, &s->call)))
        return st;
    if (comm->check == GSI_CHECK_COLLECTIVE && !s->call.capturing)
        st = verify (s, &refused);
    st =
        refused ? gsi_call_refuse (comm, st) : gsi_call_end (comm, &s->call, st ? st : scale (s));
    free_sum (s);
    return st;
}

static gs_status_t check_contract (const struct slot *s, gs_grad_contract_t contract)
{
    gs_status_t st = gsi_comm_valid (s->as.comm, s->as.caller);

    if (st || contract == GS_GRAD_ADJOINT || contract == GS_GRAD_OWN_SLOT)
        return st ? st : gsi_gradient_dtype (s->as.caller, s->as.dtype);
    return gsi_fail (GS_ERR_ARG,
                     "%s: contract %d is unknown: GS_GRAD_ADJOINT is %d, GS_GRAD_OWN_SLOT %d",
                     s->as.caller, (int) contract, GS_GRAD_ADJOINT, GS_GRAD_OWN_SLOT);
}

gs_status_t gs_allgather_backward (gs_comm_t *comm, const void *grad_y, void *grad_x,
                                   size_t count, gs_dtype_t dtype, gs_grad_contract_t contract,
                                   gs_stream_t stream)
{
    struct slot s = {.as = {comm, "gs_allgather_backward", GSI_OP_ALLGATHER_BACKWARD, count,
                            dtype, (int) contract, stream},
                     .from = {.what = "grad_y", .buf = grad_y, .each = count},
                     .to = grad_x,
                     .count = count};
    gs_status_t st = check_contract (&s, contract);

    if (st)
        return gsi_result (st);
    if (contract == GS_GRAD_ADJOINT)
        return gsi_result (gsi_reduce_scatter (&s.as, grad_y, grad_x, GS_SUM));
    s.own = (const char *) grad_y + (size_t) comm->topo.rank * count * gs_dtype_size (dtype);
    return gsi_result (own_slot (&s));
}

gs_status_t gs_allgatherv_backward (gs_comm_t *comm, const void *grad_y, const size_t *counts,
                                    const size_t *displs, void *grad_x, size_t count,
                                    gs_dtype_t dtype, gs_grad_contract_t contract,
                                    gs_stream_t stream)
{
    struct slot s = {.as = {comm, "gs_allgatherv_backward", GSI_OP_ALLGATHERV_BACKWARD, 0, dtype,
                            (int) contract, stream},
                     .from = {"grad_y", grad_y, counts, displs, 0},
                     .to = grad_x,
                     .count = count};
    gs_status_t st = check_contract (&s, contract);

    if (st || (st = gsi_pieces_part (&s.as, counts, count)))
        return gsi_result (st);
    if (contract == GS_GRAD_ADJOINT)
        return gsi_result (
            gsi_reduce_scatterv (&s.as, grad_y, counts, displs, grad_x, count, GS_SUM));
    s.own = gsi_pieces_place (&s.as, &s.from);
    return gsi_result (own_slot (&s));
}

/* ---- Collectives that are each other's adjoint ---- */

gs_status_t gs_gather_backward (gs_comm_t *comm, const void *grad_y, void *grad_x, size_t count,
                                gs_dtype_t dtype, int root, gs_stream_t stream)
{
    gs_status_t st = gsi_gradient_dtype ("gs_gather_backward", dtype);

    return gsi_result (st ? st : gs_scatter (comm, grad_y, grad_x, count, dtype, root, stream));
}

gs_status_t gs_gatherv_backward (gs_comm_t *comm, const void *grad_y, const size_t *counts,
                                 const size_t *displs, void *grad_x, size_t count,
                                 gs_dtype_t dtype, int root, gs_stream_t stream)
{
    gs_status_t st = gsi_gradient_dtype ("gs_gatherv_backward", dtype);

    return gsi_result (
        st ? st : gs_scatterv (comm, grad_y, counts, displs, grad_x, count, dtype, root, stream));
}

gs_status_t gs_scatter_backward (gs_comm_t *comm, const void *grad_y, void *grad_x, size_t count,
                                 gs_dtype_t dtype, int root, gs_stream_t stream)
{
    gs_status_t st = gsi_gradient_dtype ("gs_scatter_backward", dtype);

    return gsi_result (st ? st : gs_gather (comm, grad_y, grad_x, count, dtype, root, stream));
}

gs_status_t gs_scatterv_backward (gs_comm_t *comm, const void *grad_y, size_t count, void *grad_x,
                                  size_t room, const size_t *counts, const size_t *displs,
                                  gs_dtype_t dtype, int root, gs_stream_t stream)
{
    gs_status_t st = gsi_gradient_dtype ("gs_scatterv_backward", dtype);

    return gsi_result (
        st ? st
           : gs_gatherv (comm, grad_y, count, grad_x, room, counts, displs, dtype, root, stream));
}

gs_status_t gs_alltoall_backward (gs_comm_t *comm, const void *grad_y, void *grad_x, size_t count,
                                  gs_dtype_t dtype, gs_stream_t stream)
{
    gs_status_t st = gsi_gradient_dtype ("gs_alltoall_backward", dtype);

    return gsi_result (st ? st : gs_alltoall (comm, grad_y, grad_x, count, dtype, stream));
}

gs_status_t gs_alltoallv_backward (gs_comm_t *comm, const void *grad_y, const size_t *recv_counts,
                                   const size_t *recv_displs, void *grad_x,
                                   const size_t *send_counts, const size_t *send_displs,
                                   gs_dtype_t dtype, gs_stream_t stream)
{
    gs_status_t st = gsi_gradient_dtype ("gs_alltoallv_backward", dtype);

    return gsi_result (st ? st
                          : gs_alltoallv (comm, grad_y, recv_counts, recv_displs, grad_x,
                                          send_counts, send_displs, dtype, stream));
}

gs_status_t gs_broadcast_backward (gs_comm_t *comm, const void *grad_y, void *grad_x,
                                   size_t count, gs_dtype_t dtype, int root, gs_stream_t stream)
{
    gs_status_t st = gsi_gradient_dtype ("gs_broadcast_backward", dtype);

    return gsi_result (st ? st
                          : gs_reduce (comm, grad_y, grad_x, count, dtype, GS_SUM, root, stream));
}

gs_status_t gs_allreduce_backward (gs_comm_t *comm, void *grad, size_t count, gs_dtype_t dtype,
                                   gs_op_t op, gs_stream_t stream)
{
    gs_status_t st = gsi_gradient_dtype ("gs_allreduce_backward", dtype);

    if (!st && op != GS_SUM && op != GS_AVG)
        st = gsi_fail (GS_ERR_UNSUPPORTED,
                       "gs_allreduce_backward: operation %d has no linear gradient: GS_SUM (%d) "
                       "and GS_AVG (%d) have",
                       (int) op, GS_SUM, GS_AVG);
    return gsi_result (st ? st : gs_allreduce (comm, grad, count, dtype, op, stream));
}

gs_status_t gs_reduce_backward (gs_comm_t *comm, void *grad, size_t count, gs_dtype_t dtype,
                                int root, gs_stream_t stream)
{
    gs_status_t st = gsi_gradient_dtype ("gs_reduce_backward", dtype);

    return gsi_result (st ? st : gs_broadcast (comm, grad, count, dtype, root, stream));
}

gs_status_t gs_reduce_scatter_backward (gs_comm_t *comm, const void *grad_y, void *grad_x,
                                        size_t count, gs_dtype_t dtype, gs_stream_t stream)
{
    gs_status_t st = gsi_gradient_dtype ("gs_reduce_scatter_backward", dtype);

    return gsi_result (st ? st : gs_allgather (comm, grad_y, grad_x, count, dtype, stream));
}

gs_status_t gs_reduce_scatterv_backward (gs_comm_t *comm, const void *grad_y, size_t count,
                                         void *grad_x, size_t room, const size_t *counts,
                                         const size_t *displs, gs_dtype_t dtype,
                                         gs_stream_t stream)
{
    struct gsi_request r = {.comm = comm, .caller = "gs_reduce_scatterv_backward"};
    gs_status_t st = gsi_comm_valid (comm, r.caller);

    if (st || (st = gsi_gradient_dtype (r.caller, dtype)) ||
        (st = gsi_pieces_part (&r, counts, count)))
        return gsi_result (st);
    return gsi_result (
        gs_allgatherv (comm, grad_y, count, grad_x, room, counts, displs, dtype, stream));
}
