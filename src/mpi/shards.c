/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shards - large operations between hosts, in blocks that pass through staging.
 *
 * Allreduce: a block is cut in one shard per rank. Every rank sends each other rank its shard,
 * combines the contributions to its own in rank order, with one rounding, and sends the result
 * to all: the bytes of a ring in two steps instead of 2 (size - 1). While the results of one
 * block travel, the shards of the next do.
 */
#include <string.h>

#include "base/dtype.h"
#include "mpi/coll_mpi.h"

/* One large allreduce. */
struct job {
    struct gsi_coll_mpi *c;
    char *buf;
    size_t count, width;  /* elements; bytes of one */
    size_t block, blocks; /* elements in a block; how many blocks */
    const struct gsi_reduction *how;
    const struct gsi_call *call;
};

/* The shard of [rank] in block [b]: its first element and how many. */
static size_t shard (const struct job *j, size_t b, int rank, size_t *elements)
{
    size_t base = b * j->block;
    size_t size = (size_t) j->c->size, r = (size_t) rank;
    size_t n = j->count - base < j->block ? j->count - base : j->block;
    size_t each = (n + size - 1) / size;
    size_t first = r * each < n ? r * each : n;

    *elements = n - first < each ? n - first : each;
    return base + first;
}

/* Where the piece to or from [rank] is staged. */
static char *piece (const struct gsi_coll_mpi *c, char *staging, int rank)
{
    return staging + (size_t) rank * c->piece_bytes;
}

/* Sends every other rank its shard of block [b]. A rank with weight 0 sends zeros. */
static gs_status_t start_scatter (const struct job *j, size_t b)
{
    struct gsi_coll_mpi *c = j->c;
    struct gsi_slot *slot = &c->scatter[b % GSI_STAGING_SLOTS];
    size_t mine, n;
    gs_status_t st = GS_OK;

    shard (j, b, c->rank, &mine);
    for (int i = 1; i < c->size && !st; i++) {
        int from = (c->rank - i + c->size) % c->size, to = (c->rank + i) % c->size;
        size_t first = shard (j, b, to, &n);
        char *out = piece (c, slot->send, to);
        if (mine)
            st = gsi_p2p_recv (c, slot, piece (c, slot->recv, from), mine * j->width, from,
                               GSI_TAG_SCATTER);
        if (!n || st)
            continue;
        if (j->how->scale && j->how->scale[c->rank] == 0)
            memset (out, 0, n * j->width);
        else
            memcpy (out, j->buf + first * j->width, n * j->width);
        st = gsi_p2p_send (c, slot, out, n * j->width, to, GSI_TAG_SCATTER);
    }
    return st;
}

/* Combines the contributions to this rank's shard of block [b], into the staging for results. */
static gs_status_t finish_scatter (const struct job *j, size_t b)
{
    struct gsi_coll_mpi *c = j->c;
    struct gsi_slot *slot = &c->scatter[b % GSI_STAGING_SLOTS];
    char *result = c->gather[b % GSI_STAGING_SLOTS].send;
    size_t n, first = shard (j, b, c->rank, &n);
    gs_status_t st = gsi_p2p_wait (c, slot, j->call);

    if (st || !n)
        return st;
    for (int r = 0; r < c->size; r++)
        c->source[r] = piece (c, slot->recv, r);
    c->source[c->rank] = j->buf + first * j->width;
    c->device->ops->reduce (j->how, result, c->source, c->size, n);
    return GS_OK;
}

static gs_status_t start_gather (const struct job *j, size_t b)
{
    struct gsi_coll_mpi *c = j->c;
    struct gsi_slot *slot = &c->gather[b % GSI_STAGING_SLOTS];
    size_t mine, n;
    gs_status_t st = GS_OK;

    shard (j, b, c->rank, &mine);
    for (int i = 1; i < c->size && !st; i++) {
        int from = (c->rank - i + c->size) % c->size, to = (c->rank + i) % c->size;
        shard (j, b, from, &n);
        if (n)
            st = gsi_p2p_recv (c, slot, piece (c, slot->recv, from), n * j->width, from,
                               GSI_TAG_GATHER);
        if (mine && !st)
            st = gsi_p2p_send (c, slot, slot->send, mine * j->width, to, GSI_TAG_GATHER);
    }
    return st;
}

/* Copies the results of block [b] into the application's buffer. */
static gs_status_t finish_gather (const struct job *j, size_t b)
{
    struct gsi_coll_mpi *c = j->c;
    struct gsi_slot *slot = &c->gather[b % GSI_STAGING_SLOTS];
    gs_status_t st = gsi_p2p_wait (c, slot, j->call);

    for (int r = 0; r < c->size && !st; r++) {
        size_t n, first = shard (j, b, r, &n);
        const char *from = r == c->rank ? slot->send : piece (c, slot->recv, r);
        if (n)
            memcpy (j->buf + first * j->width, from, n * j->width);
    }
    return st;
}

