/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gradsync_mpi.h - gs_comm_from_mpi, for programs that use MPI themselves.
 *
 * A header of its own so that gradsync.h needs no MPI. It is inline: the handle is turned into
 * an integer by the MPI library the program was compiled with, and libgradsync links to none.
 */
#ifndef GRADSYNC_MPI_H
#define GRADSYNC_MPI_H

#include <gradsync.h>
#include <mpi.h>

/*
 * Makes a communicator of the ranks of [mpi_comm]. See gs_comm_from_mpi_fint.
 *
 *   mpi_comm  in   an intracommunicator; duplicated, not kept. Before MPI_Init and after
 *                  MPI_Finalize, when MPI would end the program, the call is GS_ERR_STATE
 *   opts      in   NULL for the defaults
 *   comm      out  the new communicator; NULL on failure
 *
 * Collective  over the ranks of [mpi_comm]; other ranks of the job take no part.
 * Since       0.1
 */
static inline gs_status_t gs_comm_from_mpi (MPI_Comm mpi_comm, const gs_comm_opts_t *opts,
                                            gs_comm_t **comm)
{
    int initialized = 0, finalized = 0;

    MPI_Initialized (&initialized);
    MPI_Finalized (&finalized);
    return gs_comm_from_mpi_fint (initialized && !finalized ? (int) MPI_Comm_c2f (mpi_comm) : 0,
                                  opts, comm);
}

#endif /* GRADSYNC_MPI_H */
