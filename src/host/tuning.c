/* SPDX-License-Identifier: BSD-3-Clause */
/* tuning - by which algorithm data goes between hosts. */
#include "host/tuning.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/env.h"
#include "base/status.h"
#include "host/coll_host.h"

#define SMALL_BYTES    ((size_t) 16 << 10) /* above it less is sent by shards: measured */
#define HIER_BYTES     ((size_t) 1 << 10)  /* gathers of less go rank by rank: measured */
#define MANY_RANKS     8                   /* that sum less than this by halves: measured */
#define HALVED_BYTES   ((size_t) 48 << 10)
#define CMA_BYTES      ((size_t) 128 << 10) /* of one of two ranks, that they read: measured */
#define PIPELINE_BYTES ((size_t) 256 << 10) /* of a block that is moved by messages */
#define BLOCK_BYTES    ((size_t) 256 << 10) /* of a block on one node: stays in the cache */
#define WIRE_BYTES     ((size_t) 60 << 10)  /* of a part that travels: MPI sends 64 KiB at once */
#define STAGING_BYTES  ((size_t) 16 << 20)  /* for all parts that travel, about */
#define NODE_BYTES     ((size_t) 128 << 20) /* that all ranks of a node share, about */
#define LEAST_BYTES    ((size_t) 4 << 10)   /* of any part */
#define LINE_BYTES     ((size_t) 256)       /* of parts: 64 elements of 8 bits, summed in fp32 */
#define ALONE_SLOTS    4                    /* areas on one node; pipeline.c needs so many */

#define ANY SIZE_MAX

/* Where the ranks of a communicator are; several in a row of the table. */
enum where {
    NODE = 1,   /* three or more on one, whose memory they share */
    NODES = 2,  /* on several with such memory */
    APART = 4,  /* each on its own */
    MANY = 8,   /* so, too many for all of them to send each other little */
    HALVE = 16, /* so, with GS_HOST_ALGO=rabenseifner */
    PAIR = 32   /* two on one, whose memory they share */
};

#define FLAT   (APART | MANY | HALVE)
#define ALONE  (NODE | PAIR)
#define ALWAYS (ALONE | NODES | FLAT)

/*
 * The first row that fits is taken: of this operation, with ranks there, and not more than so
 * many bytes of each rank and of all.
 */
static const struct row {
    enum gsi_tuned op;
    unsigned where;
    size_t each, all;
    enum gsi_algo algo;
} table[] = {
    {GSI_TUNED_SUM, ALWAYS, SMALL_BYTES, GSI_SMALL_BYTES, GSI_ALGO_SMALL_ALLGATHER},
    {GSI_TUNED_SUM, MANY, HALVED_BYTES, ANY, GSI_ALGO_RABENSEIFNER},
    {GSI_TUNED_SUM, HALVE, ANY, ANY, GSI_ALGO_RABENSEIFNER},
    {GSI_TUNED_SUM, ALONE | NODES | APART | MANY, ANY, ANY, GSI_ALGO_HIER_SUM},
    {GSI_TUNED_GATHER, ALONE | FLAT, SMALL_BYTES, GSI_SMALL_BYTES, GSI_ALGO_SMALL_ALLGATHER},
    {GSI_TUNED_GATHER, NODES, HIER_BYTES, GSI_SMALL_BYTES, GSI_ALGO_SMALL_ALLGATHER},
    {GSI_TUNED_GATHER, PAIR, CMA_BYTES, ANY, GSI_ALGO_CMA},
    {GSI_TUNED_GATHER, ALONE, ANY, ANY, GSI_ALGO_MEMORY},
    {GSI_TUNED_GATHER, NODES, ANY, ANY, GSI_ALGO_HIER},
    {GSI_TUNED_GATHER, FLAT, ANY, ANY, GSI_ALGO_MESSAGES},
    {GSI_TUNED_BROADCAST, ALONE, SMALL_BYTES, ANY, GSI_ALGO_MEMORY},
    {GSI_TUNED_BROADCAST, ALONE, ANY, ANY, GSI_ALGO_CMA},
    {GSI_TUNED_BROADCAST, NODES, HIER_BYTES, ANY, GSI_ALGO_MESSAGES},
    {GSI_TUNED_BROADCAST, NODES, ANY, ANY, GSI_ALGO_HIER},
    {GSI_TUNED_BROADCAST, FLAT, ANY, ANY, GSI_ALGO_MESSAGES},
    {GSI_TUNED_ALLTOALLV, ALWAYS, SMALL_BYTES, GSI_SMALL_BYTES, GSI_ALGO_SMALL_ALLGATHER},
    {GSI_TUNED_ALLTOALLV, ALONE | NODES, ANY, ANY, GSI_ALGO_CMA},
    {GSI_TUNED_ALLTOALLV, FLAT, ANY, ANY, GSI_ALGO_MESSAGES},
};

#define ROWS ((int) (sizeof (table) / sizeof (table[0])))

