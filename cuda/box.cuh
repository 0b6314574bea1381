/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * box - the kernel that moves a box between an array and packed memory.
 *
 * A struct says what becomes of an element T of the array and its packed copy. What is only moved
 * is moved in words, the largest that all lengths and addresses are multiples of.
 */
#ifndef GS_CUDA_BOX_CUH
#define GS_CUDA_BOX_CUH

#include "cuda/element.cuh"

template <class T> struct taking {
    static __device__ void move (T &array, T &packed)
    {
        packed = array;
    }
};

template <class T> struct taking_away {
    static __device__ void move (T &array, T &packed)
    {
        packed = array;
        array = T ();
    }
};

template <class T> struct putting {
    static __device__ void move (T &array, T &packed)
    {
        array = packed;
    }
};

template <class T> struct adding {
    typedef typename arithmetic<T, T>::type A;
    static __device__ void move (T &array, T &packed)
    {
        store (array, load<A> (array) + load<A> (packed));
    }
};

/* A box from its first run on, in elements of a kernel. */
struct box_shape {
    size_t rows, run, row, plane;
    size_t chunks, items; /* pieces of a run, and of all of them, each of BOX_CHUNK (lanes) */
    unsigned lanes; /* threads that take a piece, a power of 2: no more than it has use for */
};

#define BOX_CHUNK(lanes) ((size_t) (lanes) *UNROLL)

/* Divisions are slow, so a thread divides once for a piece, or twice if runs are long. */
template <class T, class How>
__global__ void __launch_bounds__ (THREADS) box (T *array, T *packed, const box_shape s)
{
    size_t teams = THREADS / s.lanes, step = gridDim.x * teams;
    size_t item = blockIdx.x * teams + threadIdx.x / s.lanes;

    for (; item < s.items; item += step) {
        size_t line = s.chunks == 1 ? item : item / s.chunks, plane = line / s.rows;
        size_t begin = (item - line * s.chunks) * BOX_CHUNK (s.lanes);
        T *there = array + plane * s.plane + (line - plane * s.rows) * s.row + begin;
        T *here = packed + line * s.run + begin;
        size_t left = s.run - begin;
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            size_t i = (size_t) u * s.lanes + threadIdx.x % s.lanes;
            if (i < left)
                How::move (there[i], here[i]);
        }
    }
}

#endif /* GS_CUDA_BOX_CUH */
