/* SPDX-License-Identifier: BSD-3-Clause */
/* gpu_map - which GPU each rank takes; pure arithmetic on the cards, the same on every rank. */
#ifndef GS_CORE_GPU_MAP_H
#define GS_CORE_GPU_MAP_H

#include <stdbool.h>

#include "boot/topo.h"
#include "core/card.h"

#define GSI_PLACE_BYTES 16 /* of room for each rank, which the two functions work in */

/*
 * Works out the GPU of each rank: the one its card asks for, else its place among the ranks of
 * its node modulo the number of GPUs it sees. Fails, with the same text on all ranks, if a rank
 * has no GPU, asks for one that it does not see, or shares one with another rank of its node
 * where GS_GPU_SHARING is never. [ordinal] is this rank's; [shared]: some share one, and NCCL
 * would not have that: not both say that it may (GS_ALLOW_SHARED_GPU).
 */
gs_status_t gsi_gpu_map_make (const struct gsi_card *cards, const struct gsi_topo *topo,
                              void *room, int *ordinal, bool *shared);

/*
 * Finds two ranks of a node, one after the other there, of which one does not see the GPU that
 * the other takes: that keeps NCCL from copying directly between them. For cards that
 * gsi_gpu_map_make has accepted; [pair] is for the ranks.
 */
bool gsi_gpu_map_hidden (const struct gsi_card *cards, const struct gsi_topo *topo, void *room,
                         int pair[2]);

#endif /* GS_CORE_GPU_MAP_H */
