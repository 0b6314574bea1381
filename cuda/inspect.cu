/* SPDX-License-Identifier: BSD-3-Clause */
/* inspect - reads arrays and tells something about them: the first that is bad, a digest. */
#include "cuda/element.cuh"
#include "cuda/kernels.h"
#include "cuda/runs.cuh"

#define DIGEST_BLOCKS 1024 /* fill a GPU; each warp ends with one atomic addition */

template <class T> struct shape {
    static const int width = 16 / sizeof (T);
    static const unsigned chunk = THREADS * UNROLL * width;
};

template <class T> __device__ bool any_bad (const T *src, size_t count)
{
    const int V = shape<T>::width;
    bool bad = false;

    if (count == shape<T>::chunk && is_aligned<T, V> (src)) {
        word<T, V> loaded[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            loaded[u] = ((const word<T, V> *) src)[u * THREADS + threadIdx.x];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
#pragma unroll
            for (int v = 0; v < V; v++)
                bad |= is_bad (loaded[u].at[v]);
        return bad;
    }
    for (unsigned i = threadIdx.x; i < count; i += THREADS)
        bad |= is_bad (src[i]);
    return bad;
}

template <class T, int N>
__global__ void __launch_bounds__ (THREADS)
    first_bad (const __grid_constant__ table<N> t, unsigned *first)
{
    unsigned run = run_of_block (t);
    size_t base = (size_t) (blockIdx.x - t.begin[run]) * shape<T>::chunk;
    size_t left = t.count[run] - base;

    if (any_bad ((const T *) t.src[run] + base, left < shape<T>::chunk ? left : shape<T>::chunk))
        atomicMin (first, t.first + run);
}

template <class T, int N>
static cudaError_t launch (const struct gsi_run *runs, size_t number, size_t parts,
                           uint32_t *first, cudaStream_t stream)
{
    table<N> t;

    for (size_t next = 0; next < number;) {
        unsigned blocks = fill_table (&t, runs, number, &next, parts, shape<T>::chunk);
        if (!blocks)
            continue;
        first_bad<T, N><<<blocks, THREADS, 0, stream>>> (t, first);
        cudaError_t error = cudaGetLastError ();
        if (error)
            return error;
    }
    return cudaSuccess;
}

template <class T>
static cudaError_t search (const struct gsi_run *runs, size_t number, size_t parts,
                           uint32_t *first, cudaStream_t stream)
{
    if (number <= FEW_RUNS)
        return launch<T, FEW_RUNS> (runs, number, parts, first, stream);
    return launch<T, MANY_RUNS> (runs, number, parts, first, stream);
}

cudaError_t gsi_cuda_first_bad (gs_dtype_t dtype, const struct gsi_run *runs, size_t number,
                                uint32_t *first, cudaStream_t stream)
{
    size_t parts = gsi_part_of (dtype) == dtype ? 1 : 2;

    switch (gsi_part_of (dtype)) {
    case GS_F16: return search<f16> (runs, number, parts, first, stream);
    case GS_BF16: return search<bf16> (runs, number, parts, first, stream);
    case GS_F32: return search<float> (runs, number, parts, first, stream);
    case GS_F64: return search<double> (runs, number, parts, first, stream);
    default: return cudaErrorInvalidValue;
    }
}

/* Word [i]; bytes from [bytes] on count as 0. */
__device__ inline uint64_t word_at (const unsigned char *data, size_t bytes, size_t i)
{
    uint64_t w = 0;

    for (unsigned b = 0; b < 8 && i * 8 + b < bytes; b++)
        w |= (uint64_t) data[i * 8 + b] << (8 * b);
    return w;
}

__global__ void __launch_bounds__ (THREADS)
    digest (const unsigned char *data, size_t bytes, uint64_t begin, unsigned long long *sum)
{
    size_t step = (size_t) gridDim.x * THREADS, i = (size_t) blockIdx.x * THREADS + threadIdx.x;
    size_t whole = (uintptr_t) data % 8 ? 0 : bytes / 8, words = (bytes + 7) / 8;
    unsigned long long mine = 0;

#pragma unroll 4
    for (; i < whole; i += step)
        mine += gsi_digest_word (((const uint64_t *) data)[i], begin + i);
    for (; i < words; i += step)
        mine += gsi_digest_word (word_at (data, bytes, i), begin + i);
    for (int lane = 16; lane; lane /= 2)
        mine += __shfl_down_sync (0xffffffffu, mine, lane);
    if (threadIdx.x % 32 == 0)
        atomicAdd (sum, mine);
}

cudaError_t gsi_cuda_digest (const void *data, size_t bytes, uint64_t begin, uint64_t *sum,
                             cudaStream_t stream)
{
    size_t blocks = ((bytes + 7) / 8 + THREADS - 1) / THREADS;

    if (!bytes)
        return cudaSuccess;
    if (blocks > DIGEST_BLOCKS)
        blocks = DIGEST_BLOCKS;
    digest<<<(unsigned) blocks, THREADS, 0, stream>>> ((const unsigned char *) data, bytes, begin,
                                                       (unsigned long long *) sum);
    return cudaGetLastError ();
}
