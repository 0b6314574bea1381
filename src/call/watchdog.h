/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watchdog - ends the process where a call on hosts does not come back from a foreign library.
 *
 * Our own waits look at the clock. One inside MPI does not, and cannot be ended from outside:
 * Open MPI 4 may stay in it for ever when a peer dies in a transfer over TCP. So a thread looks
 * once a second whether a call is GS_STUCK_MS behind its deadline, by as many looks, for a
 * process that was stopped has missed its deadline, too. It writes the flight record, says what
 * it knows, and aborts: nothing else ends the wait.
 */
#ifndef GS_CALL_WATCHDOG_H
#define GS_CALL_WATCHDOG_H

#include "core/comm.h"

/* Watches [comm], if it has several ranks, from when its record is open. */
void gsi_watchdog_open (gs_comm_t *comm);

/* One that was not opened is allowed. */
void gsi_watchdog_close (gs_comm_t *comm);

/* A call begins, or goes on, and should end by [until_ns]; 0: it has ended. */
static inline void gsi_watchdog_expect (gs_comm_t *comm, int64_t until_ns)
{
    atomic_store_explicit (&comm->watchdog.until_ns, until_ns, memory_order_release);
}

#endif /* GS_CALL_WATCHDOG_H */
