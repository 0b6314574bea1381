/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gradsync_gather.h - part of gradsync.h, which includes it: values from and to all ranks
 * (gather, scatter, all-to-all), and reductions that end on one rank or in parts.
 *
 * What holds for all functions here, as for gs_allgather:
 *
 * Arguments   counts and displacements are in elements of dtype, not bytes; they may be more than
 *             2^31. Pieces of rank 0, 1, ... lie one behind the other unless displacements are
 *             given. Buffers overlap only where a function says so. What only the root uses may
 * be NULL on the other ranks. Collective  yes, over the ranks of comm, in the same order on all
 * of them. Streams     GPUs: queued on stream, which may be NULL; buffers are the call's until
 * the stream has come past it. Hosts, and host memory on a GPU communicator: done on return.
 * Threads     one thread at a time per communicator.
 * Owner       buffers stay the caller's; nothing is kept.
 * Returns     GS_OK. GS_ERR_ARG for a NULL, a root that is no rank, an unknown dtype or op,
 * pieces that overlap or do not fit, sizes that overflow; GS_ERR_DEVICE for memory that comm
 *             cannot reach, or send and recv in memories of different kinds; GS_ERR_UNSUPPORTED
 * for what dtype or a captured stream cannot have; GS_ERR_MISMATCH where ranks disagree and that
 * was looked at (see GS_CHECK in gradsync(7)); GS_ERR_STATE, GS_ERR_TIMEOUT, GS_ERR_TRANSPORT as
 * for every collective. Nothing is changed after an error of the first four. Since       0.1
 */
#ifndef GRADSYNC_GATHER_H
#define GRADSYNC_GATHER_H

#ifndef GRADSYNC_H
#error "include gradsync.h, which has this file in it"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Gathers pieces of different lengths from all ranks on all ranks.
 *
 *   send        in   send_count elements of this rank; with counts it may be its place in recv
 *   send_count  in   may be 0
 *   recv        out  room for recv_room elements
 *   recv_room   in   elements
 *   counts      in   [size] of all ranks, the same on all ranks; NULL: the ranks tell each other,
 *                    which on GPUs the host waits for
 *   displs      in   [size] where each piece begins in recv; NULL: one behind the other. On each
 *                    rank as it likes
 *
 * Returns     also GS_ERR_MISMATCH, on all ranks alike, if counts are not what the ranks send, on
 *             hosts always and on GPUs if counts is NULL or with GS_CHECK=collective.
 */
gs_status_t gs_allgatherv (gs_comm_t *comm, const void *send, size_t send_count, void *recv,
                           size_t recv_room, const size_t *counts, const size_t *displs,
                           gs_dtype_t dtype, gs_stream_t stream);

/*
 * Gathers count elements of every rank on one.
 *
 *   send   in   count elements; on the root it may be its own place in recv
 *   recv   out  (root) size * count elements
 *   count  in   of one rank, the same on all ranks
 *   root   in   the same on all ranks
 */
gs_status_t gs_gather (gs_comm_t *comm, const void *send, void *recv, size_t count,
                       gs_dtype_t dtype, int root, gs_stream_t stream);

/*
 * The same with pieces of different lengths.
 *
 *   send        in   send_count elements of this rank; on the root it may be its own place in
 * recv send_count  in   may be 0 recv        out  (root) room for recv_room elements recv_room in
 * (root) elements counts      in   [size] of all ranks, the same on all ranks; NULL on all: the
 * ranks tell each other, which on GPUs the host waits for displs      in   (root) [size] where
 * each piece begins in recv; NULL: one behind the other root        in   the same on all ranks
 *
 * Returns     as gs_allgatherv.
 */
gs_status_t gs_gatherv (gs_comm_t *comm, const void *send, size_t send_count, void *recv,
                        size_t recv_room, const size_t *counts, const size_t *displs,
                        gs_dtype_t dtype, int root, gs_stream_t stream);

/*
 * Hands count elements to each rank from one.
 *
 *   send   in   (root) size * count elements
 *   recv   out  count elements; on the root it may be its own place in send
 *   count  in   of one rank, the same on all ranks
 *   root   in   the same on all ranks
 */
gs_status_t gs_scatter (gs_comm_t *comm, const void *send, void *recv, size_t count,
                        gs_dtype_t dtype, int root, gs_stream_t stream);

/*
 * The same with pieces of different lengths.
 *
 *   send        in   (root) where the pieces are
 *   counts      in   (root) [size] their lengths
 *   displs      in   (root) [size] where each begins in send; NULL: one behind the other
 *   recv        out  recv_count elements
 *   recv_count  in   what the root's counts say for this rank
 */
gs_status_t gs_scatterv (gs_comm_t *comm, const void *send, const size_t *counts,
                         const size_t *displs, void *recv, size_t recv_count, gs_dtype_t dtype,
                         int root, gs_stream_t stream);

/*
 * Hands count elements from each rank to each.
 *
 *   send   in   size * count elements: those for rank r begin at r * count
 *   recv   out  size * count elements: those of rank r begin at r * count; not send
 *   count  in   of one pair, the same on all ranks
 */
gs_status_t gs_alltoall (gs_comm_t *comm, const void *send, void *recv, size_t count,
                         gs_dtype_t dtype, gs_stream_t stream);

/*
 * The same with pieces of different lengths.
 *
 *   send         in   the pieces for the ranks
 *   send_counts  in   [size] their lengths
 *   send_displs  in   [size] where each begins; NULL: one behind the other
 *   recv         out  the pieces of the ranks
 *   recv_counts  in   [size] what each rank sends to this one; NULL is an error: gs_alltoall of
 *                     send_counts, as GS_U64, tells
 *   recv_displs  in   [size] where each goes; NULL: one behind the other
 */
gs_status_t gs_alltoallv (gs_comm_t *comm, const void *send, const size_t *send_counts,
                          const size_t *send_displs, void *recv, const size_t *recv_counts,
                          const size_t *recv_displs, gs_dtype_t dtype, gs_stream_t stream);

/*
 * Combines arrays of all ranks on one.
 *
 *   send   in   count elements
 *   recv   out  (root) count elements; may be send
 *   count  in   the same on all ranks
 *   op     in   as for gs_allreduce
 *   root   in   the same on all ranks
 *
 * Precision   that of gs_allreduce.
 */
gs_status_t gs_reduce (gs_comm_t *comm, const void *send, void *recv, size_t count,
                       gs_dtype_t dtype, gs_op_t op, int root, gs_stream_t stream);

/*
 * Combines arrays of all ranks, of which each receives a part.
 *
 *   send   in   size * count elements: the part of rank r begins at r * count
 *   recv   out  count elements; may be this rank's part of send
 *   count  in   of one part, the same on all ranks
 *   op     in   as for gs_allreduce
 *
 * Precision   that of gs_allreduce.
 */
gs_status_t gs_reduce_scatter (gs_comm_t *comm, const void *send, void *recv, size_t count,
                               gs_dtype_t dtype, gs_op_t op, gs_stream_t stream);

#ifdef __cplusplus
}
#endif

#endif /* GRADSYNC_GATHER_H */
