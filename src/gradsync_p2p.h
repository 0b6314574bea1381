/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gradsync_p2p.h - part of gradsync.h, which includes it: messages between pairs of ranks,
 * boundaries between the stages of a pipeline, and halos of fields that are cut in blocks.
 */
#ifndef GRADSYNC_P2P_H
#define GRADSYNC_P2P_H

#ifndef GRADSYNC_H
#error "include gradsync.h, which has this file in it"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Messages ---------------------------------------------------------------------------- */
/*
 * What holds for gs_send, gs_recv and groups of them:
 *
 *   - Only the two ends of a message take part. The sends of a rank to another one and the
 *     receives of that one are matched in order, on each communicator by itself; there are no
 *     tags. Both ends give the same count and dtype.
 *   - A message ends when both ends have called: a send waits for its receive, on GPUs in the
 *     stream, though NCCL may let go of a short one before, on hosts in the call. So two ranks
 *     that first send to each other and then receive wait until the deadline: put what goes in
 *     both directions into a group.
 *   - Buffers are of this rank and contiguous, of any count, on the device of the communicator
 *     or, there staged, in memory of the host. The two ends need not be alike in that. What is
 *     received overlaps nothing else of the group.
 *   - Streams are as for collectives (section 5): a call on a GPU communicator is queued on the
 *     stream and returns; a group with a buffer in host memory is waited for, and cannot be
 *     captured into a CUDA graph.
 *   - They are no collectives: GS_CHECK compares nothing, and other ranks may meanwhile be in
 *     other calls. Messages and collectives of one communicator are made one after the other on
 *     each rank, in an order in which all can end.
 *
 * They return, beside what is listed with each:
 *   GS_ERR_ARG       NULL, no rank of comm, a count that overflows, a buffer that is not aligned
 *   GS_ERR_DEVICE    a buffer on another device than the communicator's
 *   GS_ERR_MISMATCH  (hosts) the ends disagree on count or dtype. Both are told, with both ranks
 *                    and what each gave; other messages of the group have gone, and the
 *                    communicator goes on. On GPUs NCCL cannot tell: the result is undefined, or
 *                    a timeout
 *   GS_ERR_TIMEOUT   the other end did not come within GS_TIMEOUT_MS: the text has both ends.
 *                    The communicator is dead, as after any other call
 *   GS_ERR_STATE     comm was aborted, or is inside another call or a step of a reducer
 *   GS_ERR_NOMEM, GS_ERR_TRANSPORT
 */

#define GS_GROUP_MAX 2048 /* messages of a group */

/*
 * Sends [count] elements to another rank.
 *
 *   comm    in  its two ends call
 *   buf     in  [count] contiguous elements of [dtype]; the caller's again when the message has
 *               ended
 *   count   in  elements; what the other end receives
 *   dtype   in  any; the same on both ends
 *   peer    in  the rank that receives; may be this rank, inside a group that also receives it
 *   stream  in  see above; the same for all messages of a group
 *
 * Collective  no: the peer calls gs_recv.
 * Returns     see above.
 * Since       0.1
 */
gs_status_t gs_send (gs_comm_t *comm, const void *buf, size_t count, gs_dtype_t dtype, int peer,
                     gs_stream_t stream);

/*
 * Receives [count] elements from another rank.
 *
 *   comm    in   its two ends call
 *   buf     out  [count] contiguous elements of [dtype]
 *   count   in   elements; what the other end sends
 *   dtype   in   any; the same on both ends
 *   peer    in   the rank that sends; may be this rank, inside a group that also sends it
 *   stream  in   see above; the same for all messages of a group
 *
 * Collective  no: the peer calls gs_send.
 * Returns     see above.
 * Since       0.1
 */
gs_status_t gs_recv (gs_comm_t *comm, void *buf, size_t count, gs_dtype_t dtype, int peer,
                     gs_stream_t stream);

