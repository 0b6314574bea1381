/* SPDX-License-Identifier: BSD-3-Clause */
/* topo - which ranks share a node; pure arithmetic on host names. */
#include "boot/topo.h"

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

void *gsi_topo_room (int size)
{
    return malloc (begin_of_nodes (size) + (size_t) size * sizeof (struct node));
}

void gsi_topo_build (struct gsi_topo *topo, void *room, int rank, int size,
                     const char *(*host_of) (const void *context, int rank), const void *context)
{
    struct node *nodes = (void *) ((char *) room + begin_of_nodes (size));

    *topo = (struct gsi_topo){.rank = rank, .size = size, .node_of = room};
    for (int r = 0; r < size; r++) {
        const char *host = host_of (context, r);
        uint64_t hash = gsi_hash (host, strlen (host));
        int n = topo->nodes - 1; /* neighbours in rank mostly share a node: look there first */
        while (n >= 0 &&
               (nodes[n].hash != hash || strcmp (host_of (context, nodes[n].first), host)))
            n--;
        if (n < 0) {
            n = topo->nodes++;
            nodes[n] = (struct node){.first = r, .hash = hash};
        }
        topo->node_of[r] = n;
    }
    topo->node = topo->node_of[rank];
    for (int r = 0; r < size; r++) {
        topo->local_size += topo->node_of[r] == topo->node;
        topo->local_rank += r < rank && topo->node_of[r] == topo->node;
    }
}

void gsi_topo_clear (struct gsi_topo *topo)
{
    free (topo->node_of);
    memset (topo, 0, sizeof (*topo));
}
