/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu_lock - a call has a communicator on a GPU to itself, and its device entered. The thread
 * that watches never waits for it. One on hosts has no lock: everything here then does nothing.
 */
#ifndef GS_CALL_GPU_LOCK_H
#define GS_CALL_GPU_LOCK_H

#include "core/comm.h"

/* Where the device cannot be entered, the lock is held all the same, until gsi_gpu_release. */
gs_status_t gsi_gpu_lock (gs_comm_t *comm);
void gsi_gpu_release (gs_comm_t *comm);

/*
 * The same, [*st], unless the communicator ends before: false, and it is not held. It does not
 * wait for a free that is late, and where it only [asks] whether events are done for none.
 */
bool gsi_gpu_lock_alive (gs_comm_t *comm, bool asks, gs_status_t *st);

/*
 * Waits [most_ns] at most, and no longer than the communicator's life is what it is, for a device
 * that is closed; whether it is open.
 */
bool gsi_gpu_await_open (const gs_comm_t *comm, int64_t most_ns);

/* Leaves the device, and lets go. */
void gsi_gpu_unlock (gs_comm_t *comm);

/*
 * Number of the first call that this rank misses when call [seq] failed: what that ends is what
 * was queued, too. For who has the lock.
 */
uint64_t gsi_gpu_missed (const gs_comm_t *comm, uint64_t seq);

#endif /* GS_CALL_GPU_LOCK_H */
