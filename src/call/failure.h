/* SPDX-License-Identifier: BSD-3-Clause */
/* failure - what happens when an operation fails or a communicator is given up. */
#ifndef GS_CALL_FAILURE_H
#define GS_CALL_FAILURE_H

#include "core/comm.h"

/*
 * Takes note that the transport failed the running call with [st]: the communicator dies, the
 * flight record is written, the other ranks are told. The text of gs_last_error () is completed
 * with the operation and the record's path. Returns [st]. Called with the communicator taken.
 */
gs_status_t gsi_failure_report (gs_comm_t *comm, const struct gsi_call *call, gs_status_t st);

/*
 * The cause of [st], which was just seen here, on GPUs: NCCL knows only that something broke, and
 * hosts by way of which a call goes only that a rank gave up. So that becomes the status of this
 * rank, with a text that names it, or the text names the rank whose process has ended, for which
 * it waits until that is seen on this node, or is told by others. Else [st] stays, and the
 * culprit is whom the transport knows it to be because of.
 */
gs_status_t gsi_failure_blame (gs_comm_t *comm, gs_status_t st);

/*
 * Tells the other ranks that this one has given up, unless a thread is inside a call: that
 * thread does it as it leaves. Whoever changes [life] or lets go of [busy] calls it afterwards,
 * so that one of the two always does.
 */
void gsi_failure_tell (gs_comm_t *comm);

/* Puts onto this rank's record that it gives up with [st], because of whom, and that it misses
 * all calls from number [missed] on. */
void gsi_failure_record (gs_comm_t *comm, gs_status_t st, uint64_t missed);

/*
 * Tells the other ranks, if the transport can, that this one gives up with [st] and misses all
 * calls from number [missed] on. Called with the communicator taken, or on GPUs.
 */
void gsi_failure_tell_others (gs_comm_t *comm, gs_status_t st, uint64_t missed);

/*
 * The same, to those who would take for a contribution what the GPU still makes of this rank's
 * arrays. Before [life] changes: then the program hears of the end, and has its arrays again.
 */
void gsi_failure_silence (gs_comm_t *comm, gs_status_t st, uint64_t missed);

#endif /* GS_CALL_FAILURE_H */
