/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_ring - the algorithms: one ring in rank order, as NCCL's ring algorithm has it. Part c of
 * a reduction begins at rank c + 1 and ends at rank c, where each rank adds its own to what
 * comes.
 *
 * A broadcast and a reduction are chains along the ring: they make no rank wait for those behind
 * it, so a root may be done before anybody else has come.
 */
#include <stdlib.h>
#include <string.h>

#include "nccl_sim.h"

#define HEAD_MAGIC  0x6e73696du
#define PIECE_BYTES ((size_t) 1 << 18) /* in which chains move */

/* One collective while it runs. */
struct run {
    const struct nsim_op *op;
    ncclComm_t comm;
    struct nsim_head head;
    size_t unit; /* bytes of an element */
    const void *scalar;
    char *send;
    char *recv;
    void *spare[2]; /* in place of buffers that cannot be used */
    bool headed;    /* the heads have been exchanged */
};

struct nsim_head nsim_head_of (const struct nsim_op *op)
{
    bool direct = op->what == NSIM_SEND || op->what == NSIM_RECV;
    bool reduces =
        op->what == NSIM_ALLREDUCE || op->what == NSIM_REDUCE || op->what == NSIM_REDUCE_SCATTER;
    bool rooted = op->what == NSIM_BROADCAST || op->what == NSIM_REDUCE;

    return (struct nsim_head){
        .magic = HEAD_MAGIC,
        .what = direct ? NSIM_SEND : (int32_t) op->what,
        .sequence = direct ? 0 : ++op->comm->sequence,
        .count = op->count,
        .type = (int32_t) op->type,
        .op = reduces ? (int32_t) op->op : -1,
        .root = rooted ? op->root : -1,
        .rank = op->comm->rank,
    };
}

static int rank_at (const struct run *run, int offset)
{
    return ((run->comm->rank + offset) % run->comm->ranks + run->comm->ranks) % run->comm->ranks;
}

/* The engine's address; if there is none, memory of our own, so that the peers do not hang. */
static char *buffer (const void *user, size_t bytes, const struct run *run, void **spare)
{
    static const char *const names[] = {"ncclAllReduce", "ncclBroadcast",     "ncclReduce",
                                        "ncclAllGather", "ncclReduceScatter", "ncclSend",
                                        "ncclRecv"};
    char *data = sim_alias (user, bytes, names[run->op->what]);

    if (data)
        return data;
    nsim_set_error (run->comm, ncclUnhandledCudaError);
    *spare = calloc (1, bytes);
    return *spare;
}

/* Sends to the next rank and receives from the one before; NULL: nothing in that direction. */
static enum nsim_end both (struct run *run, void *out, size_t out_bytes, void *in,
                           size_t in_bytes)
{
    struct nsim_xfer xfer[2];
    size_t n = 0;

    if (out)
        xfer[n++] = (struct nsim_xfer){.peer = rank_at (run, 1),
                                       .out = true,
                                       .headed = !run->headed,
                                       .head = run->head,
                                       .data = out,
                                       .bytes = out_bytes};
    if (in)
        xfer[n++] = (struct nsim_xfer){.peer = rank_at (run, -1),
                                       .headed = !run->headed,
                                       .head = run->head,
                                       .data = in,
                                       .bytes = in_bytes};
    if (out)
        nsim_count_sent (&nsim_sent_collective, run->comm, xfer[0].peer, out_bytes);
    run->headed = true;
    return nsim_transfer (run->comm, xfer, n);
}

/* Elements of part [index] when [count] are dealt out to all ranks. */
static size_t part (const struct run *run, int index, size_t *first)
{
    size_t count = run->op->count,
           size = (count + (size_t) run->comm->ranks - 1) / (size_t) run->comm->ranks;
    size_t begin = size * (size_t) index < count ? size * (size_t) index : count;

    *first = begin;
    return begin + size < count ? size : count - begin;
}

static enum nsim_end allreduce (struct run *run)
{
    size_t count = run->op->count, first, elements, most = part (run, 0, &first);
    char *incoming = malloc (most * run->unit);
    enum nsim_end end = NSIM_OK;