/*
 * Begins a group: the messages that follow, boundaries' too, are noted, and go together at its
 * end, in any number of directions without waiting for each other. A message whose call fails is
 * not in the group. Groups may be inside others: the outermost one counts.
 *
 *   comm  in  whose messages are a group. Its other calls are made at once, and do not wait for
 *             what is noted
 *
 * Collective  no.
 * Returns     see above.
 * Since       0.1
 */
gs_status_t gs_group_begin (gs_comm_t *comm);

/*
 * Ends a group and sends its messages off; on hosts they have ended when it returns. The group
 * has ended after a failure, too.
 *
 *   comm  in  that a group was begun of
 *
 * Collective  no: the other ends call, too, in groups of their own or without.
 * Returns     see above; GS_ERR_STATE without a group; GS_ERR_ARG or GS_ERR_MISMATCH, and nothing
 *             was sent, if the messages of this rank to itself do not fit each other.
 * Since       0.1
 */
gs_status_t gs_group_end (gs_comm_t *comm);

/* ---- Boundaries -------------------------------------------------------------------------- */

#define GS_BOUNDARY_DIMS_MAX 15

/* What two stages of a model hand to each other; made by gs_boundary_create. */
typedef struct gs_boundary gs_boundary_t;

/*
 * Makes the boundary between two stages of a model that is cut in a pipeline: activations go
 * forward over it, their gradients backward. Both stages tell what they expect to cross, once.
 *
 *   comm      in   the two ranks call
 *   from      in   rank of the stage before it
 *   to        in   rank of the stage behind it
 *   dims      in   1 to GS_BOUNDARY_DIMS_MAX
 *   shape     in   [dims] of what crosses, for example batch, channels, height, width
 *   dtype     in   any, the same in both directions
 *   boundary  out  NULL on failure
 *
 * A rank in the middle of a pipeline makes two; ranks make theirs in the order of the stages.
 *
 * Collective  over the two ranks.
 * Owner       the caller, until gs_boundary_destroy, which comes before gs_comm_destroy.
 * Returns     as gs_send; GS_ERR_ARG if the caller is neither of the ranks, or both; for shapes
 *             whose size overflows; GS_ERR_MISMATCH on both ranks, with both shapes, if
 *             they disagree, on GPUs too.
 * Since       0.1, experimental
 */
gs_status_t gs_boundary_create (gs_comm_t *comm, int from, int to, int dims, const size_t *shape,
                                gs_dtype_t dtype, gs_boundary_t **boundary);

/*
 * Hands activations over the boundary, from the stage before it to the one behind it.
 *
 *   boundary     in      both ranks call
 *   activations  in,out  contiguous, of the boundary's shape; read on [from], written on [to]
 *   stream       in      as for gs_send
 *
 * It is a message. Where forward and backward of different micro-batches cross, as in a schedule
 * of one forward, one backward, both are put between gs_group_begin and gs_group_end.
 *
 * Collective  over the two ranks.
 * Returns     as gs_send.
 * Since       0.1, experimental
 */
gs_status_t gs_boundary_forward (gs_boundary_t *boundary, void *activations, gs_stream_t stream);

/*
 * Hands gradients over the boundary, from the stage behind it to the one before it: the adjoint
 * of gs_boundary_forward.
 *
 *   boundary   in      both ranks call
 *   gradients  in,out  contiguous, of the boundary's shape; read on [to], written on [from]
 *   stream     in      as for gs_send
 *
 * Collective  over the two ranks.
 * Returns     as gs_send.
 * Since       0.1, experimental
 */
gs_status_t gs_boundary_backward (gs_boundary_t *boundary, void *gradients, gs_stream_t stream);

/*
 * Ends a boundary; NULL is allowed. Messages that were queued go on.
 *
 *   boundary  in  not used afterwards
 *
 * Collective  no.
 * Returns     GS_OK; GS_ERR_STATE for what is none.
 * Since       0.1, experimental
 */
