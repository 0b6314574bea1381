/* SPDX-License-Identifier: BSD-3-Clause */
/* convert - many arrays converted and scaled in one launch: pack, unpack and scale. */
#include "cuda/element.cuh"
#include "cuda/kernels.h"
#include "cuda/runs.cuh"

/*
 * Elements of a word, 16 bytes of the type that is written, and of a block: a warp then writes
 * whole sectors with each store, while what it reads twice or in halves comes from its cache.
 */
template <class From, class To> struct shape {
    static const int width = 16 / sizeof (To);
    static const unsigned chunk = THREADS * UNROLL * width;
};

template <class From, class To, class A> struct scaling {
    typedef A factor_t;
    static __device__ void apply (To &out, From in, A factor)
    {
        store (out, load<A> (in) * factor);
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
__global__ void __launch_bounds__ (THREADS)
    convert (const __grid_constant__ table<N> t, typename Op::factor_t factor)
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
cudaError_t launch (const struct gsi_run *runs, size_t number, size_t parts,
                    typename Op::factor_t factor, cudaStream_t stream)
{
    table<N> t;

    for (size_t next = 0; next < number;) {
        unsigned blocks = fill_table (&t, runs, number, &next, parts, shape<From, To>::chunk);
        if (!blocks)
            continue;
        convert<From, To, Op, N><<<blocks, THREADS, 0, stream>>> (t, factor);
        cudaError_t error = cudaGetLastError ();
        if (error)
            return error;
    }
    return cudaSuccess;
}

template <class From, class To, class Op>
cudaError_t launch_any (const struct gsi_run *runs, size_t number, size_t parts,
                        typename Op::factor_t factor, cudaStream_t stream)
{
    if (number <= FEW_RUNS)
        return launch<From, To, Op, FEW_RUNS> (runs, number, parts, factor, stream);
    return launch<From, To, Op, MANY_RUNS> (runs, number, parts, factor, stream);
}

struct request {
    const struct gsi_run *runs;
    size_t number, parts;
    double scale;
    cudaStream_t stream;
};

template <class From, class To> static cudaError_t scaled (const request &r)
{
    typedef typename arithmetic<From, To>::type A;

    return launch_any<From, To, scaling<From, To, A>> (r.runs, r.number, r.parts, (A) r.scale,
                                                       r.stream);
}

template <class T> static cudaError_t copied (const request &r)
{
    return launch_any<T, T, copying<T>> (r.runs, r.number, r.parts, 0, r.stream);
}

template <class From> static cudaError_t scaled_to (gs_dtype_t to, const request &r)
{
    switch (to) {
    case GS_F16: return scaled<From, f16> (r);
    case GS_BF16: return scaled<From, bf16> (r);
    case GS_F32: return scaled<From, float> (r);
    case GS_F64: return scaled<From, double> (r);
    default: return cudaErrorInvalidValue;
    }
}

static cudaError_t copied_as (size_t bytes, const request &r)
{
    switch (bytes) {
    case 1: return copied<uint8_t> (r);
    case 2: return copied<uint16_t> (r);
    case 4: return copied<uint32_t> (r);
    case 8: return copied<uint64_t> (r);
    default: return cudaErrorInvalidValue;
    }
}

cudaError_t gsi_cuda_convert (const struct gsi_conversion *how, const struct gsi_run *runs,
                              size_t number, cudaStream_t stream)
{
    gs_dtype_t from = gsi_part_of (how->from), to = gsi_part_of (how->to);
    request r = {runs, number, from == how->from ? 1u : 2u, how->scale, stream};

    if (from == to && how->scale == 1)
        return copied_as (gs_dtype_size (from), r);
    switch (from) {
    case GS_F16: return scaled_to<f16> (to, r);
    case GS_BF16: return scaled_to<bf16> (to, r);
    case GS_F32: return scaled_to<float> (to, r);
    case GS_F64: return scaled_to<double> (to, r);
    default: return cudaErrorInvalidValue;
    }
}
