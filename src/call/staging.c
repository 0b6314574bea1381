/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * staging - hands a call's arrays to the transport.
 *
 * Staging works in pieces and two lanes, each with a stream of its own: while one piece is on its
 * way over the bus or between the ranks, the host copies the next one into pinned memory and the
 * one before out of it.
 */
#include "call/staging.h"

#include <stdlib.h>
#include <string.h>

#include "call/inflight.h"
#include "call/traffic.h"
#include "transport/staged_op.h"

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

struct gsi_staging {
    struct lane lane[LANES];
    struct gsi_event *before; /* what the caller's stream had to do before the call */
};

static const struct gsi_stream_ops *ops_of (const gs_comm_t *comm)
{
    return comm->device->ops->streams;
}

/* Whether arrays of the host go through the lanes: the transport does not take them itself. */
static bool by_lanes (const gs_comm_t *comm, const struct gsi_call *call)
{
    return call->staged && comm->coll->ops->queued && !comm->coll->ops->takes_hosts;
}

/* Before the transport takes arrays itself: those of the host, behind the caller's stream. */
static gs_status_t before_direct (gs_comm_t *comm, const struct gsi_call *call)
{
    return call->staged && comm->inflight ? gsi_staging_catch_up (comm, call) : GS_OK;
}

/* Room for a word of every rank, however many there are. */
static size_t lane_bytes (const gs_comm_t *comm)
{
    size_t least = (size_t) comm->topo.size * GSI_SCRATCH_BYTES;

    return least > LANE_BYTES ? least : LANE_BYTES;
}

/* ---- Life ---- */

static gs_status_t open_lane (gs_comm_t *comm, struct lane *lane)
{
    const struct gsi_stream_ops *ops = ops_of (comm);
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
    const struct gsi_stream_ops *ops = ops_of (comm);

    ops->event_close (lane->event);
    ops->stream_close (lane->stream);
    comm->device->ops->free (comm->device, lane->device);
    ops->free_pinned (comm->device, lane->pinned);
}

void gsi_staging_mark (const gs_comm_t *comm)
{
    for (int i = 0; comm->staging && i < LANES; i++)
        if (comm->staging->lane[i].event)
            ops_of (comm)->event_record (comm->staging->lane[i].event,
                                         comm->staging->lane[i].stream);
}

bool gsi_staging_has_ended (const gs_comm_t *comm)
{
    bool done = true;

    for (int i = 0; comm->staging && i <= LANES && done; i++) {
        struct gsi_event *event =
            i < LANES ? comm->staging->lane[i].event : comm->staging->before;
        if (event && ops_of (comm)->event_done (event, &done))
            return true; /* a GPU that failed does no more work */
    }
    return done;
}

gs_status_t gsi_staging_open (gs_comm_t *comm)
{
    int previous;
    gs_status_t st;

    if (!ops_of (comm))
        return GS_OK;
    if (!(comm->staging = calloc (1, sizeof (*comm->staging))))
        return gsi_fail (GS_ERR_NOMEM, "out of memory");
    if ((st = ops_of (comm)->enter (comm->device, &previous)))
        return st;
    st = ops_of (comm)->event_open (&comm->staging->before);
    for (int i = 0; i < LANES && !st; i++)
        st = open_lane (comm, &comm->staging->lane[i]);
    ops_of (comm)->leave (comm->device, previous);
    return st;
}

void gsi_staging_close (gs_comm_t *comm)
{
    int previous;

    if (!comm->staging)
        return;
    if (!ops_of (comm)->enter (comm->device, &previous)) {
        for (int i = 0; i < LANES; i++)
            close_lane (comm, &comm->staging->lane[i]);
        ops_of (comm)->event_close (comm->staging->before);
        ops_of (comm)->leave (comm->device, previous);
    }
    free (comm->staging);
    comm->staging = NULL;
}

/* ---- Staging ---- */

/* Waits for a lane's piece and hands it to the caller's array. */
static gs_status_t finish_piece (gs_comm_t *comm, const struct gsi_staged_op *op,
                                 struct lane *lane, const struct gsi_call *call)
{
    gs_status_t st;

    if (!lane->busy)
        return GS_OK;
    lane->busy = false;
    if ((st = gsi_inflight_await (comm, lane->event, call)))
        return st;
    for (int p = 0; op->out && p < op->outs; p++)
        memcpy (op->out + (size_t) p * op->bytes + lane->at,
                lane->pinned + (size_t) p * lane->bytes, lane->bytes);
    return GS_OK;
}

