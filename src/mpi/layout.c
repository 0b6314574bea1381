/* SPDX-License-Identifier: BSD-3-Clause */
/* layout - which ranks sum what in a large allreduce between hosts. */
#include <stdlib.h>

#include "base/status.h"
#include "boot/team.h"
#include "mpi/levels.h"

gs_status_t gsi_levels_flat (struct gsi_levels *l, const struct gsi_team *team)
{
    *l = (struct gsi_levels){.owners = 1, .rails = team->size, .rail = team->rank};
    l->peer = calloc ((size_t) team->size, sizeof (*l->peer));
    if (!l->peer)
        return gsi_fail (GS_ERR_NOMEM, "transport mpi: out of memory");
    for (int r = 0; r < team->size; r++)
        l->peer[r] = r;
    return GS_OK;
}

gs_status_t gsi_levels_nodes (struct gsi_levels *l, const struct gsi_team *team, int most)
{
    int *ranks = calloc ((size_t) team->nodes, sizeof (*ranks)); /* of each node, so far */

    *l = (struct gsi_levels){.shares = true, .owners = most, .rails = team->nodes};
    l->rail = team->node;
    l->peer = calloc ((size_t) team->nodes, sizeof (*l->peer));
    if (!ranks || !l->peer) {
        free (ranks);
        return gsi_fail (GS_ERR_NOMEM, "transport mpi: out of memory");
    }
    for (int r = 0; r < team->size; r++)
        if (ranks[team->node_of[r]]++ == team->local_rank)
            l->peer[team->node_of[r]] = r;
    for (int n = 0; n < team->nodes; n++)
        if (ranks[n] < l->owners)
            l->owners = ranks[n];
    l->shard = team->local_rank < l->owners ? team->local_rank : -1;
    free (ranks);
    return GS_OK;
}
