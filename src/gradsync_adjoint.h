/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gradsync_adjoint.h - part of gradsync.h, which includes it: the gradients of collectives, and a
 * test that gradients are right. gradsync-adjoint(7) has the table of pairs and the reasons.
 */
#ifndef GRADSYNC_ADJOINT_H
#define GRADSYNC_ADJOINT_H

#ifndef GRADSYNC_H
#error "include gradsync.h, which has this file in it"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 7. Gradients of collectives -------------------------------------------------------- */
/*
 * A collective takes x, an array on each rank, to y, an array on each rank. If the loss is the
 * sum over the ranks of what each of them computes from its y, then
 *
 *   grad_y  is the gradient of a rank's own loss by its y, what its backward pass has found;
 *   grad_x  is the gradient of the sum of all losses by its x, what the function here gives.
 *
 * This is the adjoint (the transpose) of the collective, the sum over ranks of x . grad_x being
 * that of y . grad_y for all x and grad_y. Gradients of parameters, which come from grad_x, are
 * then averaged as ever: the average of the losses is what is minimised.
 *
 * Shapes are those of the collective: grad_y is like what it wrote, grad_x like what it was
 * given. grad_x is overwritten, not added to. What the collective's own function says about
 * memory, streams, groups and deadlines holds. Texts of errors and records name grad_y as send
 * and grad_x as recv, which they are here, and name the collective that does the work. All are
 * collective.
 *
 * They return what that collective returns, and GS_ERR_UNSUPPORTED for integers and for
 * operations other than GS_SUM and GS_AVG, which have no such gradient.
 */

/* What the gradient of a gather is made of. */
typedef enum gs_grad_contract {
    /* The sum of what all ranks have found for this rank's piece: right for any loss. */
    GS_GRAD_ADJOINT = 0,
    /*
     * This rank's own part, times the number of ranks, without communication: the same, but only
     * if all ranks compute the same loss, from the gathered array and parameters that are the
     * same on all ranks. With GS_CHECK=collective the ranks find out whether it is.
     */
    GS_GRAD_OWN_SLOT = 1
} gs_grad_contract_t;

/*
 * The gradient of gs_allgather.
 *
 *   comm      in   every rank calls
 *   grad_y    in   size * count elements
 *   grad_x    out  count elements; may be this rank's place in grad_y
 *   count     in   of one rank, the same on all ranks
 *   dtype     in   floating or complex
 *   contract  in   the same on all ranks
 *   stream    in   see section 5; the host waits for it where GS_CHECK=collective looks at
 *                  GS_GRAD_OWN_SLOT
 *
 * Done by     gs_reduce_scatter with GS_SUM; GS_GRAD_OWN_SLOT: no communication.
 * Collective  yes, with both contracts.
 * Returns     see above; GS_ERR_MISMATCH on all ranks alike, with GS_CHECK=collective and in the
 *             first two calls of a communicator, if ranks give different contracts; with
 *             GS_CHECK=collective, if GS_GRAD_OWN_SLOT is not the adjoint: if the own part of
 *             some rank differs from the average of all ranks' by more than the square root of
 *             the type's precision, of its norm. grad_x is not written then. Elements of which
 *             both contracts make an infinity or a NaN do not count.
 * Since       0.1
 */
gs_status_t gs_allgather_backward (gs_comm_t *comm, const void *grad_y, void *grad_x,
                                   size_t count, gs_dtype_t dtype, gs_grad_contract_t contract,
                                   gs_stream_t stream);

/*
 * The gradient of gs_allgatherv.
 *
 *   comm      in   every rank calls
 *   grad_y    in   the pieces of all ranks
 *   counts    in   [size] their lengths, the same on all ranks
 *   displs    in   [size] where each begins in grad_y; NULL: one behind the other
 *   grad_x    out  count elements; may be this rank's piece of grad_y
 *   count     in   counts of this rank
 *   dtype, contract, stream  in  as gs_allgather_backward
 *
 * Done by     gs_reduce_scatterv with GS_SUM; GS_GRAD_OWN_SLOT: no communication.
 * Collective  yes, with both contracts.
 * Returns     as gs_allgather_backward, and GS_ERR_MISMATCH as gs_reduce_scatterv; of
 *             GS_GRAD_OWN_SLOT counts are not compared.
 * Since       0.1
 */
gs_status_t gs_allgatherv_backward (gs_comm_t *comm, const void *grad_y, const size_t *counts,
                                    const size_t *displs, void *grad_x, size_t count,
                                    gs_dtype_t dtype, gs_grad_contract_t contract,
                                    gs_stream_t stream);

