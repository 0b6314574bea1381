/* SPDX-License-Identifier: BSD-3-Clause */
/* hier_allreduce - a large allreduce between hosts, and a reduce on one node, in blocks. */
#include "host/hier_allreduce.h"

#include <string.h>

#include "base/dtype.h"
#include "base/status.h"
#include "host/coll_host.h"

#define PAIR_BYTES     ((size_t) 128 << 10) /* up to which one of two ranks sums all: measured, */
#define PAIR_STEP      ((size_t) 32 << 10)  /* so many at once */
#define IN_PLACE_BYTES ((size_t) 64 << 10)  /* summed at once of arrays that all ranks see */

/* One large operation; of an allreduce [from] is [buf], a reduce has that on its root only. */
struct hier_job {
    struct gsi_coll_host *c;
    const struct gsi_hier *l;
    const char *from;
    char *buf;
    bool to_all;
    size_t count, width, wide;  /* elements; bytes of one, and of its sum within a node */
    size_t block, blocks;       /* elements in a block; how many blocks */
    uint64_t turn, fingerprint; /* of block 0 in the node's memory; of all blocks */
    uint64_t place;             /* of the array in c->shm_heap, or 0 */
    const struct gsi_reduction *how;
    struct gsi_reduction local, across; /* what the ranks of a node, and of a rail, do of it */
    const struct gsi_call *call;
};

/* Elements, from [first] of the array on. */
struct range {
    size_t first, n;
};

/* ---- How an array is divided ---- */

static struct range block_of (const struct hier_job *j, size_t b)
{
    size_t first = b * j->block;

    return (struct range){first, j->count - first < j->block ? j->count - first : j->block};
}

/* Part [i] of [whole] in [parts], which begin at multiples of 64 bytes. N.B. A multiple of what
 * is added up there, or a part would not fit where it is staged. */
static struct range range_part (const struct hier_job *j, struct range whole, int parts, int i)
{
    size_t line = 64 / j->width ? 64 / j->width : 1;
    size_t each = (whole.n + (size_t) parts - 1) / (size_t) parts;
    size_t first;

    each = (each + line - 1) / line * line;
    first = (size_t) i * each < whole.n ? (size_t) i * each : whole.n;
    return (struct range){whole.first + first, whole.n - first < each ? whole.n - first : each};
}

static struct range shard_of (const struct hier_job *j, size_t b, int owner)
{
    return range_part (j, block_of (j, b), j->l->owners, owner);
}

/* What this rank's rail does of block [b], by the rank with place [rail]. */
static struct range part_of (const struct hier_job *j, size_t b, int rail)
{
    return range_part (j, shard_of (j, b, j->l->shard), j->l->rail_size, rail);
}

/* Where element [first] of block [b] is in the memory at [area] that a rank has for it. */
static char *within (const struct hier_job *j, void *area, size_t b, size_t first)
{
    return (char *) area + (first - b * j->block) * j->width;
}

/* Where the part to or from place [rail] is staged. */
static char *staged (const struct hier_job *j, char *staging, int rail)
{
    return staging + (size_t) rail * j->l->part_bytes;
}

static bool owns (const struct hier_job *j)
{
    return j->l->shard >= 0;
}

/* The weight of this rank is 0: what it gives is not read. */
static bool is_mute (const struct hier_job *j)
{
    return j->how->scale && j->how->scale[j->c->rank] == 0;
}

/* ---- Within the node ---- */

/* Lays what this rank gives to block [b] before the other ranks of its node. */
static void put_block (const struct hier_job *j, size_t b)
{
    const struct gsi_node *node = &j->c->node;
    void *area = gsi_node_area (node, node->index, j->turn + b);

    for (int owner = 0; owner < j->l->owners && !j->place && !is_mute (j); owner++) {
        struct range r = shard_of (j, b, owner);
        if (owner != j->l->shard && r.n)
            gsi_nt_copy_out (&j->c->stream, within (j, area, b, r.first),
                             j->from + r.first * j->width, r.n * j->width);
    }
    gsi_coll_unknown_within (&j->c->base);
    gsi_node_put (node, j->turn + b, j->fingerprint, j->place);
}

