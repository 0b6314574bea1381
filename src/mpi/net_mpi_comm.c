/* SPDX-License-Identifier: BSD-3-Clause */
/* net_mpi_comm - the MPI communicator of the ranks that the cards tell of. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/status.h"
#include "boot/boot.h"
#include "boot/topo.h"
#include "mpi/mpi_env.h"
#include "mpi/net_mpi.h"

#define CREATE_TAG 0x6773 /* of MPI_Comm_create_group */
#define MOST_TAG   32767  /* of the standard */

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

/* Writes "eth0 10.1.2.3, docker0 172.17.0.1" of the interfaces that are up, as many as fit. */
static void list_interfaces (char *text, size_t room)
{
    struct ifaddrs *all = NULL;
    size_t used = 0;

    snprintf (text, room, "none that is known");
    if (getifaddrs (&all))
        return;
    for (const struct ifaddrs *one = all; one && used + 1 < room; one = one->ifa_next) {
        const struct sockaddr_in *address = (const void *) one->ifa_addr;
        char numbers[INET_ADDRSTRLEN];
        if (!address || address->sin_family != AF_INET || !(one->ifa_flags & IFF_UP) ||
            (one->ifa_flags & IFF_LOOPBACK))
            continue;
        inet_ntop (AF_INET, &address->sin_addr, numbers, sizeof (numbers));
        used += (size_t) snprintf (text + used, room - used, "%s%s %s", used ? ", " : "",
                                   one->ifa_name, numbers);
    }
    freeifaddrs (all);
}

/*
 * Fails with [st] and its text, of a call in which MPI connects ranks that have all come; adds
 * this host and its interfaces, what may be in the way, and the variables that help.
 */
static gs_status_t blame_network (gs_status_t st, const struct gsi_boot *boot,
                                  const struct gsi_topo *topo)
{
    char interfaces[400];

    if (topo->nodes == 1)
        return gsi_fail (st, "%.199s, though all ranks of host %s have come", gsi_last_text (),
                         boot->host);
    list_interfaces (interfaces, sizeof (interfaces));
    return gsi_fail (
        st,
        "%.199s: all %d ranks of %d nodes have come, but MPI on host %s did not reach "
        "the others. A firewall between the hosts does this, or an interface with "
        "the same address on several of them, such as docker0. Interfaces of %s: "
        "%s. Name the one that connects the hosts: OMPI_MCA_btl_tcp_if_include "
        "(Open MPI over TCP) or UCX_NET_DEVICES (UCX), and for NCCL "
        "NCCL_SOCKET_IFNAME",
        gsi_last_text (), topo->size, topo->nodes, boot->host, boot->host, interfaces);
}

/* Duplicates MPI_COMM_WORLD; every rank has shown its card, so none is far away. */
static gs_status_t world_comm (struct gsi_net_mpi *net, const struct gsi_coll_setup *setup)
{
    gs_status_t st;

    net->opening = (struct gsi_mpi_collective){.comm = MPI_COMM_WORLD};
    st = gsi_mpi_env_collective ("transport mpi: MPI_Comm_idup", &net->opening,
                                 setup->deadline_ns);
    if (st)
        return blame_network (st, setup->boot, setup->topo);
    net->comm = net->opening.made;
    return GS_OK;
}

/* A call of MPI_Comm_create_group, which only ranks of the group make. */
struct grouping {
    MPI_Comm whole, made;
    MPI_Group group;
    int tag;
};

static int make_group (void *argument)
{
    struct grouping *g = argument;

    return MPI_Comm_create_group (g->whole, g->group, g->tag, &g->made);
}

/* Threads that create at once have tags of their own, as MPI wants it; an order they have not. */
static int create_tag (const struct gsi_boot *boot)
{
    uint64_t job = gsi_hash (boot->job, strlen (boot->job));

    return boot->any_thread ? 1 + (int) (job % MOST_TAG) : CREATE_TAG;
}

/* Makes a communicator of some ranks of [whole], in this order; only they call. */
static gs_status_t create_group (MPI_Comm whole, const struct gsi_coll_setup *setup,
                                 const int *ranks, MPI_Comm *out)
{
    static const char what[] = "transport mpi: MPI_Comm_create_group";
    struct grouping own, *memory = malloc (sizeof (*memory)), *g = memory ? memory : &own;
    gs_status_t st = GS_ERR_NOMEM;
    MPI_Group all;
    int rc;

    g->whole = whole;
    g->tag = create_tag (setup->boot);
    MPI_Comm_group (whole, &all);
    MPI_Group_incl (all, setup->topo->size, ranks, &g->group);
    MPI_Group_free (&all);
    if (memory &&
        (st = gsi_mpi_env_by (what, make_group, g, setup->deadline_ns)) == GS_ERR_TIMEOUT)
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
    return create_group (MPI_COMM_WORLD, setup, net->ranks, &net->comm);
}

gs_status_t gsi_net_mpi_comm (struct gsi_net_mpi *net, const struct gsi_coll_setup *setup,
                              const struct gsi_net *parent)
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
    if (parent) /* the group has come so far together, but a rank may have died since */
        st = create_group (((const struct gsi_net_mpi *) parent)->comm, setup,
                           setup->parent->rank, &net->comm);
    else if (!setup->boot->any_thread && is_world (setup, world_size))
        st = world_comm (net, setup);
    else
        st = group_comm (net, setup, world_size);
    if (!st)
        MPI_Comm_set_errhandler (net->comm, MPI_ERRORS_RETURN);
    return st;
}
