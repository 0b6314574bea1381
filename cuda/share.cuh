/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * share - kernels between processes that share a GPU. They do nothing once their own process has
 * given up: what it then lets go on in its streams must not reach the others.
 */
#ifndef GS_CUDA_SHARE_CUH
#define GS_CUDA_SHARE_CUH

#include <stddef.h>

#include "cuda/element.cuh"
#include "device/flags.h"

/* [dead] is in memory of the host, so each thread looks once. */
template <class T>
__global__ void __launch_bounds__ (THREADS)
    move_alive (T *dst, const T *src, size_t count, const uint32_t *dead)
{
    size_t step = (size_t) gridDim.x * THREADS;

    if (*(const volatile uint32_t *) dead)
        return;
    for (size_t i = (size_t) blockIdx.x * THREADS + threadIdx.x; i < count; i += step)
        dst[i] = src[i];
}

/*
 * One thread for each flag. [kept]: of a 1 whether the process has given up, of a 0 whether it
 * has released what its streams wait for. That may happen between the look and the store: a 0
 * that comes behind it would take it back, so who stores one looks again, and releases the flag
 * itself.
 */
__global__ void set_flags_alive (uint32_t *first, size_t stride, uint32_t value,
                                 const uint32_t *kept)
{
    volatile uint32_t *flag = first + threadIdx.x * stride;

    if (*(const volatile uint32_t *) kept)
        return;
    __threadfence_system ();
    *flag = value;
    if (value)
        return;
    __threadfence_system ();
    if (*(const volatile uint32_t *) kept)
        *flag = GSI_FLAG_RELEASED;
}

#endif /* GS_CUDA_SHARE_CUH */