/* Learns where the others' arrays are, once all have put block 0. */
static gs_status_t find_arrays (const struct hier_job *j)
{
    struct gsi_coll_host *c = j->c;

    for (int i = 0; i < c->node.size; i++) {
        uint64_t place = gsi_node_place (&c->node, i, j->turn);
        if (!place || i == c->node.index)
            c->array[i] = NULL;
        else if (!(c->array[i] = gsi_shm_heap_at (&c->shm_heap, i, place, j->count * j->width)))
            return gsi_fail (GS_ERR_NOMEM, "between hosts: no memory to map an array of rank %d",
                             c->node.rank[i]);
    }
    return GS_OK;
}

/* Waits until all ranks of the node have put block [b]. */
static gs_status_t await_put (const struct hier_job *j, size_t b)
{
    gs_status_t st = gsi_node_await_put (j->c, j->turn + b, j->fingerprint, j->call);

    return st || b ? st : find_arrays (j);
}

/* Combines what the ranks of the node give to [r] of block [b] into [dst]. */
static gs_status_t combine_node (const struct hier_job *j, size_t b, struct range r, void *dst)
{
    struct gsi_coll_host *c = j->c;
    gs_status_t st = GS_OK;

    for (int i = 0; i < c->node.size; i++)
        c->source[i] = c->array[i]
                           ? c->array[i] + r.first * j->width
                           : within (j, gsi_node_area (&c->node, i, j->turn + b), b, r.first);
    c->source[c->node.index] = j->from + r.first * j->width;
    c->device->ops->reduce (&j->local, dst, c->source, c->node.size, r.n);
    for (int i = 0; i < c->node.size && !st; i++)
        st = c->array[i] ? gsi_node_look (c, i) : GS_OK;
    return st;
}

/* Lays this rank's shard of block [b], which is final, before the others. */
static void put_shard (const struct hier_job *j, size_t b)
{
    const struct gsi_node *node = &j->c->node;
    struct range r = shard_of (j, b, j->l->shard);

    gsi_nt_copy_out (&j->c->stream, gsi_node_result (node, node->index, j->turn + b),
                     j->buf + r.first * j->width, r.n * j->width);
    gsi_node_done (node, j->turn + b);
}

/* Takes the shards of the others. */
static gs_status_t take_shards (const struct hier_job *j, size_t b)
{
    struct gsi_coll_host *c = j->c;
    gs_status_t st = gsi_node_await_done (c, j->turn + b, j->l->owners, j->call);

    for (int owner = 0; owner < j->l->owners && !st; owner++) {
        struct range r = shard_of (j, b, owner);
        if (owner != c->node.index && r.n)
            gsi_nt_copy_in (j->buf + r.first * j->width,
                            gsi_node_result (&c->node, owner, j->turn + b), r.n * j->width);
    }
    return st;
}

/* ---- Between nodes ---- */

/* What this rank's node gives to [r] of block [b], at [dst]; a mute rank alone gives zeros. */
static gs_status_t give (const struct hier_job *j, size_t b, struct range r, char *dst)
{
    if (j->l->shares)
        return combine_node (j, b, r, dst);
    if (is_mute (j))
        memset (dst, 0, r.n * j->width);
    else
        memcpy (dst, j->buf + r.first * j->width, r.n * j->width);
    return GS_OK;
}

/* Sends the others of the rail their parts of block [b]. */
static gs_status_t start_scatter (const struct hier_job *j, size_t b)
{
    struct gsi_coll_host *c = j->c;
    const struct gsi_hier *l = j->l;
    struct gsi_pipeline_slot *slot = &c->scatter[b % GSI_STAGING_SLOTS];
    struct range mine = part_of (j, b, l->rail);
    gs_status_t st = GS_OK;

    for (int i = 1; i < l->rail_size && !st && mine.n; i++) {
        int from = (l->rail - i + l->rail_size) % l->rail_size;
        st = gsi_net_recv (c, slot, staged (j, slot->recv, from), mine.n * j->wide, l->peer[from],
                           GSI_TAG_SCATTER);
    }
    for (int i = 1; i < l->rail_size && !st; i++) {
        int to = (l->rail + i) % l->rail_size;
        struct range r = part_of (j, b, to);
        char *out = staged (j, slot->send, to);
        if (!r.n)
            continue;
        if (!(st = give (j, b, r, out)))
            st = gsi_net_send (c, slot, out, r.n * j->wide, l->peer[to], GSI_TAG_SCATTER);
    }
    if (l->shares && mine.n && !st)
        st = give (j, b, mine, staged (j, slot->recv, l->rail));
    return st;
}