/* ---- The table ---- */

static enum where where_of (const struct gsi_hier *hier)
{
    if (hier->shares)
        return hier->rail_size > 1 ? NODES : hier->owners > 2 ? NODE : PAIR;
    if (hier->rabenseifner != GSI_RABENSEIFNER_SOME)
        return hier->rabenseifner == GSI_RABENSEIFNER_ALL ? HALVE : APART;
    return hier->rail_size >= MANY_RANKS ? MANY : APART;
}

/* The most bytes of each of [size] ranks that [row] is for. */
static size_t limit_of (const struct row *row, int size)
{
    size_t share = row->all == ANY ? ANY : row->all / (size_t) size;

    return row->each < share ? row->each : share;
}

/* Whether [bytes] are not above it. N.B. Each call asks: a division would cost as much. */
static bool fits (const struct row *row, int size, size_t bytes)
{
    return bytes <= row->each && (row->all == ANY || bytes * (size_t) size <= row->all);
}

enum gsi_algo gsi_tuning_algo (const struct gsi_hier *hier, int size, enum gsi_tuned op,
                               size_t bytes)
{
    const struct row *row = table;
    enum where here = where_of (hier);

    while (row->op != op || !(row->where & here) || !fits (row, size, bytes))
        row++; /* the last row of each operation and place is for any number of bytes */
    return row->algo;
}

static void name_algo (const struct gsi_hier *l, int size, const struct row *row, char *text,
                       size_t room)
{
    bool node = where_of (l) & ALONE;

    switch (row->algo) {
    case GSI_ALGO_SMALL_ALLGATHER:
        snprintf (text, room, "small allgather: %s",
                  node ? "in the memory of the node" : "in log2 (ranks) messages");
        break;
    case GSI_ALGO_RABENSEIFNER:
        snprintf (text, room, "rabenseifner: 2 log2 (ranks) messages");
        break;
    case GSI_ALGO_HIER_SUM:
        if (l->shares)
            snprintf (text, room, "hier: shards of %zu bytes of a block, %d on each node",
                      l->part_bytes * (size_t) l->rail_size, l->owners);
        else
            snprintf (text, room, "flat: messages of %zu bytes, to and from each rank",
                      l->part_bytes);
        break;
    case GSI_ALGO_MEMORY: snprintf (text, room, "memory of the node"); break;
    case GSI_ALGO_HIER:
        snprintf (text, room, "hier: %d of each node carry messages of up to %zu bytes",
                  l->owners, l->part_bytes);
        break;
    case GSI_ALGO_CMA:
        snprintf (text, room, "cma: read from each other's memory%s",
                  node ? "" : "; between nodes by messages");
        break;
    case GSI_ALGO_MESSAGES:
        if (row->op != GSI_TUNED_BROADCAST)
            snprintf (text, room, "messages of up to %zu bytes, to and from each rank",
                      gsi_tuning_piece (size));
        else
            snprintf (text, room, "messages of up to %zu bytes, down a tree of the ranks",
                      gsi_tuning_piece (size) * (size_t) size);
        break;
    }
}

bool gsi_tuning_line (const struct gsi_hier *hier, int size, int line, char *text, size_t room)
{
    static const char *const names[] = {[GSI_TUNED_SUM] = "sum",
                                        [GSI_TUNED_GATHER] = "allgather",
                                        [GSI_TUNED_BROADCAST] = "broadcast",
                                        [GSI_TUNED_ALLTOALLV] = "alltoallv"};
    const struct row *before = NULL;

    for (const struct row *row = table; row < table + ROWS; row++) {
        size_t limit = limit_of (row, size);
        char bytes[32], algo[128];
        if (!(row->where & where_of (hier)) || !limit)
            continue;
        if (line--) {
            before = row;
            continue;
        }
        if (limit == ANY)
            snprintf (bytes, sizeof (bytes), "%s",
                      before && before->op == row->op ? "more" : "any size");
        else
            snprintf (bytes, sizeof (bytes), "to %zu bytes", limit);
        name_algo (hier, size, row, algo, sizeof (algo));
        snprintf (text, room, "%-10s %-16s %s", names[row->op], bytes, algo);
        return true;
    }
    return false;
}

bool gsi_tuning_describe (const struct gsi_topo *topo, int line, char *text, size_t room)
{
    struct gsi_hier hier;
    bool there;

    if (gsi_tuning_is_flat (topo) ? gsi_hier_flat (&hier, topo)
                                  : gsi_hier_nodes (&hier, topo, gsi_tuning_owners (topo)))
        return false;
    hier.rabenseifner = gsi_tuning_rabenseifner ();
    hier.part_bytes = gsi_tuning_part (&hier, topo);
    there = gsi_tuning_line (&hier, topo->size, line, text, room);
    free (hier.peer);
    return there;
}

/* ---- Which ranks sum what in a large allreduce ---- */

