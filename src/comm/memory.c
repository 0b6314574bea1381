/* SPDX-License-Identifier: BSD-3-Clause */
/* memory - arrays in memory of a communicator's device. */
#include <string.h>

#include "call/call.h"
#include "call/inflight.h"

gs_status_t gs_device_alloc (const gs_comm_t *comm, size_t bytes, void **memory)
{
    gs_status_t st = gsi_comm_valid (comm, "gs_device_alloc");
    const struct gsi_coll_ops *ops;

    if (st)
        return gsi_result (st);
    if (!memory)
        return gsi_fail (GS_ERR_ARG, "gs_device_alloc: memory is NULL");
    *memory = NULL;
    ops = comm->coll->ops;
    if (!bytes || (ops->alloc && ops->alloc (comm->coll, bytes, memory)))
        return gsi_result (GS_OK);
    return gsi_result (comm->device->ops->alloc (comm->device, bytes, memory));
}

gs_status_t gs_device_free (const gs_comm_t *comm, void *memory)
{
    gs_status_t st = gsi_comm_valid (comm, "gs_device_free");

    if (st || !memory)
        return gsi_result (st);
    if (comm->coll->ops->free && comm->coll->ops->free (comm->coll, memory))
        return gsi_result (GS_OK);
    st = gsi_inflight_finish ((gs_comm_t *) (uintptr_t) comm); /* the queue has its own guard */
    return gsi_result (st ? st : comm->device->ops->free (comm->device, memory));
}

/* The communicator's GPU must be able to reach [memory]. */
static gs_status_t check_reach (const gs_comm_t *comm, const char *what, const void *memory)
{
    enum gsi_memory where;
    int owner;
    gs_status_t st = gsi_device_where (comm->device, memory, &where, &owner);

    if (st || where != GSI_MEMORY_OTHER)
        return st;
    return gsi_fail (GS_ERR_DEVICE,
                     "gs_device_copy: %s is in memory of GPU %d, which is not that of "
                     "communicator '%s'",
                     what, owner, comm->name);
}

gs_status_t gs_device_copy (gs_comm_t *comm, void *dst, const void *src, size_t bytes,
                            gs_stream_t stream)
{
    gs_status_t st = gsi_comm_valid (comm, "gs_device_copy");
    bool alive;
    int previous;

    if (st || !bytes)
        return gsi_result (st);
    if (!dst || !src)
        return gsi_fail (GS_ERR_ARG, "gs_device_copy: dst or src is NULL, but bytes is %zu",
                         bytes);
    if ((comm->inflight || comm->sees_gpus) &&
        ((st = check_reach (comm, "dst", dst)) || (st = check_reach (comm, "src", src))))
        return gsi_result (st);
    if (!comm->inflight) {
        memcpy (dst, src, bytes);
        return gsi_result (GS_OK);
    }
    /* N.B. Without the queue: CUDA waits for the stream here if memory is not pinned. */
    alive = atomic_load (&comm->life) == GSI_ALIVE;
    if ((st = comm->device->ops->streams->enter (comm->device, &previous)))
        return gsi_result (st);
    st = comm->device->ops->streams->copy (dst, src, bytes, stream);
    comm->device->ops->streams->leave (comm->device, previous);
    /* It may have waited for calls that have failed since: what came is not what was meant. */
    return gsi_result (
        st || !alive || atomic_load (&comm->life) == GSI_ALIVE ? st : gs_comm_check (comm));
}
