/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * runs - how blocks share many arrays in one launch.
 *
 * The table of runs is a kernel argument: no memory to allocate, to copy or to keep, and right in
 * a captured graph. Each block works on one chunk of one run, found by bisection.
 */
#ifndef GS_CUDA_RUNS_CUH
#define GS_CUDA_RUNS_CUH

#include <cuda_runtime_api.h>
#include <stdint.h>

#include "cuda/element.cuh"
#include "device/runs.h"

/* Kernel arguments may have 4 KiB, or 32764 bytes from CUDA 12.1 on. */
#define FEW_RUNS 128
#if CUDART_VERSION >= 12010
#define MANY_RUNS 1024
#else
#define MANY_RUNS FEW_RUNS
#endif

template <int N> struct table {
    const void *src[N];
    void *dst[N];
    size_t count[N];   /* elements */
    unsigned begin[N]; /* number of the first block of a run */
    unsigned number;   /* of runs */
    unsigned first;    /* number of the first run in the caller's list */
};

/* N of a table's type, or of a reference to it. */
template <class T> struct most_runs;
template <int N> struct most_runs<const table<N> &> {
    static const int value = N;
};

/*
 * Elements of a word, 16 bytes of the type that is written, and of a block: a warp then writes
 * whole sectors with each store, while what it reads twice or in halves comes from its cache.
 */
template <class From, class To = From> struct shape {
    static const int width = 16 / sizeof (To);
    static const unsigned chunk = THREADS * UNROLL * width;
};

/* The run of this block. */
template <int N> __device__ unsigned run_of_block (const table<N> &t)
{
    unsigned low = 0, high = t.number;

    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (t.begin[middle] <= blockIdx.x)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/*
 * Fills [t] with runs from [runs] + [*next] on, and moves *next behind them. An element is
 * [parts] elements of the kernel, of which a block takes [chunk]. Returns the number of blocks.
 */
template <int N>
unsigned fill_table (table<N> *t, const struct gsi_run *runs, size_t number, size_t *next,
                     size_t parts, size_t chunk)
{
    const size_t most = 1u << 30;
    size_t blocks = 0;

    t->number = 0;
    t->first = (unsigned) *next;
    for (; *next < number && t->number < N; ++*next) {
        size_t count = runs[*next].count * parts, more = (count + chunk - 1) / chunk;
        if (blocks && blocks + more > most)
            break;
        t->src[t->number] = runs[*next].src;
        t->dst[t->number] = runs[*next].dst;
        t->count[t->number] = count;
        t->begin[t->number++] = (unsigned) blocks;
        blocks += more;
    }
    return (unsigned) blocks;
}

/* The caller's list. */
struct run_list {
    const struct gsi_run *runs;
    size_t number, parts; /* elements of the kernel in one of the caller's */
    unsigned base = 0;    /* number of the first one */
};

template <int N, class Launch>
cudaError_t launch_tables (const run_list &list, size_t chunk, Launch launch)
{
    table<N> t;

    for (size_t next = 0; next < list.number;) {
        unsigned blocks = fill_table (&t, list.runs, list.number, &next, list.parts, chunk);
        if (!blocks)
            continue;
        t.first += list.base;
        cudaError_t error = launch (t, blocks);
        if (error)
            return error;
    }
    return cudaSuccess;
}

/* Calls launch (table, blocks), which gives its status, until all runs of [list] had their turn.
 */
template <class Launch>
cudaError_t launch_runs (const run_list &list, size_t chunk, Launch launch)
{
    if (list.number <= FEW_RUNS)
        return launch_tables<FEW_RUNS> (list, chunk, launch);
    return launch_tables<MANY_RUNS> (list, chunk, launch);
}

#endif /* GS_CUDA_RUNS_CUH */
