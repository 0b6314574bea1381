/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_nccl_split - communicators of groups, made from that of their origin, whose channels,
 * proxies and buffers they share.
 */
#include "base/status.h"
#include "coll/coll_nccl.h"

/*
 * N.B. A split does not block, but says ncclSuccess (2.28.9): the origin's state tells when the
 * new communicator is there.
 */
static gs_status_t nccl_split (struct gsi_coll_nccl *origin, int color, int key, ncclComm_t *out,
                               int64_t deadline_ns)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclResult_t rc;

    config.blocking = 0;
    config.splitShare = 1;
    rc = gsi_nccl.CommSplit (origin->comm, color, key, out, &config);
    return gsi_nccl_settle (origin, "ncclCommSplit", rc ? rc : ncclInProgress, deadline_ns);
}

gs_status_t gsi_nccl_split (struct gsi_coll_nccl *c, const struct gsi_coll_setup *setup)
{
    struct gsi_coll_origin *origin = setup->origin;
    gs_status_t st;

    origin->entered = true;
    st = nccl_split ((struct gsi_coll_nccl *) origin->coll, origin->rank[0], c->rank, &c->comm,
                     setup->deadline_ns);
    if (!st)
        st = gsi_nccl_settle (c, "ncclCommSplit, of the group", ncclInProgress,
                              setup->deadline_ns);
    return st ? origin->broken (origin->context, st) : GS_OK;
}

gs_status_t gsi_nccl_pass (struct gsi_coll *origin, int64_t deadline_ns)
{
    ncclComm_t none = NULL;

    return nccl_split ((struct gsi_coll_nccl *) origin, NCCL_SPLIT_NOCOLOR, 0, &none,
                       deadline_ns);
}
