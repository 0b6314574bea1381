/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * staging - hands a call's arrays to the transport: as they are, or, where a communicator on GPUs
 * is given arrays in host memory, in pieces through pinned memory. Inside a call only.
 */
#ifndef GS_CALL_STAGING_H
#define GS_CALL_STAGING_H

#include "core/comm.h"

/* The operations of struct gsi_coll_ops; call->staged says which way. */
gs_status_t gsi_staging_allreduce (gs_comm_t *comm, void *buf, size_t count,
                                   const struct gsi_reduction *how, const struct gsi_call *call);
gs_status_t gsi_staging_broadcast (gs_comm_t *comm, void *buf, size_t bytes, int root,
                                   const struct gsi_call *call);
gs_status_t gsi_staging_allgather (gs_comm_t *comm, const void *send, void *recv, size_t bytes,
                                   const struct gsi_call *call);
gs_status_t gsi_staging_alltoallv (gs_comm_t *comm, const struct gsi_alltoallv *x,
                                   const struct gsi_call *call);
gs_status_t gsi_staging_reduce_scatter (gs_comm_t *comm, const void *send, void *recv,
                                        size_t count, const struct gsi_reduction *how,
                                        const struct gsi_call *call);
gs_status_t gsi_staging_reduce_scatterv (gs_comm_t *comm, const void *send, const size_t *at,
                                         const size_t *count, void *recv,
                                         const struct gsi_reduction *how,
                                         const struct gsi_call *call);
gs_status_t gsi_staging_reduce (gs_comm_t *comm, const void *send, void *recv, size_t count,
                                const struct gsi_reduction *how, int root,
                                const struct gsi_call *call);

/*
 * Gathers [bytes] of every rank, in host memory, while the calling thread waits: what ranks tell
 * each other about a call.
 */
gs_status_t gsi_staging_control (gs_comm_t *comm, const void *send, void *recv, size_t bytes,
                                 const struct gsi_call *call);

/*
 * (GPUs) Waits for all ranks to come to the same call: on hosts a transport's end does, NCCL's
 * not. As the create did: the first launch of another kernel would wait for the whole GPU.
 */
gs_status_t gsi_staging_meet (gs_comm_t *comm, const struct gsi_call *call);

/* (GPUs) Waits for what was queued on the call's stream: it may write arrays in host memory. */
gs_status_t gsi_staging_catch_up (gs_comm_t *comm, const struct gsi_call *call);

/* (GPUs) Waits for that, and copies [bytes] of the device to memory of the host. */
gs_status_t gsi_staging_fetch (gs_comm_t *comm, void *to, const void *from, size_t bytes,
                               const struct gsi_call *call);

/*
 * For what is staged in another way, by copies of its own: [apart] becomes the call on a stream
 * of ours, once the caller's has done what it had to; gsi_staging_await waits for what was queued
 * there.
 */
gs_status_t gsi_staging_side_stream (gs_comm_t *comm, const struct gsi_call *call,
                                     struct gsi_call *apart);
gs_status_t gsi_staging_await (gs_comm_t *comm, const struct gsi_call *call);

/* What staging needs, on a GPU, before the transport; close takes any. Outside of calls. */
gs_status_t gsi_staging_open (gs_comm_t *comm);
void gsi_staging_close (gs_comm_t *comm);

/* (GPUs) Whether the lanes, if there are any, have ended what was queued on them before a mark.
 */
void gsi_staging_mark (const gs_comm_t *comm);
bool gsi_staging_has_ended (const gs_comm_t *comm);

#endif /* GS_CALL_STAGING_H */
