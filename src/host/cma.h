/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cma - ranks of a node read from each other's memory what they are to receive: one copy, which
 * the system makes from process to process. A rank posts where it has what another may read, and
 * waits until that one has taken it. Nobody writes into memory that is not its own. A reader that
 * is late is told by gsi_node_look.
 */
#ifndef GS_HOST_CMA_H
#define GS_HOST_CMA_H

#include "transport/coll.h"

struct gsi_coll_host;

/* Reads [bytes] at [at] of [process]; false if it may not, or there is nothing. */
bool gsi_cma_read (int64_t process, uint64_t at, void *dst, size_t bytes);

/* The same, of the rank with place [i] on the node, which must not have given up by then. */
gs_status_t gsi_cma_from (struct gsi_coll_host *c, int i, uint64_t at, void *dst, size_t bytes);

/* Whether the ranks of this node do so. */
bool gsi_cma_can (const struct gsi_coll_host *c);

/* An alltoallv of the ranks of the node: begin, then finish. Counted alike by all of them. */
void gsi_cma_begin (struct gsi_coll_host *c, const struct gsi_alltoallv *x);
gs_status_t gsi_cma_finish (struct gsi_coll_host *c, const struct gsi_alltoallv *x,
                            const struct gsi_call *call);

#endif /* GS_HOST_CMA_H */
