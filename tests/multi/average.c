/* SPDX-License-Identifier: BSD-3-Clause */
/* average - gs_allreduce_avg of every floating type is the rounded mean, the same bits
 * everywhere. */
#include "data.h"

#define F8_COUNT 650000

static gs_comm_t *comm;
static uint64_t seed;

static void check_average (gs_dtype_t dtype, size_t count)
{
    size_t bytes = count * gs_dtype_size (dtype), wrong = 0;
    int size = gs_comm_size (comm);
    size_t step = count > 100 ? (size_t) size : 1; /* the ranks share the work: bits are equal */
    void *x = data_allocate (bytes);

    data_fill (dtype, x, ++seed, gs_comm_rank (comm), count);
    CHECK_OK (gs_allreduce_avg (comm, x, count, dtype, NULL));
    for (size_t i = (size_t) gs_comm_rank (comm) % step; i < count; i += step)
        wrong += !data_average_is_right (dtype, x, i, seed, size, NULL);
    CHECK (!wrong, "average of %zu %s: %zu are wrong", count, data_names[dtype], wrong);
    CHECK (data_same_everywhere (comm, x, bytes), "average of %zu %s: ranks have different bits",
           count, data_names[dtype]);
    CHECK (data_free (x, bytes), "average of %zu %s writes behind its buffer", count,
           data_names[dtype]);
}

/* Whether the average of [was] on all ranks may be [is]: the same number, to its sign. */
static bool is_equal (gs_dtype_t dtype, float was, float is)
{
    int size = gs_comm_size (comm), k = (int) ceil (log2 (size) / 2);

    if (!data_fast)
        return is == was && !!signbit (is) == !!signbit (was);
    if (fabs (was) * size > ldexp (dtype == GS_F16 ? 65504 : FLT_MAX, k))
        return true; /* the sum may overflow */
    return fabsl (is - (long double) was) <= data_fast_bound (dtype, size, fabsf (was)) +
                                                 ldexpl (1, k - (dtype == GS_F16 ? 24 : 133));
}

/* Equal numbers must come back, also the smallest, and where their sum is no number of the type.
 */
static void check_equals (void)
{
    static uint16_t x[65536];
    int size = gs_comm_size (comm), most = size > 16 ? size : 16;

    for (gs_dtype_t dtype = GS_F16; dtype <= GS_BF16; dtype++) {
        size_t wrong = 0;
        for (unsigned i = 0; i < 65536; i++)
            x[i] = (uint16_t) i;
        CHECK_OK (gs_allreduce_avg (comm, x, 65536, dtype, NULL));
        for (unsigned i = 0; i < 65536; i++) {
            uint16_t mine = (uint16_t) i;
            float was = (float) creall (wide_load (dtype, &mine, 0));
            float is = (float) creall (wide_load (dtype, x, i));
            if (isnan (was) || (isinf (was) && data_fast) ||
                (!isinf (was) && fabsf (was) > FLT_MAX / (float) most))
                continue; /* the sum of bf16 overflows fp32 there */
            wrong += !is_equal (dtype, was, is);
        }
        CHECK (!wrong, "%zu equal numbers of %s do not come back", wrong, data_names[dtype]);
    }
}

/* The number [bits] of a type of 8 bits is neither infinite nor a NaN. */
static bool is_number (gs_dtype_t dtype, uint8_t bits)
{
    return (bits & 0x7f) < (dtype == GS_F8_E4M3 ? 0x7f : 0x7c);
}

/* The same of 8 bits, whose sums are four times as wide: several blocks, also between nodes. */
static void check_f8 (void)
{
    static uint8_t x[F8_COUNT];

    for (gs_dtype_t dtype = GS_F8_E4M3; dtype <= GS_F8_E5M2; dtype++) {
        size_t wrong = 0;
        for (size_t i = 0; i < F8_COUNT; i++)
            x[i] = (uint8_t) data_bits (1, 0, i);
        CHECK_OK (gs_allreduce_avg (comm, x, F8_COUNT, dtype, NULL));
        for (size_t i = 0; i < F8_COUNT; i++) {
            uint8_t was = (uint8_t) data_bits (1, 0, i);
            wrong += is_number (dtype, was) && x[i] != was;
        }
        CHECK (!wrong, "%zu equal numbers of %s do not come back", wrong, data_names[dtype]);
    }
}

int main (void)
{
    static const gs_dtype_t types[] = {GS_F16, GS_BF16, GS_F32, GS_F64, GS_C64, GS_C128};
    int number = 6;

    comm = multi_create (NULL);
    data_learn (comm);
    if (multi_number (0, "GS_TEST_HALVES", NULL)) /* what GS_AVG is about */
        number = 2;
    if (multi_number (0, "GS_TEST_F8", NULL)) /* as check_f8 does */
        number = 0;
    for (int t = 0; t < number; t++) {
        for (size_t count = 0; count <= 100; count++)
            check_average (types[t], count);
        for (const size_t *e = data_edges (gs_comm_size (comm), gs_dtype_size (types[t])); *e;
             e++)
            check_average (types[t], *e);
    }
    if (!data_fast && number)
        check_equals ();
    if (!data_fast)
        check_f8 ();
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("averages of six types, 110 counts each");
}
