/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_self - the transport of one rank: nothing travels. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "transport/coll.h"

struct coll_self {
    struct gsi_coll base;
    const struct gsi_device *device;
};

static gs_status_t open_self (const struct gsi_coll_setup *setup, struct gsi_coll **out)
{
    struct coll_self *self = calloc (1, sizeof (*self));

    if (!self)
        return gsi_fail (GS_ERR_NOMEM, "transport self: out of memory");
    self->base.ops = &gsi_coll_self;
    self->base.any_thread = true;
    self->device = setup->device;
    *out = &self->base;
    return GS_OK;
}

static gs_status_t self_allreduce (struct gsi_coll *coll, void *buf, size_t count,
                                   const struct gsi_reduction *how, const struct gsi_call *call)
{
    struct coll_self *self = (struct coll_self *) coll;
    const void *const source = buf;

    (void) call;
    if (how->divisor != 1 || (how->scale && how->scale[0] != 1))
        self->device->ops->reduce (how, buf, &source, 1, count);
    return GS_OK;
}

static gs_status_t self_broadcast (struct gsi_coll *coll, void *buf, size_t bytes, int root,
                                   const struct gsi_call *call)
{
    (void) coll, (void) buf, (void) bytes, (void) root, (void) call;
    return GS_OK;
}

static gs_status_t self_allgather (struct gsi_coll *coll, const void *send, void *recv,
                                   size_t bytes, const struct gsi_call *call)
{
    (void) coll, (void) call;
    if (send != recv)
        memcpy (recv, send, bytes);
    return GS_OK;
}

static gs_status_t self_alltoallv (struct gsi_coll *coll, const struct gsi_alltoallv *x,
                                   const struct gsi_call *call)
{
    (void) coll, (void) call;
    if (x->recv_bytes[0] && x->recv + x->recv_at[0] != x->send + x->send_at[0])
        memcpy (x->recv + x->recv_at[0], x->send + x->send_at[0], x->recv_bytes[0]);
    return GS_OK;
}

static gs_status_t self_reduce_scatter (struct gsi_coll *coll, const void *send, void *recv,
                                        size_t count, const struct gsi_reduction *how,
                                        const struct gsi_call *call)
{
    if (send != recv)
        memcpy (recv, send, count * gs_dtype_size (how->dtype));
    return self_allreduce (coll, recv, count, how, call);
}

static gs_status_t self_reduce_scatterv (struct gsi_coll *coll, const void *send,
                                         const size_t *at, const size_t *count, void *recv,
                                         const struct gsi_reduction *how,
                                         const struct gsi_call *call)
{
    return count[0] ? self_reduce_scatter (coll, (const char *) send + at[0], recv, count[0], how,
                                           call)
                    : GS_OK;
}

static gs_status_t self_reduce (struct gsi_coll *coll, const void *send, void *recv, size_t count,
                                const struct gsi_reduction *how, int root,
                                const struct gsi_call *call)
{
    (void) root;
    return self_reduce_scatter (coll, send, recv, count, how, call);
}

static gs_status_t self_barrier (struct gsi_coll *coll, const struct gsi_call *call)
{
    (void) coll, (void) call;
    return GS_OK;
}

static void self_discard (struct gsi_coll *coll)
{
    free (coll);
}

static gs_status_t close_self (struct gsi_coll *coll, const struct gsi_call *call)
{
    (void) call;
    self_discard (coll);
    return GS_OK;
}

const struct gsi_coll_ops gsi_coll_self = {
    .name = "self",
    .open = open_self,
    .allreduce = self_allreduce,
    .broadcast = self_broadcast,
    .allgather = self_allgather,
    .alltoallv = self_alltoallv,
    .reduce_scatter = self_reduce_scatter,
    .reduce_scatterv = self_reduce_scatterv,
    .reduce = self_reduce,
    .barrier = self_barrier,
    .close = close_self,
    .discard = self_discard,
};
