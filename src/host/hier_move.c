/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hier_move - moving data among nodes that share memory: each byte crosses to a node once.
 *
 * As in hier_allreduce.c a node has as many owners as the smallest has ranks, and owner k of a
 * node sends to and hears from owner k of the others (hier->peer). Ranks lay what they give into
 * their areas, owners let messages arrive in their results, and everybody takes it from there.
 * Blocks are on their way while others are laid out and taken.
 *
 * MPI sends from and receives to the node's memory, which is ours, without copies in between.
 */
#include <string.h>

#include "host/coll_host.h"

#define LEAST_SLICE ((size_t) 4 << 10) /* of a broadcast: another owner is worth while */

struct relay_job {
    struct gsi_coll_host *c;
    const struct gsi_hier *l;
    const struct gsi_call *call;
    uint64_t turn, fingerprint;      /* of block 0 in the node's memory; of all blocks */
    size_t bytes, step, blocks;      /* of one rank; of it in a block; how many blocks */
    int root, home;                  /* (broadcast) rank, and its node */
    int parent, child[32], children; /* (broadcast) nodes; -1 for the parent of [home] */
};

static size_t slice_length (const struct relay_job *j, size_t b)
{
    return j->bytes - b * j->step < j->step ? j->bytes - b * j->step : j->step;
}

static bool owns (const struct relay_job *j)
{
    return j->l->shard >= 0;
}

/* Begins an operation of [bytes] in blocks of [step], when all have left the one before. */
static gs_status_t relay_begin (struct relay_job *j, size_t bytes, size_t step)
{
    struct gsi_node *node = &j->c->node;

    j->l = &j->c->hier;
    j->turn = node->turn;
    j->fingerprint = gsi_fingerprint_of (j->c, bytes);
    j->bytes = bytes;
    j->step = step;
    j->blocks = (bytes + step - 1) / step;
    node->turn += j->blocks;
    return gsi_node_settle (j->c, j->call);
}

/* ---- Allgather ---- */

/* Ranks of [node] whose pieces the owner of this shard carries: every owners-th of them. */
static int pieces (const struct relay_job *j, int node)
{
    return (j->l->ranks[node] - j->l->shard + j->l->owners - 1) / j->l->owners;
}

/* The pieces that this rank sends of block [b], of [n] bytes each, one behind the other. */
static const char *gather_block (const struct relay_job *j, struct gsi_pipeline_slot *slot,
                                 size_t b, size_t n)
{
    const struct gsi_node *node = &j->c->node;
    int count = pieces (j, j->l->rail);

    if (count == 1)
        return gsi_node_area (node, node->index, j->turn + b);
    for (int k = 0; k < count; k++)
        memcpy (slot->send + (size_t) k * n,
                gsi_node_area (node, j->l->shard + k * j->l->owners, j->turn + b), n);
    return slot->send;
}

static gs_status_t start_gather (const struct relay_job *j, size_t b)
{
    struct gsi_coll_host *c = j->c;
    const struct gsi_hier *l = j->l;
    struct gsi_pipeline_slot *slot = &c->scatter[b % GSI_STAGING_SLOTS];
    char *result = gsi_node_result (&c->node, c->node.index, j->turn + b);
    gs_status_t st = gsi_node_await_put (c, j->turn + b, j->fingerprint, j->call);
    size_t n = slice_length (j, b);
    const char *out;

    for (int i = 1; i < l->rail_size && !st; i++) {
        int from = (l->rail - i + l->rail_size) % l->rail_size;
        st = gsi_net_recv (c, slot, result + (size_t) from * l->part_bytes,
                           (size_t) pieces (j, from) * n, l->peer[from], GSI_TAG_GATHER);
    }
    if (st)
        return st;
    out = gather_block (j, slot, b, n);
    for (int i = 1; i < l->rail_size && !st; i++)
        st = gsi_net_send (c, slot, out, (size_t) pieces (j, l->rail) * n,
                           l->peer[(l->rail + i) % l->rail_size], GSI_TAG_GATHER);
    return st;
}

