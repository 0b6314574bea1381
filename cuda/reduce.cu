/* SPDX-License-Identifier: BSD-3-Clause */
/* reduce - one shard of all ranks combined in rank order: every type and operation of hosts. */
#include "cuda/reduce.cuh"

#include "cuda/kernels.h"
#include "cuda/launch.cuh"

struct request {
    const struct gsi_reduction *how;
    void *dst;
    const void *src;
    size_t stride;
    int sources;
    size_t count;
    const double *scale;
    cudaStream_t stream;
};

template <class T, class How, int V>
static cudaError_t launch_words (const request &r, const How &how)
{
    size_t threads = r.count / V + r.count % V;

    return launch_kernel (reduce<T, How, V>, (threads + THREADS - 1) / THREADS, THREADS, r.stream,
                          (T *) r.dst, (const T *) r.src, r.count, how);
}

template <class T, class How> static cudaError_t launch (const request &r, const How &how)
{
    const int V = 16 / sizeof (T);
    bool aligned = !((uintptr_t) r.dst % 16 || (uintptr_t) r.src % 16 || r.stride % V);

    if (aligned)
        return launch_words<T, How, V> (r, how);
    return launch_words<T, How, 1> (r, how);
}

/* Division by a power of two is multiplication by its exact inverse, which is faster. */
template <class T, class A> static cudaError_t average (const request &r)
{
    int exponent;
    bool exact = frexp (r.how->divisor, &exponent) == 0.5;
    A divisor = (A) r.how->divisor;

    return launch<T> (
        r, averaging<T, A>{r.scale, r.stride, r.sources, exact, exact ? 1 / divisor : divisor});
}

template <class T> static cudaError_t combine (const request &r, bool is_signed = false)
{
    T flip = {};

    if (is_signed)
        memset ((char *) &flip + sizeof (T) - 1, 0x80, 1);
    return launch<T> (r, combining<T>{r.stride, r.sources, r.how->op, flip});
}

template <class R> static cudaError_t multiply (const request &r)
{
    return launch<complex_of<R>> (r, multiplying<complex_of<R>>{r.stride, r.sources});
}

static cudaError_t average_floating (request r)
{
    size_t parts = gsi_part_of (r.how->dtype) == r.how->dtype ? 1 : 2;

    r.stride *= parts;
    r.count *= parts;
    switch (gsi_part_of (r.how->dtype)) {
    case GS_F16: return average<f16, float> (r);
    case GS_BF16: return average<bf16, float> (r);
    case GS_F32: return average<float, float> (r);
    case GS_F64: return average<double, double> (r);
    default: return cudaErrorInvalidValue;
    }
}

static cudaError_t combine_any (const request &r)
{
    switch (r.how->dtype) {
    case GS_F16: return combine<f16> (r);
    case GS_BF16: return combine<bf16> (r);
    case GS_F32: return combine<float> (r);
    case GS_F64: return combine<double> (r);
    case GS_I8: return combine<uint8_t> (r, true);
    case GS_I16: return combine<uint16_t> (r, true);
    case GS_I32: return combine<uint32_t> (r, true);
    case GS_I64: return combine<uint64_t> (r, true);
    case GS_U8: return combine<uint8_t> (r);
    case GS_U16: return combine<uint16_t> (r);
    case GS_U32: return combine<uint32_t> (r);
    case GS_U64: return combine<uint64_t> (r);
    default: return cudaErrorInvalidValue;
    }
}

cudaError_t gsi_cuda_reduce (const struct gsi_reduction *how, void *dst, const void *src,
                             size_t stride, int sources, size_t count, const double *scale,
                             cudaStream_t stream)
{
    request r = {how, dst, src, stride, sources, count, scale, stream};
    bool integer = how->dtype >= GS_I8 && how->dtype <= GS_U64;

    if (!count)
        return cudaSuccess;
    if (how->op == GS_SUM && !integer)
        return average_floating (r);
    if (scale || how->divisor != 1)
        return cudaErrorInvalidValue;
    if (gsi_part_of (how->dtype) == how->dtype)
        return combine_any (r);
    if (how->op != GS_PROD)
        return cudaErrorInvalidValue;
    return how->dtype == GS_C64 ? multiply<float> (r) : multiply<double> (r);
}