/*
 * The gradient of gs_gather: each rank is handed what the root has found for it, by gs_scatter.
 *
 *   comm    in   every rank calls
 *   grad_y  in   (root) size * count elements
 *   grad_x  out  count elements; on the root it may be its own place in grad_y
 *   count   in   of one rank, the same on all ranks
 *   dtype   in   floating or complex
 *   root    in   the same on all ranks
 *   stream  in   see section 5
 *
 * Collective  yes.
 * Returns     see above.
 * Since       0.1
 */
gs_status_t gs_gather_backward (gs_comm_t *comm, const void *grad_y, void *grad_x, size_t count,
                                gs_dtype_t dtype, int root, gs_stream_t stream);

/*
 * The gradient of gs_gatherv, likewise by gs_scatterv.
 *
 *   comm    in   every rank calls
 *   grad_y  in   (root) the pieces of all ranks
 *   counts  in   (root) [size] lengths of the pieces
 *   displs  in   (root) [size] where each begins; NULL: one behind the other
 *   grad_x  out  count elements; on the root it may be its own piece of grad_y
 *   count   in   counts of this rank
 *   dtype   in   floating or complex
 *   root    in   the same on all ranks
 *   stream  in   see section 5
 *
 * Collective  yes.
 * Returns     see above.
 * Since       0.1
 */
gs_status_t gs_gatherv_backward (gs_comm_t *comm, const void *grad_y, const size_t *counts,
                                 const size_t *displs, void *grad_x, size_t count,
                                 gs_dtype_t dtype, int root, gs_stream_t stream);

/*
 * The gradient of gs_scatter: the root collects what the ranks have found, by gs_gather.
 *
 *   comm    in   every rank calls
 *   grad_y  in   count elements; on the root it may be its own place in grad_x
 *   grad_x  out  (root) size * count elements
 *   count   in   of one rank, the same on all ranks
 *   dtype   in   floating or complex
 *   root    in   the same on all ranks
 *   stream  in   see section 5
 *
 * Collective  yes.
 * Returns     see above.
 * Since       0.1
 */
gs_status_t gs_scatter_backward (gs_comm_t *comm, const void *grad_y, void *grad_x, size_t count,
                                 gs_dtype_t dtype, int root, gs_stream_t stream);

/*
 * The gradient of gs_scatterv, likewise by gs_gatherv. Places of grad_x that are in no piece stay
 * as they are.
 *
 *   comm    in   every rank calls
 *   grad_y  in   count elements; on the root it may be its own piece of grad_x
 *   count   in   counts of this rank; may be 0
 *   grad_x  out  (root) room for [room] elements
 *   room    in   (root) elements
 *   counts  in   [size] lengths of the pieces, the same on all ranks; NULL on all: the ranks
 *                tell each other, which on GPUs the host waits for
 *   displs  in   (root) [size] where each begins; NULL: one behind the other
 *   dtype   in   floating or complex
 *   root    in   the same on all ranks
 *   stream  in   see section 5
 *
 * Collective  yes.
 * Returns     see above.
 * Since       0.1
 */
gs_status_t gs_scatterv_backward (gs_comm_t *comm, const void *grad_y, size_t count, void *grad_x,
                                  size_t room, const size_t *counts, const size_t *displs,
                                  gs_dtype_t dtype, int root, gs_stream_t stream);

/*
 * The gradient of gs_alltoall: everything goes back, by gs_alltoall.
 *
 *   comm    in   every rank calls
 *   grad_y  in   size * count elements
 *   grad_x  out  size * count elements; not grad_y
 *   count   in   of one pair, the same on all ranks
 *   dtype   in   floating or complex
 *   stream  in   see section 5
 *
 * Collective  yes.
 * Returns     see above.
 * Since       0.1
 */
gs_status_t gs_alltoall_backward (gs_comm_t *comm, const void *grad_y, void *grad_x, size_t count,
                                  gs_dtype_t dtype, gs_stream_t stream);

/*
 * The gradient of gs_alltoallv, likewise by gs_alltoallv. Places of grad_x that are in no piece
 * stay as they are.
 *
 *   comm         in   every rank calls
 *   grad_y       in   the pieces that came from the ranks
 *   recv_counts  in   [size] as given to gs_alltoallv
 *   recv_displs  in   [size] likewise; NULL: one behind the other
 *   grad_x       out  the pieces that went to the ranks
 *   send_counts  in   [size] as given to gs_alltoallv
 *   send_displs  in   [size] likewise; NULL: one behind the other
 *   dtype        in   floating or complex
 *   stream       in   see section 5
 *
 * Collective  yes.
 * Returns     see above.
 * Since       0.1
 */
