/* SPDX-License-Identifier: BSD-3-Clause */
/* layout - which ranks sum what in a large allreduce between hosts. */
#include <stdlib.h>

#include "base/status.h"
#include "boot/topo.h"
#include "host/hier_allreduce.h"

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
