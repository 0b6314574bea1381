/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gradsync_collectives.h - part of gradsync.h, which includes it: averages, reductions,
 * broadcast, allgather and barrier, and what holds for all collectives.
 */
#ifndef GRADSYNC_COLLECTIVES_H
#define GRADSYNC_COLLECTIVES_H

#ifndef GRADSYNC_H
#error "include gradsync.h, which has this file in it"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 5. Collectives --------------------------------------------------------------------- */
/*
 * All ranks of the communicator call the same operation, with the same count and dtype, in the
 * same order. On hosts a call is complete when it returns and [stream] is ignored; on GPUs it
 * is queued on [stream] (NULL: the legacy default stream) and the buffers must stay valid and
 * untouched until the stream has passed it. What fails after a call has returned is told by
 * gs_comm_check, gs_comm_wait and every later call; a call has its deadline from when it was
 * queued, or the one before it ended.
 *
 * On GPUs, arrays may be in memory of the communicator's device, in managed memory, or in host
 * memory; all ranks give the same kind. Host arrays are staged through pinned memory after the
 * work queued on [stream] before, and such a call is complete when it returns. So are, as far as
 * the host is concerned, the first two calls of a communicator, which are compared across ranks,
 * and a call of another kind or size than all before may be: NCCL connects in it.
 * The caller's current device is the same afterwards.
 *
 * Calls on device memory can be captured into a CUDA graph, by all ranks alike, except
 * gs_allreduce_wavg, gs_allgatherv and gs_gatherv without counts, and gs_comm_destroy; they are
 * then neither compared nor watched. Make a call of each kind and size before. Graphs are
 * destroyed before the communicator. What is summed by exchange (see Precision of gs_allreduce)
 * must not run in a graph and outside of it at the same time.
 *
 * All of them return, beside what is listed with each:
 *   GS_ERR_ARG        comm or a buffer is NULL (with count > 0), unknown dtype, count times
 *                     element size overflows
 *   GS_ERR_MISMATCH   ranks disagree: compared in the first two calls of a communicator, and in
 *                     every call with GS_CHECK=collective; buffers are unchanged then, and the
 *                     communicator goes on. Hosts see it in all other calls, too, in their data:
 *                     then it is dead, and [buf] may be partly overwritten
 *   GS_ERR_TIMEOUT    a rank did not come within the deadline. The communicator is dead, the
 *                     flight record was written, and [buf] may be partly overwritten
 *   GS_ERR_STATE      the communicator was aborted, or is inside another call
 *   GS_ERR_TRANSPORT  the transport failed; its text is in gs_last_error ()
 *   GS_ERR_DEVICE     a buffer is in memory that this communicator cannot reach; or the GPU
 *                     failed, and the communicator is dead
 *   GS_ERR_UNSUPPORTED  the stream is captured into a graph, and the call cannot be
 */

/*
 * Averages [buf] over the ranks, in place: buf[i] = (1/size) * sum over r of buf_r[i].
 *
 *   comm    in      every rank calls
 *   buf     in,out  [count] contiguous elements of [dtype], in memory of comm's device
 *   count   in      elements; 0 is allowed and does nothing on any rank
 *   dtype   in      GS_F16, GS_BF16, GS_F32, GS_F64, GS_C64, GS_C128, GS_F8_E4M3 or GS_F8_E5M2
 *   stream  in      see above
 *
 * Collective  yes.
 * Owner       the caller keeps [buf]. After GS_ERR_TIMEOUT nothing of ours touches it any more.
 * Precision   f16 and bf16 are summed in fp32 and rounded once; the others are summed in their
 *             own type. Every rank receives the same bits. On GPUs up to 8 ranks, and with
 *             GS_AVG=fast, f16 and bf16 are scaled by 2^-ceil(log2(size)/2), summed in their own
 *             type and divided to the average in fp32: off by at most size * u * (1 + size * u)
 *             times the average of |buf_r[i]|, u = 2^-11 for f16, 2^-8 for bf16, beside what is
 *             subnormal, and infinite above about 1/sqrt(size) of the largest number;
 *             GS_AVG=exact rounds once. f32 and f64 are summed in an order of NCCL's.
 * Returns     see above; GS_ERR_UNSUPPORTED for integers, whose average would have to round.
 * Since       0.1
 */
gs_status_t gs_allreduce_avg (gs_comm_t *comm, void *buf, size_t count, gs_dtype_t dtype,
                              gs_stream_t stream);

