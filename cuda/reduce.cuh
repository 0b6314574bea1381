/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reduce - the kernel that combines one shard of all ranks, in rank order, rounded once.
 *
 * A struct says how: what accumulates, how a contribution joins, how the result is stored. N.B.
 * in the order and with the roundings of gsi_host_reduce: nothing is combined with the first.
 */
#ifndef GS_CUDA_REDUCE_CUH
#define GS_CUDA_REDUCE_CUH

#include <math.h>

#include "cuda/element.cuh"

/* Sums of floating types, scaled and divided, in A, which is float or double. */
template <class T, class A> struct averaging {
    typedef A accumulator;
    static const int at_once = 4; /* contributions whose loads are in flight together */

    const double *scale; /* on the device; NULL: all 1 */
    size_t stride;       /* elements from one contribution to the next */
    int sources;
    bool multiply; /* by [divisor]: it is the exact inverse */
    A divisor;

    template <int V>
    __device__ void join (A *sum, bool *empty, const word<T, V> &in, int source) const
    {
        A factor = scale ? (A) scale[source] : (A) 1;

        if (factor == 0)
            return;
#pragma unroll
        for (int v = 0; v < V; v++) {
            A x = load<A> (in.at[v]);
            if (factor != 1)
                x = x * factor;
            sum[v] = *empty ? x : sum[v] + x;
        }
        *empty = false;
    }

    template <class To> __device__ void finish (To &out, A sum) const
    {
        store (out, multiply ? sum * divisor : sum / divisor);
    }
};

/* Integers of both kinds are combined as unsigned ones, which wrap. */
template <class T> struct operations {
    typedef T accumulator;
    static __device__ T sum (T a, T b)
    {
        return (T) (a + b);
    }
    static __device__ T product (T a, T b)
    {
        return (T) ((sizeof (T) < 4 ? 1u : (T) 1) * a * b); /* 16 bits would become an int */
    }
    static __device__ bool is_less (T a, T b, T flip)
    {
        return (T) (a ^ flip) < (T) (b ^ flip);
    }
    static __device__ bool is_nan (T)
    {
        return false;
    }
};

template <class A> struct floating_operations {
    typedef A accumulator;
    static __device__ A sum (A a, A b)
    {
        return a + b;
    }
    static __device__ A product (A a, A b)
    {
        return a * b;
    }
    template <class T> static __device__ bool is_less (A a, A b, T)
    {
        return a < b;
    }
    static __device__ bool is_nan (A a)
    {
        return a != a;
    }
};
#define GSI_REDUCED(NAME, name, ...)                                   \
    template <> struct operations<name> : floating_operations<float> { \
    };
#define GSI_FLOATING(NAME, name, ...)                                 \
    template <> struct operations<name> : floating_operations<name> { \
    };
#include "base/dtype.def"

/* Everything but sums of floating types and complex numbers. */
template <class T> struct combining {
    typedef operations<T> ops;
    typedef typename ops::accumulator accumulator;
    static const int at_once = 2;

    size_t stride;
    int sources;
    gs_op_t op;
    T flip; /* the sign bit of signed integers, which are compared as unsigned ones */

    template <gs_op_t OP> __device__ accumulator combined (accumulator a, accumulator b) const
    {
        if (OP == GS_PROD)
            return ops::product (a, b);
        if (OP == GS_MIN)
            return ops::is_less (a, b, flip) || ops::is_nan (a) ? a : b;
        if (OP == GS_MAX)
            return ops::is_less (b, a, flip) || ops::is_nan (a) ? a : b;
        return ops::sum (a, b);
    }

    template <gs_op_t OP, int V>
    __device__ void step (accumulator *acc, const word<T, V> &in) const
    {
#pragma unroll
        for (int v = 0; v < V; v++)
            acc[v] = combined<OP> (acc[v], load<accumulator> (in.at[v]));
    }

    template <int V>
    __device__ void join (accumulator *acc, bool *empty, const word<T, V> &in, int) const
    {
        if (*empty) {
#pragma unroll
            for (int v = 0; v < V; v++)
                acc[v] = load<accumulator> (in.at[v]);
            *empty = false;
            return;
        }
        switch (op) {
        case GS_PROD: step<GS_PROD> (acc, in); break;
        case GS_MIN: step<GS_MIN> (acc, in); break;
        case GS_MAX: step<GS_MAX> (acc, in); break;
        default: step<GS_SUM> (acc, in); break;
        }
    }

    __device__ void finish (T &out, accumulator acc) const
    {
        store (out, acc);
    }
};

