/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gradsync_gather.h - part of gradsync.h, which includes it: values from and to all ranks
 * (gather, scatter, all-to-all), reductions that end on one rank or in parts, and fields.
 */
#ifndef GRADSYNC_GATHER_H
#define GRADSYNC_GATHER_H

#ifndef GRADSYNC_H
#error "include gradsync.h, which has this file in it"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 5. Collectives, continued ---------------------------------------------------------- */
/*
 * What section 5 says holds. Beside that, for all functions here:
 *
 * Counts and displacements are in elements of dtype, not bytes; they may be more than 2^31.
 * Pieces of rank 0, 1, ... lie one behind the other unless displacements are given. Buffers
 * overlap only where a function says so. What only the root uses may be NULL on other ranks.
 *
 * They return GS_ERR_ARG also for a root that is no rank, pieces that overlap or do not fit, and
 * sizes that overflow; GS_ERR_DEVICE for send and recv in memories of different kinds. After a
 * failure that a rank can see before it talks to others nothing is changed.
 */

/*
 * Gathers pieces of different lengths from all ranks on all ranks.
 *
 *   comm        in   every rank calls
 *   send        in   send_count elements of this rank; with counts it may be its place in recv
 *   send_count  in   may be 0
 *   recv        out  room for recv_room elements
 *   recv_room   in   elements
 *   counts      in   [size] of all ranks, the same on all ranks; NULL: the ranks tell each other,
 *                    which on GPUs the host waits for
 *   displs      in   [size] where each piece begins in recv, with counts; NULL: one behind the
 *                    other. On each rank as it likes
 *   dtype       in   any
 *   stream      in   see section 5
 *
 * Collective  yes.
 * Returns     see above; GS_ERR_MISMATCH on all ranks alike if counts are not what the ranks send
 *             or, without counts, a rank has not the room: always, but on GPUs that ranks do
 *             not share only if counts is NULL or with GS_CHECK=collective.
 * Since       0.1
 */
gs_status_t gs_allgatherv (gs_comm_t *comm, const void *send, size_t send_count, void *recv,
                           size_t recv_room, const size_t *counts, const size_t *displs,
                           gs_dtype_t dtype, gs_stream_t stream);

/*
 * Gathers [count] elements of every rank on one.
 *
 *   comm    in   every rank calls
 *   send    in   count elements; on the root it may be its own place in recv
 *   recv    out  (root) size * count elements
 *   count   in   of one rank, the same on all ranks
 *   dtype   in   any
 *   root    in   the same on all ranks
 *   stream  in   see section 5
 *
 * Collective  yes.
 * Returns     see above.
 * Since       0.1
 */
gs_status_t gs_gather (gs_comm_t *comm, const void *send, void *recv, size_t count,
                       gs_dtype_t dtype, int root, gs_stream_t stream);

/*
 * Gathers pieces of different lengths on one rank.
 *
 *   comm        in   every rank calls
 *   send        in   send_count elements of this rank; on the root, with counts, it may be its
 *                    place in recv
 *   send_count  in   may be 0
 *   recv        out  (root) room for recv_room elements
 *   recv_room   in   (root) elements
 *   counts      in   [size] of all ranks, the same on all ranks; NULL on all: the ranks tell each
 *                    other, which on GPUs the host waits for
 *   displs      in   (root) [size] where each piece begins in recv, with counts; NULL: one behind
 *                    the other
 *   dtype       in   any
 *   root        in   the same on all ranks
 *   stream      in   see section 5
 *
 * Collective  yes.
 * Returns     as gs_allgatherv.
 * Since       0.1
 */
gs_status_t gs_gatherv (gs_comm_t *comm, const void *send, size_t send_count, void *recv,
                        size_t recv_room, const size_t *counts, const size_t *displs,
                        gs_dtype_t dtype, int root, gs_stream_t stream);

