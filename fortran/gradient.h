/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gradient - what the binding keeps of a gradient that was added to a reducer, so that it can be
 * given back as an array pointer with its bounds.
 *
 * Called by gradsync_state.f90, gradsync_step.f90 and gradsync_gradient.f90.
 */
#ifndef GS_FORTRAN_GRADIENT_H
#define GS_FORTRAN_GRADIENT_H

#include <stdint.h>

#include "gradsync.h"

/*
 * The same as gradient in gradsync_c_reducer.f90. Of [shape] and [lower] [dims] are used. Arrays
 * of checkpoints are described by it too, but not kept.
 */
struct gsi_fortran_gradient {
    int64_t shape[GS_REDUCER_DIMS_MAX]; /* extents in Fortran's order */
    int64_t lower[GS_REDUCER_DIMS_MAX]; /* bounds of its pointer */
    void *address; /* as it was added; in gsi_fortran_point where it is now */
    int dims;
    int dtype; /* gs_dtype_t */
};

/*
 * Fills [gradient] but for [address]. [lower] NULL stands for bounds of 1. GS_ERR_ARG, for
 * gs_reducer_add, if [dims] is above GS_REDUCER_DIMS_MAX, an extent below 0 or [lowers] not
 * [dims].
 */
gs_status_t gsi_fortran_gradient_set (struct gsi_fortran_gradient *gradient, int dims,
                                      const int64_t *shape, int dtype, int lowers,
                                      const int64_t *lower);

/* GS_ERR_ARG, for gs_reducer_broadcast, if [params] are not as many as the [gradients]. */
gs_status_t gsi_fortran_params_check (int params, int gradients);

#endif /* GS_FORTRAN_GRADIENT_H */
