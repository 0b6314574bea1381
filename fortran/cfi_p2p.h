/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cfi_p2p - messages on Fortran arrays of any type and rank, and arrays of a boundary or halo.
 * Called by gradsync_p2p_array.f90 only, as those of cfi.h.
 */
#ifndef GS_FORTRAN_CFI_P2P_H
#define GS_FORTRAN_CFI_P2P_H

#include "fortran/cfi.h"

gs_status_t gsi_fortran_send (struct gsi_fortran_args *args, const CFI_cdesc_t *buf, int is_open,
                              int peer);
gs_status_t gsi_fortran_recv (struct gsi_fortran_args *args, CFI_cdesc_t *buf, int is_open,
                              int peer);

/*
 * The [address] of an array that must be of [dtype] and of [shape], in Fortran's order, or of
 * another rank and as many elements. [call] and [name] are for messages.
 */
gs_status_t gsi_fortran_match (struct gsi_fortran_args *args, const char *call, const char *name,
                               CFI_cdesc_t *buf, int is_open, int dtype, int dims,
                               const int64_t *shape, void **address);

#endif /* GS_FORTRAN_CFI_P2P_H */
