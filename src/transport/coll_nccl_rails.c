/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_nccl_rails - sums of f16, bf16 and f8 over several nodes, in fp32 from end to end.
 *
 * A block of the array is cut into a shard for each owner, of which every node has as many as the
 * smallest has ranks, and a shard into a piece for each node. The ranks of a node send each owner
 * its shard, which it sums in rank order. The owners of a shard, one on each node, are a rail:
 * they reduce-scatter their sums and allgather the results, which are rounded once, in ceil (log2
 * (nodes)) steps each, for any number of nodes (J. L. Traff, Optimal, non-pipelined
 * reduce-scatter and allreduce algorithms, 2024). Then owners hand the shard to their nodes.
 *
 * Each group of messages has another step of each of several blocks: so the links of a node and
 * those between nodes are busy at the same time.
 */
#include <stdlib.h>

#include "base/dtype.h"
#include "base/status.h"
#include "transport/coll_nccl.h"

#define MOST_STEPS 32                 /* of a reduce-scatter */
#define DIRECT     8                  /* ranks that may send straight to each other */
#define SHARD_MOST ((size_t) 1 << 19) /* elements: 2 MiB of sums take longer than a launch */

/* Who is whose partner; made once for a communicator. */
struct gsi_nccl_rails {
    int owners;                      /* of each node */
    int most;                        /* ranks of a node */
    int steps, skip[MOST_STEPS + 1]; /* nodes from one partner on a rail to the other; [steps] is
                                        all nodes */
    struct gsi_message *message;     /* of a group */
    int *mate;                       /* [local_size] ranks of this node */
    int peer[];                      /* [nodes] ranks of this rail, if this rank is an owner */
};

/* One reduction. Elements are numbered over the whole array. */
struct pass {
    struct gsi_coll_nccl *c;
    const struct gsi_nccl_rails *rails;
    const struct gsi_topo *topo;
    const struct gsi_reduction *how;
    const struct gsi_call *call;
    char *buf;
    size_t count, width;        /* elements, and bytes of one */
    size_t piece, shard, block; /* elements */
    char *came;                 /* [local_size][shard] what came from the node */
    float *sums, *incoming;     /* [steps + 1][shard] of blocks under way; [shard] */
    int messages;
};

/* Pieces side by side, of those that are counted round the nodes. */
struct stretch {
    int first, pieces;
    int before; /* of those that are counted */
};

/* ---- Life ---- */

/* Where sums of a node save no bytes all send to all: in rank order, and in two steps. */
static bool is_direct (const struct gsi_topo *topo, int most)
{
    return topo->nodes == 1 || (most <= 2 && topo->size <= DIRECT);
}

/* Fills in who is where; [ranks] are how many each node has so far. */
static void find_partners (struct gsi_nccl_rails *rails, const struct gsi_topo *topo, int *ranks)
{
    for (int r = 0; r < topo->size; r++) {
        int node = topo->node_of[r], place = ranks[node]++;
        if (node == topo->node)
            rails->mate[place] = r;
        if (place == topo->local_rank)
            rails->peer[node] = r;
        if (rails->most < ranks[node])
            rails->most = ranks[node];
    }
    rails->owners = topo->size;
    for (int n = 0; n < topo->nodes; n++)
        if (ranks[n] < rails->owners)
            rails->owners = ranks[n];
}

/* Halves the number of nodes, rounded up, until 1 is left; the smallest first. */
static void find_skips (struct gsi_nccl_rails *rails, int nodes)
{
    while (1L << rails->steps < nodes)
        rails->steps++;
    rails->skip[rails->steps] = nodes;
    for (int k = rails->steps; k > 0; k--)
        rails->skip[k - 1] = (rails->skip[k] + 1) / 2;
}

gs_status_t gsi_nccl_rails_open (struct gsi_coll_nccl *c)
{
    const struct gsi_topo *topo = c->base.topo;
    size_t nodes = (size_t) topo->nodes, mates = (size_t) topo->local_size;
    int *ranks = calloc (nodes, sizeof (*ranks));
    struct gsi_nccl_rails *rails =
        calloc (1, sizeof (*rails) + (nodes + mates) * sizeof (*rails->peer));

    if (ranks && rails) {
        rails->mate = rails->peer + nodes;
        find_partners (rails, topo, ranks);
        find_skips (rails, topo->nodes);
        rails->message = calloc (4 * mates + 8 * (size_t) rails->steps, sizeof (*rails->message));
    }
    free (ranks);
    c->rails = rails;
    if (!rails || !rails->message)
        return gsi_fail (GS_ERR_NOMEM, "transport nccl: out of memory");
    if (is_direct (topo, rails->most))
        gsi_nccl_rails_close (c);
    return GS_OK;
}

void gsi_nccl_rails_close (struct gsi_coll_nccl *c)
{
    if (c->rails)
        free (c->rails->message);
    free (c->rails);
    c->rails = NULL;
}

