/* SPDX-License-Identifier: BSD-3-Clause */
/* element - element types as C++ types, and their movement in words of 16 bytes. */
#ifndef GS_CUDA_ELEMENT_CUH
#define GS_CUDA_ELEMENT_CUH

#include <stdint.h>

#include "device/element.h"

#define THREADS 256 /* of a block */
#define UNROLL  4   /* independent words of a thread, so that enough loads are in flight */

#define GSI_REDUCED(NAME, name, value, storage, ...) \
    struct name {                                    \
        storage bits;                                \
    };
#include "base/dtype.def"
typedef float f32;
typedef double f64;

/* Arithmetic is in float, or in double where doubles take part. */
template <class From, class To> struct arithmetic {
    typedef float type;
};
template <class To> struct arithmetic<double, To> {
    typedef double type;
};
template <class From> struct arithmetic<From, double> {
    typedef double type;
};
template <> struct arithmetic<double, double> {
    typedef double type;
};

/* Those of a reduced type; a store rounds once, to nearest even. */
#define GSI_REDUCED(NAME, name, ...)                 \
    template <class A> __device__ A load (name x)    \
    {                                                \
        return gsi_float_of_##name (x.bits);         \
    }                                                \
    __device__ inline void store (name &x, float a)  \
    {                                                \
        x.bits = gsi_##name##_of_float (a);          \
    }                                                \
    __device__ inline void store (name &x, double a) \
    {                                                \
        x.bits = gsi_##name##_of_double (a);         \
    }                                                \
    __device__ inline bool is_bad (name x)           \
    {                                                \
        return gsi_bad_##name (x.bits);              \
    }
#include "base/dtype.def"

template <class A> __device__ A load (float x)
{
    return x;
}
template <class A> __device__ A load (double x)
{
    return x;
}
template <class A> __device__ A load (A x)
{
    return x;
}

__device__ inline void store (float &x, float a)
{
    x = a;
}
__device__ inline void store (float &x, double a)
{
    x = (float) a;
}
__device__ inline void store (double &x, double a)
{
    x = a;
}
template <class T> __device__ void store (T &x, T a)
{
    x = a;
}

__device__ inline bool is_bad (float x)
{
    return gsi_bad_f32 (x);
}
__device__ inline bool is_bad (double x)
{
    return gsi_bad_f64 (x);
}

/* [f] of an element of [dtype], for its type. */
template <class F> cudaError_t with_floating (gs_dtype_t dtype, const F &f)
{
    switch ((int) dtype) {
#define CALL(NAME, name, ...) GSI_CASE (NAME, f (name ()));
#define GSI_REDUCED           CALL
#define GSI_FLOATING          CALL
#include "base/dtype.def"
    default: return cudaErrorInvalidValue;
    }
}

/* V elements that are moved together; one alone is where any T may be. */
template <class T, int V>
struct alignas (V == 1                ? alignof (T)
                : sizeof (T) * V < 16 ? sizeof (T) * V
                                      : 16) word {
    T at[V];
};

template <class T, int V> __device__ bool is_aligned (const T *p)
{
    return (uintptr_t) p % alignof (word<T, V>) == 0;
}

#endif /* GS_CUDA_ELEMENT_CUH */