gs_status_t gs_boundary_destroy (gs_boundary_t *boundary);

/* ---- Halos ------------------------------------------------------------------------------- */

#define GS_HALO_DIMS_MAX 3

/* How a field is cut in blocks that have layers of their neighbours' cells around them. */
typedef struct gs_halo gs_halo_t;

/*
 * Describes a field of which each rank of a grid has a block, with ghost layers around it. The
 * array of a rank has extents[d] + 2 * width[d] elements in dimension d: the block is in the
 * middle. It is row-major, the last index is the fastest; and so are the ranks in the grid: of
 * grid {2, 3} rank 4 has place {1, 1}.
 *
 *   comm      in   every rank calls
 *   dims      in   1 to GS_HALO_DIMS_MAX
 *   grid      in   [dims] ranks in each dimension; their product is the size of comm
 *   extents   in   [dims] of this rank's block, without ghosts, each at least width[d] and 1.
 *                  Blocks may differ, but those with one place in a dimension have one extent
 *                  there
 *   width     in   [dims] ghost layers on either side; 0 for none
 *   periodic  in   [dims] not 0: the first and the last block are neighbours, of a single block
 *                  it is its own. Else they have ghosts that no one fills
 *   dtype     in   any
 *   halo      out  NULL on failure
 *
 * All but [extents] are the same on all ranks.
 *
 * Collective  yes. The ranks tell each other their extents, in a call that the flight record
 *             shows as allgather.
 * Owner       the caller, until gs_halo_destroy, which comes before gs_comm_destroy.
 * Returns     GS_ERR_ARG, on all ranks alike, naming rank and dimension; GS_ERR_MISMATCH if ranks
 *             disagree; else as a collective, see section 5.
 * Since       0.1, experimental
 */
gs_status_t gs_halo_create (gs_comm_t *comm, int dims, const int *grid, const size_t *extents,
                            const size_t *width, const int *periodic, gs_dtype_t dtype,
                            gs_halo_t **halo);

/*
 * Fills the ghosts of all ranks with the cells that they are copies of, at edges and corners,
 * too. Ghosts beyond an end that is not periodic stay as they are, in all of their layers: what
 * a boundary condition says there may be written before or after.
 *
 *   halo    in      every rank calls
 *   field   in,out  the array that gs_halo_create describes
 *   stream  in      see section 5
 *
 * An array in host memory is staged on a GPU communicator. Exchanges of one halo in different
 * streams wait for each other, but for those that are captured into a CUDA graph.
 *
 * Collective  yes.
 * Returns     as a collective.
 * Since       0.1, experimental
 */
gs_status_t gs_halo_exchange (gs_halo_t *halo, void *field, gs_stream_t stream);

/*
 * The adjoint of gs_halo_exchange: adds what each filled ghost has to the cell that it is a copy
 * of, and sets that ghost to 0. Ghosts that the exchange does not fill stay as they are.
 *
 *   halo    in      every rank calls; of a floating or complex type
 *   grad    in,out  the array that gs_halo_create describes
 *   stream  in      see section 5
 *
 * Collective  yes.
 * Precision   one addition in the type for each side of each dimension, in the same order in
 *             every run; f16 and bf16 are added in fp32 and rounded.
 * Returns     as gs_halo_exchange; GS_ERR_UNSUPPORTED for integers.
 * Since       0.1, experimental
 */
gs_status_t gs_halo_adjoint (gs_halo_t *halo, void *grad, gs_stream_t stream);

/*
 * Ends a halo; NULL is allowed.
 *
 *   halo  in  not used afterwards
 *
 * Collective  no.
 * Returns     GS_OK; GS_ERR_STATE for what is none.
 * Since       0.1, experimental
 */
gs_status_t gs_halo_destroy (gs_halo_t *halo);

#ifdef __cplusplus
}
#endif

#endif /* GRADSYNC_P2P_H */
