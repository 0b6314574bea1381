/* SPDX-License-Identifier: BSD-3-Clause */
/* check_cuda.h - what programs of several ranks that call CUDA share; CHECK_CUDA (call): it must
 * succeed. */
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

/* The world, and its GPU, if it has one, the current one of this thread. */
static inline gs_comm_t *create_on_gpu (int *rank, int *size)
{
    gs_comm_t *comm = multi_create (NULL);

    *rank = gs_comm_rank (comm);
    *size = gs_comm_size (comm);
    if (gs_comm_device (comm) >= 0)
        CHECK_CUDA (cudaSetDevice (gs_comm_device (comm)));
    return comm;
}

#endif /* GS_TESTS_SIMGPU_CHECK_CUDA_H */
