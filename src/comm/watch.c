/* SPDX-License-Identifier: BSD-3-Clause */
/* watch - what happens when an operation fails or a communicator is given up. */
#include "comm/watch.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "comm/call.h"

/* Tells the other ranks, if the transport can. Called with the communicator taken. */
static void tell_others (gs_comm_t *comm)
{
    if (comm->coll->ops->notify_abort)
        comm->coll->ops->notify_abort (comm->coll);
}

gs_status_t gsi_watch_failed (gs_comm_t *comm, const struct gsi_call *call, gs_status_t st)
{
    char reason[GSI_TEXT_MAX];
    const char *path;
    int alive = GSI_ALIVE;

    snprintf (reason, sizeof (reason), "%s #%llu of communicator '%s' on rank %d (host %s): %s",
              gsi_record_op_name (call->op), (unsigned long long) call->seq, comm->name,
              comm->team.rank, comm->hosts[comm->team.rank], gs_last_error ());
    path = gsi_record_dump (&comm->record, reason);
    if (*path) {
        size_t used = strlen (reason);
        snprintf (reason + used, sizeof (reason) - used, ". Flight record: %s", path);
    }
    comm->death = st;
    memcpy (comm->death_text, reason, sizeof (reason));
    atomic_compare_exchange_strong (&comm->life, &alive, GSI_DEAD);
    tell_others (comm);
    gsi_log (GS_LOG_ERROR, "comm", "%s", reason);
    return gsi_fail (st, "%s", reason);
}

gs_status_t gs_comm_abort (gs_comm_t *comm)
{
    gs_status_t st = gsi_comm_valid (comm, "gs_comm_abort");
    int alive = GSI_ALIVE;

    if (st || !atomic_compare_exchange_strong (&comm->life, &alive, GSI_ABORTED))
        return st;
    /* A thread inside a call sees [life] in its wait and tells the others as it leaves. */
    if (atomic_flag_test_and_set_explicit (&comm->busy, memory_order_acquire))
        return GS_OK;
    tell_others (comm);
    atomic_flag_clear_explicit (&comm->busy, memory_order_release);
    return GS_OK;
}

gs_status_t gs_comm_check (gs_comm_t *comm)
{
    gs_status_t st = gsi_comm_valid (comm, "gs_comm_check");

    if (st)
        return st;
    switch ((enum gsi_life) atomic_load_explicit (&comm->life, memory_order_acquire)) {
    case GSI_ALIVE: break;
    case GSI_ABORTED:
        return gsi_fail (GS_ERR_STATE, "communicator '%s' was aborted", comm->name);
    case GSI_DEAD: return gsi_fail (comm->death, "%s", comm->death_text);
    }
    return GS_OK;
}

gs_status_t gs_comm_wait (gs_comm_t *comm, gs_stream_t stream)
{
    (void) stream; /* calls on hosts are complete when they return */
    return gs_comm_check (comm);
}