gs_status_t gsi_shards_allreduce (struct gsi_coll_mpi *c, char *buf, size_t count,
                                  const struct gsi_reduction *how, const struct gsi_call *call)
{
    struct job j = {.c = c, .buf = buf, .count = count, .how = how, .call = call};
    gs_status_t st;

    j.width = gs_dtype_size (how->dtype);
    j.block = c->piece_bytes / j.width * (size_t) c->size;
    j.blocks = (count + j.block - 1) / j.block;
    st = start_scatter (&j, 0);
    for (size_t b = 0; b < j.blocks && !st; b++) {
        if (b + 1 < j.blocks)
            st = start_scatter (&j, b + 1);
        if (!st)
            st = finish_scatter (&j, b);
        if (!st)
            st = start_gather (&j, b);
        if (!st && b)
            st = finish_gather (&j, b - 1);
    }
    return st ? st : finish_gather (&j, j.blocks - 1);
}

/* Starts the [n] bytes at [offset] of every rank's part on their way. */
static gs_status_t start_part (struct gsi_coll_mpi *c, struct gsi_slot *slot, const char *send,
                               size_t n)
{
    gs_status_t st = GS_OK;

    memcpy (slot->send, send, n);
    for (int i = 1; i < c->size && !st; i++) {
        int from = (c->rank - i + c->size) % c->size, to = (c->rank + i) % c->size;
        st = gsi_p2p_recv (c, slot, piece (c, slot->recv, from), n, from, GSI_TAG_GATHER);
        if (!st)
            st = gsi_p2p_send (c, slot, slot->send, n, to, GSI_TAG_GATHER);
    }
    return st;
}

gs_status_t gsi_shards_allgather (struct gsi_coll_mpi *c, const char *send, char *recv,
                                  size_t bytes, const struct gsi_call *call)
{
    size_t step = c->piece_bytes, steps = (bytes + step - 1) / step;
    gs_status_t st = GS_OK;

    if (send != recv + (size_t) c->rank * bytes)
        memcpy (recv + (size_t) c->rank * bytes, send, bytes);
    for (size_t s = 0; s <= steps && !st; s++) {
        size_t done = s - 1, n;
        if (s < steps) {
            n = bytes - s * step < step ? bytes - s * step : step;
            st = start_part (c, &c->gather[s % GSI_STAGING_SLOTS], send + s * step, n);
        }
        if (!s || st)
            continue;
        n = bytes - done * step < step ? bytes - done * step : step;
        st = gsi_p2p_wait (c, &c->gather[done % GSI_STAGING_SLOTS], call);
        for (int r = 0; r < c->size && !st; r++)
            if (r != c->rank)
                memcpy (recv + (size_t) r * bytes + done * step,
                        piece (c, c->gather[done % GSI_STAGING_SLOTS].recv, r), n);
    }
    return st;
}

/* The neighbours of this rank in a binomial tree from [root]: parent, -1 at the root. */
static int tree (const struct gsi_coll_mpi *c, int root, int *children, int *count)
{
    int place = (c->rank - root + c->size) % c->size, step = 1;

    while (step < c->size && !(place & step))
        step *= 2;
    *count = 0;
    for (int s = step / 2; s >= 1; s /= 2)
        if (place + s < c->size)
            children[(*count)++] = (place + s + root) % c->size;
    return place ? (place - step + root) % c->size : -1;
}

gs_status_t gsi_shards_broadcast (struct gsi_coll_mpi *c, char *buf, size_t bytes, int root,
                                  const struct gsi_call *call)
{
    size_t step = c->piece_bytes * (size_t) c->size, steps = (bytes + step - 1) / step;
    int children[32], count, parent = tree (c, root, children, &count);
    gs_status_t st = GS_OK;

    for (size_t s = 0; s < steps && !st; s++) {
        struct gsi_slot *slot = &c->gather[s % GSI_STAGING_SLOTS];
        size_t n = bytes - s * step < step ? bytes - s * step : step;
        if (slot->active && (st = gsi_p2p_wait (c, slot, call))) /* sends two steps ago */
            return st;
        if (parent < 0)
            memcpy (slot->send, buf + s * step, n);
        else if (!(st = gsi_p2p_recv (c, slot, slot->send, n, parent, GSI_TAG_BROADCAST)) &&
                 !(st = gsi_p2p_wait (c, slot, call)))
            memcpy (buf + s * step, slot->send, n);
        for (int i = 0; i < count && !st; i++)
            st = gsi_p2p_send (c, slot, slot->send, n, children[i], GSI_TAG_BROADCAST);
    }
    for (int s = 0; s < GSI_STAGING_SLOTS && !st; s++)
        st = gsi_p2p_wait (c, &c->gather[s], call);
    return st;
}
