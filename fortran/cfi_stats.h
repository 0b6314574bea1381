/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cfi_stats - statistics and comparisons of gradsync_stats.h on Fortran arrays of any type and
 * rank. Called by gradsync_stats_array.f90 only, as those of cfi.h.
 */
#ifndef GS_FORTRAN_CFI_STATS_H
#define GS_FORTRAN_CFI_STATS_H

#include "fortran/cfi.h"

/* The last dimension of [x] runs over samples; [mask] is logical, or NULL. */
gs_status_t gsi_fortran_stats (struct gsi_fortran_args *args, const CFI_cdesc_t *x, int is_open,
                               const CFI_cdesc_t *mask, gs_moments_t *moments, int64_t features);

gs_status_t gsi_fortran_compare (struct gsi_fortran_args *args, const char *name,
                                 const CFI_cdesc_t *x, int is_open, double tolerance);

#endif /* GS_FORTRAN_CFI_STATS_H */
