/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cfi - the collectives of gradsync.h on Fortran arrays of any type and rank, and such arrays as
 * what is added to a reducer or a plan of checkpoints.
 *
 * Called by the procedures that calls.awk makes of calls.def, which reads these prototypes: its
 * lists are the descriptors named counts, displs, offsets, shape and lower, of 32 or 64 bits.
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

#include "gradsync.h"

/* What a procedure got beside its arrays; the same as c_args in gradsync_structs.f90. */
struct gsi_fortran_args {
    int64_t handle; /* of the communicator, reducer, ... */
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

/* ---- Gathers and their like ---- */

/* Counts and displacements, NULL where they are not given, are in slices: what one index of the
 * last dimension has. */
gs_status_t gsi_fortran_gather (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                int send_is_open, CFI_cdesc_t *recv, int recv_is_open, int root);
gs_status_t gsi_fortran_scatter (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                 int send_is_open, CFI_cdesc_t *recv, int recv_is_open, int root);
gs_status_t gsi_fortran_alltoall (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                  int send_is_open, CFI_cdesc_t *recv, int recv_is_open);
gs_status_t gsi_fortran_reduce (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                int send_is_open, CFI_cdesc_t *recv, int recv_is_open, int op,
                                int root);
gs_status_t gsi_fortran_reduce_scatter (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                        int send_is_open, CFI_cdesc_t *recv, int recv_is_open,
                                        int op);

gs_status_t gsi_fortran_allgatherv (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                    int send_is_open, CFI_cdesc_t *recv, int recv_is_open,
                                    const CFI_cdesc_t *counts, const CFI_cdesc_t *displs);
gs_status_t gsi_fortran_gatherv (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                 int send_is_open, CFI_cdesc_t *recv, int recv_is_open, int root,
                                 const CFI_cdesc_t *counts, const CFI_cdesc_t *displs);
gs_status_t gsi_fortran_scatterv (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                  int send_is_open, CFI_cdesc_t *recv, int recv_is_open, int root,
                                  const CFI_cdesc_t *counts, const CFI_cdesc_t *displs);
gs_status_t gsi_fortran_alltoallv (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                   int send_is_open, CFI_cdesc_t *recv, int recv_is_open,
                                   const CFI_cdesc_t *send_counts, const CFI_cdesc_t *recv_counts,
                                   const CFI_cdesc_t *send_displs,
                                   const CFI_cdesc_t *recv_displs);

/* With is_backward, [op] is the contract; so for gsi_fortran_reduce_scatter. */
gs_status_t gsi_fortran_reduce_scatterv (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                         int send_is_open, CFI_cdesc_t *recv, int recv_is_open,
                                         int op, const CFI_cdesc_t *counts,
                                         const CFI_cdesc_t *displs);

/* [offsets] in Fortran's order of dimensions. */
gs_status_t gsi_fortran_gather_field (struct gsi_fortran_args *args, const CFI_cdesc_t *block,
                                      int block_is_open, const CFI_cdesc_t *offsets,
                                      CFI_cdesc_t *field, int field_is_open, int root);
gs_status_t gsi_fortran_gather_field_backward (struct gsi_fortran_args *args,
                                               const CFI_cdesc_t *grad_y, int grad_y_is_open,
                                               CFI_cdesc_t *grad_x, int grad_x_is_open,
                                               const CFI_cdesc_t *offsets, int root);

/* ---- Statistics ---- */

/* The last dimension of [x] runs over samples; [mask] is logical, or NULL. */
gs_status_t gsi_fortran_moments_compute (struct gsi_fortran_args *args, const CFI_cdesc_t *x,
                                         int is_open, const CFI_cdesc_t *mask,
                                         gs_moments_t *moments, int64_t features);

gs_status_t gsi_fortran_arrays_compare (struct gsi_fortran_args *args, const char *name,
                                        const CFI_cdesc_t *x, int is_open, double tolerance);

/* ---- Messages, boundaries and halos ---- */

gs_status_t gsi_fortran_send (struct gsi_fortran_args *args, const CFI_cdesc_t *buf, int is_open,
                              int peer);
gs_status_t gsi_fortran_recv (struct gsi_fortran_args *args, CFI_cdesc_t *buf, int is_open,
                              int peer);
gs_status_t gsi_fortran_boundary_forward (struct gsi_fortran_args *args, CFI_cdesc_t *activations,
                                          int is_open);
gs_status_t gsi_fortran_boundary_backward (struct gsi_fortran_args *args, CFI_cdesc_t *gradients,
                                           int is_open);
gs_status_t gsi_fortran_halo_exchange (struct gsi_fortran_args *args, CFI_cdesc_t *field,
                                       int is_open);
gs_status_t gsi_fortran_halo_adjoint (struct gsi_fortran_args *args, CFI_cdesc_t *grad,
                                      int is_open);

/* ---- Pools; the last dimension runs over rows ---- */

gs_status_t gsi_fortran_pool_begin (struct gsi_fortran_args *args, const CFI_cdesc_t *in,
                                    int is_open);
gs_status_t gsi_fortran_pool_end (struct gsi_fortran_args *args, CFI_cdesc_t *out, int is_open);
gs_status_t gsi_fortran_pool_evaluate (struct gsi_fortran_args *args, const CFI_cdesc_t *in,
                                       int in_is_open, CFI_cdesc_t *out, int out_is_open);
gs_status_t gsi_fortran_pool_backward (struct gsi_fortran_args *args, const CFI_cdesc_t *grad_out,
                                       int grad_out_is_open, CFI_cdesc_t *grad_in,
                                       int grad_in_is_open);

/* ---- What is added to a reducer or plan, which keep its address ---- */

gs_status_t gsi_fortran_reducer_add_array (struct gsi_fortran_args *args, const char *name,
                                           CFI_cdesc_t *array, int is_open,
                                           const CFI_cdesc_t *lower, int *index);
gs_status_t gsi_fortran_ckpt_add_replicated_array (struct gsi_fortran_args *args,
                                                   const char *name, CFI_cdesc_t *array,
                                                   int is_open, const CFI_cdesc_t *lower);
gs_status_t gsi_fortran_ckpt_add_per_rank_array (struct gsi_fortran_args *args, const char *name,
                                                 CFI_cdesc_t *array, int is_open,
                                                 const CFI_cdesc_t *lower);
gs_status_t gsi_fortran_ckpt_add_sharded_array (struct gsi_fortran_args *args, const char *name,
                                                CFI_cdesc_t *array, int is_open,
                                                const CFI_cdesc_t *offsets,
                                                const CFI_cdesc_t *shape,
                                                const CFI_cdesc_t *lower);

/*
 * Lets the Fortran pointer [p] be the gradient of number [index], with its bounds. GS_ERR_ARG if
 * [p] is of another kind or rank. On failure [p] is not associated.
 */
gs_status_t gsi_fortran_reducer_grad (int64_t reducer, int index, CFI_cdesc_t *p);

#endif /* GS_FORTRAN_CFI_H */
