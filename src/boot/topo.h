/* SPDX-License-Identifier: BSD-3-Clause */
/* topo - which ranks share a node; pure arithmetic on host names. */
#ifndef GS_BOOT_TOPO_H
#define GS_BOOT_TOPO_H

#include "gradsync.h"

struct gsi_topo {
    int rank, size;
    int local_rank, local_size; /* among the ranks of this node, in rank order */
    int node, nodes;            /* nodes are numbered in the order of their first rank */
    int *node_of;               /* [size] node of each rank */
};

/* The memory that a topo of [size] ranks needs; to be freed if it is not used. NULL: none. */
void *gsi_topo_room (int size);

/*
 * Fills [topo], in [room] for [size] ranks, which it takes, from the host name of each rank,
 * host_of (context, rank).
 */
void gsi_topo_build (struct gsi_topo *topo, void *room, int rank, int size,
                     const char *(*host_of) (const void *context, int rank), const void *context);

/* Frees what the topo holds; a zeroed topo is fine. */
void gsi_topo_clear (struct gsi_topo *topo);

#endif /* GS_BOOT_TOPO_H */
