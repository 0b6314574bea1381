/* SPDX-License-Identifier: BSD-3-Clause */
/* traffic - what the calls on a communicator have sent. */
#ifndef GS_CALL_TRAFFIC_H
#define GS_CALL_TRAFFIC_H

#include "core/comm.h"

/* Before a call, and after it went well. */
void gsi_traffic_begin (gs_comm_t *comm);
void gsi_traffic_end (gs_comm_t *comm, int op);

/* This rank hands [bytes] to the call, or the pieces of an alltoallv. */
void gsi_traffic_hand (gs_comm_t *comm, size_t bytes);
void gsi_traffic_hand_pieces (gs_comm_t *comm, const struct gsi_alltoallv *x);

/* Tells the log, on rank 0. */
void gsi_traffic_report (const gs_comm_t *comm);

#endif /* GS_CALL_TRAFFIC_H */
