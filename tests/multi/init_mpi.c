/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * init_mpi - a program that knows nothing of MPI: gradsync starts it and ends it at exit, also
 * when the program forgets a communicator.
 */
#include "multi.h"

int main (void)
{
    gs_comm_t *comm = multi_create (NULL), *forgotten = multi_create (NULL);
    int32_t n = 1;

    CHECK_OK (gs_allreduce (comm, &n, 1, GS_I32, GS_SUM, NULL));
    CHECK (n == multi_size (), "the sum is %d", n);
    CHECK_OK (gs_barrier (forgotten, NULL));
    CHECK_OK (gs_comm_destroy (comm));
    if (!multi_number (0, "GS_TEST_FORGET", NULL))
        CHECK_OK (gs_comm_destroy (forgotten));
    return multi_end ("a program without MPI of its own");
}
