/* SPDX-License-Identifier: BSD-3-Clause */
/* host_access - arrays of any memory as the host can read and write them, piece by piece. */
#include "feature/host_access.h"

gs_status_t gsi_host_access_open (struct gsi_host_access *f, gs_comm_t *comm, const char *caller,
                                  const void *data, size_t count, gs_dtype_t dtype, size_t bytes,
                                  gs_stream_t stream)
{
    const struct gsi_device *device;
    bool staged;
    int previous;
    gs_status_t st = gsi_feature_check (comm, caller, data, count, dtype, &staged);

    *f = (struct gsi_host_access){.comm = comm, .stream = stream};
    if (st)
        return st;
    device = gsi_feature_device (comm);
    if (!device->ops->streams || !count)
        return GS_OK;
    /* N.B. Before anything is queued: a stream that is captured is refused here. And what it
     * writes to memory of the host is there now. */
    if ((st = gs_comm_wait (comm, stream)) || staged ||
        (st = device->ops->streams->enter (device, &previous)))
        return st;
    st = device->ops->streams->alloc_pinned (bytes, &f->pinned);
    device->ops->streams->leave (device, previous);
    return st;
}

void gsi_host_access_close (struct gsi_host_access *f)
{
    const struct gsi_device *device;
    int previous;

    if (!f->pinned || f->keep)
        return;
    device = gsi_feature_device (f->comm);
    if (device->ops->streams->enter (device, &previous))
        return;
    device->ops->streams->free_pinned (device, f->pinned);
    device->ops->streams->leave (device, previous);
    f->pinned = NULL;
}

static gs_status_t copy_piece (struct gsi_host_access *f, void *to, const void *from,
                               size_t bytes)
{
    gs_status_t st = gs_device_copy (f->comm, to, from, bytes, f->stream);

    if (!st)
        st = gs_comm_wait (f->comm, f->stream);
    f->keep = st == GS_ERR_TIMEOUT; /* a free would wait for the GPU */
    return st;
}

gs_status_t gsi_host_access (struct gsi_host_access *f, const void *at, size_t bytes,
                             const void **out)
{
    *out = at;
    if (!f->pinned || !bytes)
        return GS_OK;
    *out = f->pinned;
    return copy_piece (f, f->pinned, at, bytes);
}

void *gsi_host_access_room (const struct gsi_host_access *f, void *at)
{
    return f->pinned ? f->pinned : at;
}

gs_status_t gsi_host_access_put (struct gsi_host_access *f, void *at, size_t bytes)
{
    return f->pinned && bytes ? copy_piece (f, at, f->pinned, bytes) : GS_OK;
}