    if (run->recv != run->send)
        memmove (run->recv, run->send, count * run->unit);
    nsim_before (run->op, run->scalar, run->recv, count);
    for (int step = 0; step < run->comm->ranks - 1 && end == NSIM_OK; step++) {
        size_t out_first, out = part (run, rank_at (run, -1 - step), &out_first);

        elements = part (run, rank_at (run, -2 - step), &first);
        end = both (run, run->recv + out_first * run->unit, out * run->unit, incoming,
                    elements * run->unit);
        if (end == NSIM_OK)
            nsim_reduce (run->op, incoming, run->recv + first * run->unit, elements);
    }
    elements = part (run, run->comm->rank, &first);
    nsim_after (run->op, run->recv + first * run->unit, elements);
    for (int step = 0; step < run->comm->ranks - 1 && end == NSIM_OK; step++) {
        size_t out_first, out = part (run, rank_at (run, -step), &out_first);

        elements = part (run, rank_at (run, -1 - step), &first);
        end = both (run, run->recv + out_first * run->unit, out * run->unit,
                    run->recv + first * run->unit, elements * run->unit);
    }
    free (incoming);
    return end;
}

static enum nsim_end reduce_scatter (struct run *run)
{
    size_t block = run->op->count * run->unit;
    char *moving = malloc (block), *incoming = malloc (block);
    enum nsim_end end = NSIM_OK;

    memcpy (moving, run->send + (size_t) rank_at (run, -1) * block, block);
    nsim_before (run->op, run->scalar, moving, run->op->count);
    for (int step = 0; step < run->comm->ranks - 1 && end == NSIM_OK; step++) {
        end = both (run, moving, block, incoming, block);
        memcpy (moving, run->send + (size_t) rank_at (run, -2 - step) * block, block);
        nsim_before (run->op, run->scalar, moving, run->op->count);
        nsim_reduce (run->op, incoming, moving, run->op->count);
    }
    nsim_after (run->op, moving, run->op->count);
    memcpy (run->recv, moving, block);
    free (moving);
    free (incoming);
    return end;
}

static enum nsim_end allgather (struct run *run)
{
    size_t block = run->op->count * run->unit;
    enum nsim_end end = NSIM_OK;

    if (run->recv + (size_t) run->comm->rank * block != run->send)
        memmove (run->recv + (size_t) run->comm->rank * block, run->send, block);
    for (int step = 0; step < run->comm->ranks - 1 && end == NSIM_OK; step++)
        end = both (run, run->recv + (size_t) rank_at (run, -step) * block, block,
                    run->recv + (size_t) rank_at (run, -1 - step) * block, block);
    return end;
}

/*
 * One rank of a chain that starts at [root] for a broadcast and behind it for a reduction. Who
 * begins it has nothing to wait for; who ends it still says that it came, for the comparison.
 */
struct chain {
    bool first, last;
    size_t bytes, pieces;
};

static struct chain make_chain (struct run *run, int start)
{
    struct chain chain = {.first = run->comm->rank == start,
                          .last = rank_at (run, 1) == start,
                          .bytes = run->op->count * run->unit};

    if (run->comm->ranks == 1)
        return chain;
    chain.pieces = (chain.bytes + PIECE_BYTES - 1) / PIECE_BYTES;
    if (chain.first)
        nsim_owe (run->comm, &run->head);
    return chain;
}

static size_t piece_bytes (const struct chain *chain, size_t i)
{
    return i + 1 < chain->pieces ? PIECE_BYTES : chain->bytes - i * PIECE_BYTES;
}

/*
 * [data] passes along the chain piece by piece; [add]s this rank's to each piece that comes. The
 * head goes out with the first piece, which is one step after the first has come in: so heads are
 * sent and awaited here, not by both ().
 */
static enum nsim_end pass_on (struct run *run, const struct chain *chain, char *data, bool add)
{
    char *incoming = add ? malloc (PIECE_BYTES) : NULL;
    enum nsim_end end = NSIM_OK;

    for (size_t i = 0; i < chain->pieces + 1 && end == NSIM_OK; i++) {
        struct nsim_xfer xfer[2];
        size_t n = 0;
        bool in = i < chain->pieces && !chain->first, out = i > 0;

        if (out)
            xfer[n++] = (struct nsim_xfer){.peer = rank_at (run, 1),
                                           .out = true,
                                           .headed = i == 1,
                                           .head = run->head,
                                           .data = data + (i - 1) * PIECE_BYTES,
                                           .bytes = chain->last ? 0 : piece_bytes (chain, i - 1)};
        if (out)
            nsim_count_sent (&nsim_sent_collective, run->comm, xfer[0].peer, xfer[0].bytes);
        if (in)
            xfer[n++] = (struct nsim_xfer){.peer = rank_at (run, -1),
                                           .headed = i == 0,
                                           .head = run->head,
                                           .data = add ? incoming : data + i * PIECE_BYTES,
                                           .bytes = piece_bytes (chain, i)};
        if (n > 0)
            end = nsim_transfer (run->comm, xfer, n);
        if (in && add && end == NSIM_OK)
            nsim_reduce (run->op, incoming, data + i * PIECE_BYTES,
                         piece_bytes (chain, i) / run->unit);
    }
    free (incoming);
    return end;
}

