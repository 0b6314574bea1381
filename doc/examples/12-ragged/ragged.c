/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ragged.c - ranks with different numbers of samples: all values of all ranks, and the average of
 * gradients as if the samples were in one batch.
 */
#include <gradsync.h>
#include <stdio.h>
#include <stdlib.h>

int main (void)
{
    gs_comm_t *comm;
    int rank, size;
    size_t mine, room;
    double *own, *all, gradient = 0;

    if (gs_comm_create (NULL, &comm))
        goto fail;
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    mine = (size_t) (rank + 1) % 3; /* 1, 2, 0, 1, ... samples */
    room = 2 * (size_t) size;
    own = malloc ((mine + 1) * sizeof (*own));
    all = calloc (room, sizeof (*all));
    for (size_t i = 0; i < mine; i++)
        own[i] = 10 * rank + (double) i;

    /* Pieces of any length, one behind the other; the ranks tell each other how long they are. */
    if (gs_allgatherv (comm, own, mine, all, room, NULL, NULL, GS_F64, NULL))
        goto fail;

    /* A mean over own samples counts as often as there are samples; a rank may have none. */
    for (size_t i = 0; i < mine; i++)
        gradient += own[i] / (double) mine;
    if (gs_allreduce_wavg (comm, &gradient, 1, GS_F64, (double) mine, NULL))
        goto fail;
    if (rank == 0)
        printf ("first %.0f, second %.0f, average over samples %.4f\n", all[0], all[1], gradient);
    free (own);
    free (all);
    if (!gs_comm_destroy (comm))
        return 0;
fail:
    fprintf (stderr, "ragged: %s\n", gs_last_error ());
    return 1;
}
