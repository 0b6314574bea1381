/* SPDX-License-Identifier: BSD-3-Clause */
/* peers - what the other ranks are known to do, from their flight records and notices. */
#ifndef GS_CALL_PEERS_H
#define GS_CALL_PEERS_H

#include "core/comm.h"

/* Marks who waits for [call], as the transport hears; false if it cannot ask. */
bool gsi_peers_call_roll (gs_comm_t *comm, const struct gsi_call *call, unsigned char *came);

/*
 * Marks the ranks that did not come to [call]: as the transport hears, else as flight records
 * tell. Those that nothing is known of are not marked; returns how many.
 */
int gsi_peers_mark_missing (gs_comm_t *comm, const struct gsi_call *call, unsigned char *missing);

/* "; rank 1 is in allreduce #3 of communicator 'world/column1'" for some of the [missing]. */
void gsi_peers_name_elsewhere (const gs_comm_t *comm, const unsigned char *missing, char *text,
                               size_t room);

/* The call of all ranks that this one is in, or was in last. */
void gsi_peers_own (const gs_comm_t *comm, struct gsi_told *own);

/* The first rank that is known to be in another call than [own], of the same number if [same]. */
int gsi_peers_find_other_call (const gs_comm_t *comm, const struct gsi_told *own, bool same,
                               struct gsi_told *told);

/*
 * Whether another rank, whose record can be read here, gave up before it did its part of call
 * [seq]: its status, and a text that names it.
 */
gs_status_t gsi_peers_gave_up (gs_comm_t *comm, uint64_t seq);

/*
 * (queued) Who failed first, as far as it is known: a rank that gave up because of another one or
 * for a reason of its own, one of this node whose process has ended, or what other nodes tell.
 * Not a rank of another node that gave up because it saw a connection end.
 */
gs_status_t gsi_peers_cause (gs_comm_t *comm);

/* (queued) The same, or such a rank. */
gs_status_t gsi_peers_any_cause (gs_comm_t *comm);

/*
 * What has ended on the GPU is a result: no rank that can spoil it has given up. Cheap while none
 * has; behind the end of all that is queued, and before it counts.
 */
gs_status_t gsi_peers_sound (gs_comm_t *comm);

/* Whether rank [r] is one of this node whose process has ended without having given up. */
bool gsi_peers_died (const gs_comm_t *comm, int r);

/*
 * Whether the process of a rank of this node has ended, as its record says, without having ended
 * the communicator: GS_ERR_TRANSPORT. NCCL tells of no such end between GPUs of a node.
 */
gs_status_t gsi_peers_vanished (gs_comm_t *comm);

/* Whether a rank of this node, whose record says so, has neither given up nor ended. */
bool gsi_peers_go_on (const gs_comm_t *comm);

/* The fewest operations that another rank of this node has begun; many if none is known. */
uint64_t gsi_peers_least (const gs_comm_t *comm);

/* Whether the GPU of a rank of this node may still work for it: it is in a call, or has given up
 * and its GPU has not ended what was queued. */
bool gsi_peers_work (const gs_comm_t *comm);

/* Whether rank [r] of this node has given up with [st], by itself or because of the rank that
 * this one blames, too, and says so. */
bool gsi_peers_says_so (const gs_comm_t *comm, int r, gs_status_t st);

/*
 * With GS_CHECK=collective, in a wait of call [seq]: GS_ERR_MISMATCH if a rank of this node that
 * has not come waits itself, on another communicator, for this one. Costs a look at all records.
 */
gs_status_t gsi_peers_crossed (gs_comm_t *comm, uint64_t seq);

/* All of these that end a wait of call [seq], or of a [message] before it. */
gs_status_t gsi_peers_end_wait (gs_comm_t *comm, uint64_t seq, bool message);

#endif /* GS_CALL_PEERS_H */
