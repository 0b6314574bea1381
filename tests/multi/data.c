/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data.c - the numbers, and the references that results are compared with. Most of a test's time
 * goes here, so it is compiled with optimisation, and without sanitizers, in every build.
 */
#include "data.h"

bool data_fast;

void data_learn (const gs_comm_t *comm)
{
    const char *wish = getenv ("GS_AVG");
    bool exact = wish && !strcmp (wish, "exact"), fast = wish && !strcmp (wish, "fast");

    data_fast = !strcmp (gs_comm_transport (comm), "nccl") && !exact &&
                (fast || gs_comm_size (comm) <= 8);
}

/* ---- Numbers ---- */

static void make (gs_dtype_t dtype, size_t width, void *array, size_t at, uint64_t bits)
{
    if (gsi_dtype_is_integer (dtype))
        memcpy ((char *) array + at * width, &bits, width); /* the low bytes */
    else
        wide_store (dtype, array, at, data_number (bits), data_number (~bits));
}

void data_make (gs_dtype_t dtype, void *array, size_t at, uint64_t seed, int rank, size_t i)
{
    data_make_run (dtype, array, at, seed, rank, i, 1);
}

void data_make_run (gs_dtype_t dtype, void *array, size_t at, uint64_t seed, int rank, size_t i,
                    size_t count)
{
    size_t width = gs_dtype_size (dtype);

    for (size_t k = 0; k < count; k++)
        make (dtype, width, array, at + k, data_bits (seed, rank, i + k));
}

void data_fill (gs_dtype_t dtype, void *array, uint64_t seed, int rank, size_t count)
{
    data_make_run (dtype, array, 0, seed, rank, 0, count);
}

/* Element [i] of rank [r], of a floating type. */
static inline wide_t number (gs_dtype_t dtype, uint64_t seed, int r, size_t i)
{
    _Alignas(16) unsigned char one[16] = {0};
    uint64_t bits = data_bits (seed, r, i);

    wide_store (dtype, one, 0, data_number (bits), data_number (~bits));
    return wide_load (dtype, one, 0);
}

/* ---- References ---- */

bool data_average_is_right (gs_dtype_t dtype, const void *array, size_t i, uint64_t seed,
                            int size, const double *weights)
{
    long double total = 0, absolutes = 0, bound;
    wide_t sum = 0, got = wide_load (dtype, array, i);
    bool equal = true; /* then it is the plain average */

    for (int r = 0; r < size; r++) {
        long double w = weights ? (long double) weights[r] : 1;
        wide_t x;
        equal = equal && (!weights || weights[r] == weights[0]);
        if (w == 0)
            continue;
        x = number (dtype, seed, r, i);
        sum += w * x;
        absolutes += w * wide_absolute (x);
        total += w;
    }
    if (total == 0)
        return got == 0;
    bound = (weights ? 6 * size : 2 * size) * wide_sum_epsilon (dtype) * absolutes / total +
            wide_rounding (dtype, sum / total);
    if (equal)
        bound += data_fast_bound (dtype, size, absolutes / total);
    return wide_absolute (got - sum / total) <= bound;
}

uint64_t data_integer (gs_dtype_t dtype, uint64_t seed, int r, size_t i)
{
    uint64_t bits = data_bits (seed, r, i);

    switch (dtype) {
    case GS_I8: return (uint64_t) (int8_t) bits;
    case GS_I16: return (uint64_t) (int16_t) bits;
    case GS_I32: return (uint64_t) (int32_t) bits;
    case GS_U8: return (uint8_t) bits;
    case GS_U16: return (uint16_t) bits;
    case GS_U32: return (uint32_t) bits;
    default: return bits;
    }
}

static bool integer_is_right (gs_dtype_t dtype, gs_op_t op, const void *array, size_t i,
                              uint64_t seed, int size)
{
    uint64_t acc = data_integer (dtype, seed, 0, i);
    size_t width = gs_dtype_size (dtype);

    for (int r = 1; r < size; r++) {
        uint64_t b = data_integer (dtype, seed, r, i);
        bool less = dtype <= GS_I64 ? (int64_t) acc < (int64_t) b : acc < b;
        switch (op) {
        case GS_SUM: acc += b; break;
        case GS_PROD: acc *= b; break;
        case GS_MIN: acc = less ? acc : b; break;
        default: acc = less ? b : acc; break;
        }
    }
    return !memcmp ((const char *) array + i * width, &acc, width); /* the low bytes */
}

static bool floating_is_right (gs_dtype_t dtype, gs_op_t op, const void *array, size_t i,
                               uint64_t seed, int size)
{
    long double absolutes = 0, bound = 0;
    wide_t acc = 0, got = wide_load (dtype, array, i);

    for (int r = 0; r < size; r++) {
        wide_t b = number (dtype, seed, r, i);
        absolutes += wide_absolute (b);
        acc = r ? wide_combine (op, acc, b) : b;
    }
    if (op == GS_PROD)
        bound = 4 * size * wide_sum_epsilon (dtype) * wide_absolute (acc);
    else if (op == GS_SUM)
        bound = 2 * size * wide_sum_epsilon (dtype) * absolutes +
                data_fast_bound (dtype, size, absolutes);
    if (op <= GS_PROD)
        bound += wide_rounding (dtype, acc);
    return wide_absolute (got - acc) <= bound;
}

bool data_reduction_is_right (gs_dtype_t dtype, gs_op_t op, const void *array, size_t i,
                              uint64_t seed, int size)
{
    return gsi_dtype_is_integer (dtype) ? integer_is_right (dtype, op, array, i, seed, size)
                                        : floating_is_right (dtype, op, array, i, seed, size);
}

uint64_t data_hash (const void *memory, size_t bytes)
{
    const unsigned char *at = memory;
    uint64_t hash = UINT64_C (14695981039346656037);

    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ at[i]) * UINT64_C (1099511628211);
    return hash;
}
