/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * partial - a job in which only some ranks use gradsync.
 *
 *   partial user    takes part in a communicator of all users, made from MPI
 *   partial server  uses MPI alone: receives one number from every user
 *
 * At least one of each. Exits with 0, or with the status of the call that failed.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "gradsync_mpi.h"

static int failed (const char *call, gs_status_t st)
{
    fprintf (stderr, "partial: %s: %s: %s\n", call, gs_status_string (st), gs_last_error ());
    return (int) st;
}

static int use (MPI_Comm users, int server)
{
    gs_comm_t *comm;
    gs_status_t st;
    double x;

    if ((st = gs_comm_from_mpi (users, NULL, &comm)) != GS_OK)
        return failed ("gs_comm_from_mpi", st);
    x = gs_comm_rank (comm);
    if ((st = gs_allreduce_avg (comm, &x, 1, GS_F64, NULL)) != GS_OK)
        return failed ("gs_allreduce_avg", st);
    MPI_Send (&x, 1, MPI_DOUBLE, server, 0, MPI_COMM_WORLD);
    if ((st = gs_comm_destroy (comm)) != GS_OK)
        return failed ("gs_comm_destroy", st);
    return 0;
}

static int serve (int users)
{
    double x;
    int i;

    for (i = 0; i < users; i++) {
        MPI_Recv (&x, 1, MPI_DOUBLE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (x != (users - 1) / 2.0) {
            fprintf (stderr, "partial: a user sent %g\n", x);
            return 98;
        }
    }
    printf ("%d users agree on %g\n", users, x);
    return 0;
}

int main (int argc, char **argv)
{
    int user = argc == 2 && !strcmp (argv[1], "user");
    int rank, size, first_server, users, status = 0;
    MPI_Comm mine;

    MPI_Init (&argc, &argv);
    MPI_Comm_rank (MPI_COMM_WORLD, &rank);
    MPI_Comm_size (MPI_COMM_WORLD, &size);
    first_server = user ? size : rank;
    MPI_Allreduce (MPI_IN_PLACE, &first_server, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce (&user, &users, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm_split (MPI_COMM_WORLD, user, rank, &mine);
    if (users == 0 || users == size) {
        fprintf (stderr, "partial: needs users and a server\n");
        status = 99;
    } else if (user) {
        status = use (mine, first_server);
    } else if (rank == first_server) {
        status = serve (users);
    }
    if (status)
        MPI_Abort (MPI_COMM_WORLD, status);
    MPI_Comm_free (&mine);
    MPI_Finalize ();
    return 0;
}
