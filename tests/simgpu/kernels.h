/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels - launches for the tests of the simulated runtime; each returns cudaGetLastError. */
#ifndef GS_TESTS_SIMGPU_KERNELS_H
#define GS_TESTS_SIMGPU_KERNELS_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* x[i] = x[i] * factor + table.at[i % 4], as many as the table says. */
struct test_table {
    unsigned count;
    float at[4];
};
cudaError_t test_scale (float *x, double factor, struct test_table table, cudaStream_t stream);

/* The same with any shape, through cudaLaunchKernel as CUDA 12 calls it. */
cudaError_t test_scale_shaped (float *x, dim3 grid, dim3 block, size_t shared,
                               cudaStream_t stream);

/* A kernel without a twin. */
cudaError_t test_orphan (cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif /* GS_TESTS_SIMGPU_KERNELS_H */
