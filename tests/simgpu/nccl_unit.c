/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_unit - what a group launches on a communicator, as one piece of work on a stream's thread.
 * Units of a communicator run one at a time, in the order in which they were issued.
 *
 * After an abort they run as well, and in that order, but wait for no peer: nccl_net.c.
 *
 * Units of graphs have no place in that order: they run when the graph comes to them and nothing
 * else of the communicator runs. Streams and events must order them with everything else.
 */
#include <stdlib.h>

#include "nccl_sim.h"

static enum nsim_end carry_out (struct nsim_unit *unit)
{
    enum nsim_end end = NSIM_OK;
    size_t direct = 0;
    struct nsim_op *op = calloc (unit->n, sizeof (*op));

    for (size_t i = 0; i < unit->n && end == NSIM_OK; i++) {
        const struct nsim_op *next = &unit->op[i];

        if (next->late != ncclSuccess) {
            nsim_warn ("SIM_FAULT asked for error %d while an operation runs", next->late);
            nsim_set_error (unit->comm, next->late);
        }
        if (next->stall || next->late != ncclSuccess)
            nsim_await_stop (unit->comm);
        if (next->what == NSIM_SEND || next->what == NSIM_RECV)
            op[direct++] = *next;
        else
            end = nsim_collective (next);
    }
    if (end == NSIM_OK && direct > 0)
        end = nsim_point_to_point (op, direct);
    free (op);
    return end;
}

/* Whether it is this unit's turn; false: nothing is to be done any more. */
static bool await_turn (struct nsim_unit *unit)
{
    ncclComm_t comm = unit->comm;

    comm->running++;
    nsim_runs (comm, 1);
    while (!comm->broken && (comm->busy || (!unit->captured && comm->serving != unit->ticket)))
        pthread_cond_wait (&comm->cond, &comm->mutex);
    if (comm->broken)
        return false;
    comm->busy = true;
    return true;
}

/* Locked. */
static void unlink_unit (struct nsim_unit *unit)
{
    struct nsim_unit **at = &unit->comm->units;

    while (*at != unit)
        at = &(*at)->next;
    *at = unit->next;
}

static void run_unit (void *arg)
{
    struct nsim_unit *unit = *(struct nsim_unit **) arg;
    ncclComm_t comm = unit->comm;
    bool turn;

    pthread_mutex_lock (&comm->mutex);
    if (unit->captured && comm->phase >= NSIM_DESTROYED)
        sim_misuse ("a graph replays operations of communicator %d, which is gone", comm->number);
    turn = await_turn (unit);
    pthread_mutex_unlock (&comm->mutex);
    if (turn && carry_out (unit) == NSIM_LOST) {
        /* The kernel of a real one would go on waiting for its peer. Within a host there is no
         * connection whose end would tell. */
        if (!comm->silent)
            nsim_set_error (comm, ncclRemoteError);
        nsim_await_stop (comm);
    }
    pthread_mutex_lock (&comm->mutex);
    comm->busy = comm->busy && !turn;
    comm->running--;
    nsim_runs (comm, -1);
    if (!unit->captured) {
        comm->serving++;
        comm->queued--;
        unlink_unit (unit);
    }
    pthread_cond_broadcast (&comm->cond);
    pthread_mutex_unlock (&comm->mutex);
    if (!unit->captured)
        free (unit);
}

/* The unit waits for all streams of its operations, and all of them wait for it. */
static cudaError_t join_streams (const struct nsim_unit *unit, bool before)
{
    cudaError_t result = cudaSuccess;
    cudaStream_t main = unit->op[0].stream;

    for (size_t i = 1; i < unit->n && result == cudaSuccess; i++) {
        cudaStream_t stream = unit->op[i].stream;
        cudaEvent_t event;
        size_t first = 0;

        while (unit->op[first].stream != stream)
            first++;
        if (first < i)
            continue;
        result = cudaEventCreateWithFlags (&event, cudaEventDisableTiming);
        if (result != cudaSuccess)
            break;
        result = cudaEventRecord (event, before ? stream : main);
        if (result == cudaSuccess)
            result = cudaStreamWaitEvent (before ? main : stream, event, 0);
        cudaEventDestroy (event);
    }
    return result;
}

