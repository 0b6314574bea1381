/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load - loads all kernels: every function of kernels.h is called with every type and shape that
 * it tells apart, while launches only ask for the kernel.
 */
#include <stdbool.h>

#include "cuda/kernels.h"

#define MANY_RUNS_TOO 129 /* more than the smaller table of runs.cuh holds */

extern _Thread_local bool gsi_cuda_loading; /* launch.cuh */

#define GSI_REDUCED(NAME, ...) GS_##NAME,
static const gs_dtype_t reduced[] = {
#include "base/dtype.def"
};

#define GSI_REDUCED(NAME, ...)  GS_##NAME,
#define GSI_FLOATING(NAME, ...) GS_##NAME,
static const gs_dtype_t floating[] = {
#include "base/dtype.def"
};

#define REDUCED  (sizeof (reduced) / sizeof (reduced[0]))
#define FLOATING (sizeof (floating) / sizeof (floating[0]))

static cudaError_t load_conversion (gs_dtype_t from, gs_dtype_t to, double scale)
{
    struct gsi_conversion how = {.from = from, .to = to, .scale = scale};
    static const struct gsi_run runs[MANY_RUNS_TOO] = {{.count = 1}};
    cudaError_t error = gsi_cuda_convert (&how, runs, 1, NULL);

    return error ? error : gsi_cuda_convert (&how, runs, MANY_RUNS_TOO, NULL);
}

static cudaError_t load_reduction (gs_dtype_t dtype, gs_op_t op, enum gsi_sums sums)
{
    static char aligned[16] __attribute__ ((aligned (16)));
    struct gsi_reduction how = {.dtype = dtype, .op = op, .divisor = 1, .sums = sums};
    cudaError_t error = gsi_cuda_reduce (&how, aligned, aligned, 16, 1, 1, NULL, NULL);

    return error ? error : gsi_cuda_reduce (&how, aligned + 1, aligned, 16, 1, 1, NULL, NULL);
}

static cudaError_t load_floating (gs_dtype_t type)
{
    static const struct gsi_run run = {.count = 1}, runs[MANY_RUNS_TOO] = {{.count = 1}};
    struct gsi_conversion rounding = {.from = type, .scale = 1};
    struct gsi_box box = {.planes = 1, .rows = 1, .run = 1};
    cudaError_t error = gsi_cuda_squares (type, NULL, 1, NULL, NULL, NULL);

    for (size_t i = 0; i < FLOATING && !error; i++)
        error = load_conversion (type, floating[i], 2);
    for (size_t i = 0; i < REDUCED && !error && gs_dtype_size (type) > 2; i++) {
        rounding.to = reduced[i];
        error = gsi_cuda_quantize (&rounding, &run, NULL, NULL);
    }
    if (!error)
        error = gsi_cuda_find_nonfinite (type, &run, 1, 0, NULL, NULL);
    if (!error)
        error = gsi_cuda_find_nonfinite (type, runs, MANY_RUNS_TOO, 0, NULL, NULL);
    if (!error)
        error = gsi_cuda_box (GSI_BOX_ADD, type, &box, NULL, NULL, NULL);
    for (int sums = GSI_SUMS_NONE; sums <= GSI_SUMS_IN && !error; sums++)
        error = load_reduction (type, GS_SUM, (enum gsi_sums) sums);
    return error ? error : load_reduction (type, GS_MAX, GSI_SUMS_NONE);
}

/* What moves bytes: words of each size, which the beginning of the box decides. */
static cudaError_t load_moves (void)
{
    static const enum gsi_box_way ways[] = {GSI_BOX_TAKE, GSI_BOX_TAKE_AWAY, GSI_BOX_PUT};
    cudaError_t error = cudaSuccess;

    for (size_t w = 0; w < sizeof (ways) / sizeof (ways[0]); w++)
        for (size_t bytes = 1; bytes <= 16 && !error; bytes *= 2) {
            struct gsi_box box = {.planes = 1, .rows = 1, .run = bytes};
            error = gsi_cuda_box (ways[w], GS_U8, &box, NULL, NULL, NULL);
        }
    return error;
}

static cudaError_t load_all (void)
{
    cudaError_t error = load_moves ();

    for (size_t i = 0; i < FLOATING && !error; i++)
        error = load_floating (floating[i]);
    for (int type = GS_I8; type <= GS_U64 && !error; type++) {
        error = load_conversion ((gs_dtype_t) type, (gs_dtype_t) type, 1);
        if (!error)
            error = load_reduction ((gs_dtype_t) type, GS_MAX, GSI_SUMS_NONE);
    }
    for (int type = GS_C64; type <= GS_C128 && !error; type++)
        error = load_reduction ((gs_dtype_t) type, GS_PROD, GSI_SUMS_NONE);
    if (!error)
        error = gsi_cuda_digest (NULL, 1, 0, NULL, NULL);
    if (!error)
        error = gsi_cuda_move_alive (NULL, NULL, 17, NULL, NULL);
    if (!error)
        error = gsi_cuda_set_flags_alive (NULL, 0, 1, 0, NULL, NULL);
    return error ? error : gsi_cuda_norm_factor (NULL, 0, 1, 1, NULL, NULL);
}

cudaError_t gsi_cuda_load_kernels (void)
{
    cudaError_t error;

    gsi_cuda_loading = true;
    error = load_all ();
    gsi_cuda_loading = false;
    return error;
}
