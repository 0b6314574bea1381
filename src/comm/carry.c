/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * carry - hands a call's arrays to the transport.
 *
 * Staging works in pieces and two lanes, each with a stream of its own: while one piece is on its
 * way over the bus or between the ranks, the host copies the next one into pinned memory and the
 * one before out of it.
 */
#include "comm/carry.h"

#include <stdlib.h>
#include <string.h>

#include "comm/queue.h"

#define LANES      2
#define LANE_BYTES ((size_t) 4 << 20)

/* One of the pieces under way. */
struct lane {
    char *pinned, *device; /* [LANE_BYTES] or more, see lane_bytes */
    gs_stream_t stream;
    struct gsi_event *event; /* the piece is back in pinned memory */
    bool busy;
    size_t at, bytes; /* of the piece, in a part */
};

struct gsi_carry {
    struct lane lane[LANES];
    struct gsi_event *before; /* what the caller's stream had to do before the call */
};

/*
 * A staged operation. What goes in has one part, what comes out [parts] of them, each [bytes]
 * long; NULL: nothing goes in or comes out here.
 */
struct transfer {
    gs_comm_t *comm;
    const struct gsi_call *call;
    const char *in;
    char *out;
    size_t bytes, unit; /* pieces are multiples of [unit] */
    int parts;
    int place; /* among the parts in device memory, where what goes in is put */
    gs_status_t (*run) (const struct transfer *t, char *device, size_t bytes,
                        const struct gsi_call *call);
    const struct gsi_reduction *how;
    int root;
};

static const struct gsi_queue_ops *ops_of (const gs_comm_t *comm)
{
    return comm->device->ops->queue;
}

/* Room for a word of every rank, however many there are. */
static size_t lane_bytes (const gs_comm_t *comm)
{
    size_t least = (size_t) comm->team.size * GSI_SCRATCH_BYTES;

    return least > LANE_BYTES ? least : LANE_BYTES;
}

/* ---- Life ---- */

static gs_status_t open_lane (gs_comm_t *comm, struct lane *lane)
{
    const struct gsi_queue_ops *ops = ops_of (comm);
    void *memory;
    gs_status_t st = ops->alloc_pinned (lane_bytes (comm), &memory);

    if (st)
        return st;
    lane->pinned = memory;
    if ((st = comm->device->ops->alloc (comm->device, lane_bytes (comm), &memory)))
        return st;
    lane->device = memory;
    if ((st = ops->stream_open (&lane->stream)))
        return st;
    return ops->event_open (&lane->event);
}

static void close_lane (gs_comm_t *comm, struct lane *lane)
{
    const struct gsi_queue_ops *ops = ops_of (comm);

    ops->event_close (lane->event);
    ops->stream_close (lane->stream);
    comm->device->ops->free (comm->device, lane->device);
    ops->free_pinned (comm->device, lane->pinned);
}

gs_status_t gsi_carry_open (gs_comm_t *comm)
{
    int previous;
    gs_status_t st;

    if (!ops_of (comm))
        return GS_OK;
    if (!(comm->carry = calloc (1, sizeof (*comm->carry))))
        return gsi_fail (GS_ERR_NOMEM, "out of memory");
    if ((st = ops_of (comm)->enter (comm->device, &previous)))
        return st;
    st = ops_of (comm)->event_open (&comm->carry->before);
    for (int i = 0; i < LANES && !st; i++)
        st = open_lane (comm, &comm->carry->lane[i]);
    ops_of (comm)->leave (comm->device, previous);
    return st;
}

void gsi_carry_close (gs_comm_t *comm)
{
    int previous;

    if (!comm->carry)
        return;
    if (!ops_of (comm)->enter (comm->device, &previous)) {
        for (int i = 0; i < LANES; i++)
            close_lane (comm, &comm->carry->lane[i]);
        ops_of (comm)->event_close (comm->carry->before);
        ops_of (comm)->leave (comm->device, previous);
    }
    free (comm->carry);
    comm->carry = NULL;
}

void gsi_carry_mark (const gs_comm_t *comm)
{
    for (int i = 0; comm->carry && i < LANES; i++)
        if (comm->carry->lane[i].event)
            ops_of (comm)->event_record (comm->carry->lane[i].event, comm->carry->lane[i].stream);
}

bool gsi_carry_ended (const gs_comm_t *comm)
{
    bool done = true;

    for (int i = 0; comm->carry && i <= LANES && done; i++) {
        struct gsi_event *event = i < LANES ? comm->carry->lane[i].event : comm->carry->before;
        if (event && ops_of (comm)->event_done (event, &done))
            return true; /* a GPU that failed does no more work */
    }
    return done;
}

/* ---- Staging ---- */

/* Waits for a lane's piece and hands it to the caller's array. */
static gs_status_t finish (const struct transfer *t, struct lane *lane)
{
    gs_status_t st;

    if (!lane->busy)
        return GS_OK;
    lane->busy = false;
    if ((st = gsi_queue_await (t->comm, lane->event, t->call)))
        return st;
    for (int p = 0; t->out && p < t->parts; p++)
        memcpy (t->out + (size_t) p * t->bytes + lane->at,
                lane->pinned + (size_t) p * lane->bytes, lane->bytes);
    return GS_OK;
}