template <class R> struct complex_of {
    R re, im;
};

template <class R> __device__ void drop_nan (complex_of<R> *z)
{
    z->re = isnan (z->re) ? copysign ((R) 0, z->re) : z->re;
    z->im = isnan (z->im) ? copysign ((R) 0, z->im) : z->im;
}

/* If z is infinite, it is drawn to the unit square, and NaN in w counts as 0. */
template <class R> __device__ bool draw_in (complex_of<R> *z, complex_of<R> *w)
{
    if (!isinf (z->re) && !isinf (z->im))
        return false;
    z->re = copysign ((R) (isinf (z->re) ? 1 : 0), z->re);
    z->im = copysign ((R) (isinf (z->im) ? 1 : 0), z->im);
    drop_nan (w);
    return true;
}

/* The product as C11 annex G.5.1 wants it: infinities prevail where the formula gives NaN. */
template <class R> __device__ complex_of<R> times (complex_of<R> z, complex_of<R> w)
{
    R ac = z.re * w.re, bd = z.im * w.im, ad = z.re * w.im, bc = z.im * w.re;
    complex_of<R> x = {ac - bd, ad + bc};

    if (!isnan (x.re) || !isnan (x.im))
        return x;
    bool again = draw_in (&z, &w);
    again = draw_in (&w, &z) || again;
    if (!again && (isinf (ac) || isinf (bd) || isinf (ad) || isinf (bc))) {
        drop_nan (&z);
        drop_nan (&w);
        again = true;
    }
    if (again) {
        x.re = (R) INFINITY * (z.re * w.re - z.im * w.im);
        x.im = (R) INFINITY * (z.re * w.im + z.im * w.re);
    }
    return x;
}

/* Products of complex numbers. */
template <class T> struct multiplying {
    typedef T accumulator;
    static const int at_once = 2;

    size_t stride;
    int sources;

    template <int V> __device__ void join (T *acc, bool *empty, const word<T, V> &in, int) const
    {
#pragma unroll
        for (int v = 0; v < V; v++)
            acc[v] = *empty ? in.at[v] : times (acc[v], in.at[v]);
        *empty = false;
    }

    __device__ void finish (T &out, T acc) const
    {
        out = acc;
    }
};

template <class To, class T, class How, int V>
__device__ void reduce_word (To *dst, const T *src, const How &how)
{
    const int K = How::at_once;
    typename How::accumulator acc[V] = {};
    bool empty = true;
    word<To, V> out;

    for (int s = 0; s < how.sources; s += K) {
        word<T, V> in[K];
#pragma unroll
        for (int k = 0; k < K; k++)
            if (s + k < how.sources)
                in[k] = *(const word<T, V> *) (src + (s + k) * how.stride);
#pragma unroll
        for (int k = 0; k < K; k++)
            if (s + k < how.sources)
                how.template join<V> (acc, &empty, in[k], s + k);
    }
#pragma unroll
    for (int v = 0; v < V; v++)
        how.finish (out.at[v], acc[v]);
    *(word<To, V> *) dst = out;
}

/* Threads take words of V elements, then single ones; V is 1 for arrays that are not aligned. */
template <class To, class T, class How, int V>
__global__ void __launch_bounds__ (THREADS)
    reduce (To *dst, const T *src, size_t count, const How how)
{
    size_t i = (size_t) blockIdx.x * THREADS + threadIdx.x, words = count / V;

    if (i < words)
        reduce_word<To, T, How, V> (dst + i * V, src + i * V, how);
    else if (i - words < count % V)
        reduce_word<To, T, How, 1> (dst + words * V + (i - words), src + words * V + (i - words),
                                    how);
}

#endif /* GS_CUDA_REDUCE_CUH */
