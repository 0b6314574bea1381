/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_nccl_split - communicators of groups, made from that of their parent: NCCL keeps what it
 * knows of the machine, and needs no other way for the ranks to meet. They share nothing that
 * could not be used at the same time: splitShare, of the parent's configuration, is not set.
 */
#include <stdlib.h>

#include "base/status.h"
#include "transport/coll_nccl.h"

struct split {
    struct gsi_nccl_handle *parent, *group; /* NULL: none */
    int color, key;
    ncclComm_t out;
};

static void end_child (void *job)
{
    struct split *s = job;

    if (s->out)
        gsi_nccl.CommAbort (s->out);
    s->out = NULL;
}

static ncclResult_t split_work (void *job)
{
    struct split *s = job;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclResult_t rc;

    gsi_nccl_configure (&config);
    config.splitShare = 0;
    rc = gsi_nccl.CommSplit (__atomic_load_n (&s->parent->comm, __ATOMIC_ACQUIRE), s->color,
                             s->key, &s->out, &config);
    if (rc) {
        end_child (s); /* NCCL hands out what it could not finish, too */
    } else if (!s->group) {
        gsi_nccl_end_single (&s->parent->device, s->out);
        s->out = NULL;
    }
    return rc;
}

/* Hands what was made to the group; not if nobody waits for it any more. */
static void keep_child (void *job)
{
    struct split *s = job;

    if (s->group)
        __atomic_store_n (&s->group->comm, s->out, __ATOMIC_RELEASE);
}

/* [group]: of a rank that has one. */
static gs_status_t nccl_split (struct gsi_coll_nccl *parent, int color, int key,
                               struct gsi_nccl_handle *group, int64_t deadline_ns)
{
    struct split *s = calloc (1, sizeof (*s));
    const struct gsi_nccl_job how = {.c = parent,
                                     .what = "ncclCommSplit",
                                     .work = split_work,
                                     .kept = keep_child,
                                     .late = end_child,
                                     .deadline_ns = deadline_ns};
    ncclResult_t rc;
    gs_status_t st;

    if (!s)
        return gsi_fail (GS_ERR_NOMEM, "transport nccl: out of memory");
    *s = (struct split){.parent = parent->handle, .color = color, .key = key, .group = group};
    st = gsi_nccl_run (&how, s, &rc);
    if (!st && rc)
        st = gsi_nccl_fail (how.what, rc);
    return st;
}

gs_status_t gsi_nccl_split (struct gsi_coll_nccl *c, const struct gsi_coll_setup *setup)
{
    struct gsi_coll_parent *parent = setup->parent;
    gs_status_t st;

    parent->entered = true;
    st = nccl_split ((struct gsi_coll_nccl *) parent->coll, parent->rank[0], c->rank, c->handle,
                     setup->deadline_ns);
    return st ? parent->broken (parent->context, st) : GS_OK;
}

/*
 * N.B. NCCL up to 2.30 crashes when a split with NCCL_SPLIT_NOCOLOR is aborted (init.cc, the end
 * of ncclCommInitRankFunc). So a rank without a group is a group of its own, for a moment.
 */
gs_status_t gsi_nccl_pass (struct gsi_coll *parent, int64_t deadline_ns)
{
    struct gsi_coll_nccl *c = (struct gsi_coll_nccl *) parent;

    return nccl_split (c, c->size + c->rank, 0, NULL, deadline_ns);
}