/* Sends the piece of [bytes] at [at] on its way. */
static gs_status_t launch (const struct transfer *t, struct lane *lane, size_t at, size_t bytes)
{
    const struct gsi_queue_ops *ops = ops_of (t->comm);
    struct gsi_call call = *t->call;
    char *own = lane->device + (size_t) t->place * bytes;
    gs_status_t st = GS_OK;

    call.stream = lane->stream;
    lane->at = at;
    lane->bytes = bytes;
    if (t->in) {
        memcpy (lane->pinned, t->in + at, bytes);
        st = ops->copy (own, lane->pinned, bytes, lane->stream);
    }
    if (!st)
        st = t->run (t, lane->device, bytes, &call);
    if (!st && t->out)
        st = ops->copy (lane->pinned, lane->device, (size_t) t->parts * bytes, lane->stream);
    if (!st)
        st = ops->event_record (lane->event, lane->stream);
    lane->busy = !st;
    return st;
}

/* What the caller's stream had to do comes first: it may write the array. */
static gs_status_t catch_up (const struct transfer *t)
{
    struct gsi_event *before = t->comm->carry->before;
    gs_status_t st = ops_of (t->comm)->event_record (before, t->call->stream);

    return st ? st : gsi_queue_await (t->comm, before, t->call);
}

static gs_status_t stage (const struct transfer *t)
{
    size_t piece = lane_bytes (t->comm) / (size_t) t->parts / t->unit * t->unit;
    struct gsi_carry *carry = t->comm->carry;
    gs_status_t st = catch_up (t);
    int turn = 0;

    for (size_t at = 0; at < t->bytes && !st; at += piece, turn = (turn + 1) % LANES) {
        struct lane *lane = &carry->lane[turn];
        size_t bytes = t->bytes - at < piece ? t->bytes - at : piece;
        if (!(st = finish (t, lane)))
            st = launch (t, lane, at, bytes);
    }
    for (int i = 0; i < LANES && !st; i++, turn = (turn + 1) % LANES)
        st = finish (t, &carry->lane[turn]);
    return st;
}

/* ---- Operations ---- */

static gs_status_t run_allreduce (const struct transfer *t, char *device, size_t bytes,
                                  const struct gsi_call *call)
{
    struct gsi_coll *coll = t->comm->coll;

    return coll->ops->allreduce (coll, device, bytes / t->unit, t->how, call);
}

gs_status_t gsi_carry_allreduce (gs_comm_t *comm, void *buf, size_t count,
                                 const struct gsi_reduction *how, const struct gsi_call *call)
{
    size_t width = gs_dtype_size (how->dtype);
    struct transfer t = {.comm = comm,
                         .call = call,
                         .in = buf,
                         .out = buf,
                         .bytes = count * width,
                         .unit = width,
                         .parts = 1,
                         .run = run_allreduce,
                         .how = how};

    return call->staged ? stage (&t)
                        : comm->coll->ops->allreduce (comm->coll, buf, count, how, call);
}

static gs_status_t run_broadcast (const struct transfer *t, char *device, size_t bytes,
                                  const struct gsi_call *call)
{
    struct gsi_coll *coll = t->comm->coll;

    return coll->ops->broadcast (coll, device, bytes, t->root, call);
}

gs_status_t gsi_carry_broadcast (gs_comm_t *comm, void *buf, size_t bytes, int root,
                                 const struct gsi_call *call)
{
    bool is_root = comm->team.rank == root;
    struct transfer t = {.comm = comm,
                         .call = call,
                         .in = is_root ? buf : NULL,
                         .out = is_root ? NULL : buf,
                         .bytes = bytes,
                         .unit = 1,
                         .parts = 1,
                         .run = run_broadcast,
                         .root = root};

    return call->staged ? stage (&t)
                        : comm->coll->ops->broadcast (comm->coll, buf, bytes, root, call);
}

static gs_status_t run_allgather (const struct transfer *t, char *device, size_t bytes,
                                  const struct gsi_call *call)
{
    struct gsi_coll *coll = t->comm->coll;

    return coll->ops->allgather (coll, device + (size_t) t->place * bytes, device, bytes, call);
}

static gs_status_t stage_allgather (gs_comm_t *comm, const void *send, void *recv, size_t bytes,
                                    const struct gsi_call *call)
{
    struct transfer t = {.comm = comm,
                         .call = call,
                         .in = send,
                         .out = recv,
                         .bytes = bytes,
                         .unit = 1,
                         .parts = comm->team.size,
                         .place = comm->team.rank,
                         .run = run_allgather};

    return stage (&t);
}

gs_status_t gsi_carry_allgather (gs_comm_t *comm, const void *send, void *recv, size_t bytes,
                                 const struct gsi_call *call)
{
    return call->staged ? stage_allgather (comm, send, recv, bytes, call)
                        : comm->coll->ops->allgather (comm->coll, send, recv, bytes, call);
}

gs_status_t gsi_carry_words (gs_comm_t *comm, const void *send, void *recv, size_t bytes,
                             const struct gsi_call *call)
{
    struct gsi_call apart = *call; /* of the caller's stream: it need not be waited for */

    if (!comm->coll->ops->queued)
        return comm->coll->ops->allgather (comm->coll, send, recv, bytes, call);
    apart.stream = comm->carry->lane[0].stream;
    return stage_allgather (comm, send, recv, bytes, &apart);
}
