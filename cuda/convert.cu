/* SPDX-License-Identifier: BSD-3-Clause */
/* convert - many arrays converted and scaled in one launch: pack, unpack and scale. */
#include "cuda/convert.cuh"

#include "cuda/kernels.h"
#include "cuda/launch.cuh"

__thread bool gsi_cuda_loading;

struct request {
    run_list list;
    double scale;
    cudaStream_t stream;
};

template <class From, class To, class Op>
static cudaError_t launch (const request &r, typename Op::factor_t factor)
{
    cudaStream_t stream = r.stream;

    return launch_runs (r.list, shape<From, To>::chunk, [=] (const auto &t, unsigned blocks) {
        return launch_kernel (convert<From, To, Op, most_runs<decltype (t)>::value>, blocks,
                              THREADS, stream, t, factor);
    });
}

template <class From, class To> static cudaError_t scaled (const request &r)
{
    typedef scaling<From, To> op;

    return launch<From, To, op> (r, (typename op::factor_t) r.scale);
}

template <class T> static cudaError_t copied (const request &r)
{
    return launch<T, T, copying<T>> (r, 0);
}

template <class From> static cudaError_t scaled_to (gs_dtype_t to, const request &r)
{
    return with_floating (to, [&] (auto x) { return scaled<From, decltype (x)> (r); });
}

static cudaError_t copied_as (size_t bytes, const request &r)
{
    switch (bytes) {
    case 1: return copied<uint8_t> (r);
    case 2: return copied<uint16_t> (r);
    case 4: return copied<uint32_t> (r);
    case 8: return copied<uint64_t> (r);
    default: return cudaErrorInvalidValue;
    }
}

cudaError_t gsi_cuda_convert (const struct gsi_conversion *how, const struct gsi_run *runs,
                              size_t number, cudaStream_t stream)
{
    gs_dtype_t from = gsi_part_of (how->from), to = gsi_part_of (how->to);
    request r = {{runs, number, from == how->from ? 1u : 2u}, how->scale, stream};

    if (from == to && how->scale == 1)
        return copied_as (gs_dtype_size (from), r);
    return with_floating (from, [&] (auto x) { return scaled_to<decltype (x)> (to, r); });
}