/* Where block [b] of [rank] is, in the memory of this node. */
static const char *block_of (const struct relay_job *j, int rank, size_t b)
{
    const struct gsi_hier *l = j->l;
    const struct gsi_node *node = &j->c->node;
    int from = j->c->base.topo->node_of[rank], index = l->index[rank];
    const char *result;

    if (from == l->rail)
        return gsi_node_area (node, index, j->turn + b);
    result = gsi_node_result (node, index % l->owners, j->turn + b);
    return result + (size_t) from * l->part_bytes +
           (size_t) (index / l->owners) * slice_length (j, b);
}

static gs_status_t finish_gather (const struct relay_job *j, char *recv, size_t b)
{
    struct gsi_coll_host *c = j->c;
    gs_status_t st = GS_OK;

    if (owns (j) && !(st = gsi_net_wait (c, &c->scatter[b % GSI_STAGING_SLOTS], j->call)))
        gsi_node_done (&c->node, j->turn + b);
    if (!st)
        st = gsi_node_await_done (c, j->turn + b, j->l->owners, j->call);
    for (int r = 0; r < c->size && !st; r++)
        if (r != c->rank)
            memcpy (recv + (size_t) r * j->bytes + b * j->step, block_of (j, r, b),
                    slice_length (j, b));
    return st;
}

gs_status_t gsi_hier_allgather (struct gsi_coll_host *c, const char *send, char *recv,
                                size_t bytes, const struct gsi_call *call)
{
    struct relay_job j = {.c = c, .call = call};
    gs_status_t st = relay_begin (&j, bytes, gsi_tuning_relayed (&c->hier));

    for (size_t t = 0; t < j.blocks + GSI_LAG && !st; t++) {
        if (t < j.blocks) {
            memcpy (gsi_node_area (&c->node, c->node.index, j.turn + t), send + t * j.step,
                    slice_length (&j, t));
            gsi_coll_unknown_within (&c->base);
            gsi_node_put (&c->node, j.turn + t, j.fingerprint, 0);
            st = owns (&j) ? start_gather (&j, t) : GS_OK;
        }
        if (t >= GSI_LAG && !st)
            st = finish_gather (&j, recv, t - GSI_LAG);
    }
    if (!st)
        gsi_node_leave (&c->node);
    return st;
}

/* ---- Broadcast ---- */

/* What [owner] carries of block [b]: [*first] is from its beginning. Returns how much. */
static size_t slice (const struct relay_job *j, size_t b, int owner, size_t *first)
{
    size_t n = slice_length (j, b),
           each = (n + (size_t) j->l->owners - 1) / (size_t) j->l->owners;

    each = (each + 63) / 64 * 64;
    each = each > LEAST_SLICE ? each : LEAST_SLICE;
    *first = (size_t) owner * each < n ? (size_t) owner * each : n;
    return n - *first < each ? n - *first : each;
}

/*
 * The neighbours of this node: in a chain where there are blocks enough to keep it busy, for then
 * each node sends everything but once, else in a binomial tree.
 */
static void find_way (struct relay_job *j)
{
    int nodes = j->l->rail_size, place = (j->l->rail - j->home + nodes) % nodes, depth = 0,
        step = 1;

    while (1 << depth < nodes)
        depth++;
    j->parent = -1;
    if (j->blocks + (size_t) nodes - 2 < j->blocks * (size_t) depth) {
        if (place + 1 < nodes)
            j->child[j->children++] = (j->l->rail + 1) % nodes;
        if (place)
            j->parent = (j->l->rail - 1 + nodes) % nodes;
        return;
    }
    while (step < nodes && !(place & step))
        step *= 2;
    for (int s = step / 2; s >= 1; s /= 2)
        if (place + s < nodes)
            j->child[j->children++] = (j->l->rail + s) % nodes;
    if (place)
        j->parent = (j->l->rail - step + nodes) % nodes;
}

