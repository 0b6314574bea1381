/* SPDX-License-Identifier: BSD-3-Clause */
/* query - what a communicator is. */
#include "base/process.h"
#include "base/sized.h"
#include "core/comm.h"

gs_status_t gsi_comm_valid (const gs_comm_t *comm, const char *caller)
{
    return gsi_handle_check (caller, "comm", "communicator", comm,
                             comm && comm->magic == GSI_COMM_MAGIC);
}

gs_status_t gsi_comm_alive (const gs_comm_t *comm)
{
    switch ((enum gsi_life) atomic_load_explicit (&comm->life, memory_order_acquire)) {
    case GSI_ALIVE: break;
    case GSI_ABORTED: return gsi_fail (GS_ERR_STATE, "communicator '%s' was aborted", comm->name);
    case GSI_DEAD: return gsi_fail (comm->death, "%s", comm->death_text);
    }
    return GS_OK;
}

gs_status_t gsi_comm_no_rank (const gs_comm_t *comm, const char *caller, const char *what,
                              int rank)
{
    return gsi_fail (GS_ERR_ARG, "%s: %s %d is not a rank of '%s' (0 to %d)", caller, what, rank,
                     comm->name, comm->topo.size - 1);
}

#define QUERY(type, name, none, value)                                 \
    type gs_comm_##name (const gs_comm_t *comm)                        \
    {                                                                  \
        return gsi_comm_valid (comm, "gs_comm_" #name) ? none : value; \
    }
QUERY (int, rank, -1, comm->topo.rank)
QUERY (int, size, -1, comm->topo.size)
QUERY (int, local_rank, -1, comm->topo.local_rank)
QUERY (int, local_size, -1, comm->topo.local_size)
QUERY (int, node, -1, comm->topo.node)
QUERY (int, nodes, -1, comm->topo.nodes)
QUERY (int, device, -1, comm->device->ordinal)
/* Where some ranks have no GPU it is on all what carries the arrays of these. */
QUERY (const char *, transport, NULL,
       comm->coll->mixed ? gsi_coll_hosts_name (comm->coll) : comm->coll->ops->name)
QUERY (const char *, name, NULL, comm->name)

const char *gs_comm_host_of (const gs_comm_t *comm, int rank)
{
    if (gsi_comm_valid (comm, "gs_comm_host_of"))
        return NULL;
    if (rank < 0 || rank >= comm->topo.size) {
        gsi_fail (GS_ERR_ARG, "gs_comm_host_of: rank %d is not in 0 to %d", rank,
                  comm->topo.size - 1);
        return NULL;
    }
    return comm->hosts[rank];
}

gs_status_t gs_comm_get_times (const gs_comm_t *comm, gs_comm_times_t *times)
{
    gs_status_t st = gsi_comm_valid (comm, "gs_comm_get_times");

    if (st)
        return gsi_result (st);
    return gsi_result (
        gsi_sized_give (times, &comm->times, sizeof (comm->times), "gs_comm_get_times: times"));
}
