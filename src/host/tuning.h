/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tuning - by which algorithm data goes between hosts, by where the ranks are and how much it is:
 * the table in tuning.c, which gs-info --hosts prints. The same on all ranks: it depends on
 * nothing that they do not share.
 *
 * Ranks count as APART, each a node of its own, where no two share a node, without memory that
 * the ranks of a node share, with GS_HOST_ALGO=flat or rabenseifner, and with GS_DETERMINISTIC on
 * several nodes.
 */
#ifndef GS_HOST_TUNING_H
#define GS_HOST_TUNING_H

#include <stdbool.h>
#include <stddef.h>

#include "boot/topo.h"
#include "host/hier_allreduce.h"

enum gsi_tuned { GSI_TUNED_SUM, GSI_TUNED_GATHER, GSI_TUNED_BROADCAST, GSI_TUNED_ALLTOALLV };

enum gsi_algo {
    GSI_ALGO_SMALL_ALLGATHER, /* small_allgather.c: all get all, and do the rest by themselves */
    GSI_ALGO_RABENSEIFNER,    /* rabenseifner.c */
    GSI_ALGO_HIER_SUM,        /* hier_allreduce.c */
    GSI_ALGO_MEMORY,          /* pipeline.c, in the memory of the node */
    GSI_ALGO_HIER,            /* hier_move.c: in the memory of nodes, between them by messages */
    GSI_ALGO_CMA,             /* cma.c, and alltoallv.c between nodes */
    GSI_ALGO_MESSAGES,        /* pipeline.c and alltoallv.c, by messages */
};

/* How an operation with [bytes] of each of [size] ranks goes; of a broadcast, with [bytes] of
 * one. */
enum gsi_algo gsi_tuning_algo (const struct gsi_hier *hier, int size, enum gsi_tuned op,
                               size_t bytes);

/*
 * Writes line [line], from 0, of the table for these ranks into [text]; false behind the last.
 * [hier] is as it is used, with its part_bytes.
 */
bool gsi_tuning_line (const struct gsi_hier *hier, int size, int line, char *text, size_t room);

/* The same for a job that does not run, with memory that the ranks of each node share. */
bool gsi_tuning_describe (const struct gsi_topo *topo, int line, char *text, size_t room);

/* Whether each rank counts as a node of its own in large sums. */
bool gsi_tuning_is_flat (const struct gsi_topo *topo);

/* Which sums of ranks that are apart may go by halves. */
enum gsi_rabenseifner gsi_tuning_rabenseifner (void);

/* How many ranks of a node may sum, at most. */
int gsi_tuning_owners (const struct gsi_topo *topo);

/* The part of a block of a large sum that one rank has; how many areas a rank needs for it. */
size_t gsi_tuning_part (const struct gsi_hier *hier, const struct gsi_topo *topo);
int gsi_tuning_slots (const struct gsi_hier *hier);

/* What a rank has of a block that is gathered by way of the nodes' owners. */
size_t gsi_tuning_relayed (const struct gsi_hier *hier);

/* What one of [size] ranks has of a block that is moved by messages. */
size_t gsi_tuning_piece (int size);

#endif /* GS_HOST_TUNING_H */
