/* SPDX-License-Identifier: BSD-3-Clause */
/* net_mpi_comm - the MPI communicator of the ranks that the cards tell of. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "boot/boot.h"
#include "mpi/mpi_env.h"
#include "mpi/net_mpi.h"
#include "mpi/network.h"

#define CREATE_TAG 0x6773 /* of MPI_Comm_create_group */

static struct gsi_net_mpi_card place_of (const struct gsi_coll_setup *setup, int rank)
{
    struct gsi_net_mpi_card card;

    gsi_net_card (setup, rank, &card, sizeof (card));
    return card;
}

/* Whether our ranks are those of MPI_COMM_WORLD in order; the same answer on every rank. */
static bool is_world (const struct gsi_coll_setup *setup, int world_size)
{
    bool same = world_size == setup->topo->size;

    for (int r = 0; r < setup->topo->size && same; r++) {
        int there = place_of (setup, r).world_rank;
        same = there < 0 || there == r;
    }
    return same;
}

/* Duplicates MPI_COMM_WORLD; every rank has shown its card, so none is far away. */
static gs_status_t world_comm (struct gsi_net_mpi *net, const struct gsi_coll_setup *setup)
{
    MPI_Request request;
    gs_status_t st;
    int rc;

    if ((rc = MPI_Comm_idup (MPI_COMM_WORLD, &net->duplicate, &request)))
        return gsi_mpi_env_fail ("MPI_Comm_idup", rc);
    st = gsi_mpi_env_wait ("transport mpi: MPI_Comm_idup", &request, setup->deadline_ns);
    if (st)
        return gsi_network_blame (st, setup->boot, setup->topo);
    net->comm = net->duplicate;
    return GS_OK;
}

/* A call of MPI_Comm_create_group, which only ranks of the group make. */
struct grouping {
    MPI_Comm whole, made;
    MPI_Group group;
};

static int make_group (void *argument)
{
    struct grouping *g = argument;

    return MPI_Comm_create_group (g->whole, g->group, CREATE_TAG, &g->made);
}

/* Makes a communicator of some ranks of [whole], in this order; only they call. */
static gs_status_t create_group (MPI_Comm whole, int size, const int *ranks, int64_t deadline_ns,
                                 MPI_Comm *out)
{
    static const char what[] = "transport mpi: MPI_Comm_create_group";
    struct grouping own, *memory = malloc (sizeof (*memory)), *g = memory ? memory : &own;
    gs_status_t st = GS_ERR_NOMEM;
    MPI_Group all;
    int rc;

    g->whole = whole;
    MPI_Comm_group (whole, &all);
    MPI_Group_incl (all, size, ranks, &g->group);
    MPI_Group_free (&all);
    if (memory && (st = gsi_mpi_env_by (what, make_group, g, deadline_ns)) == GS_ERR_TIMEOUT)
        return st;          /* and it is MPI's */
    if (st == GS_ERR_NOMEM) /* the others are in it: without a thread, and so a deadline */
        st = (rc = make_group (g)) ? gsi_mpi_env_fail (what, rc) : GS_OK;
    *out = st ? MPI_COMM_NULL : g->made;
    MPI_Group_free (&g->group);
    free (memory);
    return st;
}

/* The same of ranks of MPI_COMM_WORLD that have found each other elsewhere. */
static gs_status_t group_comm (struct gsi_net_mpi *net, const struct gsi_coll_setup *setup,
                               int world_size)
{
    for (int r = 0; r < net->base.size; r++) {
        struct gsi_net_mpi_card card = place_of (setup, r);
        bool fits = gsi_net_mpi_fits (card.world_rank, card.world_size, world_size);
        net->ranks[r] = card.world_rank;
        for (int k = 0; k < r && fits; k++)
            fits = net->ranks[k] != net->ranks[r];
        if (!fits)
            return gsi_fail (GS_ERR_MISMATCH,
                             "transport mpi: rank %d is rank %d of an MPI world of "
                             "%d, which does not fit: all ranks must be of one MPI job, with MPI "
                             "initialised on all or on none",
                             r, card.world_rank, card.world_size);
    }
    return create_group (MPI_COMM_WORLD, net->base.size, net->ranks, setup->deadline_ns,
                         &net->comm);
}

/*
 * Makes the communicator of a group from that of its origin; only the ranks of the group call.
 * They have come so far together, but one may have died since.
 */
static gs_status_t origin_comm (const struct gsi_coll_setup *setup, const struct gsi_net *origin,
                                MPI_Comm *out)
{
    return create_group (((const struct gsi_net_mpi *) origin)->comm, setup->topo->size,
                         setup->origin->rank, setup->deadline_ns, out);
}

gs_status_t gsi_net_mpi_comm (struct gsi_net_mpi *net, const struct gsi_coll_setup *setup,
                              const struct gsi_net *origin)
{
    gs_status_t st;
    int world_size;

    if ((net->comm = gsi_boot_mpi_take (setup->boot)) != MPI_COMM_NULL)
        return GS_OK;
    if ((st = gsi_mpi_env_start (setup->deadline_ns)) == GS_ERR_TIMEOUT)
        return gsi_fail (st, "transport mpi: " GSI_LATE_BOOT " while MPI "
                             "started, which waits for all ranks");
    if (st || (st = gsi_mpi_env_check_world (setup->topo->size)))
        return st;
    MPI_Comm_size (MPI_COMM_WORLD, &world_size);
    if (origin)
        st = origin_comm (setup, origin, &net->comm);
    else
        st = is_world (setup, world_size) ? world_comm (net, setup)
                                          : group_comm (net, setup, world_size);
    if (!st)
        MPI_Comm_set_errhandler (net->comm, MPI_ERRORS_RETURN);
    return st;
}