/* The [index]th operation of this kind between this rank and itself. */
static const struct nsim_op *with_itself (const struct nsim_unit *unit, enum nsim_what what,
                                          size_t index)
{
    for (size_t i = 0; i < unit->n; i++)
        if (unit->op[i].what == what && unit->op[i].root == unit->comm->rank && index-- == 0)
            return &unit->op[i];
    return NULL;
}

/* Messages to oneself are sent and received in one group. */
static bool own_messages_match (const struct nsim_unit *unit)
{
    for (size_t i = 0; i < unit->n; i++) {
        const struct nsim_op *out = with_itself (unit, NSIM_SEND, i);
        const struct nsim_op *in = with_itself (unit, NSIM_RECV, i);

        if (!out && !in)
            return true;
        if (!out || !in ||
            out->count * nsim_type_bytes (out->type) != in->count * nsim_type_bytes (in->type)) {
            nsim_warn ("Trying to %s self without a matching %s", out ? "send to" : "recv from",
                       out ? "recv" : "send");
            return false;
        }
    }
    return true;
}

/* The communicator may go when no graph holds its operations. */
static void graph_gone (void *arg)
{
    ((ncclComm_t) arg)->graphs--;
}

/* The worker cannot pass the mutex, so [unit] lives until it is released. */
static cudaError_t push (struct nsim_unit *unit)
{
    ncclComm_t comm = unit->comm;
    bool captured = unit->captured;
    cudaError_t code;

    pthread_mutex_lock (&comm->mutex);
    unit->ticket = comm->tickets;
    code = sim_push (unit->op[0].stream, run_unit, &unit, sizeof (unit));
    if (code == cudaSuccess) {
        comm->tickets += captured ? 0 : 1;
        comm->queued += captured ? 0 : 1;
        unit->next = comm->units;
        comm->units = unit;
        if (captured && sim_watch_graph (unit->op[0].stream, graph_gone, comm))
            comm->graphs++;
        code = join_streams (unit, false);
    } else {
        free (unit);
    }
    pthread_mutex_unlock (&comm->mutex);
    return code;
}

/* The default streams are those of the communicator's device. Only where it is another one: the
 * real library's calls of CUDA are not seen by who counts them, or makes them fail. */
static int enter_device (ncclComm_t comm)
{
    int before = -1;

    if (sim_physical_device () != comm->card[comm->rank].device &&
        cudaGetDevice (&before) == cudaSuccess)
        cudaSetDevice (comm->device);
    return before;
}

/*
 * (SIM_FIRST_LAUNCH) The first launch of a kernel waits for the device, which makes memory for
 * its stack (seen on an H200; NCCL_SET_STACK_SIZE). Few elements go by trees where there are more
 * than two ranks.
 */
static void prepare_kernel (const struct nsim_unit *unit)
{
    static _Atomic (bool) launched[NSIM_FINALIZE][2];
    const struct nsim_op *op = &unit->op[0];
    bool tree = op->count < 64 && unit->comm->ranks > 2;

    if (getenv ("SIM_FIRST_LAUNCH") && !unit->captured && !launched[op->what][tree]) {
        sim_await_device (unit->comm->device);
        launched[op->what][tree] = true;
    }
}

ncclResult_t nsim_launch (struct nsim_unit *unit)
{
    ncclComm_t comm = unit->comm;
    ncclResult_t result = ncclSuccess;
    cudaError_t code;
    int before;

    unit->captured = sim_is_capturing (unit->op[0].stream);
    if (!own_messages_match (unit)) {
        free (unit);
        return ncclInvalidUsage;
    }
    for (size_t i = 0; i < unit->n && result == ncclSuccess; i++)
        if (unit->op[i].what < NSIM_SEND)
            result = nsim_connect (&unit->op[i]);
    if (result != ncclSuccess) {
        nsim_warn ("communicator %d was aborted while it connected", comm->number);
        free (unit);
        return result;
    }
    before = enter_device (comm);
    prepare_kernel (unit);
    for (size_t i = 0; i < unit->n; i++)
        sim_await_room (unit->op[i].stream);
    code = join_streams (unit, true);
    if (code == cudaSuccess)
        code = push (unit);
    else
        free (unit);
    if (before >= 0 && (comm->blocking || nsim_version () < 22400))
        cudaSetDevice (before); /* of a thread of its own, too: v2.22.3 group.cc:466 */
    if (code == cudaSuccess)
        return ncclSuccess;
    nsim_warn ("Cuda failure '%s' on communicator %d", cudaGetErrorString (code), comm->number);
    return ncclUnhandledCudaError;
}
