/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * work - arithmetic on the arrays of a reducer: done at once on hosts, queued on its stream on
 * GPUs. Results for the tail of the step go where that has them.
 */
#ifndef GS_GRAD_WORK_H
#define GS_GRAD_WORK_H

#include "grad/reducer.h"

/* device/runs.h has what each does. */
gs_status_t gsi_work_convert (const gs_reducer_t *r, const struct gsi_conversion *how,
                              const struct gsi_run *runs, size_t number);
gs_status_t gsi_work_quantize (const gs_reducer_t *r, const struct gsi_conversion *how,
                               const struct gsi_run *run, void *residual);

gs_status_t gsi_work_zero (const gs_reducer_t *r, void *dst, size_t bytes);

/* Looks whether gradients are finite: those of [number] places from [place] on. */
gs_status_t gsi_work_find_bad (const gs_reducer_t *r, int place, int number);

/* Scales the gradient at [place] by [factor] or, on GPUs, by *there in device memory. */
gs_status_t gsi_work_scale (const gs_reducer_t *r, int place, double factor, const double *there);

/* Adds the squares of this rank's share of them, which is the same number on all ranks. */
gs_status_t gsi_work_squares (const gs_reducer_t *r, int place, int number);

#endif /* GS_GRAD_WORK_H */
