/* SPDX-License-Identifier: BSD-3-Clause */
/* check_cuda.h - CHECK_CUDA (call): a call of CUDA by a program of several ranks must succeed. */
#ifndef GS_TESTS_SIMGPU_CHECK_CUDA_H
#define GS_TESTS_SIMGPU_CHECK_CUDA_H

#include <cuda_runtime_api.h>

#include "multi/multi.h"

#define CHECK_CUDA(call) check_cuda (__FILE__, __LINE__, #call, call)

static inline void check_cuda (const char *file, int line, const char *call, cudaError_t error)
{
    if (error)
        multi_failed (file, line, "%s: %s", call, cudaGetErrorString (error));
}

#endif /* GS_TESTS_SIMGPU_CHECK_CUDA_H */
