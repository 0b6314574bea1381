/* SPDX-License-Identifier: BSD-3-Clause */
/* gradient - what only gradients need: rounding with feedback, and norms. */
#include "cuda/gradient.cuh"

#include "cuda/kernels.h"
#include "cuda/launch.cuh"

#define QUANTIZE_BLOCKS 2048 /* fill a GPU */

template <class From, class To>
static cudaError_t launch_quantize (const struct gsi_run *run, void *residual,
                                    cudaStream_t stream)
{
    size_t blocks = (run->count + THREADS - 1) / THREADS;

    if (!blocks)
        return cudaSuccess;
    if (blocks > QUANTIZE_BLOCKS)
        blocks = QUANTIZE_BLOCKS;
    return launch_kernel (quantize<From, To>, blocks, THREADS, stream, (const From *) run->src,
                          (To *) run->dst, (From *) residual, run->count);
}

cudaError_t gsi_cuda_quantize (const struct gsi_conversion *how, const struct gsi_run *run,
                               void *residual, cudaStream_t stream)
{
    switch ((int) how->to) {
#define GSI_REDUCED(NAME, name, ...)                                                            \
    GSI_CASE (NAME, how->from == GS_F64 ? launch_quantize<double, name> (run, residual, stream) \
                                        : launch_quantize<float, name> (run, residual, stream));
#include "base/dtype.def"
    default: return cudaErrorInvalidValue;
    }
}

template <class T>
static cudaError_t launch_squares (const void *data, size_t count, double *parts, double *sum,
                                   cudaStream_t stream)
{
    cudaError_t error = launch_kernel (squares<T>, SQUARES_BLOCKS, THREADS, stream,
                                       (const T *) data, count, parts);

    return error ? error : launch_kernel (add_squares, 1, 1, stream, parts, sum);
}

cudaError_t gsi_cuda_squares (gs_dtype_t dtype, const void *data, size_t count, double *parts,
                              double *sum, cudaStream_t stream)
{
    if (gsi_part_of (dtype) != dtype)
        count *= 2;
    return with_floating (gsi_part_of (dtype), [&] (auto x) {
        return launch_squares<decltype (x)> (data, count, parts, sum, stream);
    });
}

cudaError_t gsi_cuda_norm_factor (const double *squares, size_t stride, int ranks, double most,
                                  double *factor, cudaStream_t stream)
{
    return launch_kernel (norm_factor, 1, 1, stream, (const char *) squares, stride, ranks, most,
                          factor);
}
