/* SPDX-License-Identifier: BSD-3-Clause */
/* gradient - the kernels that only gradients need: rounding with feedback, and norms. */
#ifndef GS_CUDA_GRADIENT_CUH
#define GS_CUDA_GRADIENT_CUH

#include <math.h>

#include "cuda/element.cuh"
#include "cuda/runs.cuh"
#include "device/device.h"

template <class From, class To>
__global__ void __launch_bounds__ (THREADS)
    quantize (const From *src, To *dst, From *residual, size_t count)
{
    size_t step = (size_t) gridDim.x * THREADS;

    for (size_t i = (size_t) blockIdx.x * THREADS + threadIdx.x; i < count; i += step) {
        From whole = src[i] + residual[i], lost;
        To sent;
        store (sent, whole);
        lost = whole - load<From> (sent);
        dst[i] = sent;
        residual[i] = is_bad (lost) ? (From) 0 : lost;
    }
}

#define SQUARES_BLOCKS 32
#define WARP           32
#define SQUARES_PARTS  (SQUARES_BLOCKS * THREADS / WARP)
static_assert (SQUARES_PARTS == GSI_SQUARES_PARTS, "there is room for them");

/* Fills parts[warp]: the order of the additions depends on [count] alone. */
template <class T>
__global__ void __launch_bounds__ (THREADS) squares (const T *data, size_t count, double *parts)
{
    size_t step = (size_t) gridDim.x * THREADS, at = (size_t) blockIdx.x * THREADS + threadIdx.x;
    double mine = 0;

    for (size_t i = at; i < count; i += step) {
        double x = (double) load<typename arithmetic<T, T>::type> (data[i]);
        mine += x * x;
    }
#ifdef __CUDACC__
    for (int lane = WARP / 2; lane; lane /= 2)
        mine += __shfl_down_sync (0xffffffffu, mine, lane);
    if (threadIdx.x % WARP == 0)
        parts[at / WARP] = mine;
#else
    /* Hosts have no warps; a block's threads come one after the other. */
    parts[at / WARP] = threadIdx.x % WARP ? parts[at / WARP] + mine : mine;
#endif
}

/* One thread. */
__global__ void add_squares (const double *parts, double *sum)
{
    double all = 0;

    for (int i = 0; i < SQUARES_PARTS; i++)
        all += parts[i];
    *sum += all;
}

/* One thread. NaN where the norm is no number: infinity would make the factor 0. */
__global__ void norm_factor (const char *squares, size_t stride, int ranks, double most,
                             double *factor)
{
    double sum = 0, norm;

    for (int r = 0; r < ranks; r++)
        sum += *(const double *) (squares + (size_t) r * stride);
    norm = sqrt (sum);
    *factor = norm <= most ? 1 : most / norm + (norm - norm);
}

#endif /* GS_CUDA_GRADIENT_CUH */
