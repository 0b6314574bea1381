/* SPDX-License-Identifier: BSD-3-Clause */
/* gpu_grouping - which ranks have one GPU, and who leads them; pure arithmetic. */
#include "transport/gpu_grouping.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"

#define PATIENT 22200 /* NCCL from there on aborts first, and frees later */

static bool is_same_gpu (const struct gsi_gpu_grouping *s, const struct gsi_topo *topo, int a,
                         int b)
{
    return topo->node_of[a] == topo->node_of[b] &&
           !memcmp (&s->gpus[a].id, &s->gpus[b].id, sizeof (s->gpus[a].id));
}

int gsi_gpu_grouping_leader (const struct gsi_gpu_grouping *s, const struct gsi_topo *topo,
                             int rank)
{
    /* Neighbours in rank mostly share a node: look there first. */
    for (int i = s->groups - 1; i >= 0; i--)
        if (is_same_gpu (s, topo, s->leaders[i], rank))
            return s->leaders[i];
    return rank;
}

void gsi_gpu_grouping_find (struct gsi_gpu_grouping *s, const struct gsi_topo *topo)
{
    s->groups = s->largest = 0;
    for (int r = 0; r < topo->size; r++) {
        int leader = gsi_gpu_grouping_leader (s, topo, r);

        if (leader == r)
            s->leaders[s->groups++] = r;
        if (++s->members[leader] > s->largest)
            s->largest = s->members[leader];
    }
}

/* Two groups of a node that have instances of one GPU; false: there are none. */
static bool find_instances (const struct gsi_gpu_grouping *s, const struct gsi_topo *topo,
                            int pair[2])
{
    for (int i = 0; i < s->groups; i++)
        for (int k = 0; k < i; k++) {
            pair[0] = s->leaders[k];
            pair[1] = s->leaders[i];
            if (topo->node_of[pair[0]] == topo->node_of[pair[1]] &&
                s->gpus[pair[0]].gpu == s->gpus[pair[1]].gpu)
                return true;
        }
    return false;
}

bool gsi_gpu_grouping_may_sum (const struct gsi_gpu_grouping *s, const struct gsi_topo *topo,
                               char *why, size_t room)
{
    int pair[2];

    if (s->gpus[0].deterministic) { /* in the order of ranks: hosts do that */
        snprintf (why, room, "GS_DETERMINISTIC is set");
        return false;
    }
    for (int r = 0; r < topo->size; r++)
        if (!s->gpus[r].known) {
            snprintf (why, room, "rank %d: %.*s", r, (int) sizeof (s->gpus[r].text) - 1,
                      s->gpus[r].text);
            return false;
        }
    if (!find_instances (s, topo, pair))
        return true;
    snprintf (why, room,
              "ranks %d and %d have two instances (MIG) of one GPU, of which NCCL takes one",
              pair[0], pair[1]);
    return false;
}

gs_status_t gsi_gpu_grouping_check_nccl (int groups, int version)
{
    if (groups > 1 && version < PATIENT)
        return gsi_fail (GS_ERR_UNSUPPORTED, "NCCL before 2.22 frees at once what it aborts");
    return GS_OK;
}

void gsi_gpu_grouping_topo (const struct gsi_gpu_grouping *s, const struct gsi_topo *topo,
                            struct gsi_topo *own)
{
    int *node_of = own->node_of;

    *own = (struct gsi_topo){
        .size = s->groups, .node = topo->node, .nodes = topo->nodes, .node_of = node_of};
    for (int i = 0; i < s->groups; i++) {
        node_of[i] = topo->node_of[s->leaders[i]];
        if (s->leaders[i] < topo->rank)
            own->rank++;
        if (node_of[i] != topo->node)
            continue;
        own->local_size++;
        own->local_rank += s->leaders[i] < topo->rank;
    }
}
