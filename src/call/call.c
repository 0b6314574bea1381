/* SPDX-License-Identifier: BSD-3-Clause */
/* call - what every collective does before and after its work. */
#include "call/call.h"

#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/log.h"
#include "base/process.h"
#include "call/describe.h"
#include "call/failure.h"
#include "call/gpu_lock.h"
#include "call/inflight.h"
#include "call/lease.h"
#include "call/peers.h"
#include "call/staging.h"
#include "call/traffic.h"
#include "call/watchdog.h"

#define COMPARED_CALLS 2 /* the first calls of a communicator are compared in any case */

_Static_assert(sizeof (struct gsi_told) <= GSI_SCRATCH_BYTES, "they are gathered in scratch");

/* What an array is aligned to, a power of two; complex numbers as their parts are. */
static size_t alignment (gs_dtype_t dtype)
{
    return gs_dtype_size (dtype) / (gsi_dtype_is_complex (dtype) ? 2 : 1);
}

/* Finds out where [buf] is and refuses memory that this communicator cannot reach. */
static gs_status_t check_memory (const struct gsi_request *r, const void *buf, bool *staged)
{
    const gs_comm_t *comm = r->comm;
    enum gsi_memory where = GSI_MEMORY_HOST;
    int owner = 0;
    gs_status_t st = gsi_device_where (comm->device, buf, &where, &owner);

    if (st)
        return st;
    *staged = comm->inflight && where == GSI_MEMORY_HOST;
    if (where != GSI_MEMORY_OTHER)
        return GS_OK;
    if (!comm->inflight)
        return gsi_fail (GS_ERR_DEVICE,
                         "%s: the buffer is in memory of GPU %d, but communicator '%s' is one of "
                         "hosts (transport %s), which cannot reach it: copy it to the host, or "
                         "use transport nccl; gs-info and GS_DEBUG=info tell why it was not",
                         r->caller, owner, comm->name, gs_comm_transport (comm));
    return gsi_fail (GS_ERR_DEVICE,
                     "%s: the buffer is in memory of GPU %d, but communicator '%s' is on GPU %d "
                     "of this process",
                     r->caller, owner, comm->name, comm->device->ordinal);
}

gs_status_t gsi_call_check (const struct gsi_request *r, const void *buf, size_t count,
                            struct gsi_extent *extent)
{
    const gs_comm_t *comm = r->comm;
    gs_status_t st = gsi_comm_valid (comm, r->caller);

    extent->staged = false;
    if (st || (st = gsi_dtype_bytes (r->caller, count, r->dtype, &extent->bytes)))
        return st;
    if (comm->check != GSI_CHECK_OFF) {
        if (!buf && count)
            return gsi_fail (GS_ERR_ARG, "%s: the buffer is NULL, but count is %zu", r->caller,
                             count);
        if ((uintptr_t) buf & (alignment (r->dtype) - 1))
            return gsi_fail (GS_ERR_ARG, "%s: the buffer %p is not aligned for %s", r->caller,
                             buf, gsi_dtype_name (r->dtype));
    }
    if (!count || !(comm->inflight || (comm->sees_gpus && comm->check != GSI_CHECK_OFF)))
        return GS_OK;
    return check_memory (r, buf, &extent->staged);
}

/* Why a communicator that is not alive takes no call. */
static gs_status_t not_alive (gs_comm_t *comm, enum gsi_record_op op)
{
    const char *name = gsi_record_op_name (op);

    if (atomic_load (&comm->life) == GSI_ABORTED)
        return gsi_fail (GS_ERR_STATE, "%s: communicator '%s' was aborted", name, comm->name);
    return gsi_fail (comm->death, "%s: communicator '%s' is dead since: %s", name, comm->name,
                     comm->death_text);
}

/* Whether ranks may have nothing in a call that others have something in. */
static bool is_ragged (enum gsi_record_op op)
{
    return op == GSI_OP_ALLGATHERV || op == GSI_OP_GATHERV || op == GSI_OP_SCATTERV ||
           op == GSI_OP_ALLTOALLV || op == GSI_OP_REDUCE_SCATTERV ||
           op == GSI_OP_ALLGATHERV_BACKWARD;
}

