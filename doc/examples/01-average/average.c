/* SPDX-License-Identifier: BSD-3-Clause */
/* average.c - averages an array over all ranks. */
#include <gradsync.h>
#include <stdio.h>

int main (void)
{
    gs_comm_t *comm;
    double g[3] = {0, 1, 2};

    if (gs_comm_create (NULL, &comm)) /* all ranks of this job */
        return fprintf (stderr, "%s\n", gs_last_error ()), 1;
    for (int i = 0; i < 3; i++)
        g[i] += gs_comm_rank (comm);
    if (gs_allreduce_avg (comm, g, 3, GS_F64, NULL)) /* in place */
        return fprintf (stderr, "%s\n", gs_last_error ()), 1;
    if (gs_comm_rank (comm) == 0)
        printf ("average over %d ranks: %.2f %.2f %.2f\n", gs_comm_size (comm), g[0], g[1], g[2]);
    return gs_comm_destroy (comm);
}
