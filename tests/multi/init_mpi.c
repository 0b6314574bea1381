/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * init_mpi - a program that knows nothing of MPI: gradsync starts it and ends it at exit, also
 * when the program forgets a communicator.
 */
#include <signal.h>

#include "multi.h"

static void own (int signal)
{
    (void) signal;
}

int main (void)
{
    bool odd = multi_rank () % 2;
    gs_comm_t *comm, *forgotten;
    int32_t n = 1;

    if (odd)
        signal (SIGPIPE, own);
    comm = multi_create (NULL);
    forgotten = multi_create (NULL);
    CHECK_OK (gs_allreduce (comm, &n, 1, GS_I32, GS_SUM, NULL));
    CHECK (n == multi_size (), "the sum is %d", n);
    CHECK_OK (gs_barrier (forgotten, NULL));
    if (multi_size () > 1)
        raise (SIGPIPE); /* as a write to a dead rank does: it is not the end */
    CHECK (!odd || signal (SIGPIPE, own) == own, "the program's handler of SIGPIPE is gone");
    CHECK_OK (gs_comm_destroy (comm));
    if (!multi_number (0, "GS_TEST_FORGET", NULL))
        CHECK_OK (gs_comm_destroy (forgotten));
    return multi_end ("a program without MPI of its own");
}
