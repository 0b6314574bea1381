/* SPDX-License-Identifier: BSD-3-Clause */
/* gpu_lock - who has a communicator on a GPU to itself, and its device entered. */
#include "call/gpu_lock.h"

#include "base/clock.h"

bool gsi_gpu_await_open (const gs_comm_t *comm, int64_t most_ns)
{
    const struct gsi_stream_ops *ops = comm->device->ops->streams;
    struct gsi_wait wait = gsi_wait_for (most_ns, GSI_SPIN_NS);
    int life = atomic_load (&comm->life);
    bool closed;

    while ((closed = ops->is_closed (comm->device)) && atomic_load (&comm->life) == life &&
           gsi_wait_on (&wait))
        ;
    return !closed;
}

static void set_working (gs_comm_t *comm, bool yes)
{
    if (comm->gpu.working != yes)
        comm->device->ops->streams->work (comm->device, GSI_WORK_CALLS, yes ? 1 : -1);
    comm->gpu.working = yes;
}

/* A closed device is waited for as long as a call may take; after the end nobody calls. */
static gs_status_t enter_device (gs_comm_t *comm)
{
    const struct gsi_stream_ops *ops = comm->device->ops->streams;
    gs_status_t st;

    if (atomic_load (&comm->life) == GSI_ALIVE) {
        set_working (comm, true); /* from here on nobody closes it */
        gsi_gpu_await_open (comm, comm->timeout_ns);
    }
    if (atomic_load (&comm->life) != GSI_ALIVE)
        st = ops->enter_to_ask (comm->device, &comm->gpu.previous);
    else
        st = ops->enter (comm->device, &comm->gpu.previous);
    if (st)
        set_working (comm, false);
    return st;
}

gs_status_t gsi_gpu_lock (gs_comm_t *comm)
{
    if (!comm->inflight)
        return GS_OK;
    pthread_mutex_lock (&comm->gpu.guard);
    return enter_device (comm);
}

bool gsi_gpu_lock_alive (gs_comm_t *comm, bool asks, gs_status_t *st)
{
    const struct gsi_stream_ops *ops = comm->device->ops->streams;
    struct gsi_wait wait = gsi_wait_until (INT64_MAX);

    while (pthread_mutex_trylock (&comm->gpu.guard))
        if (atomic_load (&comm->life) != GSI_ALIVE || !gsi_wait_on (&wait))
            return false;
    *st = (asks ? ops->enter_to_ask : ops->enter) (comm->device, &comm->gpu.previous);
    return true;
}

void gsi_gpu_release (gs_comm_t *comm)
{
    if (comm->inflight)
        pthread_mutex_unlock (&comm->gpu.guard);
}

void gsi_gpu_unlock (gs_comm_t *comm)
{
    if (comm->inflight) {
        set_working (comm, false);
        comm->device->ops->streams->leave (comm->device, comm->gpu.previous);
    }
    gsi_gpu_release (comm);
}

uint64_t gsi_gpu_missed (const gs_comm_t *comm, uint64_t seq)
{
    uint64_t oldest = comm->inflight ? atomic_load (&comm->gpu.oldest) : 0;

    return oldest && oldest < seq ? oldest : seq;
}