/*
 * Weighted average, in place: buf[i] = sum over r of w_r * buf_r[i] / sum over r of w_r.
 *
 *   comm    in      every rank calls
 *   buf     in,out  [count] contiguous elements of [dtype]; not read where weight is 0
 *   count   in      elements, the same on all ranks
 *   dtype   in      as gs_allreduce_avg
 *   weight  in      this rank's weight, for example its number of samples: finite, >= 0
 *   stream  in      see above
 *
 * Collective  yes. A rank without data takes part with weight 0. If all weights are 0 the
 *             result is 0, and rank 0 warns, once for a communicator.
 * Precision   as gs_allreduce_avg; equal weights give the same bits as gs_allreduce_avg.
 *             Weights are scaled by the largest one, so that none overflows. On GPUs f16 and bf16
 *             with different weights are always summed in fp32 and rounded once.
 * Waits       on GPUs, until all ranks have told their weights.
 * Returns     see above; GS_ERR_ARG on all ranks, naming the rank, if a weight is negative or
 *             not finite; GS_ERR_UNSUPPORTED for integers.
 * Since       0.1
 */
gs_status_t gs_allreduce_wavg (gs_comm_t *comm, void *buf, size_t count, gs_dtype_t dtype,
                               double weight, gs_stream_t stream);

/*
 * Combines [buf] over the ranks, in place: buf[i] = op over r of buf_r[i].
 *
 *   comm    in      every rank calls
 *   buf     in,out  [count] contiguous elements of [dtype]
 *   count   in      elements, the same on all ranks
 *   dtype   in      any
 *   op      in      GS_SUM, GS_PROD, GS_MIN, GS_MAX or GS_AVG (as gs_allreduce_avg), the same on
 *                   all ranks
 *   stream  in      see above
 *
 * Collective  yes.
 * Precision   f16 and bf16 are combined in fp32 and rounded once. Integers wrap. Every rank
 *             receives the same bits. On GPUs up to 8 ranks, and with GS_AVG=fast, NCCL sums f16
 *             and bf16 and rounds at every step. What NCCL does not do (16-bit integers, complex
 *             products, NaN in min and max) is done by exchange, in rank order.
 * Returns     see above; GS_ERR_ARG for an unknown op; GS_ERR_UNSUPPORTED for min and max of
 *             complex numbers, which have no order, and the average of integers.
 * Since       0.1
 */
gs_status_t gs_allreduce (gs_comm_t *comm, void *buf, size_t count, gs_dtype_t dtype, gs_op_t op,
                          gs_stream_t stream);

/*
 * Copies [buf] of rank [root] to all ranks.
 *
 *   comm    in      every rank calls
 *   buf     in,out  [count] contiguous elements of [dtype]; read on root, written elsewhere
 *   count   in      elements, the same on all ranks
 *   dtype   in      any
 *   root    in      a rank of comm, the same on all ranks
 *   stream  in      see above
 *
 * Collective  yes.
 * Returns     see above; GS_ERR_ARG if root is out of range.
 * Since       0.1
 */
gs_status_t gs_broadcast (gs_comm_t *comm, void *buf, size_t count, gs_dtype_t dtype, int root,
                          gs_stream_t stream);

/*
 * Collects [send] of every rank on every rank, in rank order.
 *
 *   comm    in   every rank calls
 *   send    in   [count] contiguous elements of [dtype]
 *   recv    out  size * count elements: rank r's are at recv + r * count
 *   count   in   elements each rank gives, the same on all ranks
 *   dtype   in   any
 *   stream  in   see above
 *
 * In place    send may be this rank's own place in recv; any other overlap is GS_ERR_ARG.
 * Collective  yes.
 * Returns     see above.
 * Since       0.1
 */
gs_status_t gs_allgather (gs_comm_t *comm, const void *send, void *recv, size_t count,
                          gs_dtype_t dtype, gs_stream_t stream);

/*
 * Returns when every rank has called it; on GPUs, queues that.
 *
 *   comm    in  every rank calls
 *   stream  in  see above
 *
 * Collective  yes.
 * Returns     see above.
 * Since       0.1
 */
gs_status_t gs_barrier (gs_comm_t *comm, gs_stream_t stream);

#ifdef __cplusplus
}
#endif

#endif /* GRADSYNC_COLLECTIVES_H */