gs_status_t gs_alltoallv_backward (gs_comm_t *comm, const void *grad_y, const size_t *recv_counts,
                                   const size_t *recv_displs, void *grad_x,
                                   const size_t *send_counts, const size_t *send_displs,
                                   gs_dtype_t dtype, gs_stream_t stream);

/*
 * The gradient of gs_broadcast: the root gets the sum, by gs_reduce. What other ranks had in the
 * buffer before was of no influence, so its gradient is 0.
 *
 *   comm    in   every rank calls
 *   grad_y  in   count elements
 *   grad_x  out  (root) count elements; may be grad_y
 *   count   in   the same on all ranks
 *   dtype   in   floating or complex
 *   root    in   the same on all ranks
 *   stream  in   see section 5
 *
 * Collective  yes.
 * Returns     see above.
 * Since       0.1
 */
gs_status_t gs_broadcast_backward (gs_comm_t *comm, const void *grad_y, void *grad_x,
                                   size_t count, gs_dtype_t dtype, int root, gs_stream_t stream);

/*
 * The gradient of gs_allreduce with GS_SUM and of gs_allreduce_avg, each its own adjoint.
 *
 *   comm    in      every rank calls
 *   grad    in,out  count elements: grad_y becomes grad_x
 *   count   in      the same on all ranks
 *   dtype   in      floating or complex
 *   op      in      GS_SUM or GS_AVG, the same on all ranks
 *   stream  in      see section 5
 *
 * Collective  yes.
 * Returns     see above; GS_ERR_UNSUPPORTED for another op.
 * Since       0.1
 */
gs_status_t gs_allreduce_backward (gs_comm_t *comm, void *grad, size_t count, gs_dtype_t dtype,
                                   gs_op_t op, gs_stream_t stream);

/*
 * The gradient of gs_reduce with GS_SUM: all ranks get what the root has found, by gs_broadcast.
 * For GS_AVG it is that over the number of ranks.
 *
 *   comm    in      every rank calls
 *   grad    in,out  count elements: (root) grad_y; becomes grad_x on all ranks
 *   count   in      the same on all ranks
 *   dtype   in      floating or complex
 *   root    in      the same on all ranks
 *   stream  in      see section 5
 *
 * Collective  yes.
 * Returns     see above.
 * Since       0.1
 */
gs_status_t gs_reduce_backward (gs_comm_t *comm, void *grad, size_t count, gs_dtype_t dtype,
                                int root, gs_stream_t stream);

/*
 * The gradient of gs_reduce_scatter with GS_SUM: the parts of all ranks come together again, by
 * gs_allgather. For GS_AVG it is that over the number of ranks.
 *
 *   comm    in   every rank calls
 *   grad_y  in   count elements; may be this rank's place in grad_x
 *   grad_x  out  size * count elements
 *   count   in   of one rank, the same on all ranks
 *   dtype   in   floating or complex
 *   stream  in   see section 5
 *
 * Collective  yes.
 * Returns     see above.
 * Since       0.1
 */
gs_status_t gs_reduce_scatter_backward (gs_comm_t *comm, const void *grad_y, void *grad_x,
                                        size_t count, gs_dtype_t dtype, gs_stream_t stream);

/*
 * The gradient of gs_reduce_scatterv with GS_SUM, likewise by gs_allgatherv. Places of grad_x
 * that are in no part stay as they are.
 *
 *   comm    in   every rank calls
 *   grad_y  in   count elements; may be this rank's part of grad_x
 *   count   in   counts of this rank
 *   grad_x  out  room for [room] elements
 *   room    in   elements
 *   counts  in   [size] lengths of the parts, the same on all ranks
 *   displs  in   [size] where each begins; NULL: one behind the other
 *   dtype   in   floating or complex
 *   stream  in   see section 5
 *
 * Collective  yes.
 * Returns     see above.
 * Since       0.1
 */
gs_status_t gs_reduce_scatterv_backward (gs_comm_t *comm, const void *grad_y, size_t count,
                                         void *grad_x, size_t room, const size_t *counts,
                                         const size_t *displs, gs_dtype_t dtype,
                                         gs_stream_t stream);

