/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cfi - the collectives of gradsync.h on Fortran arrays of any type and rank, and such arrays as
 * what is added to a reducer or a plan of checkpoints.
 *
 * Called by gradsync_array.f90, gradsync_adjoint_array.f90, gradsync_ckpt_array.f90 and
 * gradsync_gradient.f90 only.
 * [is_open], 1 or 0, tells whether the array before it is assumed-size, x(*), and so does not
 * know its end. The collectives return what the function of gradsync.h returns; for an array that
 * is refused all return GS_ERR_ARG, or GS_ERR_UNSUPPORTED for a kind of number we do not carry.
 *
 * With [is_backward] a collective does the work of a gradient, whose function is called then and
 * named in texts, with its arguments: gsi_fortran_scatter is gs_gather_backward of grad_y, which
 * is [send], and grad_x, which is [recv]. gsi_fortran_allreduce_avg and _wavg have none.
 */
#ifndef GS_FORTRAN_CFI_H
#define GS_FORTRAN_CFI_H

#include <ISO_Fortran_binding.h>
#include <stdint.h>

#include "fortran/gradient.h"
#include "gradsync.h"

/* What a procedure got beside its arrays; the same as array_args in gradsync_array.f90. */
struct gsi_fortran_args {
    int64_t handle; /* of the communicator; 0 where there is none */
    int64_t count;  /* if count_given */
    gs_stream_t stream;
    int as;           /* if as_given: the gs_dtype_t that the elements stand for */
    int count_given;  /* 0 or 1 */
    int as_given;     /* 0 or 1 */
    int is_character; /* out: 1 if an array is, which is always refused; 0 before */
    int is_backward;  /* 0 or 1: see above */
};

gs_status_t gsi_fortran_allreduce_avg (struct gsi_fortran_args *args, CFI_cdesc_t *buf,
                                       int is_open);
gs_status_t gsi_fortran_allreduce_wavg (struct gsi_fortran_args *args, CFI_cdesc_t *buf,
                                        int is_open, double weight);
gs_status_t gsi_fortran_allreduce (struct gsi_fortran_args *args, CFI_cdesc_t *buf, int is_open,
                                   int op);
gs_status_t gsi_fortran_broadcast (struct gsi_fortran_args *args, CFI_cdesc_t *buf, int is_open,
                                   int root);
gs_status_t gsi_fortran_allgather (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                   int send_is_open, CFI_cdesc_t *recv, int recv_is_open);

/*
 * For [call], which adds an array that a reducer or plan keeps: fills [gradient] with what
 * [array] is, but for its bounds, which do not come along with it. No address is kept here.
 */
gs_status_t gsi_fortran_describe (struct gsi_fortran_args *args, const char *call,
                                  const CFI_cdesc_t *array, int is_open,
                                  struct gsi_fortran_gradient *gradient);

/*
 * For gs_reducer_grad: lets the Fortran pointer [p] be the gradient of number [index], with its
 * bounds. GS_ERR_ARG if [p] is of another kind or rank. [st] is how the search for the gradient
 * ended: if not well, it is returned. On failure [p] is not associated.
 */
gs_status_t gsi_fortran_point (gs_status_t st, int index,
                               const struct gsi_fortran_gradient *gradient, CFI_cdesc_t *p);

#endif /* GS_FORTRAN_CFI_H */
