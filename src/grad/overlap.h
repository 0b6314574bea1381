/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * overlap - whether buckets are reduced during the backward pass. On GPUs they do. On hosts it
 * takes a thread: between nodes that mostly waits, within a node it adds numbers, which takes a
 * core of its own; else it would only be in the program's way.
 */
#ifndef GS_GRAD_OVERLAP_H
#define GS_GRAD_OVERLAP_H

#include "grad/reducer.h"

/* What a rank tells the others. */
struct gsi_view {
    int32_t overlap, any_thread;
    uint64_t cores[16]; /* that it may run on, a bit for each */
};

/* What a rank has of the cores that it may run on. */
struct gsi_share {
    double whole;       /* cores, those that several ranks may use shared out */
    int cores, sharers; /* how many it may use; ranks on the one that most may use */
};

/* The share of [rank] of [ranks], all of one node. */
struct gsi_share gsi_overlap_share (const struct gsi_view *all, int ranks, int rank);

/*
 * Collective: whether buckets are reduced during the backward pass, in r->overlaps, and the log
 * says why. GS_ERR_UNSUPPORTED, on all ranks, if a rank asks for a thread that cannot be.
 */
gs_status_t gsi_overlap_agree (gs_reducer_t *r);

#endif /* GS_GRAD_OVERLAP_H */
