/* SPDX-License-Identifier: BSD-3-Clause */
/* coll - finds the transport of a communicator. */
#include "transport/coll.h"

#include <stdio.h>

#include "base/module.h"
#include "base/status.h"
#include "config.h"

/* A network of hosts, in its module. */
static gs_status_t find_hosts (int which, const struct gsi_coll_ops **ops)
{
    char symbol[64];
    const void *address;
    gs_status_t st;

    snprintf (symbol, sizeof (symbol), GSI_COLL_HOSTS_SYMBOL, gsi_transport_name (which));
    st = gsi_module_find (gsi_module_of (which), symbol, &address);
    *ops = address;
    return st;
}

static gs_status_t find_nccl (const struct gsi_coll_ops **ops)
{
#ifdef HAVE_NCCL
    gs_status_t st = gsi_coll_nccl_load ();

    *ops = st ? NULL : &gsi_coll_nccl;
    return st;
#else
    (void) ops;
    return gsi_fail (GS_ERR_UNSUPPORTED,
                     "transport nccl is not in this build: configure gradsync --with-nccl");
#endif
}

gs_status_t gsi_coll_find (gs_transport_t which, int size, const struct gsi_coll_ops **ops)
{
    *ops = NULL;
    if (gsi_transport_joins ((int) which) == GSI_JOINS_HOSTS)
        return find_hosts ((int) which, ops);
    switch (which) {
    case GS_TRANSPORT_SELF:
        if (size > 1)
            return gsi_fail (GS_ERR_ARG,
                             "transport self serves one rank, not %d: use auto or mpi", size);
        *ops = &gsi_coll_self;
        return GS_OK;
    case GS_TRANSPORT_NCCL: return find_nccl (ops);
    case GS_TRANSPORT_MPI:
    case GS_TRANSPORT_AUTO:
    case GS_TRANSPORT_INT_SIZED: break;
    }
    return gsi_fail (GS_ERR_ARG, "unknown transport %d; see gs_transport_t in gradsync.h",
                     (int) which);
}