gs_status_t gsi_hier_flat (struct gsi_hier *l, const struct gsi_topo *topo)
{
    *l = (struct gsi_hier){.owners = 1, .rail_size = topo->size, .rail = topo->rank};
    l->peer = calloc ((size_t) topo->size, sizeof (*l->peer));
    if (!l->peer)
        return gsi_fail (GS_ERR_NOMEM, "between hosts: out of memory");
    for (int r = 0; r < topo->size; r++)
        l->peer[r] = r;
    return GS_OK;
}

gs_status_t gsi_hier_nodes (struct gsi_hier *l, const struct gsi_topo *topo, int most)
{
    size_t nodes = (size_t) topo->nodes;

    *l = (struct gsi_hier){.shares = true, .owners = most, .rail_size = topo->nodes};
    l->rail = topo->node;
    l->peer = calloc (2 * nodes + (size_t) topo->size, sizeof (*l->peer));
    if (!l->peer)
        return gsi_fail (GS_ERR_NOMEM, "between hosts: out of memory");
    l->ranks = l->peer + nodes;
    l->index = l->ranks + nodes;
    for (int r = 0; r < topo->size; r++) {
        int node = topo->node_of[r];
        l->index[r] = l->ranks[node]++;
        if (l->index[r] == topo->local_rank)
            l->peer[node] = r;
    }
    for (int n = 0; n < topo->nodes; n++)
        if (l->ranks[n] < l->owners)
            l->owners = l->ranks[n];
    l->shard = topo->local_rank < l->owners ? topo->local_rank : -1;
    return GS_OK;
}

/* ---- What it depends on, and sizes ---- */

/* Sums within several nodes would not be in rank order. */
bool gsi_tuning_is_flat (const struct gsi_topo *topo)
{
    int algorithm = gsi_env_choice (GSI_ENV_HOST_ALGO);

    return algorithm == GSI_HOST_FLAT || algorithm == GSI_HOST_RABENSEIFNER ||
           topo->nodes == topo->size || (topo->nodes > 1 && gsi_env_int (GSI_ENV_DETERMINISTIC));
}

/* Sums by halves are not in rank order either. */
enum gsi_rabenseifner gsi_tuning_rabenseifner (void)
{
    int algorithm = gsi_env_choice (GSI_ENV_HOST_ALGO);

    if (gsi_env_int (GSI_ENV_DETERMINISTIC))
        return GSI_RABENSEIFNER_NONE;
    if (algorithm == GSI_HOST_RABENSEIFNER)
        return GSI_RABENSEIFNER_ALL;
    return algorithm == GSI_HOST_AUTO ? GSI_RABENSEIFNER_SOME : GSI_RABENSEIFNER_NONE;
}

static size_t whole_lines (size_t bytes)
{
    bytes = bytes / LINE_BYTES * LINE_BYTES;
    return bytes > LEAST_BYTES ? bytes : LEAST_BYTES;
}

static size_t smaller (size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Between nodes every owner costs every rank of the node a piece of memory for each rail. */
int gsi_tuning_owners (const struct gsi_topo *topo)
{
    size_t local = (size_t) (topo->size / topo->nodes), nodes = (size_t) topo->nodes;
    size_t most = NODE_BYTES / (GSI_NODE_SLOTS * local * nodes * LEAST_BYTES);

    return topo->nodes == 1 || most > (size_t) topo->size ? topo->size : most ? (int) most : 1;
}

size_t gsi_tuning_part (const struct gsi_hier *hier, const struct gsi_topo *topo)
{
    size_t rail_size = (size_t) hier->rail_size, owners = (size_t) hier->owners;
    size_t local = (size_t) (topo->size / topo->nodes), part;

    if (rail_size == 1)
        return whole_lines (smaller (BLOCK_BYTES, NODE_BYTES / ALONE_SLOTS / owners) / owners);
    part = smaller (WIRE_BYTES, STAGING_BYTES / (4 * GSI_STAGING_SLOTS * rail_size));
    if (hier->shares)
        part = smaller (part, NODE_BYTES / (GSI_NODE_SLOTS * local * owners * rail_size));
    return whole_lines (part);
}

int gsi_tuning_slots (const struct gsi_hier *hier)
{
    return hier->rail_size == 1 ? ALONE_SLOTS : GSI_NODE_SLOTS;
}

/* A message has the pieces of all ranks that an owner carries for. */
size_t gsi_tuning_relayed (const struct gsi_hier *hier)
{
    int most = 1;
    size_t step;

    for (int n = 0; n < hier->rail_size; n++)
        most = hier->ranks[n] > most ? hier->ranks[n] : most;
    step = hier->part_bytes / (size_t) ((most + hier->owners - 1) / hier->owners);
    return step >= LINE_BYTES ? step / LINE_BYTES * LINE_BYTES : step;
}

size_t gsi_tuning_piece (int size)
{
    return whole_lines (PIPELINE_BYTES / (size_t) size);
}
