/* SPDX-License-Identifier: BSD-3-Clause */
/* share - launches what one process does to memory that others on its GPU have, too. */
#include "cuda/share.cuh"

#include "cuda/kernels.h"
#include "cuda/launch.cuh"

#define MOVE_BLOCKS 256 /* keep the memory of a GPU busy, and few ask the host */
#define PUT_WORDS   1024

template <class T>
static cudaError_t launch_move (void *dst, const void *src, size_t bytes, const uint32_t *dead,
                                cudaStream_t stream)
{
    size_t count = bytes / sizeof (T), blocks = (count + THREADS - 1) / THREADS;

    if (!blocks)
        return cudaSuccess;
    return launch_kernel (move_alive<T>, blocks < MOVE_BLOCKS ? blocks : MOVE_BLOCKS, THREADS,
                          stream, (T *) dst, (const T *) src, count, dead);
}

cudaError_t gsi_cuda_move_alive (void *dst, const void *src, size_t bytes, const uint32_t *dead,
                                 cudaStream_t stream)
{
    typedef word<uint64_t, 2> wide;
    bool aligned = !((uintptr_t) dst % sizeof (wide) || (uintptr_t) src % sizeof (wide));
    size_t whole = aligned ? bytes / sizeof (wide) * sizeof (wide) : 0;
    cudaError_t error = launch_move<wide> (dst, src, whole, dead, stream);

    return error ? error
                 : launch_move<uint8_t> ((char *) dst + whole, (const char *) src + whole,
                                         bytes - whole, dead, stream);
}

cudaError_t gsi_cuda_set_flags_alive (uint32_t *first, size_t stride, int number, uint32_t value,
                                      const uint32_t *dead, cudaStream_t stream)
{
    if (number < 1 || number > PUT_WORDS)
        return number ? cudaErrorInvalidValue : cudaSuccess;
    return launch_kernel (set_flags_alive, 1, (unsigned) number, stream, first, stride, value,
                          dead);
}