/* ---- Messages ---- */

/* Elements of [pieces] pieces from [first] on; the array may end before. */
static size_t extent (const struct pass *p, size_t first, int pieces)
{
    return gsi_step_of (p->count, first, (size_t) pieces * p->piece);
}

static bool is_owner (const struct pass *p)
{
    return p->topo->local_rank < p->rails->owners;
}

/* The first element of the shard of owner [i] in the block from [first] on. */
static size_t shard_at (const struct pass *p, size_t first, int i)
{
    return first + (size_t) i * p->shard;
}

static void add (struct pass *p, bool send, void *buf, size_t bytes, int peer)
{
    if (bytes)
        p->rails->message[p->messages++] =
            (struct gsi_message){.buf = buf, .bytes = bytes, .peer = peer, .send = send};
}

/* Ranks of the node give each owner its shard of the block from [first] on, or get it [back]. */
static void add_node (struct pass *p, size_t first, bool back)
{
    size_t mine = shard_at (p, first, p->topo->local_rank), at;
    char *here;

    for (int i = 0; i < p->topo->local_size; i++) {
        if (i == p->topo->local_rank)
            continue;
        at = shard_at (p, first, i);
        if (i < p->rails->owners)
            add (p, !back, p->buf + at * p->width, extent (p, at, p->topo->nodes) * p->width,
                 p->rails->mate[i]);
        here = back ? p->buf + mine * p->width : p->came + (size_t) i * p->shard * p->width;
        if (is_owner (p))
            add (p, back, here, extent (p, mine, p->topo->nodes) * p->width, p->rails->mate[i]);
    }
}

/* The next of [number] pieces that are counted from [from] on, round the nodes. */
static bool next_stretch (const struct pass *p, int from, int number, struct stretch *s)
{
    s->before += s->pieces;
    s->first = (from + s->before) % p->topo->nodes;
    s->pieces = p->topo->nodes - s->first;
    if (s->pieces > number - s->before)
        s->pieces = number - s->before;
    return s->pieces > 0;
}

/* [number] pieces of a shard that are counted from [from] on. They lie behind each other from
 * [at] on, if [packed], else where they belong in the shard, which is there. */
struct pieces {
    int from, number;
    char *at;
    size_t width;
    bool packed;
};

/* Sends those of the shard from element [mine] on to [peer], or receives them from there. */
static void add_pieces (struct pass *p, size_t mine, const struct pieces *what, bool send,
                        int peer)
{
    struct stretch s = {0};

    while (next_stretch (p, what->from, what->number, &s)) {
        size_t place = (size_t) (what->packed ? s.before : s.first) * p->piece;
        size_t n = extent (p, mine + (size_t) s.first * p->piece, s.pieces);
        add (p, send, what->at + place * what->width, n * what->width, peer);
    }
}

/*
 * A rank that is [skip] nodes further gets this one's sums of the pieces that are its own and
 * those of the nodes behind it, and this one gets as many; or the results go [back], likewise.
 */
static void add_rail (struct pass *p, size_t first, int k, float *sums, bool back)
{
    int nodes = p->topo->nodes, node = p->topo->node, skip = p->rails->skip[k];
    int number = p->rails->skip[k + 1] - skip;
    size_t mine = shard_at (p, first, p->topo->local_rank);
    struct pieces far = {.from = (node + skip) % nodes, .number = number, .at = (char *) sums};
    struct pieces near = {.from = node, .number = number, .packed = !back};

    near.at = (char *) (p->incoming + (size_t) skip * p->piece);
    if (back)
        far.at = near.at = p->buf + mine * p->width;
    far.width = near.width = back ? p->width : sizeof (float);
    add_pieces (p, mine, &far, !back, p->rails->peer[(node + skip) % nodes]);
    add_pieces (p, mine, &near, back, p->rails->peer[(node + nodes - skip) % nodes]);
}

/* ---- Sums ---- */

/* What the node's ranks gave to this one's shard, in rank order. */
static gs_status_t sum_node (const struct pass *p, size_t first, float *sums)
{
    const struct gsi_stream_ops *queue = p->c->queue;
    struct gsi_reduction how = *p->how;
    size_t mine = shard_at (p, first, p->topo->local_rank), n = extent (p, mine, p->topo->nodes);
    char *own = p->buf + mine * p->width, *from = own;
    gs_status_t st = GS_OK;

    if (p->topo->local_size > 1) {
        from = p->came;
        st = queue->copy (from + (size_t) p->topo->local_rank * p->shard * p->width, own,
                          n * p->width, p->call->stream);
    }
    how.divisor = 1;
    how.sums = GSI_SUMS_OUT;
    return st ? st
              : queue->reduce (&how, sums, from, p->shard, p->topo->local_size, n,
                               how.scale ? p->c->scale : NULL, p->call->stream);
}

/* Adds what has come by step [k] of a rail; the last one makes the result of this rank's piece.
 */