/* Combines the contributions to this rank's part of block [b], in place. */
static gs_status_t finish_scatter (const struct hier_job *j, size_t b)
{
    struct gsi_coll_host *c = j->c;
    const struct gsi_hier *l = j->l;
    struct gsi_pipeline_slot *slot = &c->scatter[b % GSI_STAGING_SLOTS];
    struct range mine = part_of (j, b, l->rail);
    gs_status_t st = gsi_net_wait (c, slot, j->call);

    if (st || !mine.n)
        return st;
    for (int k = 0; k < l->rail_size; k++)
        c->source[k] = staged (j, slot->recv, k);
    if (!l->shares)
        c->source[l->rail] = j->buf + mine.first * j->width;
    c->device->ops->reduce (&j->across, j->buf + mine.first * j->width, c->source, l->rail_size,
                            mine.n);
    return GS_OK;
}

static gs_status_t start_gather (const struct hier_job *j, size_t b)
{
    struct gsi_coll_host *c = j->c;
    const struct gsi_hier *l = j->l;
    struct gsi_pipeline_slot *slot = &c->gather[b % GSI_STAGING_SLOTS];
    struct range mine = part_of (j, b, l->rail);
    gs_status_t st = GS_OK;

    if (mine.n)
        memcpy (slot->send, j->buf + mine.first * j->width, mine.n * j->width);
    for (int i = 1; i < l->rail_size && !st; i++) {
        int from = (l->rail - i + l->rail_size) % l->rail_size, to = (l->rail + i) % l->rail_size;
        struct range r = part_of (j, b, from);
        if (r.n)
            st = gsi_net_recv (c, slot, staged (j, slot->recv, from), r.n * j->width,
                               l->peer[from], GSI_TAG_GATHER);
        if (mine.n && !st)
            st = gsi_net_send (c, slot, slot->send, mine.n * j->width, l->peer[to],
                               GSI_TAG_GATHER);
    }
    return st;
}

static gs_status_t finish_gather (const struct hier_job *j, size_t b)
{
    struct gsi_coll_host *c = j->c;
    struct gsi_pipeline_slot *slot = &c->gather[b % GSI_STAGING_SLOTS];
    gs_status_t st = gsi_net_wait (c, slot, j->call);

    for (int k = 0; k < j->l->rail_size && !st; k++) {
        struct range r = part_of (j, b, k);
        if (k != j->l->rail && r.n)
            memcpy (j->buf + r.first * j->width, staged (j, slot->recv, k), r.n * j->width);
    }
    return st;
}

/* ---- In turn ---- */

/*
 * All on one node, with arrays that all see: each rank sums its share of all of them, and lays
 * the result into all of them, in pieces that stay in its cache in between.
 */
static gs_status_t work_in_place (const struct hier_job *j)
{
    struct gsi_coll_host *c = j->c;
    struct range left = range_part (j, (struct range){0, j->count}, j->l->owners, j->l->shard);
    size_t most = IN_PLACE_BYTES / j->width;
    gs_status_t st = GS_OK;

    while (left.n) {
        struct range r = {left.first, left.n < most ? left.n : most};
        if ((st = combine_node (j, 0, r, j->buf + r.first * j->width)))
            return st;
        for (int i = 0; i < c->node.size; i++)
            if (i != c->node.index)
                memcpy (c->array[i] + r.first * j->width, j->buf + r.first * j->width,
                        r.n * j->width);
        left = (struct range){r.first + r.n, left.n - r.n};
    }
    gsi_node_done (&c->node, j->turn);
    return gsi_node_await_done (c, j->turn, j->l->owners, j->call);
}

