/* SPDX-License-Identifier: BSD-3-Clause */
/* team - which ranks share a node; pure arithmetic on host names. */
#ifndef GS_BOOT_TEAM_H
#define GS_BOOT_TEAM_H

#include "gradsync.h"

struct gsi_team {
    int rank, size;
    int local_rank, local_size; /* among the ranks of this node, in rank order */
    int node, nodes;            /* nodes are numbered in the order of their first rank */
    int *node_of;               /* [size] node of each rank */
};

/* The memory that a team of [size] ranks needs; to be freed if it is not used. NULL: none. */
void *gsi_team_room (int size);

/*
 * Fills [team], in [room] for [size] ranks, which it takes, from the host name of each rank,
 * host_of (context, rank).
 */
void gsi_team_build (struct gsi_team *team, void *room, int rank, int size,
                     const char *(*host_of) (const void *context, int rank), const void *context);

/* Frees what the team holds; a zeroed team is fine. */
void gsi_team_clear (struct gsi_team *team);

#endif /* GS_BOOT_TEAM_H */
