/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels - launches for the tests of the simulated runtime. */
#include "tests/simgpu/kernels.h"

extern "C" __global__ void scale (float *x, double factor, struct test_table table)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < table.count;
         i += gridDim.x * blockDim.x)
        x[i] = (float) (x[i] * factor) + table.at[i % 4];
}

extern "C" __global__ void orphan (void)
{
}

cudaError_t test_scale (float *x, double factor, struct test_table table, cudaStream_t stream)
{
    scale<<<2, 32, 0, stream>>> (x, factor, table);
    return cudaGetLastError ();
}

cudaError_t test_scale_shaped (float *x, dim3 grid, dim3 block, size_t shared,
                               cudaStream_t stream)
{
    struct test_table table = {4, {1, 2, 3, 4}};
    double factor = 2;
    void *arguments[] = {&x, &factor, &table};

    return cudaLaunchKernel ((const void *) scale, grid, block, arguments, shared, stream);
}

cudaError_t test_orphan (cudaStream_t stream)
{
    orphan<<<1, 1, 0, stream>>> ();
    return cudaGetLastError ();
}
