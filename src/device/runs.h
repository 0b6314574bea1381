/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * runs - what is done to many arrays in one go: conversion with scaling (the packing and
 * unpacking of buckets), a search for NaN and infinity, and digests. Every function exists for
 * hosts (host_runs.c) and for GPUs (cuda/), and gives the same bits on both, but for which NaN
 * stands for a NaN.
 */
#ifndef GS_DEVICE_RUNS_H
#define GS_DEVICE_RUNS_H

#include <stddef.h>
#include <stdint.h>

#include "gradsync.h"

/* [count] elements here and there; without elements the addresses may be NULL. They do not
 * overlap, unless src is dst and the types are of equal size. */
struct gsi_run {
    const void *src;
    void *dst;
    size_t count;
};

/*
 * dst[i] = scale * src[i], computed in double if either type is made of doubles, else in float,
 * and rounded once to nearest even. Complex types go to complex types. Integers are copied:
 * from == to and scale == 1.
 */
struct gsi_conversion {
    gs_dtype_t from, to;
    double scale;
};

void gsi_host_convert (const struct gsi_conversion *how, const struct gsi_run *runs,
                       size_t number);

/*
 * The same from a floating type to a narrower one, of src[i] + residual[i]; residual[i], of type
 * from, becomes what the rounding lost. It is 0 where the result is not finite.
 */
void gsi_host_quantize (const struct gsi_conversion *how, const struct gsi_run *run,
                        void *residual);

/* Sum of the squares of [count] elements of floating type [dtype], in double. */
double gsi_host_squares (gs_dtype_t dtype, const void *data, size_t count);

#define GSI_ALL_FINITE UINT32_MAX

/* Number of the first run whose src, of floating type [dtype], has a NaN or an infinity. */
uint32_t gsi_host_find_nonfinite (gs_dtype_t dtype, const struct gsi_run *runs, size_t number);

/*
 * Digest of bytes: the sum over all 8-byte words w[i], the last one filled up with zeros, of
 * mix (w[i] + (begin + i + 1) * golden), modulo 2^64. mix and golden are those of splitmix64 (G.
 * Steele, D. Lea, C. Flood, Fast splittable pseudorandom number generators, OOPSLA 2014). The
 * digests of pieces add up to that of the whole, if [begin] says where each piece begins. It
 * finds accidents, not forgeries.
 */
uint64_t gsi_host_digest (const void *data, size_t bytes, uint64_t begin);

#endif /* GS_DEVICE_RUNS_H */