/* Where this rank, an owner, has its slice of block [b], which begins with [first]. */
static char *slice_at (const struct relay_job *j, size_t b, size_t first)
{
    const struct gsi_node *node = &j->c->node;

    if (j->parent < 0)
        return (char *) gsi_node_area (node, j->l->index[j->root], j->turn + b) + first;
    return gsi_node_result (node, node->index, j->turn + b);
}

static gs_status_t start_pass (const struct relay_job *j, size_t b)
{
    struct gsi_coll_host *c = j->c;
    size_t first, n = slice (j, b, j->l->shard, &first);
    gs_status_t st = gsi_node_await_put (c, j->turn + b, j->fingerprint, j->call);

    if (st || j->parent < 0 || !n)
        return st;
    return gsi_net_recv (c, &c->scatter[b % GSI_STAGING_SLOTS], slice_at (j, b, first), n,
                         j->l->peer[j->parent], GSI_TAG_BROADCAST);
}

/* Hands a slice that has arrived on; its slot's sends of before have left their block by then. */
static gs_status_t pass_slice (const struct relay_job *j, size_t b)
{
    struct gsi_coll_host *c = j->c;
    struct gsi_pipeline_slot *out = &c->gather[b % GSI_STAGING_SLOTS];
    size_t first, n = slice (j, b, j->l->shard, &first);
    gs_status_t st = gsi_net_wait (c, &c->scatter[b % GSI_STAGING_SLOTS], j->call);

    if (st || (st = gsi_net_wait (c, out, j->call)))
        return st;
    gsi_node_done (&c->node, j->turn + b);
    for (int i = 0; i < j->children && n && !st; i++)
        st = gsi_net_send (c, out, slice_at (j, b, first), n, j->l->peer[j->child[i]],
                           GSI_TAG_BROADCAST);
    return st;
}

static gs_status_t take_slice (const struct relay_job *j, char *buf, size_t b)
{
    struct gsi_coll_host *c = j->c;
    gs_status_t st = gsi_node_await_done (c, j->turn + b, j->l->owners, j->call);

    if (st || c->rank == j->root)
        return st;
    if (j->parent < 0)
        memcpy (buf + b * j->step, gsi_node_area (&c->node, j->l->index[j->root], j->turn + b),
                slice_length (j, b));
    for (int owner = 0; owner < j->l->owners && j->parent >= 0; owner++) {
        size_t first, n = slice (j, b, owner, &first);
        memcpy (buf + b * j->step + first, gsi_node_result (&c->node, owner, j->turn + b), n);
    }
    return GS_OK;
}

static gs_status_t finish_pass (const struct relay_job *j, char *buf, size_t b)
{
    gs_status_t st = owns (j) ? pass_slice (j, b) : GS_OK;

    return st ? st : take_slice (j, buf, b);
}

gs_status_t gsi_hier_broadcast (struct gsi_coll_host *c, char *buf, size_t bytes, int root,
                                const struct gsi_call *call)
{
    struct relay_job j = {
        .c = c, .call = call, .root = root, .home = c->base.topo->node_of[root]};
    gs_status_t st = relay_begin (&j, bytes, c->hier.part_bytes * (size_t) c->hier.owners);

    find_way (&j);
    for (size_t t = 0; t < j.blocks + GSI_LAG && !st; t++) {
        if (t < j.blocks) {
            if (c->rank == root)
                memcpy (gsi_node_area (&c->node, c->node.index, j.turn + t), buf + t * j.step,
                        slice_length (&j, t));
            gsi_coll_unknown_within (&c->base);
            gsi_node_put (&c->node, j.turn + t, j.fingerprint, 0);
            st = owns (&j) ? start_pass (&j, t) : GS_OK;
        }
        if (t >= GSI_LAG && !st)
            st = finish_pass (&j, buf, t - GSI_LAG);
    }
    for (int s = 0; s < GSI_STAGING_SLOTS && !st; s++)
        st = gsi_net_wait (c, &c->gather[s], call);
    if (!st)
        gsi_node_leave (&c->node);
    return st;
}
