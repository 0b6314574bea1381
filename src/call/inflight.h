/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inflight - what a communicator on GPUs has queued: a thread watches that it ends in time.
 *
 * A call has the lock of gpu_lock.h from gsi_inflight_enter on; the thread needs it for nothing.
 * A communicator on hosts has no queue: everything here then does nothing.
 */
#ifndef GS_CALL_INFLIGHT_H
#define GS_CALL_INFLIGHT_H

#include "core/comm.h"

/* Opens the queue of a communicator on a GPU, before its transport; close takes any. */
gs_status_t gsi_inflight_open (gs_comm_t *comm);
void gsi_inflight_close (gs_comm_t *comm);

/*
 * Takes the queue for a call, and finds out whether its stream is captured: GS_ERR_UNSUPPORTED
 * for a call that cannot be. gsi_inflight_hold takes it for anything else. With GS_ERR_DEVICE of
 * either a communicator that works has died: the other ranks must not wait for this one.
 */
gs_status_t gsi_inflight_enter (gs_comm_t *comm, struct gsi_call *call);
gs_status_t gsi_inflight_hold (gs_comm_t *comm);

/* The call under way, with its deadline, or NULL: it may block where only the thread sees it. */
void gsi_inflight_now (gs_comm_t *comm, const struct gsi_call *call);

/* The thread asks the transport, or not: from the open on it rests. */
void gsi_inflight_rest (gs_comm_t *comm, bool yes);

/* Sees to deadlines where even the thread is blocked in the driver; for call/watchdog.c. */
void gsi_inflight_overdue (gs_comm_t *comm);

/* Has [call], which was just queued, watched. Its entry in the record ends when it has. */
gs_status_t gsi_inflight_watch (gs_comm_t *comm, const struct gsi_call *call);

/*
 * Waits on the host, inside a call, for what was queued before [event] and watches the transport
 * meanwhile: GS_ERR_TIMEOUT, GS_ERR_STATE when the communicator was aborted.
 */
gs_status_t gsi_inflight_await (gs_comm_t *comm, struct gsi_event *event,
                                const struct gsi_call *call);

/*
 * Asks now and then, inside a call, whether another rank gave up before it did its part of
 * [call]: NCCL does not tell all of them.
 */
gs_status_t gsi_inflight_peek (gs_comm_t *comm, const struct gsi_call *call);

/* Waits, inside a call, for everything watched. */
gs_status_t gsi_inflight_drain (gs_comm_t *comm, const struct gsi_call *call);

/*
 * Before a stream of buckets is closed, outside of calls: from here on nobody asks it. False:
 * another thread may be blocked in doing so, and the stream must stay.
 */
bool gsi_inflight_part (gs_comm_t *comm);

/* A call fails: what it gave the GPU may go on when it has returned. */
void gsi_inflight_leave (gs_comm_t *comm);

/* Whether a call is under way, queued and not seen to have ended, or was left; any thread. */
bool gsi_inflight_is_busy (gs_comm_t *comm);

/* Number of the first call that has not ended here; may be called by any thread. */
uint64_t gsi_inflight_oldest (gs_comm_t *comm);

/*
 * Waits for the calls that are watched, outside of calls, before something is freed. Once the
 * communicator has died or was aborted it waits a moment for what was queued; if that does
 * not end, the memory of the device is kept, for a free would wait for it.
 */
void gsi_inflight_settle (gs_comm_t *comm);

/* The same, and waits for what the program has queued on the legacy stream and those that it
 * waits for: GS_ERR_TIMEOUT if that does not end in time, and nothing is to be freed. */
gs_status_t gsi_inflight_finish (gs_comm_t *comm);

/* Looks now instead of soon whether something failed, unless another thread does. */
void gsi_inflight_look (gs_comm_t *comm);

/*
 * Waits on the host, outside of calls, for the work of [stream]; see gs_comm_wait. [to_free] is
 * for gsi_inflight_finish alone, in whatever thread: its event is another one.
 */
gs_status_t gsi_inflight_wait (gs_comm_t *comm, gs_stream_t stream, bool to_free);

#endif /* GS_CALL_INFLIGHT_H */
