/* SPDX-License-Identifier: BSD-3-Clause */
/* sum - the sum of one shard of all ranks, in rank order, in float or double, rounded once. */
#include <math.h>

#include "cuda/element.cuh"
#include "cuda/kernels.h"

#define AT_ONCE 4 /* contributions whose loads are in flight together */

/* How the sum is made, the same for all elements. */
template <class A> struct recipe {
    const double *scale;
    size_t stride;
    int sources;
    bool multiply; /* by [divisor]: it is the exact inverse */
    A divisor;
};

/* N.B. in the order and with the roundings of gsi_host_reduce: nothing is added to the first. */
template <class T, class A, int V>
__device__ void add (A *sum, bool *empty, const word<T, V> &in, A scale)
{
    if (scale == 0)
        return;
#pragma unroll
    for (int v = 0; v < V; v++) {
        A x = load<A> (in.at[v]);
        if (scale != 1)
            x = x * scale;
        sum[v] = *empty ? x : sum[v] + x;
    }
    *empty = false;
}

template <class T, class A, int V>
__device__ void sum_word (T *dst, const T *src, const recipe<A> &r)
{
    A sum[V] = {};
    bool empty = true;
    word<T, V> out;

    for (int s = 0; s < r.sources; s += AT_ONCE) {
        word<T, V> in[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (s + k < r.sources)
                in[k] = *(const word<T, V> *) (src + (s + k) * r.stride);
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (s + k < r.sources)
                add<T, A, V> (sum, &empty, in[k], r.scale ? (A) r.scale[s + k] : (A) 1);
    }
#pragma unroll
    for (int v = 0; v < V; v++)
        store (out.at[v], r.multiply ? sum[v] * r.divisor : sum[v] / r.divisor);
    *(word<T, V> *) dst = out;
}

/* Threads take words of V elements, then single ones; V is 1 for arrays that are not aligned. */
template <class T, class A, int V>
__global__ void __launch_bounds__ (THREADS)
    sum (T *dst, const T *src, size_t count, const recipe<A> r)
{
    size_t i = (size_t) blockIdx.x * THREADS + threadIdx.x, words = count / V;

    if (i < words)
        sum_word<T, A, V> (dst + i * V, src + i * V, r);
    else if (i - words < count % V)
        sum_word<T, A, 1> (dst + words * V + (i - words), src + words * V + (i - words), r);
}

template <class T, class A, int V>
static cudaError_t launch (T *dst, const T *src, size_t count, const recipe<A> &r,
                           cudaStream_t stream)
{
    size_t threads = count / V + count % V;

    sum<T, A, V><<<(unsigned) ((threads + THREADS - 1) / THREADS), THREADS, 0, stream>>> (
        dst, src, count, r);
    return cudaGetLastError ();
}

template <class T, class A>
static cudaError_t sum_of (void *dst, const void *src, size_t count, const recipe<A> &r,
                           cudaStream_t stream)
{
    const int V = 16 / sizeof (T);
    bool aligned = !((uintptr_t) dst % 16 || (uintptr_t) src % 16 || r.stride % V);

    if (aligned)
        return launch<T, A, V> ((T *) dst, (const T *) src, count, r, stream);
    return launch<T, A, 1> ((T *) dst, (const T *) src, count, r, stream);
}

/* Division by a power of two is multiplication by its exact inverse, which is faster. */
template <class A>
static recipe<A> make_recipe (const struct gsi_reduction *how, size_t stride, int sources,
                              const double *scale)
{
    int exponent;
    bool exact = frexp (how->divisor, &exponent) == 0.5;

    return recipe<A>{scale, stride, sources, exact,
                     (A) (exact ? 1 / how->divisor : how->divisor)};
}

cudaError_t gsi_cuda_sum (const struct gsi_reduction *how, void *dst, const void *src,
                          size_t stride, int sources, size_t count, const double *scale,
                          cudaStream_t stream)
{
    size_t parts = gsi_part_of (how->dtype) == how->dtype ? 1 : 2;
    recipe<float> single = make_recipe<float> (how, stride * parts, sources, scale);
    recipe<double> wide = make_recipe<double> (how, stride * parts, sources, scale);

    count *= parts;
    if (!count)
        return cudaSuccess;
    switch (gsi_part_of (how->dtype)) {
    case GS_F16: return sum_of<f16> (dst, src, count, single, stream);
    case GS_BF16: return sum_of<bf16> (dst, src, count, single, stream);
    case GS_F32: return sum_of<float> (dst, src, count, single, stream);
    case GS_F64: return sum_of<double> (dst, src, count, wide, stream);
    default: return cudaErrorInvalidValue;
    }
}
