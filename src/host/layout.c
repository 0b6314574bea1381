/* SPDX-License-Identifier: BSD-3-Clause */
/* layout - which ranks sum what in a large allreduce between hosts. */
#include <stdlib.h>

#include "base/status.h"
#include "boot/team.h"
#include "host/levels.h"

gs_status_t gsi_levels_flat (struct gsi_levels *l, const struct gsi_team *team)
{
    *l = (struct gsi_levels){.owners = 1, .rails = team->size, .rail = team->rank};
    l->peer = calloc ((size_t) team->size, sizeof (*l->peer));
    if (!l->peer)
        return gsi_fail (GS_ERR_NOMEM, "between hosts: out of memory");
    for (int r = 0; r < team->size; r++)
        l->peer[r] = r;
    return GS_OK;
}

gs_status_t gsi_levels_nodes (struct gsi_levels *l, const struct gsi_team *team, int most)
{
    size_t nodes = (size_t) team->nodes;

    *l = (struct gsi_levels){.shares = true, .owners = most, .rails = team->nodes};
    l->rail = team->node;
    l->peer = calloc (2 * nodes + (size_t) team->size, sizeof (*l->peer));
    if (!l->peer)
        return gsi_fail (GS_ERR_NOMEM, "between hosts: out of memory");
    l->ranks = l->peer + nodes;
    l->index = l->ranks + nodes;
    for (int r = 0; r < team->size; r++) {
        int node = team->node_of[r];
        l->index[r] = l->ranks[node]++;
        if (l->index[r] == team->local_rank)
            l->peer[node] = r;
    }
    for (int n = 0; n < team->nodes; n++)
        if (l->ranks[n] < l->owners)
            l->owners = l->ranks[n];
    l->shard = team->local_rank < l->owners ? team->local_rank : -1;
    return GS_OK;
}