/*
 * Hands [count] elements to each rank from one.
 *
 *   comm    in   every rank calls
 *   send    in   (root) size * count elements
 *   recv    out  count elements; on the root it may be its own place in send
 *   count   in   of one rank, the same on all ranks
 *   dtype   in   any
 *   root    in   the same on all ranks
 *   stream  in   see section 5
 *
 * Collective  yes.
 * Returns     see above.
 * Since       0.1
 */
gs_status_t gs_scatter (gs_comm_t *comm, const void *send, void *recv, size_t count,
                        gs_dtype_t dtype, int root, gs_stream_t stream);

/*
 * Hands pieces of different lengths to all ranks from one.
 *
 *   comm        in   every rank calls
 *   send        in   (root) where the pieces are
 *   counts      in   (root) [size] their lengths
 *   displs      in   (root) [size] where each begins in send; NULL: one behind the other
 *   recv        out  recv_count elements; on the root it may be its own place in send
 *   recv_count  in   what the root's counts say for this rank
 *   dtype       in   any
 *   root        in   the same on all ranks
 *   stream      in   see section 5
 *
 * On GPUs the host waits for what the ranks tell each other only with GS_CHECK=collective.
 *
 * Collective  yes.
 * Returns     see above; GS_ERR_MISMATCH as gs_allgatherv.
 * Since       0.1
 */
gs_status_t gs_scatterv (gs_comm_t *comm, const void *send, const size_t *counts,
                         const size_t *displs, void *recv, size_t recv_count, gs_dtype_t dtype,
                         int root, gs_stream_t stream);

/*
 * Hands [count] elements from each rank to each.
 *
 *   comm    in   every rank calls
 *   send    in   size * count elements: those for rank r begin at r * count
 *   recv    out  size * count elements: those of rank r begin at r * count; not send
 *   count   in   of one pair, the same on all ranks
 *   dtype   in   any
 *   stream  in   see section 5
 *
 * Collective  yes.
 * Returns     see above.
 * Since       0.1
 */
gs_status_t gs_alltoall (gs_comm_t *comm, const void *send, void *recv, size_t count,
                         gs_dtype_t dtype, gs_stream_t stream);

/*
 * Hands pieces of different lengths from each rank to each.
 *
 *   comm         in   every rank calls
 *   send         in   the pieces for the ranks
 *   send_counts  in   [size] their lengths
 *   send_displs  in   [size] where each begins; NULL: one behind the other
 *   recv         out  the pieces of the ranks
 *   recv_counts  in   [size] what each rank sends to this one; gs_alltoall of send_counts, as
 *                     GS_U64, tells
 *   recv_displs  in   [size] where each goes; NULL: one behind the other
 *   dtype        in   any
 *   stream       in   see section 5
 *
 * Collective  yes.
 * Returns     see above; GS_ERR_MISMATCH on all ranks alike if a rank does not expect what
 *             another sends it: always, but on GPUs that ranks do not share only with
 *             GS_CHECK=collective.
 * Since       0.1
 */
gs_status_t gs_alltoallv (gs_comm_t *comm, const void *send, const size_t *send_counts,
                          const size_t *send_displs, void *recv, const size_t *recv_counts,
                          const size_t *recv_displs, gs_dtype_t dtype, gs_stream_t stream);

/*
 * Combines arrays of all ranks on one.
 *
 *   comm    in   every rank calls
 *   send    in   count elements
 *   recv    out  (root) count elements; may be send
 *   count   in   the same on all ranks
 *   dtype   in   any
 *   op      in   GS_SUM, GS_PROD, GS_MIN, GS_MAX or GS_AVG, the same on all ranks
 *   root    in   the same on all ranks
 *   stream  in   see section 5
 *
 * Collective  yes.
 * Precision   that of gs_allreduce, and of gs_allreduce_avg for GS_AVG.
 * Returns     see above; GS_ERR_UNSUPPORTED as gs_allreduce, and for GS_AVG of integers.
 * Since       0.1
 */
