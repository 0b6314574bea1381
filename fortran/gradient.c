/* SPDX-License-Identifier: BSD-3-Clause */
/* gradient - shapes and bounds of a reducer's gradients, checked as they come from Fortran. */
#include "fortran/gradient.h"

#include <inttypes.h>

#include "base/status.h"

gs_status_t gsi_fortran_gradient_set (struct gsi_fortran_gradient *gradient, int dims,
                                      const int64_t *shape, int dtype, int lowers,
                                      const int64_t *lower)
{
    if (dims > GS_REDUCER_DIMS_MAX)
        return gsi_fail (GS_ERR_ARG, "gs_reducer_add: shape has %d extents: give up to %d", dims,
                         GS_REDUCER_DIMS_MAX);
    if (lower && lowers != dims)
        return gsi_fail (GS_ERR_ARG,
                         "gs_reducer_add: lower is of size %d, but the gradient of rank %d: give "
                         "a bound for each dimension",
                         lowers, dims);
    gradient->dims = dims;
    gradient->dtype = dtype;
    for (int i = 0; i < dims; i++) {
        if (shape[i] < 0)
            return gsi_fail (GS_ERR_ARG,
                             "gs_reducer_add: shape(%d) is %" PRId64 ": give 0 or more", i + 1,
                             shape[i]);
        gradient->shape[i] = shape[i];
        gradient->lower[i] = lower ? lower[i] : 1;
    }
    return GS_OK;
}

gs_status_t gsi_fortran_params_check (int params, int gradients)
{
    if (params == gradients)
        return GS_OK;
    return gsi_fail (GS_ERR_ARG,
                     "gs_reducer_broadcast: params has %d addresses, but there are %d gradients: "
                     "give one for each, c_null_ptr to leave it out",
                     params, gradients);
}
