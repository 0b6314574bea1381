/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch - a launch that tells how it went itself. After <<<>>> only cudaGetLastError does, which
 * also tells of an earlier error that the application has not read yet, and takes it away.
 */
#ifndef GS_CUDA_LAUNCH_CUH
#define GS_CUDA_LAUNCH_CUH

#include <cuda_runtime_api.h>

/* While it is set, this thread's launches load their kernels and do nothing else. */
extern "C" __thread bool gsi_cuda_loading;

/* Keeps a parameter's type from being deduced: that of the kernel counts. */
template <class T> struct exactly {
    typedef T type;
};

template <class... P>
cudaError_t launch_kernel (void (*kernel) (P...), size_t blocks, unsigned threads,
                           cudaStream_t stream, const typename exactly<P>::type &...arguments)
{
    void *list[] = {(void *) &arguments...};

    if (gsi_cuda_loading) {
        cudaFuncAttributes unused;
        return cudaFuncGetAttributes (&unused, (const void *) kernel);
    }
    return cudaLaunchKernel ((const void *) kernel, dim3 ((unsigned) blocks), dim3 (threads),
                             list, 0, stream);
}

#endif /* GS_CUDA_LAUNCH_CUH */