/* Gathers what every rank is about to do and refuses the first difference, on all ranks alike. */
static gs_status_t compare_calls (gs_comm_t *comm, const struct gsi_told *mine,
                                  const struct gsi_call *call, bool *differ)
{
    const struct gsi_told *all = comm->scratch;
    struct gsi_call alike = *call;
    char first[GSI_DESCRIBE_TEXT], other[GSI_DESCRIBE_TEXT];
    int number = 0; /* of ranks that do as [base]: the first that has something */
    int base = 0;
    gs_status_t st;

    alike.fingerprint = 0; /* whatever they call, they compare it */
    st = gsi_staging_control (comm, mine, comm->scratch, sizeof (*mine), &alike);

    while (!st && base < comm->topo.size - 1 && all[base].memory == GSI_TOLD_NOTHING)
        base++;
    for (int r = 0; r < comm->topo.size && !st; r++)
        number += !gsi_told_differs (&all[base], &all[r]);
    *differ = !st && number < comm->topo.size;
    for (int r = 0; r < comm->topo.size && *differ && !st; r++) {
        if (!gsi_told_differs (&all[base], &all[r]))
            continue;
        gsi_describe_told (comm, &all[base], first, sizeof (first));
        gsi_describe_told (comm, &all[r], other, sizeof (other));
        st = gsi_fail (GS_ERR_MISMATCH,
                       "call #%llu of communicator '%s': rank %d (host %s) calls %s; rank %d "
                       "(host %s) calls %s; %d of %d ranks call what rank %d calls. All ranks "
                       "must call the same operation with the same arguments, in the same order",
                       (unsigned long long) call->seq, comm->name, base, comm->hosts[base], first,
                       r, comm->hosts[r], other, number, comm->topo.size, base);
    }
    return st;
}

/* Lets go of the communicator; an abort meanwhile has left it to us to tell the others. */
static void leave_call (gs_comm_t *comm)
{
    gsi_inflight_now (comm, NULL); /* first: its end moves what the watchdog expects */
    gsi_watchdog_expect (comm, 0);
    gsi_gpu_unlock (comm);
    gsi_comm_hold (comm);
    atomic_flag_clear (&comm->busy);
    if (atomic_load (&comm->life) == GSI_ABORTED)
        gsi_failure_tell (comm);
    gsi_comm_release (comm);
}

/* Takes the communicator for this thread. */
static gs_status_t take_comm (gs_comm_t *comm, struct gsi_call *call)
{
    gs_status_t st = gsi_lease_admit (comm, gsi_record_op_name (call->op));

    if (st)
        return st;
    if (atomic_flag_test_and_set_explicit (&comm->busy, memory_order_acquire))
        return gsi_fail (GS_ERR_STATE,
                         "%s: communicator '%s' is inside another call: one thread "
                         "at a time",
                         gsi_record_op_name (call->op), comm->name);
    if ((st = gsi_inflight_enter (comm, call))) {
        atomic_flag_clear (&comm->busy);
        return st;
    }
    if (atomic_load_explicit (&comm->life, memory_order_acquire) == GSI_ALIVE)
        return GS_OK;
    st = not_alive (comm, (enum gsi_record_op) call->op);
    leave_call (comm);
    return st;
}

/*
 * A number for what all ranks must ask for alike, as their call [number]; transports tell by it
 * whose data they have. Without that a call that one rank leaves out, for it has no elements
 * there, would take the data of the next one like it.
 */
static uint32_t fingerprint_of (const struct gsi_request *r, uint64_t number)
{
    uint64_t what =
        (uint64_t) (uint32_t) r->argument << 16 | (uint64_t) r->op << 8 | (uint64_t) r->dtype;
    uint64_t hash = (r->count + UINT64_C (0x9e3779b97f4a7c15)) * UINT64_C (0xbf58476d1ce4e5b9);

    hash = (hash ^ hash >> 31 ^ what) * UINT64_C (0x94d049bb133111eb); /* those of SplitMix64 */
    hash = (hash ^ hash >> 29 ^ number) * UINT64_C (0xbf58476d1ce4e5b9);
    return (uint32_t) (hash >> 32);
}

gs_status_t gsi_call_begin_messages (const struct gsi_request *r, bool staged,
                                     struct gsi_call *call)
{
    gs_comm_t *comm = r->comm;
    gs_status_t st;

