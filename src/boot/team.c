/* SPDX-License-Identifier: BSD-3-Clause */
/* team - which ranks share a node; pure arithmetic on host names. */
#include "boot/team.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/status.h"

/* A node seen so far: the rank that was met first, and a hash of its host name. */
struct node {
    int first;
    uint64_t hash;
};

gs_status_t gsi_team_build (struct gsi_team *team, int rank, int size,
                            const char *(*host_of) (const void *context, int rank),
                            const void *context)
{
    struct node *nodes = calloc ((size_t) size, sizeof (*nodes));

    memset (team, 0, sizeof (*team));
    team->rank = rank;
    team->size = size;
    team->node_of = calloc ((size_t) size, sizeof (*team->node_of));
    if (!nodes || !team->node_of) {
        free (nodes);
        gsi_team_clear (team);
        return gsi_fail (GS_ERR_NOMEM, "no memory for the node map of %d ranks", size);
    }
    for (int r = 0; r < size; r++) {
        const char *host = host_of (context, r);
        uint64_t hash = gsi_hash (host, strlen (host));
        int n = team->nodes - 1; /* neighbours in rank mostly share a node: look there first */
        while (n >= 0 &&
               (nodes[n].hash != hash || strcmp (host_of (context, nodes[n].first), host)))
            n--;
        if (n < 0) {
            n = team->nodes++;
            nodes[n] = (struct node){.first = r, .hash = hash};
        }
        team->node_of[r] = n;
    }
    team->node = team->node_of[rank];
    for (int r = 0; r < size; r++) {
        team->local_size += team->node_of[r] == team->node;
        team->local_rank += r < rank && team->node_of[r] == team->node;
    }
    free (nodes);
    return GS_OK;
}

void gsi_team_clear (struct gsi_team *team)
{
    free (team->node_of);
    memset (team, 0, sizeof (*team));
}
