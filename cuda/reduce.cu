/* SPDX-License-Identifier: BSD-3-Clause */
/* reduce - one shard of all ranks combined in rank order: every type and operation of hosts. */
#include "cuda/reduce.cuh"

#include <type_traits>

#include "base/dtype.h"
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

template <class To, class T, class How, int V>
static cudaError_t launch_words (const request &r, const How &how)
{
    size_t threads = r.count / V + r.count % V;

    return launch_kernel (reduce<To, T, How, V>, (threads + THREADS - 1) / THREADS, THREADS,
                          r.stream, (To *) r.dst, (const T *) r.src, r.count, how);
}

template <class To, class T, class How>
static cudaError_t launch (const request &r, const How &how)
{
    const int V = 16 / sizeof (T);
    bool aligned = !((uintptr_t) r.dst % 16 || (uintptr_t) r.src % 16 || r.stride % V);

    if (aligned)
        return launch_words<To, T, How, V> (r, how);
    return launch_words<To, T, How, 1> (r, how);
}

/* Division by a power of two is multiplication by its exact inverse, which is faster. */
template <class To, class T, class A> static cudaError_t average (const request &r)
{
    int exponent;
    bool exact = frexp (r.how->divisor, &exponent) == 0.5;
    A divisor = (A) r.how->divisor;

    return launch<To, T> (
        r, averaging<T, A>{r.scale, r.stride, r.sources, exact, exact ? 1 / divisor : divisor});
}

template <class T> static cudaError_t combine (const request &r, bool is_signed = false)
{
    T flip = {};

    if (is_signed)
        memset ((char *) &flip + sizeof (T) - 1, 0x80, 1);
    return launch<T, T> (r, combining<T>{r.stride, r.sources, r.how->op, flip});
}

template <class R> static cudaError_t multiply (const request &r)
{
    return launch<complex_of<R>, complex_of<R>> (r,
                                                 multiplying<complex_of<R>>{r.stride, r.sources});
}

static cudaError_t average_floating (request r)
{
    size_t parts = gsi_part_of (r.how->dtype) == r.how->dtype ? 1 : 2;

    r.stride *= parts;
    r.count *= parts;
    return with_floating (gsi_part_of (r.how->dtype), [&] (auto x) {
        typedef decltype (x) T;
        typedef typename arithmetic<T, float>::type A;
        switch (r.how->sums) {
        case GSI_SUMS_OUT: return average<A, T, A> (r);
        case GSI_SUMS_IN: return average<T, A, A> (r);
        default: return average<T, T, A> (r);
        }
    });
}

static cudaError_t combine_any (const request &r)
{
    switch ((int) r.how->dtype) {
#define COMBINE(NAME, name, ...) GSI_CASE (NAME, combine<name> (r));
#define GSI_REDUCED              COMBINE
#define GSI_FLOATING             COMBINE
#define GSI_INTEGER(NAME, name, value, T, ...) \
    GSI_CASE (NAME, combine<std::make_unsigned_t<T>> (r, std::is_signed_v<T>));
#include "base/dtype.def"
    default: return cudaErrorInvalidValue;
    }
}

cudaError_t gsi_cuda_reduce (const struct gsi_reduction *how, void *dst, const void *src,
                             size_t stride, int sources, size_t count, const double *scale,
                             cudaStream_t stream)
{
    request r = {how, dst, src, stride, sources, count, scale, stream};
    bool integer = gsi_dtype_is_integer (how->dtype);

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