gs_status_t gs_reduce (gs_comm_t *comm, const void *send, void *recv, size_t count,
                       gs_dtype_t dtype, gs_op_t op, int root, gs_stream_t stream);

/*
 * Combines arrays of all ranks, of which each receives a part.
 *
 *   comm    in   every rank calls
 *   send    in   size * count elements: the part of rank r begins at r * count
 *   recv    out  count elements; may be this rank's part of send
 *   count   in   of one part, the same on all ranks
 *   dtype   in   any
 *   op      in   as for gs_reduce
 *   stream  in   see section 5
 *
 * Collective  yes.
 * Precision   that of gs_reduce.
 * Returns     as gs_reduce.
 * Since       0.1
 */
gs_status_t gs_reduce_scatter (gs_comm_t *comm, const void *send, void *recv, size_t count,
                               gs_dtype_t dtype, gs_op_t op, gs_stream_t stream);

/*
 * Combines arrays of all ranks, of which each receives a part; these differ in length.
 *
 *   comm        in   every rank calls
 *   send        in   the parts of all ranks
 *   counts      in   [size] their lengths, the same on all ranks
 *   displs      in   [size] where each begins in send, on each rank as it likes; NULL: one behind
 *                    the other
 *   recv        out  recv_count elements; may be this rank's part of send
 *   recv_count  in   counts of this rank
 *   dtype       in   any
 *   op          in   as for gs_reduce
 *   stream      in   see section 5
 *
 * Collective  yes.
 * Precision   that of gs_reduce.
 * Returns     as gs_reduce; GS_ERR_MISMATCH on all ranks alike if counts are not what the ranks
 *             receive: always, but on GPUs that ranks do not share only with
 *             GS_CHECK=collective.
 * Since       0.1
 */
gs_status_t gs_reduce_scatterv (gs_comm_t *comm, const void *send, const size_t *counts,
                                const size_t *displs, void *recv, size_t recv_count,
                                gs_dtype_t dtype, gs_op_t op, gs_stream_t stream);

#define GS_FIELD_DIMS_MAX 15

/*
 * Assembles a field, of which each rank has a block, on one rank or on all.
 *
 *   comm     in      every rank calls
 *   block    in      this rank's block, contiguous; NULL where an extent is 0
 *   dims     in      1 to GS_FIELD_DIMS_MAX, the same on all ranks
 *   extents  in      [dims] of the block
 *   offsets  in      [dims] where the block begins in the field, from 0
 *   field    in,out  (root, or all) the field; what no block covers stays as it is
 *   shape    in      (root, or all) [dims] extents of the field, the same on all ranks that tell
 *   dtype    in      any
 *   root     in      the rank that receives, the same on all ranks; -1: all ranks do
 *   stream   in      on GPUs the host waits for what was queued there
 *
 * Arrays are row-major: the last index is the fastest. Blocks need not be of one size, nor form
 * a grid; block and field do not overlap.
 *
 * Blocks that are each a run of the field's memory, as where only the first dimension is cut, go
 * where they belong directly. Others meet in other memory first, as much again as the field where
 * it is received, and are copied from there; on GPUs the host waits for that.
 *
 * Collective  yes. It makes two calls that the flight record shows: the ranks tell their places,
 *             and the blocks are gathered; in between, on GPUs, whether they have the memory.
 * Returns     see above; on all ranks alike: GS_ERR_ARG if blocks overlap or reach outside of the
 *             field, with ranks and dimension; GS_ERR_MISMATCH if ranks disagree on dims, dtype,
 *             root or shape; GS_ERR_NOMEM.
 * Since       0.1
 */
gs_status_t gs_gather_field (gs_comm_t *comm, const void *block, int dims, const size_t *extents,
                             const size_t *offsets, void *field, const size_t *shape,
                             gs_dtype_t dtype, int root, gs_stream_t stream);

#ifdef __cplusplus
}
#endif

#endif /* GRADSYNC_GATHER_H */
