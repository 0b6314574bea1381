/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_nccl_shards - reductions by alltoallv: all contributions to a shard meet on one rank.
 *
 * A block of the array is cut into one shard per rank. Everyone sends every shard to its rank,
 * which reduces what came, in rank order and rounding once, and hands the result to the others.
 */
#include "base/status.h"
#include "transport/coll_nccl.h"

#define SPACE_BYTES ((size_t) 32 << 20) /* where the contributions to a shard meet */
#define ROOM_BYTES  128                 /* for an element of each rank, by shards or rails */

/* One block of the array, cut. */
struct block {
    const char *from;
    size_t count, shard; /* elements */
    size_t stride;       /* elements from one shard to the next in [from], */
    size_t room;         /* and from one contribution to the next in the space */
    size_t width;        /* bytes of an element */
};

size_t gsi_nccl_space_bytes (const struct gsi_coll_nccl *c)
{
    size_t least = (size_t) c->size * GSI_SHARD_STEP * ROOM_BYTES;

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
    return c->device->ops->alloc (c->device, gsi_nccl_space_bytes (c), &c->space);
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
static size_t shard_length (const struct block *b, int rank)
{
    return gsi_step_of (b->count, (size_t) rank * b->shard, b->shard);
}

/* Where the contribution of [rank] to a shard is put. */
static char *room (const struct gsi_coll_nccl *c, const struct block *b, int rank)
{
    return (char *) c->space + (size_t) rank * b->room * b->width;
}

/* Sums this rank's shard into [dst], which may be its contribution in the space. */
static gs_status_t reduce_shard (struct gsi_coll_nccl *c, const struct block *b, void *dst,
                                 const struct gsi_reduction *how, const struct gsi_call *call)
{
    size_t *shard_at = c->length, *shard = shard_at + c->size;
    size_t *room_at = shard + c->size, *mine = room_at + c->size, own = shard_length (b, c->rank);
    struct gsi_alltoallv x = {.send = b->from,
                              .recv = c->space,
                              .send_at = shard_at,
                              .send_bytes = shard,
                              .recv_at = room_at,
                              .recv_bytes = mine};
    gs_status_t st;

    for (int r = 0; r < c->size; r++) {
        shard_at[r] = (size_t) r * b->stride * b->width;
        shard[r] = shard_length (b, r) * b->width;
        room_at[r] = (size_t) r * b->room * b->width;
        mine[r] = own * b->width;
    }
    st = gsi_nccl_alltoallv (&c->base, &x, call);
    if (st || !own)
        return st;
    return c->queue->reduce (how, dst, c->space, b->room, c->size, own,
                             how->scale ? c->scale : NULL, call->stream);
}

/* Hands this rank's shard at [own] to [root], or -1 to all, which put the block together at [to].
 */
static gs_status_t collect (struct gsi_coll_nccl *c, const struct block *b, const void *own,
                            char *to, int root, const struct gsi_call *call)
{
    size_t *shard_at = c->length, *shard = shard_at + c->size;
    size_t *own_at = shard + c->size, *mine = own_at + c->size;
    struct gsi_alltoallv x = {.send = own,
                              .recv = to,
                              .send_at = own_at,
                              .send_bytes = mine,
                              .recv_at = shard_at,
                              .recv_bytes = shard};

    for (int r = 0; r < c->size; r++) {
        shard_at[r] = (size_t) r * b->shard * b->width;
        shard[r] = root < 0 || c->rank == root ? shard_length (b, r) * b->width : 0;
        own_at[r] = 0;
        mine[r] = root < 0 || r == root ? shard_length (b, c->rank) * b->width : 0;
    }
    return gsi_nccl_alltoallv (&c->base, &x, call);
}

static gs_status_t reduce_block (struct gsi_coll_nccl *c, const struct block *b, char *to,
                                 const struct gsi_reduction *how, const struct gsi_call *call)
{
    char *own = to + (size_t) c->rank * b->shard * b->width;
    gs_status_t st = reduce_shard (c, b, own, how, call);

    if (st)
        return st;
    if (b->count != b->shard * (size_t) c->size)
        return collect (c, b, own, to, -1, call);
    gsi_coll_unknown (&c->base);
    return gsi_nccl_leave (c, "ncclAllGather",
                           gsi_nccl.AllGather (own, to, b->shard * b->width, ncclInt8,
                                               gsi_nccl_enter (c), call->stream));
}

/*
 * Brings the weights of [of], or of all ranks, to the device, if they are not there yet, as they
 * are when the next bucket of a step comes. The pinned copy is free again when the last one has
 * gone. No graph has weights: calls with them are refused while one is captured.
 */
static gs_status_t send_scale (struct gsi_coll_nccl *c, const double *scale, const int *of,
                               const struct gsi_call *call)
{
    int number = of ? c->base.topo->local_size : c->size, same = 0;
    gs_status_t st;

    while (same < number && same < c->scales &&
           c->scale_pinned[same] == scale[of ? of[same] : same])
        same++;
    if (same == number)
        return GS_OK;
    if ((st = gsi_nccl_await (c, c->scale_free, call->deadline_ns)))
        return st;
    c->scales = 0;
    for (int i = 0; i < number; i++)
        c->scale_pinned[i] = scale[of ? of[i] : i];
    st = c->queue->copy (c->scale, c->scale_pinned, (size_t) number * sizeof (double),
                         call->stream);
    if (!st && !(st = c->queue->event_record (c->scale_free, call->stream)))
        c->scales = number;
    return st;
}

/* The space serves one stream at a time; a graph cannot wait for what is outside of it. */
gs_status_t gsi_nccl_space_begin (struct gsi_coll_nccl *c, const double *scale, const int *of,
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
    return scale ? send_scale (c, scale, of, call) : GS_OK;
}

/* The next user of the space waits for this one. */
gs_status_t gsi_nccl_space_end (struct gsi_coll_nccl *c, const struct gsi_call *call)
{
    return call->capturing ? GS_OK : c->queue->event_record (c->space_free, call->stream);
}

/* Most elements of a shard that the space has room for. */
static size_t most_of (const struct gsi_coll_nccl *c, size_t width)
{
    return gsi_nccl_space_bytes (c) / (size_t) c->size / width / GSI_SHARD_STEP * GSI_SHARD_STEP;
}

/* The next block of what is [left] at [from]. */
static struct block next_block (const struct gsi_coll_nccl *c, const void *from, size_t left,
                                size_t width)
{
    size_t ranks = (size_t) c->size, even = left / ranks + !!(left % ranks);
    size_t most = most_of (c, width);
    struct block b = {.from = from, .width = width};

    even = gsi_shard_round_up (even);
    b.shard = b.stride = b.room = even < most ? even : most;
    b.count = left < b.shard * ranks ? left : b.shard * ranks;
    return b;
}

gs_status_t gsi_nccl_shards_reduce (struct gsi_coll_nccl *c, void *buf, size_t count,
                                    const struct gsi_reduction *how, const struct gsi_call *call)
{
    size_t width = gs_dtype_size (how->dtype);
    gs_status_t st = gsi_nccl_space_begin (c, how->scale, NULL, call);

    for (size_t done = 0; done < count && !st;) {
        char *at = (char *) buf + done * width;
        struct block b = next_block (c, at, count - done, width);
        st = reduce_block (c, &b, at, how, call);
        done += b.count;
    }
    return st ? st : gsi_nccl_space_end (c, call);
}

gs_status_t gsi_nccl_shards_to_root (struct gsi_coll_nccl *c, const void *send, void *recv,
                                     size_t count, const struct gsi_reduction *how, int root,
                                     const struct gsi_call *call)
{
    size_t width = gs_dtype_size (how->dtype);
    gs_status_t st = gsi_nccl_space_begin (c, how->scale, NULL, call);

    for (size_t done = 0; done < count && !st;) {
        struct block b = next_block (c, (const char *) send + done * width, count - done, width);
        char *own = room (c, &b, c->rank);
        if (!(st = reduce_shard (c, &b, own, how, call)))
            st = collect (c, &b, own, (char *) recv + done * width, root, call);
        done += b.count;
    }
    return st ? st : gsi_nccl_space_end (c, call);
}

gs_status_t gsi_nccl_shards_scatter (struct gsi_coll_nccl *c, const void *send, void *recv,
                                     size_t count, const struct gsi_reduction *how,
                                     const struct gsi_call *call)
{
    size_t width = gs_dtype_size (how->dtype), most = most_of (c, width);
    gs_status_t st = gsi_nccl_space_begin (c, how->scale, NULL, call);

    for (size_t done = 0; done < count && !st; done += most) {
        size_t n = count - done < most ? count - done : most;
        struct block b = {.from = (const char *) send + done * width,
                          .count = n * (size_t) c->size,
                          .shard = n,
                          .stride = count,
                          .room = gsi_shard_round_up (n),
                          .width = width};
        st = reduce_shard (c, &b, (char *) recv + done * width, how, call);
    }
    return st ? st : gsi_nccl_space_end (c, call);
}
