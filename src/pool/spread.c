/* SPDX-License-Identifier: BSD-3-Clause */
/* spread - rows of a step that are evaluated on other nodes go there, and what comes of them. */
#include <stdlib.h>

#include "pool/pool.h"

/* What is known of all nodes. Lengths and places are in bytes. */
struct gsi_spread {
    int size, nodes;
    int *node_of;   /* [size] */
    int *lowest;    /* [nodes] the rank of each that sends and receives for it */
    uint64_t *told; /* [2 * size] which pool each rank calls, and its rows */
    size_t *send, *send_at, *recv, *recv_at;    /* [size] */
    struct gsi_node_rows *step[GSI_POOL_STEPS]; /* [nodes] */
    size_t moved[GSI_POOL_STEPS];               /* rows that change nodes */
    uint64_t exchanges;
};

gs_status_t gsi_spread_open (gs_pool_t *p, const char *caller)
{
    size_t size = (size_t) gs_comm_size (p->comm), nodes = (size_t) gs_comm_nodes (p->comm);
    struct gsi_spread *s;
    bool ok;

    if (p->opts.balance == GS_BALANCE_WITHIN_NODES || nodes == 1)
        return GS_OK;
    if (!(s = p->spread = calloc (1, sizeof (*s))))
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);
    s->size = (int) size;
    s->nodes = (int) nodes;
    s->node_of = calloc (size, sizeof (*s->node_of));
    s->lowest = calloc (nodes, sizeof (*s->lowest));
    s->told = calloc (2 * size, sizeof (*s->told));
    s->send = calloc (4 * size, sizeof (*s->send));
    ok = s->node_of && s->lowest && s->told && s->send;
    for (int i = 0; i < GSI_POOL_STEPS; i++)
        ok = (s->step[i] = calloc (nodes, sizeof (*s->step[i]))) && ok;
    if (!ok)
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);
    s->send_at = s->send + size;
    s->recv = s->send_at + size;
    s->recv_at = s->recv + size;
    return GS_OK;
}

void gsi_spread_close (gs_pool_t *p)
{
    struct gsi_spread *s = p->spread;

    if (!s)
        return;
    for (int i = 0; i < GSI_POOL_STEPS; i++)
        free (s->step[i]);
    free (s->send);
    free (s->told);
    free (s->lowest);
    free (s->node_of);
    free (s);
    p->spread = NULL;
}

void gsi_spread_set_node (gs_pool_t *p, int node, const int *rank, int ranks, int evaluators)
{
    struct gsi_spread *s = p->spread;

    if (!s)
        return;
    s->lowest[node] = rank[0];
    for (int i = 0; i < ranks; i++)
        s->node_of[rank[i]] = node;
    for (int i = 0; i < GSI_POOL_STEPS; i++) {
        s->step[i][node].most = (size_t) ranks * p->opts.max_rows;
        s->step[i][node].evaluators = evaluators;
    }
}

gs_status_t gsi_spread_differ (const gs_pool_t *p, const char *caller, int a, int b)
{
    return gsi_fail (GS_ERR_MISMATCH,
                     "%s: rank %d (host %s) and rank %d (host %s) call it for different pools or "
                     "steps: all ranks do so in the same order",
                     caller, a, gs_comm_host_of (p->comm, a), b, gs_comm_host_of (p->comm, b));
}

gs_status_t gsi_spread_tell (gs_pool_t *p, const char *caller, size_t rows)
{
    struct gsi_spread *s = p->spread;
    uint64_t own[] = {p->created << 1 | (p->begun & 1), rows};
    gs_status_t st = s ? gs_allgather (p->comm, own, s->told, 2, GS_U64, p->opts.stream) : GS_OK;

    for (int r = 1; s && r < s->size && !st; r++)
        if (s->told[2 * r] != *s->told)
            st = gsi_spread_differ (p, caller, 0, r);
    return st;
}

void gsi_spread_plan (gs_pool_t *p, uint64_t number)
{
    struct gsi_spread *s = p->spread;
    struct gsi_node_rows *node;

    if (!s)
        return;
    node = s->step[number % GSI_POOL_STEPS];
    for (int n = 0; n < s->nodes; n++)
        node[n].rows = 0;
    for (int r = 0; r < s->size; r++)
        node[s->node_of[r]].rows += s->told[2 * r + 1];
    s->moved[number % GSI_POOL_STEPS] = gsi_share_spread (node, s->nodes);
}

bool gsi_spread_moves (const gs_pool_t *p, uint64_t number)
{
    return p->spread && p->spread->moved[number % GSI_POOL_STEPS];
}

size_t gsi_spread_evaluated (const gs_pool_t *p, uint64_t number)
{
    const struct gsi_node_rows *own;

    if (!p->spread)
        return p->step[number % GSI_POOL_STEPS].place[p->ranks];
    own = &p->spread->step[number % GSI_POOL_STEPS][gs_comm_node (p->comm)];
    return own->kept + own->taken;
}

/* Sets what the lowest ranks exchange, [width] bytes of each row that changes nodes. */
static void set_lengths (struct gsi_spread *s, uint64_t number, int own, size_t width, bool back)
{
    const struct gsi_node_rows *node = s->step[number % GSI_POOL_STEPS];

    for (int n = 0; n < s->nodes; n++) {
        struct gsi_moved_rows out = gsi_share_moved (&node[own], &node[n]);
        struct gsi_moved_rows in = gsi_share_moved (&node[n], &node[own]);
        int r = s->lowest[n];
        (back ? s->recv : s->send)[r] = out.number * width;
        (back ? s->recv_at : s->send_at)[r] = out.from * width;
        (back ? s->send : s->recv)[r] = in.number * width;
        (back ? s->send_at : s->recv_at)[r] = in.to * width;
    }
}

gs_status_t gsi_spread_move (gs_pool_t *p, uint64_t number, enum gsi_pool_area area, bool back)
{
    struct gsi_spread *s = p->spread;
    void *rows = gsi_pool_row (p, number, area, 0);
    gs_status_t st;

    if (p->index == 0)
        set_lengths (s, number, gs_comm_node (p->comm), gsi_pool_width (p, area), back);
    if ((st = gs_alltoallv (p->comm, rows, s->send, s->send_at, rows, s->recv, s->recv_at, GS_U8,
                            p->opts.stream)))
        return st;
    s->exchanges++;
    if (p->index == 0)
        atomic_store_explicit (&gsi_pool_line_of (p, 0)->moved, s->exchanges,
                               memory_order_release);
    return GS_OK;
}

uint64_t gsi_spread_exchanges (const gs_pool_t *p)
{
    return p->spread->exchanges;
}
