/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu_grouping - which ranks have one GPU, and who leads them; pure arithmetic on what each rank
 * tells of its GPU, the same on every rank.
 */
#ifndef GS_COLL_GPU_GROUPING_H
#define GS_COLL_GPU_GROUPING_H

#include <stdbool.h>

#include "boot/topo.h"
#include "device/device.h"

/* Which GPU a rank has. */
struct gsi_rank_gpu {
    struct gsi_device_id id;
    uint64_t gpu; /* on the bus: instances of a GPU have that of the GPU */
    int32_t st, deterministic, known;
    int32_t none;  /* it has no GPU */
    char text[96]; /* why, if [st] is a failure or [id] is not known */
};

/* The groups of a node's ranks that have one GPU, in the order of their leaders. */
struct gsi_gpu_grouping {
    const struct gsi_rank_gpu *gpus; /* [size] */
    int groups;
    int largest;  /* ranks of a group */
    int *leaders; /* [groups] ranks, room for [size] */
    int *members; /* [size] of the group that a rank leads; 0 of others; zeroed before */
};

/* Fills all but [gpus], which is there. */
void gsi_gpu_grouping_find (struct gsi_gpu_grouping *s, const struct gsi_topo *topo);

/* The leader, of those that there are so far, of [rank]'s group; itself if there is none. */
int gsi_gpu_grouping_leader (const struct gsi_gpu_grouping *s, const struct gsi_topo *topo,
                             int rank);

/* Whether sums may be made in groups, as far as the GPUs tell; [why] if not. */
bool gsi_gpu_grouping_may_sum (const struct gsi_gpu_grouping *s, const struct gsi_topo *topo,
                               char *why, size_t room);

/* Fails if NCCL of this version may not join the leaders of [groups]. */
gs_status_t gsi_gpu_grouping_check_nccl (int groups, int version);

/*
 * The leaders as ranks of a transport of their own, as the rank of [topo] sees them; node_of of
 * [own] is there, for as many.
 */
void gsi_gpu_grouping_topo (const struct gsi_gpu_grouping *s, const struct gsi_topo *topo,
                            struct gsi_topo *own);

#endif /* GS_COLL_GPU_GROUPING_H */
