/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cfi - the collectives of gradsync.h on Fortran arrays of any type and rank.
 *
 * Called by gradsync_array.f90 only. [is_open], 1 or 0, tells whether the array before it is
 * assumed-size, x(*), and so does not know its end. They return what the function of gradsync.h
 * returns, and for an array they refuse GS_ERR_ARG, or GS_ERR_UNSUPPORTED for a kind of number
 * we do not carry.
 */
#ifndef GS_FORTRAN_CFI_H
#define GS_FORTRAN_CFI_H

#include <ISO_Fortran_binding.h>
#include <stdint.h>

#include "gradsync.h"

/* What a procedure got beside its arrays; the same as array_args in gradsync_array.f90. */
struct gsi_fortran_args {
    int64_t handle; /* of the communicator */
    int64_t count;  /* if count_given */
    gs_stream_t stream;
    int as;           /* if as_given: the gs_dtype_t that the elements stand for */
    int count_given;  /* 0 or 1 */
    int as_given;     /* 0 or 1 */
    int is_character; /* out: 1 if an array is, which is always refused; 0 before */
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

#endif /* GS_FORTRAN_CFI_H */