static enum nsim_end broadcast (struct run *run)
{
    struct chain chain = make_chain (run, run->op->root);

    if (chain.first && run->recv != run->send)
        memmove (run->recv, run->send, chain.bytes);
    return pass_on (run, &chain, run->recv, false);
}

static enum nsim_end reduce (struct run *run)
{
    struct chain chain = make_chain (run, (run->op->root + 1) % run->comm->ranks);
    bool root = run->comm->rank == run->op->root;
    char *data = root ? run->recv : malloc (chain.bytes);
    enum nsim_end end;

    if (data != run->send)
        memmove (data, run->send, chain.bytes);
    nsim_before (run->op, run->scalar, data, run->op->count);
    end = pass_on (run, &chain, data, true);
    if (root)
        nsim_after (run->op, data, run->op->count);
    else
        free (data);
    return end;
}

/* Bytes at both ends, for this rank. */
static void find_buffers (struct run *run)
{
    const struct nsim_op *op = run->op;
    size_t bytes = op->count * run->unit, all = bytes * (size_t) run->comm->ranks;
    bool root = op->root == run->comm->rank;

    if (op->what != NSIM_BROADCAST || root)
        run->send =
            buffer (op->send, op->what == NSIM_REDUCE_SCATTER ? all : bytes, run, &run->spare[0]);
    if (op->what != NSIM_REDUCE || root)
        run->recv =
            buffer (op->recv, op->what == NSIM_ALLGATHER ? all : bytes, run, &run->spare[1]);
    run->scalar = op->premul.scalar;
    if (op->op == ncclNumOps && op->premul.on_device) {
        run->scalar = sim_alias (op->premul.on_device, run->unit, "ncclRedOpCreatePreMulSum");
        if (!run->scalar)
            run->scalar = op->premul.scalar;
    }
}

enum nsim_end nsim_collective (const struct nsim_op *op)
{
    struct run run = {.op = op, .comm = op->comm, .unit = nsim_type_bytes (op->type)};
    enum nsim_end end = NSIM_OK;

    run.head = nsim_head_of (op);
    find_buffers (&run);
    switch (op->what) {
    case NSIM_ALLREDUCE: end = allreduce (&run); break;
    case NSIM_BROADCAST: end = broadcast (&run); break;
    case NSIM_REDUCE: end = reduce (&run); break;
    case NSIM_ALLGATHER: end = allgather (&run); break;
    default: end = reduce_scatter (&run); break;
    }
    free (run.spare[0]);
    free (run.spare[1]);
    return end;
}

/* The first send to oneself that has not been received; nccl_unit.c has matched them. */
static char *own_message (const struct nsim_op *op, size_t n, size_t *from, struct run *run)
{
    while (*from < n && !(op[*from].what == NSIM_SEND && op[*from].root == op[*from].comm->rank))
        (*from)++;
    run->op = &op[*from];
    return buffer (op[*from].send, op[*from].count * run->unit, run, &run->spare[0]);
}

/* All sends and receives of a group at once. */
enum nsim_end nsim_point_to_point (const struct nsim_op *op, size_t n)
{
    struct nsim_xfer *xfer = calloc (n, sizeof (*xfer));
    void **spare = calloc (n, sizeof (*spare));
    size_t xfers = 0, own = 0;
    enum nsim_end end;

    for (size_t i = 0; i < n; i++) {
        struct run run = {.op = &op[i], .comm = op[i].comm, .unit = nsim_type_bytes (op[i].type)};
        bool out = op[i].what == NSIM_SEND, self = op[i].root == op[i].comm->rank;
        size_t bytes = op[i].count * run.unit;
        char *data;

        if (self && out)
            continue;
        data = buffer (out ? op[i].send : op[i].recv, bytes, &run, &spare[i]);
        if (self) {
            memmove (data, own_message (op, n, &own, &run), bytes);
            own++;
            free (run.spare[0]);
            continue;
        }
        if (out)
            nsim_count_sent (&nsim_sent_direct, op[i].comm, op[i].root, bytes);
        nsim_partners += !op[i].comm->met[op[i].root];
        op[i].comm->met[op[i].root] = true;
        xfer[xfers++] = (struct nsim_xfer){.peer = op[i].root,
                                           .out = out,
                                           .headed = true,
                                           .head = nsim_head_of (&op[i]),
                                           .data = data,
                                           .bytes = bytes};
    }
    end = nsim_transfer (op[0].comm, xfer, xfers);
    for (size_t i = 0; i < n; i++)
        free (spare[i]);
    free (spare);
    free (xfer);
    return end;
}
