/* SPDX-License-Identifier: BSD-3-Clause */
/* convert - the kernels that convert and scale many arrays in one launch. */
#ifndef GS_CUDA_CONVERT_CUH
#define GS_CUDA_CONVERT_CUH

#include "cuda/element.cuh"
#include "cuda/runs.cuh"

template <class From, class To> struct scaling {
    typedef typename arithmetic<From, To>::type factor_t;
    static __device__ void apply (To &out, From in, factor_t factor)
    {
        store (out, load<factor_t> (in) * factor);
    }
};

template <class T> struct copying {
    typedef char factor_t;
    static __device__ void apply (T &out, T in, char)
    {
        out = in;
    }
};

/* A whole chunk of aligned arrays: all loads first. */
template <class From, class To, class Op>
__device__ void convert_chunk (const From *src, To *dst, typename Op::factor_t factor)
{
    const int V = shape<From, To>::width;
    const word<From, V> *in = (const word<From, V> *) src + threadIdx.x;
    word<To, V> *out = (word<To, V> *) dst + threadIdx.x;
    word<From, V> loaded[UNROLL];

#pragma unroll
    for (int u = 0; u < UNROLL; u++)
        loaded[u] = in[u * THREADS];
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        word<To, V> made;
#pragma unroll
        for (int v = 0; v < V; v++)
            Op::apply (made.at[v], loaded[u].at[v], factor);
        out[u * THREADS] = made;
    }
}

template <class From, class To, class Op, int N>
__device__ void convert_block (const table<N> &t, typename Op::factor_t factor)
{
    const unsigned chunk = shape<From, To>::chunk;
    const int V = shape<From, To>::width;
    unsigned run = run_of_block (t);
    size_t base = (size_t) (blockIdx.x - t.begin[run]) * chunk;
    size_t left = t.count[run] - base;
    const From *src = (const From *) t.src[run] + base;
    To *dst = (To *) t.dst[run] + base;

    if (left >= chunk && is_aligned<From, V> (src) && is_aligned<To, V> (dst)) {
        convert_chunk<From, To, Op> (src, dst, factor);
        return;
    }
    if (left > chunk)
        left = chunk;
#pragma unroll 8
    for (unsigned i = threadIdx.x; i < left; i += THREADS)
        Op::apply (dst[i], src[i], factor);
}

template <class From, class To, class Op, int N>
__global__ void __launch_bounds__ (THREADS)
    convert (const __grid_constant__ table<N> t, typename Op::factor_t factor)
{
    convert_block<From, To, Op> (t, factor);
}

#endif /* GS_CUDA_CONVERT_CUH */
