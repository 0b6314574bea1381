/* SPDX-License-Identifier: BSD-3-Clause */
/* lease - a communicator let to one feature for a step. */
#include "call/lease.h"

#include "core/comm.h"

pthread_mutex_t gsi_lease_guard = PTHREAD_MUTEX_INITIALIZER;

static _Thread_local const gs_comm_t *inside; /* that this thread calls for its client */

gs_status_t gsi_feature_open (gs_comm_t *comm, struct gsi_client *client, const char *caller)
{
    gs_status_t st = gsi_comm_valid (comm, caller);

    if (st)
        return st;
    atomic_fetch_add (&comm->features, 1);
    atomic_init (&client->yielding, false);
    return GS_OK;
}

void gsi_feature_close (gs_comm_t *comm, struct gsi_client *client)
{
    pthread_mutex_lock (&gsi_lease_guard); /* a thread may be asking for a description */
    if (comm->client == client)
        comm->client = NULL;
    pthread_mutex_unlock (&gsi_lease_guard);
    atomic_fetch_sub (&comm->features, 1);
}

gs_status_t gsi_lease_begin (gs_comm_t *comm, struct gsi_client *client, int64_t step)
{
    if (atomic_load (&comm->let))
        return gsi_fail (GS_ERR_STATE, "communicator '%s' is in a step of %s: finish it first",
                         comm->name, comm->client->name);
    if (comm->client != client) {
        pthread_mutex_lock (&gsi_lease_guard);
        comm->client = client;
        pthread_mutex_unlock (&gsi_lease_guard);
    }
    comm->record.file->step = step;
    atomic_store (&comm->let, true);
    return GS_OK;
}

void gsi_lease_end (gs_comm_t *comm)
{
    if (comm->record.file->step > 0 && atomic_load (&comm->life) == GSI_ALIVE)
        comm->record.file->step = -comm->record.file->step;
    atomic_store (&comm->let, false);
}

const gs_comm_t *gsi_lease_enter (const gs_comm_t *comm)
{
    const gs_comm_t *outer = inside;

    inside = comm;
    return outer;
}

gs_status_t gsi_lease_admit (const gs_comm_t *comm, const char *call)
{
    if (!atomic_load_explicit (&comm->let, memory_order_acquire) || inside == comm)
        return GS_OK;
    return gsi_fail (GS_ERR_STATE,
                     "%s: communicator '%s' is in a step of %s, which must be finished first; "
                     "until then nobody else may use it",
                     call, comm->name, comm->client->name);
}
