/* SPDX-License-Identifier: BSD-3-Clause */
/* buffer - memory that the network uses where it is; what that takes of calls and locks. */
#include "feature/buffer.h"

#include "base/log.h"
#include "base/status.h"
#include "call/call.h"
#include "call/gpu_lock.h"
#include "call/inflight.h"
#include "feature/consensus.h"

gs_status_t gsi_buffer_alloc (gs_comm_t *comm, size_t bytes, struct gsi_buffer *buffer)
{
    const struct gsi_coll_ops *ops = comm->coll->ops;

    *buffer = (struct gsi_buffer){.bytes = bytes};
    if (bytes && ops->buffer_alloc && ops->buffer_alloc (comm->coll, buffer)) {
        buffer->of_network = true;
        return GS_OK;
    }
    return gs_device_alloc (comm, bytes, &buffer->at);
}

/* Ends what is registered of [buffer]. A communicator that has ended has done that, or will. */
static gs_status_t unregister (gs_comm_t *comm, struct gsi_buffer *buffer)
{
    gs_status_t st;

    if (!buffer->registered || !gsi_gpu_lock_alive (comm, &st))
        return GS_OK;
    if (st) {
        gsi_gpu_release (comm);
        return st;
    }
    st = comm->coll->ops->buffer_unregister (comm->coll, buffer);
    gsi_gpu_unlock (comm);
    return st;
}

/* One step of all of them, in a call. [refused]: why this rank goes on without, or GS_OK. */
static gs_status_t take_step (gs_comm_t *comm, struct gsi_buffer *const *list, int number,
                              enum gsi_buffer_step step, gs_stream_t stream, gs_status_t *refused)
{
    struct gsi_call call = {.staged = true}; /* nothing is queued */
    gs_status_t st;
    size_t bytes = 0;

    *refused = GS_OK;
    for (int i = 0; i < number; i++)
        bytes += list[i]->bytes;
    if ((st = gsi_call_begin (comm, GSI_OP_REGISTER, bytes, GS_U8, step, stream, &call)))
        return st;
    for (int i = 0; i < number && !st; i++)
        if (!list[i]->of_network)
            st = gsi_fail (GS_ERR_UNSUPPORTED,
                           "NCCL did not make the memory: it does from 2.19 on, if "
                           "ncclMemAlloc succeeds");
        else
            st = comm->coll->ops->buffer_register (comm->coll, list[i], step, &call);
    if (st != GS_ERR_UNSUPPORTED)
        return gsi_call_end (comm, &call, st);
    *refused = st;
    return gsi_call_end (comm, &call, GS_OK);
}

gs_status_t gsi_buffer_register (gs_comm_t *comm, struct gsi_buffer *const *list, int number,
                                 const char *subject, gs_stream_t stream)
{
    gs_status_t st = GS_OK, refused = GS_OK;
    size_t bytes = 0;

    if (!number || !comm->coll->ops->buffer_register)
        return GS_OK;
    for (int step = 0; step < GSI_BUFFER_STEPS && !st; step++)
        if (!(st = take_step (comm, list, number, (enum gsi_buffer_step) step, stream, &refused)))
            st =
                gsi_consensus_most (comm, "the registration of memory", refused, NULL, 0, stream);
    for (int i = 0; i < number; i++) {
        bytes += list[i]->bytes;
        if (st == GS_ERR_UNSUPPORTED)
            unregister (comm, list[i]);
    }
    if (gs_comm_rank (comm))
        return st == GS_ERR_UNSUPPORTED ? GS_OK : st;
    if (st == GS_ERR_UNSUPPORTED)
        gsi_log (GS_LOG_INFO, "nccl", "%s: its memory is not registered: %s", subject,
                 gsi_last_text ());
    else if (!st)
        gsi_log (GS_LOG_INFO, "nccl", "%s: %zu bytes of memory are registered%s", subject, bytes,
                 list[0]->window ? ", as a window" : "");
    return st == GS_ERR_UNSUPPORTED ? GS_OK : st;
}

static gs_status_t free_buffer (gs_comm_t *comm, struct gsi_buffer *buffer)
{
    gs_status_t st;

    if (!buffer->of_network)
        return gs_device_free (comm, buffer->at);
    if (!(st = gsi_inflight_finish (comm)))
        st = unregister (comm, buffer);
    return st ? st : comm->coll->ops->buffer_free (comm->coll, buffer);
}

void gsi_buffer_free (gs_comm_t *comm, struct gsi_buffer *buffer)
{
    struct gsi_failure before = {0};

    gsi_failure_note (&before, GS_ERR_STATE); /* the text: it may say why this is a clean-up */
    if (free_buffer (comm, buffer)) {
        gsi_log (GS_LOG_WARN, "nccl", "%zu bytes are kept: %s", buffer->bytes, gsi_last_text ());
        gsi_failure_repeat (&before);
    }
    *buffer = (struct gsi_buffer){0};
}