/* Sends the piece of [bytes] at [at] on its way; [call] has the lane's stream. */
static gs_status_t launch (gs_comm_t *comm, const struct gsi_staged_op *op, struct lane *lane,
                           size_t at, size_t bytes, const struct gsi_call *call)
{
    const struct gsi_stream_ops *ops = ops_of (comm);
    gs_status_t st = GS_OK;

    lane->at = at;
    lane->bytes = bytes;
    for (int p = 0; op->in && p < op->ins; p++)
        memcpy (lane->pinned + (size_t) p * bytes, op->in + (size_t) p * op->bytes + at, bytes);
    if (op->in)
        st = ops->copy (lane->device + gsi_staged_at (op, op->ins, 0, bytes), lane->pinned,
                        (size_t) op->ins * bytes, lane->stream);
    if (!st)
        st = op->run (op, comm->coll, lane->device, bytes, call);
    if (!st && op->out)
        st = ops->copy (lane->pinned, lane->device + gsi_staged_at (op, op->outs, 0, bytes),
                        (size_t) op->outs * bytes, lane->stream);
    if (!st)
        st = ops->event_record (lane->event, lane->stream);
    lane->busy = !st;
    return st;
}

gs_status_t gsi_staging_catch_up (gs_comm_t *comm, const struct gsi_call *call)
{
    struct gsi_event *before = comm->staging->before;
    gs_status_t st = ops_of (comm)->event_record (before, call->stream);

    return st ? st : gsi_inflight_await (comm, before, call);
}

gs_status_t gsi_staging_await (gs_comm_t *comm, const struct gsi_call *call)
{
    struct lane *lane = &comm->staging->lane[0];
    gs_status_t st = ops_of (comm)->event_record (lane->event, lane->stream);

    return st ? st : gsi_inflight_await (comm, lane->event, call);
}

gs_status_t gsi_staging_meet (gs_comm_t *comm, const struct gsi_call *call)
{
    struct gsi_call apart = *call; /* of the caller's stream: others may wait for that one */
    size_t bytes = sizeof (int32_t);
    char *words; /* of all ranks, which say nothing */
    gs_status_t st;

    if (comm->coll->ops->takes_hosts) /* also of ranks without a GPU beside those with one */
        return gsi_staging_control (comm, &comm->topo.rank, comm->scratch, bytes, call);
    if (!comm->inflight)
        return GS_OK;
    apart.stream = comm->staging->lane[0].stream;
    words = comm->staging->lane[0].device;
    st = comm->coll->ops->allgather (comm->coll, words + bytes * (size_t) comm->topo.rank, words,
                                     bytes, &apart);
    return st ? st : gsi_staging_await (comm, &apart);
}

gs_status_t gsi_staging_fetch (gs_comm_t *comm, void *to, const void *from, size_t bytes,
                               const struct gsi_call *call)
{
    struct lane *lane = &comm->staging->lane[0];
    gs_status_t st = gsi_staging_catch_up (comm, call);

    for (size_t at = 0, n; at < bytes && !st; at += n) {
        n = bytes - at < lane_bytes (comm) ? bytes - at : lane_bytes (comm);
        if ((st =
                 ops_of (comm)->copy (lane->pinned, (const char *) from + at, n, lane->stream)) ||
            (st = gsi_staging_await (comm, call)))
            break;
        memcpy ((char *) to + at, lane->pinned, n);
    }
    return st;
}

static gs_status_t stage (gs_comm_t *comm, struct gsi_staged_op op, const struct gsi_call *call)
{
    size_t piece = gsi_staged_piece (&op, lane_bytes (comm));
    struct gsi_staging *staging = comm->staging;
    gs_status_t st = gsi_staging_catch_up (comm, call);
    struct gsi_call apart = *call;
    int turn = 0;

    for (size_t at = 0; at < op.bytes && !st; at += piece, turn = (turn + 1) % LANES) {
        struct lane *lane = &staging->lane[turn];
        apart.stream = lane->stream;
        if (!(st = finish_piece (comm, &op, lane, call)))
            st = launch (comm, &op, lane, at, gsi_step_of (op.bytes, at, piece), &apart);
    }
    for (int i = 0; i < LANES && !st; i++, turn = (turn + 1) % LANES)
        st = finish_piece (comm, &op, &staging->lane[turn], call);
    return st;
}

/* ---- Operations ---- */

static bool all_ones (const double *scale, int size)
{
    for (int r = 0; r < size; r++)
        if (scale[r] != 1)
            return false;
    return true;
}

