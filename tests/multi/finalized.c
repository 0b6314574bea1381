/* SPDX-License-Identifier: BSD-3-Clause */
/* finalized - a communicator that outlives MPI_Finalize gives errors; the process lives on. Nor
 * does a child of fork have MPI. */
#include <sys/wait.h>

#include "multi.h"

#include "gradsync_mpi.h"

/* MPI is up, and gradsync not used yet: a child of fork has neither. */
static void in_a_child (void)
{
    gs_comm_t *comm;
    int status = -1;
    pid_t child = fork ();

    if (!child) {
        multi_failures = 0;
        CHECK_FAILS (gs_comm_create (NULL, &comm), GS_ERR_STATE, "is a fork of process");
        exit (multi_failures);
    }
    CHECK (waitpid (child, &status, 0) == child && !status, "the child ends with %d", status);
}

int main (void)
{
    static float x[30000], y[30000 * MULTI_MOST_RANKS];
    const char *why = "MPI was finalized";
    gs_comm_t *fresh, *used;
    gs_status_t st;

    MPI_Init (NULL, NULL);
    in_a_child ();
    fresh = multi_create (NULL);
    CHECK_OK (gs_comm_from_mpi (MPI_COMM_WORLD, NULL, &used));
    for (int i = 0; i < 5; i++)
        CHECK_OK (gs_barrier (used, NULL));
    MPI_Finalize ();
    if (strcmp (gs_comm_transport (used), "mpi") &&
        !multi_shares_gpus ()) { /* they need no MPI */
        CHECK_OK (gs_allreduce_avg (used, x, 1, GS_F32, NULL));
        CHECK_OK (gs_comm_destroy (fresh));
        CHECK_OK (gs_comm_destroy (used));
        return multi_end ("a transport without MPI after MPI_Finalize");
    }
    st = GS_ERR_STATE;
    /* The first of a node to find out may be faster to tell. */
    if (multi_shares_gpus () || multi_mixed ())
        why = "";
    switch (multi_number (0, "GS_TEST_CALL", NULL)) {
    case 0: CHECK_FAILS (gs_barrier (used, NULL), st, why); break;
    case 1: CHECK_FAILS (gs_allreduce_avg (used, x, 30000, GS_F32, NULL), st, why); break;
    case 2: CHECK_FAILS (gs_broadcast (used, x, 30000, GS_F32, 0, NULL), st, why); break;
    case 3: CHECK_FAILS (gs_allgather (used, x, y, 30000, GS_F32, NULL), st, why); break;
    default: CHECK_OK (gs_comm_abort (used)); break;
    }
    CHECK_FAILS (gs_barrier (fresh, NULL), st, why); /* compared across ranks */
    gs_comm_destroy (used);
    gs_comm_destroy (fresh);
    return multi_end ("calls after MPI_Finalize");
}
