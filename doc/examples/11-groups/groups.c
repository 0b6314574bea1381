/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * groups.c - communicators of some of the ranks: two models that train side by side, each on half
 * of the ranks, and the ranks of a node.
 */
#include <gradsync.h>
#include <stdio.h>

int main (void)
{
    gs_comm_t *world, *model, *node;
    int rank, half, number;
    double x, highest;

    if (gs_comm_create (NULL, &world))
        goto fail;
    rank = gs_comm_rank (world);
    half = (gs_comm_size (world) + 1) / 2;
    number = rank / half;

    /* All ranks make the call; each gets the group of its own color, and ends it later. */
    if (gs_comm_split (world, number, rank, &model) || gs_comm_split_node (world, &node))
        goto fail;
    x = rank;
    if (gs_allreduce_avg (model, &x, 1, GS_F64, NULL)) /* among the ranks of this model */
        goto fail;
    highest = x;
    if (gs_allreduce (node, &highest, 1, GS_F64, GS_MAX, NULL)) /* among those of this node */
        goto fail;
    if (gs_comm_rank (model) == 0)
        printf ("model %d: ranks %d to %d, average %.2f, highest on its node %.2f\n", number,
                rank, rank + gs_comm_size (model) - 1, x, highest);
    if (!gs_comm_destroy (model) && !gs_comm_destroy (node) && !gs_comm_destroy (world))
        return 0;
fail:
    fprintf (stderr, "groups: %s\n", gs_last_error ());
    return 1;
}