static gs_status_t add_incoming (const struct pass *p, size_t first, int k, float *sums)
{
    struct gsi_reduction add = {.dtype = GS_F32, .op = GS_SUM, .divisor = 1}, finish = *p->how;
    int skip = p->rails->skip[k], number = p->rails->skip[k + 1] - skip;
    size_t mine = shard_at (p, first, p->topo->local_rank);
    struct stretch s = {0};
    gs_status_t st = GS_OK;

    finish.scale = NULL;
    finish.sums = GSI_SUMS_IN;
    while (!st && next_stretch (p, p->topo->node, number, &s)) {
        size_t at = (size_t) s.first * p->piece, n = extent (p, mine + at, s.pieces);
        float *own = sums + at, *in = p->incoming + (size_t) (skip + s.before) * p->piece;
        st = p->c->queue->reduce (k ? &add : &finish,
                                  k ? (char *) own : p->buf + (mine + at) * p->width, own,
                                  (size_t) (in - own), 2, n, NULL, p->call->stream);
    }
    return st;
}

/* ---- The way of a block ---- */

static size_t steps_of (const struct pass *p)
{
    return 2 * (size_t) p->rails->steps + 2;
}

/* Where the sums of block [b] are while it is under way. */
static float *sums_of (const struct pass *p, size_t b)
{
    return p->sums + b % ((size_t) p->rails->steps + 1) * p->shard;
}

static void add_step (struct pass *p, size_t b, size_t step)
{
    size_t first = b * p->block, steps = (size_t) p->rails->steps;

    if (step == 0 || step == 2 * steps + 1)
        add_node (p, first, step > 0);
    else if (is_owner (p) && step <= steps)
        add_rail (p, first, (int) (steps - step), sums_of (p, b), false);
    else if (is_owner (p))
        add_rail (p, first, (int) (step - steps - 1), NULL, true);
}

/* What follows the messages of a step. */
static gs_status_t end_step (const struct pass *p, size_t b, size_t step)
{
    size_t first = b * p->block, steps = (size_t) p->rails->steps;

    if (!is_owner (p) || step > steps)
        return GS_OK;
    if (!step)
        return sum_node (p, first, sums_of (p, b));
    return add_incoming (p, first, (int) (steps - step), sums_of (p, b));
}

/* Group [g] of messages: step 0 of block [g], step 1 of the one before it, and so on. */
static gs_status_t do_group (struct pass *p, size_t g)
{
    size_t blocks = p->count / p->block + !!(p->count % p->block);
    size_t from = g < blocks ? 0 : g - blocks + 1, to = g < steps_of (p) ? g + 1 : steps_of (p);
    gs_status_t st = GS_OK;

    p->messages = 0;
    for (size_t step = to; step-- > from;)
        add_step (p, g - step, step);
    if (p->messages)
        st = gsi_nccl_messages (&p->c->base, p->rails->message, p->messages, p->call);
    for (size_t step = to; step-- > from && !st;)
        st = end_step (p, g - step, step);
    return st;
}

/* Cuts the array, and the space. */
static void lay_out (struct pass *p)
{
    const struct gsi_nccl_rails *rails = p->rails;
    size_t nodes = (size_t) p->topo->nodes, pieces = nodes * (size_t) rails->owners;
    size_t sums = (size_t) rails->steps + 2;
    size_t room = gsi_nccl_space_bytes (p->c) /
                  ((size_t) rails->most * p->width + sums * sizeof (float)) / nodes;
    size_t even = p->count / pieces + !!(p->count % pieces), blocks;
    size_t limit = gsi_shard_round_up (SHARD_MOST / nodes);

    room = room / GSI_SHARD_STEP * GSI_SHARD_STEP;
    limit = limit < room ? limit : room;
    blocks = even / limit + !!(even % limit);
    p->piece = gsi_shard_round_up (even / blocks + !!(even % blocks));
    p->shard = p->piece * nodes;
    p->block = p->piece * pieces;
    p->sums = p->c->space;
    p->incoming = p->sums + (sums - 1) * p->shard;
    p->came = (char *) (p->incoming + p->shard);
}

gs_status_t gsi_nccl_rails_reduce (struct gsi_coll_nccl *c, void *buf, size_t count,
                                   const struct gsi_reduction *how, const struct gsi_call *call)
{
    struct pass p = {.c = c,
                     .rails = c->rails,
                     .topo = c->base.topo,
                     .how = how,
                     .call = call,
                     .buf = buf,
                     .count = count,
                     .width = gs_dtype_size (how->dtype)};
    gs_status_t st = gsi_nccl_space_begin (c, how->scale, c->rails->mate, call);

    if (st)
        return st;
    lay_out (&p);
    for (size_t g = 0, last = (count - 1) / p.block + steps_of (&p); g < last && !st; g++)
        st = do_group (&p, g);
    return st ? st : gsi_nccl_space_end (c, call);
}
