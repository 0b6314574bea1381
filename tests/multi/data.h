/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data.h - numbers that every rank can make for every other one, and references in long double.
 *
 * Element i of rank r depends on the seed, r and i alone, so a rank checks what it received
 * without any communication.
 */
#ifndef GS_TESTS_DATA_H
#define GS_TESTS_DATA_H

#include "../wide.h"
#include "multi.h"

static const char *const data_names[] = {"",    "f16", "bf16", "f32",     "f64",    "i8",
                                         "i16", "i32", "i64",  "u8",      "u16",    "u32",
                                         "u64", "c64", "c128", "f8_e4m3", "f8_e5m2"};

/* Whether NCCL sums f16 and bf16, rounding at every step (see GS_AVG); data_learn finds out. */
extern bool data_fast;
void data_learn (const gs_comm_t *comm);

/* 64 random bits (splitmix64). */
static inline uint64_t data_bits (uint64_t seed, int rank, size_t i)
{
    uint64_t x = seed * UINT64_C (0x9e3779b97f4a7c15) +
                 (uint64_t) rank * UINT64_C (0xd1b54a32d192ed03) +
                 (uint64_t) i * UINT64_C (0x8cb92ba72f3d8dd7);

    x = (x ^ x >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C (0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* A number between 0.5 and 1 or -1 and -0.5: products of a few of them stay at home in f16. */
static inline double data_number (uint64_t bits)
{
    double x = 0.5 + (double) (bits >> 12) * 0x1p-53;

    return bits & 1 ? -x : x;
}

/* Makes elements of [rank], at [array][at] and behind: [i]; [count] from [i]; [count] from 0. */
void data_make (gs_dtype_t dtype, void *array, size_t at, uint64_t seed, int rank, size_t i);
void data_make_run (gs_dtype_t dtype, void *array, size_t at, uint64_t seed, int rank, size_t i,
                    size_t count);
void data_fill (gs_dtype_t dtype, void *array, uint64_t seed, int rank, size_t count);

/* Element [i] of rank [r], of an integer type, as 64 bits of the type's sign. */
uint64_t data_integer (gs_dtype_t dtype, uint64_t seed, int r, size_t i);

/* What an average of [size] elements may be off by where their type rounds at every step. */
static inline long double data_fast_bound (gs_dtype_t dtype, int size, long double mean_absolute)
{
    long double e = size * wide_epsilon (dtype);

    return data_fast && gsi_dtype_is_reduced (dtype) ? e * (1 + e) * mean_absolute : 0;
}

/*
 * Checks element [i] of a (weighted) average: one rounding into the type, and one of the summing
 * type per step. weights NULL: all 1. Says nothing; the caller does.
 */
bool data_average_is_right (gs_dtype_t dtype, const void *array, size_t i, uint64_t seed,
                            int size, const double *weights);

/* Checks element [i] of gs_allreduce: integers exactly, the others as the average. */
bool data_reduction_is_right (gs_dtype_t dtype, gs_op_t op, const void *array, size_t i,
                              uint64_t seed, int size);

/* FNV-1a of [bytes]: to compare what ranks have. */
uint64_t data_hash (const void *memory, size_t bytes);

/* Whether all ranks have the same [bytes]. */
static inline bool data_same_everywhere (gs_comm_t *comm, const void *memory, size_t bytes)
{
    uint64_t hash = data_hash (memory, bytes);
    uint64_t *all = calloc ((size_t) gs_comm_size (comm), sizeof (*all));
    bool same = true;

    CHECK_OK (gs_allgather (comm, &hash, all, 1, GS_U64, NULL));
    for (int r = 0; r < gs_comm_size (comm); r++)
        same = same && all[r] == hash;
    free (all);
    return same;
}

/* A buffer with a border behind it that must stay as it is. */
#define DATA_BORDER 64

static inline void *data_allocate (size_t bytes)
{
    char *memory = malloc (bytes + DATA_BORDER);

    if (!memory) {
        fprintf (stderr, "out of memory\n");
        exit (1);
    }
    memset (memory + bytes, 0xA5, DATA_BORDER);
    return memory;
}

/* Frees; false if the border was written to. */
static inline bool data_free (void *memory, size_t bytes)
{
    bool untouched = true;

    for (size_t i = 0; i < DATA_BORDER; i++)
        untouched = untouched && ((unsigned char *) memory)[bytes + i] == 0xA5;
    free (memory);
    return untouched;
}

/*
 * Counts of [width] byte elements at which the way of a message changes: what goes as small, the
 * blocks of larger ones, and the pieces of [size] ranks in them. Ends with 0.
 */
static inline const size_t *data_edges (int size, size_t width)
{
    static const size_t limits[] = {
        16 << 10,  /* what goes as small */
        256 << 10, /* a block of one node */
        120 << 10  /* a block between two ranks of two nodes */
    };
    static size_t edges[16];
    size_t n = 0;

    for (int i = 0; i < 3; i++) {
        size_t all = limits[i] / width;
        edges[n++] = all - 1;
        edges[n++] = all;
        edges[n++] = all + 1;
    }
    edges[n++] = (256 << 10) / (size_t) size / 128 * 128 / width + 1; /* into a second piece */
    edges[n++] = 2 * edges[4] + (size_t) size + 1;
    edges[n] = 0;
    return edges;
}

#endif /* GS_TESTS_DATA_H */
