/* SPDX-License-Identifier: BSD-3-Clause */
/* barrier - nobody leaves before everybody has come, whoever is late. */
#include "multi.h"

int main (void)
{
    gs_comm_t *comm = multi_create (NULL);
    int rank = gs_comm_rank (comm), size = gs_comm_size (comm);
    double *times = calloc ((size_t) size * 2, sizeof (*times));

    for (int late = 0; late < size && times; late++) {
        double mine[2];
        if (rank == late)
            usleep (100000);
        mine[0] = multi_seconds (); /* one clock for all ranks of a machine */
        CHECK_OK (gs_barrier (comm, NULL));
        CHECK_OK (gs_comm_wait (comm, NULL)); /* on GPUs it was queued */
        mine[1] = multi_seconds ();
        CHECK_OK (gs_allgather (comm, mine, times, 2, GS_F64, NULL));
        for (int r = 0; r < size; r++)
            if (!strcmp (gs_comm_host_of (comm, r), gs_comm_host_of (comm, late)))
                CHECK (times[2 * r + 1] >= times[2 * late],
                       "rank %d left %g s before rank %d came", r,
                       times[2 * late] - times[2 * r + 1], late);
    }
    CHECK (times, "out of memory");
    free (times);
    for (int i = 0; i < 1000; i++)
        CHECK_OK (gs_barrier (comm, NULL));
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("barriers with each rank late once");
}