/*
 * The gradient of gs_gather_field by the blocks: by gs_scatterv or, with root -1, by
 * gs_reduce_scatterv. That by elements of the field which no block covers is grad_y there, as
 * they stay what they were.
 *
 *   comm     in   every rank calls
 *   grad_y   in   (root, or all) of the field
 *   dims     in   1 to GS_FIELD_DIMS_MAX, the same on all ranks
 *   shape    in   (root, or all) [dims] extents of the field
 *   grad_x   out  of this rank's block; NULL where an extent is 0
 *   extents  in   [dims] of the block
 *   offsets  in   [dims] where the block begins in the field, from 0
 *   dtype    in   floating or complex
 *   root     in   the rank that had received the field, the same on all ranks; -1: all did
 *   stream   in   on GPUs the host waits for what was queued there; memory as gs_gather_field
 *
 * Collective  yes.
 * Returns     as gs_gather_field; GS_ERR_UNSUPPORTED for integers.
 * Since       0.1
 */
gs_status_t gs_gather_field_backward (gs_comm_t *comm, const void *grad_y, int dims,
                                      const size_t *shape, void *grad_x, const size_t *extents,
                                      const size_t *offsets, gs_dtype_t dtype, int root,
                                      gs_stream_t stream);

/* ---- A test of gradients ---- */

/*
 * y = f (x) on all ranks together, as a function that may call collectives; and its gradient:
 * grad_x = what a backward pass makes of grad_y where the forward pass was at [x]. Arrays are of
 * this rank, in host memory, of the lengths given to gs_adjoint_check. What they return but GS_OK
 * ends the test.
 */
typedef gs_status_t (*gs_forward_f) (const double *x, double *y, void *context);
typedef gs_status_t (*gs_backward_f) (const double *x, const double *grad_y, double *grad_x,
                                      void *context);

/* Options of gs_adjoint_check. Start from GS_ADJOINT_OPTS_INIT; 0 means the default. */
typedef struct gs_adjoint_opts {
    size_t size;      /* sizeof (gs_adjoint_opts_t) */
    double tolerance; /* of the error; default 1e-12 if linear, else 1e-6 */
    double step;      /* of the differences; default 1e-3 times the largest |x|, or 1e-3 */
    uint64_t seed;    /* of random numbers; default 1 */
    int linear;       /* f (x) is linear in x: no differences are taken */
    int same_loss;    /* grad_y is the same on all ranks, where GS_GRAD_OWN_SLOT is right */
} gs_adjoint_opts_t;

#define GS_ADJOINT_OPTS_INIT                      \
    {                                             \
        sizeof (gs_adjoint_opts_t), 0, 0, 0, 0, 0 \
    }

/* What gs_adjoint_check found, the same on all ranks. Sums are over the elements of all ranks. */
typedef struct gs_adjoint_result {
    double forward;  /* sum of J d * g, from the forward pass; d and g are random */
    double backward; /* sum of d * J' g, from the backward pass */
    double error;    /* |forward - backward| / (|J d| |g|); 0 if both are 0 */
} gs_adjoint_result_t;

/*
 * Tests whether a backward pass is the gradient of a forward pass: the sum over all ranks of
 * J d . g must be that of d . J' g, J being the derivative of f at x, for random d and g. J d is
 * f (d) if f is linear; else it comes from central differences with two steps (Richardson):
 * J d = (4 D (h / 2) - D (h)) / 3, D (h) = (f (x + h d) - f (x - h d)) / 2h.
 *
 *   comm      in   every rank calls; of hosts or GPUs
 *   forward   in   called once if linear, else four times, on all ranks alike
 *   backward  in   called once
 *   context   in   handed to them as it is; may be NULL
 *   x         in   [nx] where J is taken, not changed; NULL: random numbers
 *   nx        in   elements of x on this rank; ranks may differ, and have 0
 *   ny        in   elements of y on this rank; likewise, but for same_loss
 *   opts      in   NULL for the defaults; the same on all ranks, seed only with same_loss
 *   result    out  may be NULL; untouched unless both passes went well
 *
 * Collective  yes; forward and backward may make any calls on [comm].
 * Returns     GS_OK; on all ranks alike GS_ERR_MISMATCH if the error is above the tolerance, with
 *             the numbers in the text, what a rank's forward or backward returned, GS_ERR_NOMEM;
 *             GS_ERR_ARG.
 * Since       0.1, experimental
 */
gs_status_t gs_adjoint_check (gs_comm_t *comm, gs_forward_f forward, gs_backward_f backward,
                              void *context, const double *x, size_t nx, size_t ny,
                              const gs_adjoint_opts_t *opts, gs_adjoint_result_t *result);

#ifdef __cplusplus
}
#endif

#endif /* GRADSYNC_ADJOINT_H */
