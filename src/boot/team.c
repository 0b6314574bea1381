/* SPDX-License-Identifier: BSD-3-Clause */
/* team - which ranks share a node; pure arithmetic on host names. */
#include "boot/team.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* A node seen so far: the rank that was met first, and a hash of its host name. */
struct node {
    int first;
    uint64_t hash;
};

/* Nodes come behind the node of each rank. */
static size_t begin_of_nodes (int size)
{
    size_t width = sizeof (struct node);

    return ((size_t) size * sizeof (int) + width - 1) / width * width;
}

void *gsi_team_room (int size)
{
    return malloc (begin_of_nodes (size) + (size_t) size * sizeof (struct node));
}

void gsi_team_build (struct gsi_team *team, void *room, int rank, int size,
                     const char *(*host_of) (const void *context, int rank), const void *context)
{
    struct node *nodes = (void *) ((char *) room + begin_of_nodes (size));

    *team = (struct gsi_team){.rank = rank, .size = size, .node_of = room};
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
}

void gsi_team_clear (struct gsi_team *team)
{
    free (team->node_of);
    memset (team, 0, sizeof (*team));
}
