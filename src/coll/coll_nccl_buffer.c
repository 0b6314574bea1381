/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_nccl_buffer - memory that NCCL makes, and the GPUs and the network reach where it is. From
 * NCCL 2.19 on it is registered with the communicator, from 2.27 on as a window of all ranks.
 */
#include <stdlib.h>

#include "base/log.h"
#include "base/status.h"
#include "coll/coll_nccl.h"

#define SYMMETRIC 1 /* NCCL_WIN_COLL_SYMMETRIC: at the same place of the memory on all ranks */

/*
 * N.B. Where NCCL has no such memory it gives that of cudaMalloc. A failure may be another one
 * than too little memory, which the device then tells.
 */
bool gsi_nccl_buffer_alloc (struct gsi_coll *coll, struct gsi_buffer *buffer)
{
    struct gsi_coll_nccl *c = (struct gsi_coll_nccl *) coll;
    ncclResult_t rc;
    int previous;

    if (!gsi_nccl.MemAlloc || c->queue->enter (c->device, &previous))
        return false;
    rc = gsi_nccl.MemAlloc (&buffer->at, buffer->bytes);
    c->queue->leave (c->device, previous);
    if (!rc)
        return true;
    gsi_log (GS_LOG_INFO, "nccl", "ncclMemAlloc of %zu bytes: %s", buffer->bytes,
             gsi_nccl.GetErrorString (rc));
    buffer->at = NULL;
    return false;
}

/* ---- Registration ---- */

/* What [rc] of [what] means: without a registration everything goes on, if the communicator
 * does. */
static gs_status_t outcome (const struct gsi_coll_nccl *c, const char *what, ncclResult_t rc)
{
    if (!rc)
        return GS_OK;
    if (atomic_load (&c->handle->ended))
        return gsi_fail (GS_ERR_STATE, "%s: the communicator was aborted", what);
    return gsi_fail (GS_ERR_UNSUPPORTED, "%s: %s", what, gsi_nccl.GetErrorString (rc));
}

static gs_status_t enlist (struct gsi_coll_nccl *c, struct gsi_buffer *buffer)
{
    ncclComm_t comm = gsi_nccl_enter (c);
    ncclResult_t rc =
        comm ? gsi_nccl.CommRegister (comm, buffer->at, buffer->bytes, &buffer->handle)
             : ncclInvalidArgument;

    gsi_nccl_leave (c, "ncclCommRegister", ncclSuccess);
    return outcome (c, "ncclCommRegister", rc);
}

struct opening {
    struct gsi_nccl_handle *handle;
    struct gsi_buffer *buffer, copy;
};

static ncclResult_t open_work (void *job)
{
    struct opening *o = job;

    return gsi_nccl.CommWindowRegister (__atomic_load_n (&o->handle->comm, __ATOMIC_ACQUIRE),
                                        o->copy.at, o->copy.bytes, &o->copy.window, SYMMETRIC);
}

/* N.B. One that came too late is of a communicator that has ended, which frees it. */
static void keep_window (void *job)
{
    struct opening *o = job;

    o->buffer->window = o->copy.window;
}

/* Waits for all ranks. */
static gs_status_t open_window (struct gsi_coll_nccl *c, struct gsi_buffer *buffer,
                                const struct gsi_call *call)
{
    struct opening *o = calloc (1, sizeof (*o));
    const struct gsi_nccl_job how = {.c = c,
                                     .what = "ncclCommWindowRegister",
                                     .work = open_work,
                                     .kept = keep_window,
                                     .deadline_ns = call->deadline_ns};
    ncclResult_t rc = ncclSuccess;
    gs_status_t st;

    if (!o)
        return gsi_fail (GS_ERR_NOMEM, "transport nccl: out of memory");
    *o = (struct opening){.handle = c->handle, .buffer = buffer, .copy = *buffer};
    if (!(st = gsi_nccl_run (&how, o, &rc)))
        return outcome (c, how.what, rc);
    buffer->lost = true; /* a thread that was left behind may be at it */
    return st;
}

gs_status_t gsi_nccl_buffer_register (struct gsi_coll *coll, struct gsi_buffer *buffer,
                                      enum gsi_buffer_step step, const struct gsi_call *call)
{
    struct gsi_coll_nccl *c = (struct gsi_coll_nccl *) coll;
    gs_status_t st = GS_OK;

    if (step == GSI_BUFFER_LOCAL) {
        st = enlist (c, buffer);
        buffer->registered = !st;
    } else if (gsi_nccl.CommWindowRegister) {
        st = open_window (c, buffer, call);
    }
    return st;
}

gs_status_t gsi_nccl_buffer_unregister (struct gsi_coll *coll, struct gsi_buffer *buffer)
{
    struct gsi_coll_nccl *c = (struct gsi_coll_nccl *) coll;
    ncclComm_t comm = gsi_nccl_enter (c);
    ncclResult_t rc = ncclSuccess, more = ncclSuccess;

    if (comm && buffer->window) /* N.B. NCCL would read through NULL */
        rc = gsi_nccl.CommWindowDeregister (comm, buffer->window);
    if (comm && buffer->handle) /* NULL: NCCL was told to register nothing */
        more = gsi_nccl.CommDeregister (comm, buffer->handle);
    buffer->window = buffer->handle = NULL;
    buffer->registered = false;
    return gsi_nccl_leave (c, "the end of a registration", rc ? rc : more);
}

/* N.B. ncclMemFree waits for nothing, as cudaFree does. */
gs_status_t gsi_nccl_buffer_free (struct gsi_coll *coll, struct gsi_buffer *buffer)
{
    struct gsi_coll_nccl *c = (struct gsi_coll_nccl *) coll;
    ncclResult_t rc;
    gs_status_t st;
    int previous;

    if (buffer->lost)
        return gsi_fail (GS_ERR_TIMEOUT, "NCCL may still make a window of it");
    if ((st = c->queue->enter (c->device, &previous)))
        return st;
    if (!(st = c->queue->finish (c->device)) && (rc = gsi_nccl.MemFree (buffer->at)))
        st = gsi_fail (GS_ERR_DEVICE, "ncclMemFree: %s", gsi_nccl.GetErrorString (rc));
    c->queue->leave (c->device, previous);
    return st;
}
