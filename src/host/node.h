/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node - memory that the ranks of a node share, and how they meet in it.
 *
 * Work goes in blocks, which the ranks of a communicator count alike. A rank puts what it gives
 * to a block into its area and says so (put); ranks that sum a part of the block lay it into
 * their result and say so (done). Areas are used in turn: a rank that has seen all others put
 * block n may use the area of a block that all had taken before they put block n.
 *
 * A rank also posts to another where its own memory has what that one is to read by itself
 * (cma.c), and each has two routes to each other one, for messages (route.h).
 */
#ifndef GS_HOST_NODE_H
#define GS_HOST_NODE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memfd.h"
#include "transport/coll.h"
#include "host/route.h"

#define GSI_LAG        4 /* blocks between two steps of one: so many are on their way meanwhile */
#define GSI_NODE_SLOTS (2 * GSI_LAG + 2) /* areas of a rank that all of them need */

struct gsi_coll_host;

struct gsi_node {
    int size, index; /* ranks of this node, and the place of this one among them */
    int *rank;       /* [size] their ranks in the communicator, ascending */
    int slots;       /* areas of a rank */
    size_t area_bytes, result_bytes;
    struct gsi_memfd shm;
    uint64_t turn;    /* number of the next block */
    uint64_t leaving; /* all have left the last operation when they have put this one; or 0 */

    int64_t *process; /* [size] of the system; NULL: they do not read each other's memory */
    uint64_t pulls;   /* number of the last exchange, the same on all ranks of a communicator */
    uint64_t probe;   /* what the others read to see whether they can */
    struct node_setup *setup; /* reserved, until it is open */
};

/* What a rank lets another one read. */
struct gsi_post {
    _Alignas(64) atomic_uint_fast64_t put; /* number of the exchange that it is of */
    uint64_t at, bytes, fingerprint;
    _Alignas(64) atomic_uint_fast64_t taken;
};

/* Whose node it is; no memory yet. */
gs_status_t gsi_node_build (struct gsi_node *node, const struct gsi_topo *topo);

/* What gsi_node_open needs of this rank, in a communicator of [size], and does not allocate. */
gs_status_t gsi_node_reserve (struct gsi_node *node, int size);

/*
 * Collective over the communicator. Makes the memory, and c->shm_heap: all ranks have both when
 * it returns with [*there], or none. GS_OK also without; other statuses are of the transport.
 */
gs_status_t gsi_node_open (struct gsi_coll_host *c, struct gsi_node *node, size_t area_bytes,
                           size_t result_bytes, int64_t deadline_ns, bool *there);
void gsi_node_close (struct gsi_node *node);

/* Frees what is not shared, of a node in any state. */
void gsi_node_clear (struct gsi_node *node);

/* Memory of the rank with place [index], for block [turn]. */
void *gsi_node_area (const struct gsi_node *node, int index, uint64_t turn);
void *gsi_node_result (const struct gsi_node *node, int index, uint64_t turn);

/*
 * Says that this rank has put block [turn], which is of an operation of this [fingerprint]; its
 * array has a [place] in c->shm_heap, or 0. The place of a rank may be asked for when all have
 * put.
 */
void gsi_node_put (const struct gsi_node *node, uint64_t turn, uint64_t fingerprint,
                   uint64_t place);
uint64_t gsi_node_place (const struct gsi_node *node, int index, uint64_t turn);

/* What the rank with place [from] has posted to the one with place [to]. */
struct gsi_post *gsi_node_post (const struct gsi_node *node, int from, int to);

/* That of messages from one place to another; [all]: of those that all ranks exchange. */
struct gsi_route *gsi_node_route (const struct gsi_node *node, int from, int to, bool all);

/*
 * A rank that gives up, because of [why] and another rank or -1, says so before its arrays are
 * the application's again. Who reads the memory of the rank with place [index] itself looks
 * behind it whether that rank still was in the call: [why], and what was read is to be forgotten,
 * if it was not.
 */
void gsi_node_revoke (const struct gsi_node *node, gs_status_t why, int culprit);
gs_status_t gsi_node_revoked (const struct gsi_node *node, int index); /* why, or GS_OK */
gs_status_t gsi_node_look (struct gsi_coll_host *c, int index);

/* One round, number [polls] from 1, of waiting for others of the node; why it should end. */
gs_status_t gsi_node_pause (struct gsi_coll_host *c, unsigned polls, unsigned *spins,
                            const struct gsi_call *call);

/* Says that its result of block [turn] is there. */
void gsi_node_done (const struct gsi_node *node, uint64_t turn);

/*
 * Wait, as gsi_net_wait does: until all ranks of the node have put block [turn], GS_ERR_MISMATCH
 * if one of another fingerprint; until the first [ranks] of the node have done it.
 */
gs_status_t gsi_node_await_put (struct gsi_coll_host *c, uint64_t turn, uint64_t fingerprint,
                                const struct gsi_call *call);
gs_status_t gsi_node_await_done (struct gsi_coll_host *c, uint64_t turn, int ranks,
                                 const struct gsi_call *call);

/*
 * After an operation in which ranks read areas of others, and begin the next without having
 * waited for them: leave says that this rank has read all it wanted, in a block without content;
 * settle, before the next operation, waits until all have said so.
 */
void gsi_node_leave (struct gsi_node *node);
gs_status_t gsi_node_settle (struct gsi_coll_host *c, const struct gsi_call *call);

#endif /* GS_HOST_NODE_H */
