/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_nccl_shards - reductions by exchange: all contributions to a shard meet on one rank.
 *
 * A block of the array is cut into one shard per rank. Everyone sends every shard to its rank,
 * which reduces what came, in rank order and rounding once, and hands the result to the others.
 */
#include <string.h>

#include "base/status.h"
#include "coll/coll_nccl.h"

#define SPACE_BYTES ((size_t) 32 << 20) /* where the contributions to a shard meet */
#define SHARD_STEP  64                  /* elements a shard is a multiple of: aligned words */
#define WIDEST      16                  /* bytes of an element */
#define GROUP_PEERS 1024 /* a send and a receive each; NCCL takes 2048 in one group */

/* One block of the array, cut. */
struct block {
    char *at;
    size_t count, shard; /* elements */
    size_t width;        /* bytes of an element */
};

static size_t space_bytes (const struct gsi_coll_nccl *c)
{
    size_t least = (size_t) c->size * SHARD_STEP * WIDEST;

    return least > SPACE_BYTES ? least : SPACE_BYTES;
}

gs_status_t gsi_nccl_shards_open (struct gsi_coll_nccl *c)
{
    size_t scales = (size_t) c->size * sizeof (double);
    void *memory;
    gs_status_t st;

    if (c->space)
        return GS_OK;
    if ((st = c->device->ops->alloc (c->device, scales, &memory)))
        return st;
    c->scale = memory;
    if ((st = c->queue->alloc_pinned (scales, &memory)))
        return st;
    c->scale_pinned = memory;
    if ((st = c->queue->event_open (&c->space_free)) ||
        (st = c->queue->event_open (&c->scale_free)))
        return st;
    return c->device->ops->alloc (c->device, space_bytes (c), &c->space);
}

void gsi_nccl_shards_close (struct gsi_coll_nccl *c)
{
    c->device->ops->free (c->device, c->space);
    c->device->ops->free (c->device, c->scale);
    c->queue->free_pinned (c->device, c->scale_pinned);
    c->queue->event_close (c->space_free);
    c->queue->event_close (c->scale_free);
}

/* Elements of the shard of [rank]; the last ones may be short or empty. */
static size_t length (const struct block *b, int rank)
{
    size_t begin = (size_t) rank * b->shard;

    if (begin >= b->count)
        return 0;
    return b->count - begin < b->shard ? b->count - begin : b->shard;
}

static char *place (const struct block *b, int rank)
{
    return b->at + (size_t) rank * b->shard * b->width;
}

/* One message of each direction, inside a group. */
static ncclResult_t swap (const struct gsi_coll_nccl *c, const void *send, size_t send_bytes,
                          int to, void *recv, size_t recv_bytes, int from,
                          const struct gsi_call *call)
{
    ncclResult_t rc = ncclSuccess;

    if (send_bytes)
        rc = gsi_nccl.Send (send, send_bytes, ncclInt8, to, c->comm, call->stream);
    if ((!rc || rc == ncclInProgress) && recv_bytes)
        rc = gsi_nccl.Recv (recv, recv_bytes, ncclInt8, from, c->comm, call->stream);
    return rc == ncclInProgress ? ncclSuccess : rc;
}

/*
 * Everyone sends and receives: before the reduction each shard to its rank, into the space
 * there; after it the reduced shard to all.
 */
static gs_status_t exchange (const struct gsi_coll_nccl *c, const struct block *b, bool reduced,
                             const struct gsi_call *call)
{
    size_t mine = length (b, c->rank);
    gs_status_t st = GS_OK;

    for (int begin = 1; begin < c->size && !st; begin += GROUP_PEERS) {
        ncclResult_t rc = gsi_nccl.GroupStart (), ended;
        if (rc) /* there is no group to end */
            return gsi_nccl_fail (c, "ncclGroupStart", rc);
        for (int d = begin; d < c->size && d < begin + GROUP_PEERS && !rc; d++) {
            int to = (c->rank + d) % c->size, from = (c->rank + c->size - d) % c->size;
            if (reduced)
                rc = swap (c, place (b, c->rank), mine * b->width, to, place (b, from),
                           length (b, from) * b->width, from, call);
            else
                rc = swap (c, place (b, to), length (b, to) * b->width, to,
                           (char *) c->space + (size_t) from * b->shard * b->width,
                           mine * b->width, from, call);
        }
        ended = gsi_nccl.GroupEnd ();
        st = gsi_nccl_settle (c, "the exchange of shards", rc ? rc : ended, call->deadline_ns);
    }
    return st;
}

