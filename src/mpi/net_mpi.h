/* SPDX-License-Identifier: BSD-3-Clause */
/* net_mpi - the network of hosts that MPI is. Private to src/mpi/. */
#ifndef GS_MPI_NET_MPI_H
#define GS_MPI_NET_MPI_H

#include <mpi.h>

#include "host/net.h"
#include "mpi/mpi_env.h"

struct gsi_net_mpi {
    struct gsi_net base;
    MPI_Comm comm;                     /* a duplicate of our own */
    struct gsi_mpi_collective opening; /* while it opens */
    int ranks[]; /* [size] in MPI_COMM_WORLD, while a communicator is made of them */
};

/* What a rank says on its card: its place in MPI_COMM_WORLD, -1 before MPI is up. */
struct gsi_net_mpi_card {
    int32_t world_rank, world_size;
};

/* The duplicate of a boot_mpi, now the caller's; MPI_COMM_NULL for any other boot. */
MPI_Comm gsi_boot_mpi_take (struct gsi_boot *boot);

/* net_mpi_comm.c: net->comm by all of the ranks on the cards, until the setup's deadline. */
gs_status_t gsi_net_mpi_comm (struct gsi_net_mpi *net, const struct gsi_coll_setup *setup,
                              const struct gsi_net *parent);

/* Whether a card that says [rank] of [size] can be of a rank of this process's MPI_COMM_WORLD. */
static inline bool gsi_net_mpi_fits (int rank, int size, int world_size)
{
    return size == world_size && rank >= 0 && rank < world_size;
}

#endif /* GS_MPI_NET_MPI_H */
