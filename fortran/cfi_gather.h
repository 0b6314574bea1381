/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cfi_gather - the collectives of gradsync_gather.h on Fortran arrays of any type and rank.
 *
 * Called by gradsync_gather_array.f90, and for gradients by gradsync_adjoint_array.f90, as those
 * of cfi.h. Counts and displacements are arrays of integer(c_int64_t), NULL where they are not
 * given, in slices: a slice of an array is what one index of its last dimension has.
 */
#ifndef GS_FORTRAN_CFI_GATHER_H
#define GS_FORTRAN_CFI_GATHER_H

#include "fortran/cfi.h"

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

#endif /* GS_FORTRAN_CFI_GATHER_H */