gs_status_t gsi_staging_allreduce (gs_comm_t *comm, void *buf, size_t count,
                                   const struct gsi_reduction *given, const struct gsi_call *call)
{
    struct gsi_reduction own = *given;
    const struct gsi_reduction *how = &own;
    gs_status_t st;

    if (own.scale && all_ones (own.scale, comm->topo.size))
        own.scale = NULL; /* equal weights: the same way and bits as the plain average */
    gsi_traffic_hand (comm, count * gs_dtype_size (how->dtype));
    if (by_lanes (comm, call))
        return stage (comm, gsi_staged_allreduce (buf, count, how), call);
    st = before_direct (comm, call);
    return st ? st : comm->coll->ops->allreduce (comm->coll, buf, count, how, call);
}

gs_status_t gsi_staging_broadcast (gs_comm_t *comm, void *buf, size_t bytes, int root,
                                   const struct gsi_call *call)
{
    gs_status_t st;

    gsi_traffic_hand (comm, comm->topo.rank == root ? bytes : 0);
    if (by_lanes (comm, call))
        return stage (comm, gsi_staged_broadcast (buf, bytes, root, comm->topo.rank), call);
    st = before_direct (comm, call);
    return st ? st : comm->coll->ops->broadcast (comm->coll, buf, bytes, root, call);
}

gs_status_t gsi_staging_allgather (gs_comm_t *comm, const void *send, void *recv, size_t bytes,
                                   const struct gsi_call *call)
{
    int rank = comm->topo.rank, size = comm->topo.size;
    gs_status_t st;

    gsi_traffic_hand (comm, bytes);
    if (by_lanes (comm, call))
        return stage (comm, gsi_staged_allgather (send, recv, bytes, rank, size), call);
    st = before_direct (comm, call);
    return st ? st : comm->coll->ops->allgather (comm->coll, send, recv, bytes, call);
}

gs_status_t gsi_staging_reduce_scatter (gs_comm_t *comm, const void *send, void *recv,
                                        size_t count, const struct gsi_reduction *how,
                                        const struct gsi_call *call)
{
    int rank = comm->topo.rank, size = comm->topo.size;
    gs_status_t st;

    gsi_traffic_hand (comm, count * gs_dtype_size (how->dtype) * (size_t) size);
    if (by_lanes (comm, call))
        return stage (comm, gsi_staged_reduce_scatter (send, recv, count, how, rank, size), call);
    st = before_direct (comm, call);
    return st ? st : comm->coll->ops->reduce_scatter (comm->coll, send, recv, count, how, call);
}

gs_status_t gsi_staging_reduce (gs_comm_t *comm, const void *send, void *recv, size_t count,
                                const struct gsi_reduction *how, int root,
                                const struct gsi_call *call)
{
    gs_status_t st;

    gsi_traffic_hand (comm, count * gs_dtype_size (how->dtype));
    if (by_lanes (comm, call))
        return stage (comm, gsi_staged_reduce (send, recv, count, how, root, comm->topo.rank),
                      call);
    st = before_direct (comm, call);
    return st ? st : comm->coll->ops->reduce (comm->coll, send, recv, count, how, root, call);
}

/* Staged, it is one reduction to each rank. */
gs_status_t gsi_staging_reduce_scatterv (gs_comm_t *comm, const void *send, const size_t *at,
                                         const size_t *count, void *recv,
                                         const struct gsi_reduction *how,
                                         const struct gsi_call *call)
{
    gs_status_t st = GS_OK;

    if (!by_lanes (comm, call)) {
        for (int r = 0; r < comm->topo.size; r++)
            gsi_traffic_hand (comm, count[r] * gs_dtype_size (how->dtype));
        st = before_direct (comm, call);
        return st ? st
                  : comm->coll->ops->reduce_scatterv (comm->coll, send, at, count, recv, how,
                                                      call);
    }
    for (int r = 0; r < comm->topo.size && !st; r++)
        if (count[r])
            st = gsi_staging_reduce (comm, (const char *) send + at[r], recv, count[r], how, r,
                                     call);
    return st;
}

/* ---- Exchanges ---- */

/* Bytes of a piece of each rank that is staged at once, in each direction. */
static size_t share_bytes (const gs_comm_t *comm)
{
    return lane_bytes (comm) / (size_t) comm->topo.size;
}

