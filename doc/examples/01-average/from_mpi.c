/* SPDX-License-Identifier: BSD-3-Clause */
/* from_mpi.c - an MPI program that averages with MPI_Allreduce, and then with gradsync. */
#include <gradsync.h>
#include <gradsync_mpi.h>
#include <mpi.h>
#include <stdio.h>

enum { COUNT = 1000 };

int main (int argc, char **argv)
{
    static double a[COUNT], b[COUNT];
    gs_comm_t *comm;
    int rank, size, same = 1;

    MPI_Init (&argc, &argv);
    MPI_Comm_rank (MPI_COMM_WORLD, &rank);
    MPI_Comm_size (MPI_COMM_WORLD, &size);
    for (int i = 0; i < COUNT; i++)
        a[i] = b[i] = rank + i;

    /* before */
    MPI_Allreduce (MPI_IN_PLACE, a, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++)
        a[i] /= size;

    /* after: once */
    if (gs_comm_from_mpi (MPI_COMM_WORLD, NULL, &comm))
        goto fail;
    /* and wherever there was an MPI_Allreduce */
    if (gs_allreduce_avg (comm, b, COUNT, GS_F64, NULL))
        goto fail;
    /* before MPI_Finalize */
    if (gs_comm_destroy (comm))
        goto fail;

    for (int i = 0; i < COUNT; i++)
        same = same && a[i] == b[i];
    if (rank == 0)
        printf ("%s on %d ranks\n", same ? "the same" : "not the same", size);
    MPI_Finalize ();
    return 0;
fail:
    fprintf (stderr, "rank %d: %s\n", rank, gs_last_error ());
    MPI_Abort (MPI_COMM_WORLD, 1);
    return 1;
}
