/* SPDX-License-Identifier: BSD-3-Clause */
/* average.c - averages an array over all ranks. */
#include <gradsync.h>
#include <stdio.h>

int main (void)
{
    gs_comm_t *comm;
    double gradient[3];

    if (gs_comm_create (NULL, &comm) != GS_OK)
        goto fail;
    for (int i = 0; i < 3; i++)
        gradient[i] = gs_comm_rank (comm) + i;
    if (gs_allreduce_avg (comm, gradient, 3, GS_F64, NULL) != GS_OK)
        goto fail;
    if (gs_comm_rank (comm) == 0)
        printf ("average over %d ranks: %.2f %.2f %.2f\n", gs_comm_size (comm), gradient[0],
                gradient[1], gradient[2]);
    return gs_comm_destroy (comm);
fail:
    fprintf (stderr, "average: %s\n", gs_last_error ());
    return 1;
}
