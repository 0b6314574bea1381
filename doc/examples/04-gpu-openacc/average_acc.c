/* SPDX-License-Identifier: BSD-3-Clause */
/* average_acc.c - averages an array that OpenACC keeps on the GPU, without a copy to the host. */
#include <gradsync.h>
#include <stdio.h>

enum { COUNT = 1000000 };

static float g[COUNT];

int main (void)
{
    gs_comm_t *comm;
    gs_status_t st;

    if (gs_comm_create (NULL,
                        &comm)) /* rank i of a node takes GPU i, or all ranks are on hosts */
        goto fail;
    int rank = gs_comm_rank (comm);

#pragma acc data copyout(g[:COUNT])
    {
#pragma acc parallel loop present(g)
        for (int i = 0; i < COUNT; i++) /* stands for the backward pass */
            g[i] = (float) (rank + i % 3);
#pragma acc wait
#pragma acc host_data use_device(g)
        {
            st = gs_allreduce_avg (comm, g, COUNT, GS_F32, NULL); /* queued on a GPU */
        }
        if (!st)
            st = gs_comm_wait (comm, NULL); /* before OpenACC uses g again */
    }
    if (st)
        goto fail;
    if (rank == 0)
        printf ("average over %d ranks on %s: %.2f %.2f %.2f\n", gs_comm_size (comm),
                gs_comm_device (comm) >= 0 ? "GPUs" : "hosts", g[0], g[1], g[2]);
    return gs_comm_destroy (comm);
fail:
    fprintf (stderr, "average_acc: %s\n", gs_last_error ());
    return 1;
}