/* Lays the parts of pieces from [at] on one behind the other; returns their bytes in all. */
static size_t pack_parts (const gs_comm_t *comm, const size_t *pieces, size_t at, size_t *places,
                          size_t *bytes)
{
    size_t total = 0, share = share_bytes (comm);

    for (int r = 0; r < comm->topo.size; r++) {
        places[r] = total;
        bytes[r] = gsi_step_of (pieces[r], at, share);
        total += bytes[r];
    }
    return total;
}

/*
 * Parts of the pieces from [at] on: by one lane's memory they go out, by the other's they come
 * in. Ranks need not do this equally often: a pair does for its longer piece.
 */
static gs_status_t stage_part (gs_comm_t *comm, const struct gsi_alltoallv *x, size_t at,
                               const struct gsi_call *call)
{
    struct lane *out = &comm->staging->lane[0], *in = &comm->staging->lane[1];
    const struct gsi_stream_ops *ops = ops_of (comm);
    size_t size = (size_t) comm->topo.size, *words = comm->lengths + GSI_LENGTHS_STAGED * size;
    size_t *send_at = words, *send_bytes = words + size;
    size_t *recv_at = words + 2 * size, *recv_bytes = words + 3 * size;
    size_t sends = pack_parts (comm, x->send_bytes, at, send_at, send_bytes);
    size_t recvs = pack_parts (comm, x->recv_bytes, at, recv_at, recv_bytes);
    struct gsi_alltoallv part = {.send = out->device,
                                 .recv = in->device,
                                 .send_at = send_at,
                                 .send_bytes = send_bytes,
                                 .recv_at = recv_at,
                                 .recv_bytes = recv_bytes};
    struct gsi_call apart = *call;
    gs_status_t st = GS_OK;

    apart.stream = out->stream;
    for (size_t r = 0; r < size; r++)
        if (send_bytes[r])
            memcpy (out->pinned + send_at[r], x->send + x->send_at[r] + at, send_bytes[r]);
    if (sends)
        st = ops->copy (out->device, out->pinned, sends, out->stream);
    if (!st)
        st = comm->coll->ops->alltoallv (comm->coll, &part, &apart);
    if (recvs && !st)
        st = ops->copy (in->pinned, in->device, recvs, out->stream);
    if (!st && !(st = ops->event_record (out->event, out->stream)))
        st = gsi_inflight_await (comm, out->event, call);
    for (size_t r = 0; r < size && !st; r++)
        if (recv_bytes[r])
            memcpy (x->recv + x->recv_at[r] + at, in->pinned + recv_at[r], recv_bytes[r]);
    return st;
}

gs_status_t gsi_staging_alltoallv (gs_comm_t *comm, const struct gsi_alltoallv *x,
                                   const struct gsi_call *call)
{
    size_t share = share_bytes (comm), longest = 0;
    gs_status_t st;

    gsi_traffic_hand_pieces (comm, x);
    if (!by_lanes (comm, call)) {
        st = before_direct (comm, call);
        return st ? st : comm->coll->ops->alltoallv (comm->coll, x, call);
    }
    for (int r = 0; r < comm->topo.size; r++) {
        longest = x->send_bytes[r] > longest ? x->send_bytes[r] : longest;
        longest = x->recv_bytes[r] > longest ? x->recv_bytes[r] : longest;
    }
    st = gsi_staging_catch_up (comm, call);
    for (size_t at = 0; at < longest && !st; at += share)
        st = stage_part (comm, x, at, call);
    return st;
}

/* ---- Others ---- */

gs_status_t gsi_staging_side_stream (gs_comm_t *comm, const struct gsi_call *call,
                                     struct gsi_call *apart)
{
    *apart = *call;
    apart->stream = comm->staging->lane[0].stream;
    return gsi_staging_catch_up (comm, call);
}

/* ---- Words ---- */

gs_status_t gsi_staging_control (gs_comm_t *comm, const void *send, void *recv, size_t bytes,
                                 const struct gsi_call *call)
{
    const struct gsi_sent sent = comm->coll->sent; /* of arrays; words are not counted */
    struct gsi_call apart = *call; /* of the caller's stream: it need not be waited for */
    gs_status_t st;

    apart.staged = true;
    if (!by_lanes (comm, &apart)) {
        st = comm->coll->ops->allgather (comm->coll, send, recv, bytes, &apart);
    } else {
        apart.stream = comm->staging->lane[0].stream;
        st = stage (comm,
                    gsi_staged_allgather (send, recv, bytes, comm->topo.rank, comm->topo.size),
                    &apart);
    }
    comm->coll->sent = sent;
    return st;
}