/* Lays the sum of this rank's shard of block [b], which it has no array for, before the root. */
static gs_status_t sum_for_root (const struct hier_job *j, size_t b)
{
    struct gsi_coll_host *c = j->c;
    struct range left = shard_of (j, b, j->l->shard);
    char *result = gsi_node_result (&c->node, c->node.index, j->turn + b);
    size_t most = c->piece_bytes / j->width;

    while (left.n) {
        struct range r = {left.first, left.n < most ? left.n : most};
        gs_status_t st = combine_node (j, b, r, c->scatter[0].recv);
        if (st)
            return st;
        gsi_nt_copy_out (&c->stream, result, c->scatter[0].recv, r.n * j->width);
        result += r.n * j->width;
        left = (struct range){r.first + r.n, left.n - r.n};
    }
    gsi_node_done (&c->node, j->turn + b);
    return GS_OK;
}

/*
 * This rank's shard of block [b] on the only node, summed: in its array, and for others to take;
 * where it receives nothing, for the root only; on the root for nobody.
 */
static gs_status_t sum_shard (const struct hier_job *j, size_t b)
{
    const struct gsi_node *node = &j->c->node;
    struct range mine = shard_of (j, b, j->l->shard);
    gs_status_t st;

    if (!j->buf)
        return sum_for_root (j, b);
    if ((st = combine_node (j, b, mine, j->buf + mine.first * j->width)))
        return st;
    if (j->to_all)
        put_shard (j, b);
    else
        gsi_node_done (node, j->turn + b);
    return GS_OK;
}

/* Whether all ranks of the node see all arrays; the same on each of them. */
static bool all_seen (const struct hier_job *j)
{
    bool all = true;

    for (int i = 0; i < j->c->node.size; i++)
        all = all && gsi_node_place (&j->c->node, i, j->turn);
    return all;
}

/* All on one node: a block is put while the one before is combined and the one before that taken,
 * so that ranks which share a core need not change places for each. */
static gs_status_t work_alone (const struct hier_job *j)
{
    gs_status_t st = GS_OK;

    put_block (j, 0);
    if (j->place && ((st = await_put (j, 0)) || all_seen (j)))
        return st ? st : work_in_place (j);
    for (size_t b = 0; b <= j->blocks && !st; b++) {
        if (b + 1 < j->blocks)
            put_block (j, b + 1);
        if (b < j->blocks && !(st = await_put (j, b)))
            st = sum_shard (j, b);
        if (b && j->buf && !st)
            st = take_shards (j, b - 1);
    }
    return st;
}

/* The first third of block [b] between nodes. */
static gs_status_t begin_block (const struct hier_job *j, size_t b)
{
    gs_status_t st = GS_OK;

    if (!owns (j))
        return GS_OK;
    if (j->l->shares)
        st = await_put (j, b);
    return st ? st : start_scatter (j, b);
}

static gs_status_t turn_block (const struct hier_job *j, size_t b)
{
    gs_status_t st;

    if (!owns (j))
        return GS_OK;
    st = finish_scatter (j, b);
    return st ? st : start_gather (j, b);
}

static gs_status_t end_block (const struct hier_job *j, size_t b)
{
    gs_status_t st = owns (j) ? finish_gather (j, b) : GS_OK;

    if (st || !j->l->shares)
        return st;
    if (owns (j))
        put_shard (j, b);
    return take_shards (j, b);
}

/* While a block is put, others are on their way to those who sum them, and on their way back. */
static gs_status_t work_together (const struct hier_job *j)
{
    gs_status_t st = GS_OK;

    if (j->l->shares)
        put_block (j, 0);
    for (size_t t = 0; t < j->blocks + 2 * GSI_LAG && !st; t++) {
        if (j->l->shares && t + 1 < j->blocks)
            put_block (j, t + 1);
        if (t < j->blocks)
            st = begin_block (j, t);
        if (t >= GSI_LAG && t - GSI_LAG < j->blocks && !st)
            st = turn_block (j, t - GSI_LAG);
        if (t >= 2 * GSI_LAG && !st)
            st = end_block (j, t - 2 * GSI_LAG);
    }
    return st;
}

/* The weights of the ranks of this node. */
static const double *node_scale (const struct hier_job *j)
{
    struct gsi_coll_host *c = j->c;

    if (!j->how->scale)
        return NULL;
    for (int i = 0; i < c->node.size; i++)
        c->scale[i] = j->how->scale[c->node.rank[i]];
    return c->scale;
}

/* What each level does of the reduction: sums within nodes are divided and rounded behind them.
 */