    call->op = r->op;
    call->stream = r->stream;
    call->staged = staged;
    call->argument = r->argument;
    call->yielding = comm->client ? &comm->client->yielding : NULL;
    call->capturing = false;
    if ((st = take_comm (comm, call)))
        return st;
    gsi_traffic_begin (comm);
    call->message = gsi_record_is_message (r->op) ? comm->record.messages + 1 : 0;
    call->seq = comm->record.seq + 1;
    comm->number += !call->message && r->op != GSI_OP_POOL;
    call->fingerprint = fingerprint_of (r, call->message ? 0 : comm->number);
    call->deadline_ns = comm->inflight ? gsi_now_ns () + comm->timeout_ns : 0;
    gsi_inflight_now (comm, call); /* before it is counted: who aborts now has missed it, too */
    call->deadline_ns =
        gsi_record_begin (&comm->record, r->op, r->count, (int) r->dtype, r->argument) +
        comm->timeout_ns;
    gsi_watchdog_expect (comm, call->deadline_ns);
    if (comm->check == GSI_CHECK_COLLECTIVE)
        comm->record.file->caller = gsi_record_thread ();
    return GS_OK;
}

/* In which memory this rank's array is, for a comparison. */
static enum gsi_told_memory memory_of (const gs_comm_t *comm, enum gsi_record_op op,
                                       const struct gsi_extent *array)
{
    if (!array || !comm->inflight || comm->coll->mixed)
        return GSI_TOLD_DEVICE;
    if (is_ragged (op) && !array->bytes)
        return GSI_TOLD_NOTHING;
    return array->staged ? GSI_TOLD_HOST : GSI_TOLD_DEVICE;
}

gs_status_t gsi_call_begin (const struct gsi_request *r, const struct gsi_extent *array,
                            struct gsi_call *call)
{
    gs_comm_t *comm = r->comm;
    struct gsi_told mine;
    bool differ;
    gs_status_t st = gsi_call_begin_messages (r, array && array->staged, call);

    if (st)
        return st;
    if (call->capturing || (comm->check != GSI_CHECK_COLLECTIVE && call->seq > COMPARED_CALLS))
        return GS_OK;
    mine = (struct gsi_told){.count = r->count,
                             .step = comm->record.file->step,
                             .op = r->op,
                             .dtype = (int32_t) r->dtype,
                             .argument = r->argument,
                             .memory = memory_of (comm, r->op, array)};
    if (!(st = compare_calls (comm, &mine, call, &differ)))
        return GS_OK;
    return differ ? gsi_call_refuse (comm, st) : gsi_call_end (comm, call, st);
}

gs_status_t gsi_call_no_memory (gs_comm_t *comm, enum gsi_record_op op, const char *caller)
{
    struct gsi_request r = {.comm = comm, .caller = caller, .op = op};
    struct gsi_call call;
    gs_status_t st = gsi_call_begin_messages (&r, true, &call); /* nothing is queued */

    return st ? st
              : gsi_call_end (comm, &call, gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller));
}

gs_status_t gsi_call_refuse (gs_comm_t *comm, gs_status_t st)
{
    gsi_record_end (&comm->record, st);
    leave_call (comm);
    return st;
}

gs_status_t gsi_call_end (gs_comm_t *comm, const struct gsi_call *call, gs_status_t st)
{
    bool queued = !st && comm->inflight && !call->staged && call->op != GSI_OP_DESTROY &&
                  call->op != GSI_OP_SPLIT;
    bool watched = false;

    if (queued) /* also if it is of no use any more: before memory is freed its end is awaited */
        watched = !(st = gsi_inflight_watch (comm, call));
    if (!st && comm->inflight && (!queued || atomic_load (&comm->life) != GSI_ALIVE))
        st = gsi_peers_sound (comm); /* of a queued call it is asked when that has ended */
    if (st == GS_ERR_UNSUPPORTED)
        return gsi_call_refuse (comm, st);
    if (st) {
        gsi_inflight_leave (comm); /* before another thread, which reports, lets this one go */
        st = gsi_failure_report (comm, call, st);
    }
    if (gsi_log_on (GS_LOG_TRACE))
        gsi_log (GS_LOG_TRACE, "coll", "%s #%llu of '%s': %s", gsi_record_op_name (call->op),
                 (unsigned long long) (call->message ? call->message : call->seq), comm->name,
                 gs_status_string (st));
    if (!st)
        gsi_traffic_end (comm, call->op);
    if (!watched)
        gsi_record_end (&comm->record, st);
    leave_call (comm);
    return st;
}