static gs_status_t reduce_block (const struct gsi_coll_nccl *c, const struct block *b,
                                 const struct gsi_reduction *how, const struct gsi_call *call)
{
    size_t mine = length (b, c->rank);
    char *own = place (b, c->rank);
    gs_status_t st = exchange (c, b, false, call);

    if (!st && mine)
        st = c->queue->copy ((char *) c->space + (size_t) c->rank * b->shard * b->width, own,
                             mine * b->width, call->stream);
    if (!st && mine)
        st = c->queue->reduce (how, own, c->space, b->shard, c->size, mine,
                               how->scale ? c->scale : NULL, call->stream);
    if (st)
        return st;
    if (b->count != b->shard * (size_t) c->size)
        return exchange (c, b, true, call);
    return gsi_nccl_settle (
        c, "ncclAllGather",
        gsi_nccl.AllGather (own, b->at, b->shard * b->width, ncclInt8, c->comm, call->stream),
        call->deadline_ns);
}

/* Brings the weights to the device; the pinned copy is free again when the last one has gone. */
static gs_status_t send_scale (const struct gsi_coll_nccl *c, const struct gsi_reduction *how,
                               const struct gsi_call *call)
{
    size_t bytes = (size_t) c->size * sizeof (double);
    gs_status_t st = gsi_nccl_await (c, c->scale_free, call->deadline_ns);

    if (st)
        return st;
    memcpy (c->scale_pinned, how->scale, bytes);
    if ((st = c->queue->copy (c->scale, c->scale_pinned, bytes, call->stream)))
        return st;
    return c->queue->event_record (c->scale_free, call->stream);
}

/* The space serves one stream at a time; a graph cannot wait for what is outside of it. */
static gs_status_t begin (struct gsi_coll_nccl *c, const struct gsi_reduction *how,
                          const struct gsi_call *call)
{
    gs_status_t st;

    if (!c->space && call->capturing)
        return gsi_fail (GS_ERR_UNSUPPORTED, "this reduction needs memory that cannot be made "
                                             "while a graph is captured: call it once before");
    if ((st = gsi_nccl_shards_open (c)))
        return st;
    if (!call->capturing && (st = c->queue->stream_wait (call->stream, c->space_free)))
        return st;
    return how->scale ? send_scale (c, how, call) : GS_OK;
}

gs_status_t gsi_nccl_shards_reduce (struct gsi_coll_nccl *c, void *buf, size_t count,
                                    const struct gsi_reduction *how, const struct gsi_call *call)
{
    size_t width = gs_dtype_size (how->dtype), ranks = (size_t) c->size;
    size_t most = space_bytes (c) / ranks / width / SHARD_STEP * SHARD_STEP;
    gs_status_t st = begin (c, how, call);

    for (size_t done = 0; done < count && !st;) {
        struct block b = {.at = (char *) buf + done * width, .width = width};
        size_t left = count - done, even = left / ranks + !!(left % ranks);
        even = (even + SHARD_STEP - 1) / SHARD_STEP * SHARD_STEP;
        b.shard = even < most ? even : most;
        b.count = left < b.shard * ranks ? left : b.shard * ranks;
        st = reduce_block (c, &b, how, call);
        done += b.count;
    }
    if (!st && !call->capturing)
        st = c->queue->event_record (c->space_free, call->stream);
    return st;
}