static void share_out (struct hier_job *j)
{
    j->local = j->across = *j->how;
    if (!j->l->shares)
        return;
    j->local.scale = node_scale (j);
    if (j->l->rail_size == 1)
        return;
    j->local.divisor = 1;
    j->local.sums = GSI_SUMS_OUT;
    j->across.scale = NULL;
    j->across.sums = GSI_SUMS_IN;
}

/* A job of [count] elements in blocks. */
static struct hier_job cut_job (struct gsi_coll_host *c, const struct gsi_hier *hier,
                                size_t count, const struct gsi_reduction *how,
                                const struct gsi_call *call)
{
    struct hier_job j = {.c = c,
                         .l = hier,
                         .count = count,
                         .turn = c->node.turn,
                         .fingerprint =
                             gsi_fingerprint_of (c, count * gs_dtype_size (how->dtype)),
                         .how = how,
                         .call = call};
    bool reduced = gsi_dtype_is_reduced (how->dtype);

    share_out (&j);
    j.width = gs_dtype_size (how->dtype);
    j.wide = hier->shares && hier->rail_size > 1 && reduced ? sizeof (float) : j.width;
    j.block = hier->part_bytes / j.wide * (size_t) hier->rail_size * (size_t) hier->owners;
    j.blocks = (count + j.block - 1) / j.block;
    return j;
}

gs_status_t gsi_hier_allreduce (struct gsi_coll_host *c, const struct gsi_hier *hier, char *buf,
                                size_t count, const struct gsi_reduction *how,
                                const struct gsi_call *call)
{
    struct hier_job j = cut_job (c, hier, count, how, call);
    gs_status_t st;

    j.from = j.buf = buf;
    j.to_all = true;
    if (hier->shares) {
        if ((st = gsi_node_settle (c, call)))
            return st;
        c->node.turn += j.blocks;
        j.place = gsi_shm_heap_place (&c->shm_heap, buf, count * j.width);
    }
    st = hier->rail_size == 1 ? work_alone (&j) : work_together (&j);
    if (st && j.place) {
        gsi_node_revoke (&c->node, st, c->base.culprit);
        gsi_shm_heap_hide (&c->shm_heap, j.place);
    }
    return st;
}

/* Lays step [s] of this rank's array before the root, or adds what is laid there. */
static void lay_step (const struct hier_job *j, size_t s)
{
    struct range r = block_of (j, s);
    void *area = gsi_node_area (&j->c->node, j->c->node.index, j->turn + s);

    if (!is_mute (j))
        gsi_nt_copy_out (&j->c->stream, area, j->from + r.first * j->width, r.n * j->width);
}

static gs_status_t add_step (const struct hier_job *j, size_t s)
{
    struct range r = block_of (j, s);

    return combine_node (j, s, r, j->buf + r.first * j->width);
}

/*
 * Two on a node, and little: the root sums all, while the other one lays out the next step. Areas
 * are used in turn as in pipeline.c.
 */
static gs_status_t work_as_pair (const struct hier_job *j)
{
    struct gsi_coll_host *c = j->c;
    gs_status_t st = GS_OK;

    gsi_coll_unknown_within (&c->base);
    for (size_t s = 0; s <= j->blocks && !st; s++) {
        if (s < j->blocks && !j->buf)
            lay_step (j, s);
        if (s < j->blocks)
            gsi_node_put (&c->node, j->turn + s, j->fingerprint, 0);
        if (s && !(st = await_put (j, s - 1)) && j->buf)
            st = add_step (j, s - 1);
    }
    return st;
}

gs_status_t gsi_hier_reduce (struct gsi_coll_host *c, const char *send, char *recv, size_t count,
                             const struct gsi_reduction *how, int root,
                             const struct gsi_call *call)
{
    struct hier_job j = cut_job (c, &c->hier, count, how, call);
    bool pair = c->node.size == 2 && count * j.width <= PAIR_BYTES;
    gs_status_t st = gsi_node_settle (c, call);

    if (st)
        return st;
    j.from = send;
    j.buf = c->rank == root ? recv : NULL;
    if (pair) {
        j.block = PAIR_STEP / j.width;
        j.blocks = (count + j.block - 1) / j.block;
    }
    c->node.turn += j.blocks;
    return pair ? work_as_pair (&j) : work_alone (&j);
}
