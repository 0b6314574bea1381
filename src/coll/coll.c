/* SPDX-License-Identifier: BSD-3-Clause */
/* coll - chooses the transport of a communicator. */
#include "coll/coll.h"

#include "base/module.h"
#include "base/status.h"

static gs_status_t find_mpi (const struct gsi_coll_ops **ops)
{
    const void *address;
    gs_status_t st = gsi_module_mpi (GSI_COLL_MPI_SYMBOL, &address);

    *ops = address;
    return st;
}

gs_status_t gsi_coll_choose (gs_transport_t wish, int size, const struct gsi_coll_ops **ops,
                             const char **reason)
{
    *ops = NULL;
    *reason = "asked for";
    switch (wish) {
    case GS_TRANSPORT_SELF:
        if (size > 1)
            return gsi_fail (GS_ERR_ARG,
                             "transport self serves one rank, not %d: use auto or mpi", size);
        *ops = &gsi_coll_self;
        return GS_OK;
    case GS_TRANSPORT_MPI: return find_mpi (ops);
    case GS_TRANSPORT_NCCL:
        return gsi_fail (GS_ERR_UNSUPPORTED, "transport nccl is not in this version of gradsync: "
                                             "use auto or mpi");
    case GS_TRANSPORT_AUTO:
        *reason = size > 1 ? "several ranks without GPUs" : "one rank";
        if (size > 1)
            return find_mpi (ops);
        *ops = &gsi_coll_self;
        return GS_OK;
    case GS_TRANSPORT_INT_SIZED: break;
    }
    return gsi_fail (GS_ERR_ARG, "unknown transport %d; see gs_transport_t in gradsync.h",
                     (int) wish);
}
