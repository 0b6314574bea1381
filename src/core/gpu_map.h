/* SPDX-License-Identifier: BSD-3-Clause */
/* gpu_map - which GPU each rank takes; pure arithmetic on the cards, the same on every rank. */
#ifndef GS_CORE_GPU_MAP_H
#define GS_CORE_GPU_MAP_H

#include <stdbool.h>

#include "boot/topo.h"
#include "core/card.h"

#define GSI_PLACE_BYTES 16 /* of room for each rank, which the two functions work in */

/* How the ranks of a communicator have GPUs: each one of its own; some share one, which NCCL
 * would not have; some have none. */
enum gsi_gpu_use { GSI_GPUS_OWN, GSI_GPUS_SHARED, GSI_GPUS_MIXED };

/*
 * Works out the GPU of each rank: the one its card asks for, else its place among the ranks of
 * its node that take one, modulo the number of GPUs it sees; GS_DEVICE_HOST for a rank that has
 * or wants none. Fails, with the same text on all ranks, if a rank asks for one that it does not
 * see, or, where GS_GPU_SHARING is never, has none or shares one with another rank of its node.
 * [ordinal] is this rank's. Ranks that both say they may share (GS_ALLOW_SHARED_GPU) do not count
 * as sharing. [use] is GSI_GPUS_MIXED also if ranks share beside that; gsi_last_text then has the
 * first rank without a GPU, and why.
 */
gs_status_t gsi_gpu_map_make (const struct gsi_card *cards, const struct gsi_topo *topo,
                              void *room, int *ordinal, enum gsi_gpu_use *use);

/*
 * Finds two ranks of a node, one after the other there, of which one does not see the GPU that
 * the other takes: that keeps NCCL from copying directly between them. For cards that
 * gsi_gpu_map_make has accepted; [pair] is for the ranks.
 */
bool gsi_gpu_map_hidden (const struct gsi_card *cards, const struct gsi_topo *topo, void *room,
                         int pair[2]);

#endif /* GS_CORE_GPU_MAP_H */
