/* SPDX-License-Identifier: BSD-3-Clause */
/* abort - the end of a communicator that is given up, and whether one has come. */
#include "call/failure.h"
#include "call/inflight.h"

gs_status_t gs_comm_abort (gs_comm_t *comm)
{
    gs_status_t st = gsi_comm_valid (comm, "gs_comm_abort");
    int alive = GSI_ALIVE;
    uint64_t missed;

    if (st)
        return gsi_result (st);
    gsi_comm_hold (comm);
    gsi_inflight_look (comm); /* what has ended by itself nobody need doubt */
    if (atomic_load (&comm->life) == GSI_ALIVE) {
        missed = gsi_inflight_oldest (comm);
        gsi_record_give_up (&comm->record, GS_ERR_STATE, comm->topo.rank, missed);
        if (!atomic_load (&comm->closing)) /* asked as a teller, or else its end goes on */
            gsi_failure_silence (comm, GS_ERR_STATE, missed);
    }
    if (atomic_compare_exchange_strong (&comm->life, &alive, GSI_ABORTED) &&
        !atomic_load (&comm->closing))
        gsi_failure_tell (comm);
    gsi_comm_release (comm);
    return gsi_result (GS_OK);
}

gs_status_t gs_comm_check (gs_comm_t *comm)
{
    gs_status_t st = gsi_comm_valid (comm, "gs_comm_check");

    if (st)
        return gsi_result (st);
    gsi_inflight_look (comm);
    return gsi_result (gsi_comm_alive (comm));
}

gs_status_t gs_comm_wait (gs_comm_t *comm, gs_stream_t stream)
{
    gs_status_t st = gs_comm_check (comm), failed = GS_OK;

    if (st || !comm->inflight) /* calls on hosts are complete when they return */
        return gsi_result (st);
    gsi_comm_hold (comm);
    failed = gsi_inflight_wait (comm, stream, false);
    st = gs_comm_check (comm);
    gsi_comm_release (comm);
    return gsi_result (st ? st : failed);
}
