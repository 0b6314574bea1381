/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hier_allreduce - a large allreduce between hosts, and a reduce on one node, in blocks.
 *
 * A block is cut in one shard for each owner of a node, and each shard in one part for each rail.
 * An owner combines what the ranks of its node give to its shard, in memory that they share; the
 * owners of the same shard, one on each node, combine the parts of it by messages, rank k of a
 * rail its part k, and send each other the results; the node takes them from shared memory. Each
 * level adds in rank order, and f16 and bf16 stay sums in fp32 in between, rounded once.
 *
 * Of two ranks alone, a reduce of little is all the root's: it adds what the other one lays out.
 *
 * An array that all ranks of the node see (shm_heap.h) is read where it is, not laid out. Where
 * all are such, on a single node, each owner sums its shard of the whole in place.
 *
 * Without shared memory every rank counts as a node of its own: then the rail has all ranks, and
 * the whole sum is in rank order. So it is on a single node, whose rails have one rank each.
 */
#ifndef GS_HOST_HIER_ALLREDUCE_H
#define GS_HOST_HIER_ALLREDUCE_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/coll.h"

struct gsi_coll_host;

/* Which large sums are not ours but rabenseifner.c's, without shared memory; see tuning.h. */
enum gsi_rabenseifner { GSI_RABENSEIFNER_NONE, GSI_RABENSEIFNER_SOME, GSI_RABENSEIFNER_ALL };

struct gsi_hier {
    enum gsi_rabenseifner rabenseifner;
    bool shares;         /* memory within the node: c->node */
    int owners, shard;   /* shards of a block, and which of them is this rank's, or -1 */
    int rail_size, rail; /* ranks that own the same shard, and the place of this one among them */
    int *peer;           /* [rail_size]; the two below are part of it */
    int *ranks;          /* (shares) [rail_size] how many each node has */
    int *index;          /* (shares) [size] places of all ranks on their nodes */
    size_t part_bytes;   /* of one part of a block; a multiple of 256 */
};

/* All ranks are on one node, and have its memory. */
static inline bool gsi_hier_together (const struct gsi_hier *hier)
{
    return hier->shares && hier->rail_size == 1;
}

/* tuning.c: every rank a node of its own. */
gs_status_t gsi_hier_flat (struct gsi_hier *hier, const struct gsi_topo *topo);

/* With the nodes there are; as many owners on each as the smallest has ranks, at most [most]. */
gs_status_t gsi_hier_nodes (struct gsi_hier *hier, const struct gsi_topo *topo, int most);

gs_status_t gsi_hier_allreduce (struct gsi_coll_host *c, const struct gsi_hier *hier, char *buf,
                                size_t count, const struct gsi_reduction *how,
                                const struct gsi_call *call);

/* Where all ranks are together: the sum on [root] only, which may have [recv] as [send]. */
gs_status_t gsi_hier_reduce (struct gsi_coll_host *c, const char *send, char *recv, size_t count,
                             const struct gsi_reduction *how, int root,
                             const struct gsi_call *call);

#endif /* GS_HOST_HIER_ALLREDUCE_H */
