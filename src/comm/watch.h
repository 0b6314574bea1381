/* SPDX-License-Identifier: BSD-3-Clause */
/* watch - what happens when an operation fails or a communicator is given up. */
#ifndef GS_COMM_WATCH_H
#define GS_COMM_WATCH_H

#include "comm/comm.h"

/*
 * Takes note that the transport failed the running call with [st]: the communicator dies, the
 * flight record is written, the other ranks are told. The text of gs_last_error () is completed
 * with the operation and the record's path. Returns [st]. Called with the communicator taken.
 */
gs_status_t gsi_watch_failed (gs_comm_t *comm, const struct gsi_call *call, gs_status_t st);

/*
 * Whether another rank, whose record can be read here, gave up before it did its part of call
 * [seq]: its status, and a text that names it.
 */
gs_status_t gsi_watch_others (gs_comm_t *comm, uint64_t seq);

/*
 * The cause of [st], which was just seen here: NCCL knows only that something broke, so that
 * becomes the status of the rank that gave up, with its text. Else [st] stays.
 */
gs_status_t gsi_watch_blame (gs_comm_t *comm, gs_status_t st);

/*
 * Tells the other ranks that this one has given up, unless a thread is inside a call: that
 * thread does it as it leaves. Whoever changes [life] or lets go of [busy] calls it afterwards,
 * so that one of the two always does.
 */
void gsi_watch_tell (gs_comm_t *comm);

/* The call of all ranks that this one is in, or was in last. */
void gsi_watch_own (const gs_comm_t *comm, struct gsi_told *own);

/*
 * With GS_CHECK=collective, in a wait of call [seq]: GS_ERR_MISMATCH if a rank of this node that
 * has not come waits itself, on another communicator, for this one. Costs a look at all records.
 */
gs_status_t gsi_watch_order (gs_comm_t *comm, uint64_t seq);

#endif /* GS_COMM_WATCH_H */
