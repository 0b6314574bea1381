/* SPDX-License-Identifier: BSD-3-Clause */
/* inspect - reads arrays and tells something about them: the first that is bad, a digest. */
#include "cuda/inspect.cuh"

#include "cuda/kernels.h"
#include "cuda/launch.cuh"

#define DIGEST_BLOCKS 1024 /* fill a GPU; each warp ends with one atomic addition */

template <class T>
static cudaError_t search (const run_list &list, uint32_t *first, cudaStream_t stream)
{
    return launch_runs (list, shape<T>::chunk, [=] (const auto &t, unsigned blocks) {
        return launch_kernel (find_nonfinite<T, most_runs<decltype (t)>::value>, blocks, THREADS,
                              stream, t, first);
    });
}

cudaError_t gsi_cuda_find_nonfinite (gs_dtype_t dtype, const struct gsi_run *runs, size_t number,
                                     uint32_t base, uint32_t *first, cudaStream_t stream)
{
    run_list list = {runs, number, gsi_part_of (dtype) == dtype ? 1u : 2u, base};

    return with_floating (gsi_part_of (dtype),
                          [&] (auto x) { return search<decltype (x)> (list, first, stream); });
}

cudaError_t gsi_cuda_digest (const void *data, size_t bytes, uint64_t begin, uint64_t *sum,
                             cudaStream_t stream)
{
    size_t blocks = ((bytes + 7) / 8 + THREADS - 1) / THREADS;

    if (!bytes)
        return cudaSuccess;
    if (blocks > DIGEST_BLOCKS)
        blocks = DIGEST_BLOCKS;
    return launch_kernel (digest, blocks, THREADS, stream, (const unsigned char *) data, bytes,
                          begin, (unsigned long long *) sum);
}
