/* SPDX-License-Identifier: BSD-3-Clause */
/* inspect - the kernels that read arrays and tell something about them. */
#ifndef GS_CUDA_INSPECT_CUH
#define GS_CUDA_INSPECT_CUH

#include "cuda/element.cuh"
#include "cuda/runs.cuh"

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
__device__ void find_nonfinite_block (const table<N> &t, unsigned *first)
{
    unsigned run = run_of_block (t);
    size_t base = (size_t) (blockIdx.x - t.begin[run]) * shape<T>::chunk;
    size_t left = t.count[run] - base;

    if (any_bad ((const T *) t.src[run] + base, left < shape<T>::chunk ? left : shape<T>::chunk))
        atomicMin (first, t.first + run);
}

template <class T, int N>
__global__ void __launch_bounds__ (THREADS)
    find_nonfinite (const __grid_constant__ table<N> t, unsigned *first)
{
    find_nonfinite_block<T> (t, first);
}

/* Word [i]; bytes from [bytes] on count as 0. */
__device__ inline uint64_t word_at (const unsigned char *data, size_t bytes, size_t i)
{
    uint64_t w = 0;

    for (unsigned b = 0; b < 8 && i * 8 + b < bytes; b++)
        w |= (uint64_t) data[i * 8 + b] << (8 * b);
    return w;
}

/* Adds every thread's part to [sum], with one atomic addition per warp; hosts have no warps. */
__device__ inline void add_parts (unsigned long long *sum, unsigned long long part)
{
#ifdef __CUDACC__
    for (int lane = 16; lane; lane /= 2)
        part += __shfl_down_sync (0xffffffffu, part, lane);
    if (threadIdx.x % 32)
        return;
#endif
    atomicAdd (sum, part);
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
    add_parts (sum, mine);
}

#endif /* GS_CUDA_INSPECT_CUH */
