/* SPDX-License-Identifier: BSD-3-Clause */
/* info_layout - the way of a job of one layout, found by info_layout.c, for its printing. */
#ifndef GS_TOOLS_INFO_LAYOUT_H
#define GS_TOOLS_INFO_LAYOUT_H

#include <stdbool.h>

#include "base/status.h"
#include "core/choice.h"

#define INFO_NODE_RANKS 1024 /* at most */

struct info_plan {
    int nodes, ranks, gpus; /* ranks and GPUs of each node */

    enum gsi_gpu_mode mode;
    const char *transport, *hosts; /* what carries data, and what it would between hosts */
    char reason[GSI_TEXT_MAX];
    int gpu_of[INFO_NODE_RANKS]; /* the GPU of each rank of a node, or GS_DEVICE_HOST */
    bool binding_hides; /* NCCL may not copy directly where ranks see their own GPU alone */

    /* Where ranks share GPUs: */
    int leader_of[INFO_NODE_RANKS]; /* the rank of the node that leads */
    int groups, node_groups;        /* of all nodes, of each */
    int largest;                    /* ranks of a group */
    char by_hosts[GSI_TEXT_MAX];    /* why sums are not made in groups; "": they are */
};

/* Prints it as lines, or as one JSON object. In info_layout_print.c. */
void info_layout_print (const struct info_plan *p, bool json);

#endif /* GS_TOOLS_INFO_LAYOUT_H */
