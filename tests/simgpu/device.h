/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device - as much of CUDA's device language as the kernels of cuda/ use, for a host compiler
 * that runs their threads one after the other. cuda_runtime_api.h defines __device__ and its like
 * away for such compilers.
 */
#ifndef GS_TESTS_SIMGPU_DEVICE_H
#define GS_TESTS_SIMGPU_DEVICE_H

#include <cuda_runtime_api.h>

#undef __launch_bounds__
#define __launch_bounds__(threads)

/* Streams run kernels at the same time, each on its own thread. */
#define SIM_PER_STREAM static thread_local __attribute__ ((tls_model ("initial-exec")))
SIM_PER_STREAM uint3 threadIdx, blockIdx;
SIM_PER_STREAM dim3 gridDim;

static inline void atomicMin (unsigned *p, unsigned value)
{
    unsigned old = __atomic_load_n (p, __ATOMIC_RELAXED);

    while (value < old && !__atomic_compare_exchange_n (p, &old, value, true, __ATOMIC_RELAXED,
                                                        __ATOMIC_RELAXED))
        ;
}

static inline void atomicAdd (unsigned long long *p, unsigned long long value)
{
    __atomic_fetch_add (p, value, __ATOMIC_RELAXED);
}

static inline void __threadfence_system (void)
{
    __atomic_thread_fence (__ATOMIC_SEQ_CST);
}

#endif /* GS_TESTS_SIMGPU_DEVICE_H */
