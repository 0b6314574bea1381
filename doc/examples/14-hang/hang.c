/* SPDX-License-Identifier: BSD-3-Clause */
/* hang.c - what the other ranks are told when the last rank does not make the fifth call. */
#include <gradsync.h>
#include <stdio.h>
#include <unistd.h>

int main (void)
{
    gs_comm_t *comm;
    double x = 1;

    if (gs_comm_create (NULL, &comm))
        goto fail;
    for (int step = 1; step <= 8; step++) {
        if (step == 5 && gs_comm_rank (comm) == gs_comm_size (comm) - 1) {
            sleep (20); /* stands for an endless loop, a lost file server, a debugger */
            return 1;
        }
        if (gs_allreduce_avg (comm, &x, 1, GS_F64, NULL))
            goto fail;
    }
    return gs_comm_destroy (comm);
fail:
    fprintf (stderr, "%s\n", gs_last_error ());
    return 1;
}
