/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host_reduce - every type, operation, number of sources and awkward count, against sums and
 * products in long double (floating types) or in exact modular arithmetic (integers).
 */
#include <sys/mman.h>

#include "wide.h"
#include "base/dtype.h"
#include "device/device.h"
#include "unit/unit.h"

#define MOST_SOURCES 9
#define MOST_COUNT   2049
#define GUARD        16 /* elements behind the result that must stay as they are */

static _Alignas(16) unsigned char memory[MOST_SOURCES][(MOST_COUNT + GUARD) * 16];
static _Alignas(16) unsigned char result[(MOST_COUNT + GUARD) * 16];
static const void *sources[MOST_SOURCES];
static uint64_t state = 88172645463325252;

/* A number that is at home in every floating type and whose products of 9 are so too. */
static double number (void)
{
    double sign = unit_random (&state) & 1 ? -1 : 1;

    return sign * (0.5 + (double) (unit_random (&state) >> 11) * 0x1p-53);
}

static void fill (gs_dtype_t dtype, size_t count)
{
    size_t width = gs_dtype_size (dtype);

    for (int s = 0; s < MOST_SOURCES; s++) {
        if (gsi_dtype_is_integer (dtype))
            for (size_t b = 0; b < count * width; b += 8) {
                uint64_t bits = unit_random (&state);
                memcpy (memory[s] + b, &bits, 8);
            }
        else
            for (size_t i = 0; i < count; i++)
                wide_store (dtype, memory[s], i, number (), number ());
        sources[s] = memory[s];
    }
}

/* Combines element [i] of the sources with all the precision there is; [sum] of the absolutes. */
static wide_t reference (const struct gsi_reduction *how, int n, size_t i, long double *sum)
{
    wide_t acc = 0;
    bool empty = true;

    *sum = 0;
    for (int s = 0; s < n; s++) {
        wide_t x;
        if (how->scale && how->scale[s] == 0)
            continue;
        x = wide_load (how->dtype, sources[s], i) *
            (how->scale ? (long double) how->scale[s] : 1);
        *sum += wide_absolute (x);
        acc = empty ? x : wide_combine (how->op, acc, x);
        empty = false;
    }
    *sum /= how->divisor;
    return acc / (long double) how->divisor;
}

/* Checks the floating result of [n] sources, one rounding per step beside the last one. */
static void check_floating (const struct gsi_reduction *how, int n, size_t count)
{
    long double steps = n + (how->scale ? n + 2 : 0) + 1;

    for (size_t i = 0; i < count; i++) {
        long double sum, error, bound;
        wide_t wanted = reference (how, n, i, &sum), got = wide_load (how->dtype, result, i);
        bound = how->op == GS_PROD
                    ? 4 * steps * wide_sum_epsilon (how->dtype) * wide_absolute (wanted)
                    : 2 * steps * wide_sum_epsilon (how->dtype) * sum;
        if (how->op == GS_MIN || how->op == GS_MAX)
            bound = 0;
        else
            bound += wide_rounding (how->dtype, wanted);
        error = wide_absolute (got - wanted);
        unit_check (error <= bound,
                    "%s %s of %d sources, count %zu, element %zu: error %Lg > "
                    "%Lg",
                    gsi_op_name (how->op), gsi_dtype_name (how->dtype), n, count, i, error,
                    bound);
    }
}

/* The two values combined, in 64 bits: what is above the type's width is cut by the caller. */
static uint64_t combine (gs_op_t op, bool is_signed, uint64_t a, uint64_t b)
{
    bool less = is_signed ? (int64_t) a < (int64_t) b : a < b;

    switch (op) {
    case GS_PROD: return a * b;
    case GS_MIN: return less ? a : b;
    case GS_MAX: return less ? b : a;
    default: return a + b;
    }
}

static uint64_t load_integer (gs_dtype_t dtype, const void *array, size_t i)
{
    switch (dtype) {
    case GS_I8: return (uint64_t) ((const int8_t *) array)[i];
    case GS_I16: return (uint64_t) ((const int16_t *) array)[i];
    case GS_I32: return (uint64_t) ((const int32_t *) array)[i];
    case GS_U8: return ((const uint8_t *) array)[i];
    case GS_U16: return ((const uint16_t *) array)[i];
    case GS_U32: return ((const uint32_t *) array)[i];
    default: return ((const uint64_t *) array)[i];
    }
}

static void check_integer (const struct gsi_reduction *how, int n, size_t count)
{
    size_t width = gs_dtype_size (how->dtype);
    uint64_t mask = width == 8 ? UINT64_MAX : (UINT64_C (1) << width * 8) - 1;
    bool is_signed = how->dtype <= GS_I64;

    for (size_t i = 0; i < count; i++) {
        uint64_t acc = load_integer (how->dtype, sources[0], i);
        for (int s = 1; s < n; s++)
            acc = combine (how->op, is_signed, acc, load_integer (how->dtype, sources[s], i));
        unit_check ((acc & mask) == (load_integer (how->dtype, result, i) & mask),
                    "%s %s of %d sources, count %zu, element %zu", gsi_op_name (how->op),
                    gsi_dtype_name (how->dtype), n, count, i);
    }
}

/* One reduction into [result], which must not touch what lies behind it. */
static void reduce (const struct gsi_reduction *how, int n, size_t count)
{
    size_t width = gs_dtype_size (how->dtype);

    memset (result, 0xA5, (count + GUARD) * width);
    gsi_host_reduce (how, result, sources, n, count);
    for (size_t b = count * width; b < (count + GUARD) * width; b++)
        unit_check (result[b] == 0xA5, "%s writes behind count %zu", gsi_dtype_name (how->dtype),
                    count);
    if (gsi_dtype_is_integer (how->dtype))
        check_integer (how, n, count);
    else
        check_floating (how, n, count);
}

static bool exists (gs_dtype_t dtype, gs_op_t op)
{
    return !gsi_dtype_is_complex (dtype) || op == GS_SUM || op == GS_PROD;
}

/* All operations and numbers of sources, and the average, for one type and count. */
static void reduce_all (gs_dtype_t dtype, size_t count)
{
    fill (dtype, count + 8);
    for (int n = 1; n <= MOST_SOURCES; n++) {
        struct gsi_reduction how = {.dtype = dtype, .divisor = 1};
        for (how.op = GS_SUM; how.op <= GS_MAX; how.op++)
            if (exists (dtype, how.op))
                reduce (&how, n, count);
        how.op = GS_SUM;
        how.divisor = n;
        if (!gsi_dtype_is_integer (dtype))
            reduce (&how, n, count);
    }
}

START_TEST (small_counts)
{
    for (gs_dtype_t dtype = GS_F16; dtype <= GS_C128; dtype++)
        for (size_t count = 0; count <= 70; count++)
            reduce_all (dtype, count);
}
END_TEST

START_TEST (counts_at_block_edges)
{
    static const size_t counts[] = {1023, 1024, 1025, 2047, 2048, 2049};

    for (gs_dtype_t dtype = GS_F16; dtype <= GS_C128; dtype++)
        for (size_t c = 0; c < sizeof (counts) / sizeof (counts[0]); c++)
            reduce_all (dtype, counts[c]);
}
END_TEST

START_TEST (the_result_may_be_any_source)
{
    for (gs_dtype_t dtype = GS_F16; dtype <= GS_C128; dtype++)
        for (int place = 0; place < 4; place++) {
            struct gsi_reduction how = {.dtype = dtype, .op = GS_SUM, .divisor = 1};
            size_t bytes = 1500 * gs_dtype_size (dtype);
            fill (dtype, 1500);
            gsi_host_reduce (&how, result, sources, 4, 1500);
            gsi_host_reduce (&how, memory[place], sources, 4, 1500);
            unit_check (!memcmp (result, memory[place], bytes), "%s into source %d",
                        gsi_dtype_name (dtype), place);
        }
}
END_TEST

START_TEST (scaled_sources)
{
    double scale[MOST_SOURCES];

    for (gs_dtype_t dtype = GS_F16; dtype <= GS_C128; dtype++) {
        struct gsi_reduction how = {.dtype = dtype, .op = GS_SUM, .scale = scale};
        if (gsi_dtype_is_integer (dtype))
            continue;
        fill (dtype, 1030);
        for (int n = 1; n <= MOST_SOURCES; n++) {
            how.divisor = 0;
            for (int s = 0; s < n; s++) { /* 0, 1 and what lies between, in every order */
                scale[s] = unit_random (&state) % 3 ? fabs (number ()) : (double) (s % 2);
                how.divisor += scale[s];
            }
            if (how.divisor == 0)
                how.divisor = 1;
            reduce (&how, n, 1030);
        }
    }
}
END_TEST

START_TEST (sources_of_scale_0_are_not_read)
{
    void *forbidden = mmap (NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne (forbidden, MAP_FAILED);
    for (gs_dtype_t dtype = GS_F16; dtype <= GS_C128; dtype++)
        for (unsigned mask = 0; mask < 16; mask++) { /* bit s: source s takes part */
            double scale[4];
            struct gsi_reduction how = {.dtype = dtype, .op = GS_SUM, .scale = scale};
            if (gsi_dtype_is_integer (dtype))
                continue;
            fill (dtype, 1100);
            how.divisor = 0;
            for (int s = 0; s < 4; s++) {
                scale[s] = mask >> s & 1 ? 1.0 / (s + 1) : 0;
                how.divisor += scale[s];
                if (!(mask >> s & 1))
                    sources[s] = forbidden;
            }
            if (!mask)
                how.divisor = 1;
            if (mask) {
                reduce (&how, 4, 1100);
                continue;
            }
            gsi_host_reduce (&how, result, sources, 4, 1100);
            for (size_t b = 0; b < 1100 * gs_dtype_size (dtype); b++)
                unit_check (!result[b], "byte %zu is not 0", b);
        }
    munmap (forbidden, 65536);
}
END_TEST

/* Positive contributions: nothing cancels, so the one rounding is all the error there is. */
START_TEST (half_averages_are_rounded_once)
{
    static const gs_dtype_t halves[] = {GS_F16, GS_BF16};

    for (int t = 0; t < 2; t++)
        for (int n = 1; n <= MOST_SOURCES; n++) {
            struct gsi_reduction how = {.dtype = halves[t], .op = GS_SUM, .divisor = n};
            fill (halves[t], 2000);
            for (int s = 0; s < n; s++)
                for (size_t i = 0; i < 2000; i++)
                    wide_store (halves[t], memory[s], i,
                                ldexp (fabs (number ()), (int) (i % 20) - 10), 0);
            gsi_host_reduce (&how, result, sources, n, 2000);
            for (size_t i = 0; i < 2000; i++) {
                long double sum, wanted = creall (reference (&how, n, i, &sum)), ulp;
                int exponent;
                frexpl (wanted, &exponent);
                ulp = ldexpl (2 * wide_epsilon (halves[t]), exponent - 1);
                unit_check (fabsl (creall (wide_load (halves[t], result, i)) - wanted) <=
                                0.51L * ulp,
                            "%s average of %d, element %zu is off by more than 0.51 ulp",
                            gsi_dtype_name (halves[t]), n, i);
            }
        }
}
END_TEST

/* Every number of the two short types, averaged over [n] ranks that all have it, stays. */
static void average_of_equals (int n)
{
    static uint16_t all[65536], out[65536];
    static const void *same[1000];
    static const gs_dtype_t halves[] = {GS_F16, GS_BF16};

    for (unsigned i = 0; i < 65536; i++)
        all[i] = (uint16_t) i;
    for (int s = 0; s < n; s++)
        same[s] = all;
    for (int t = 0; t < 2; t++) {
        struct gsi_reduction how = {.dtype = halves[t], .op = GS_SUM, .divisor = n};
        gsi_host_reduce (&how, out, same, n, 65536);
        for (unsigned i = 0; i < 65536; i++) {
            float x = (float) creall (wide_load (halves[t], all, i));
            if (isnan (x))
                unit_check (isnan ((float) creall (wide_load (halves[t], out, i))),
                            "a NaN is lost");
            else if (isinf (x) || fabsf (x) <= FLT_MAX / (float) n) /* else fp32 overflows */
                unit_check (out[i] == i, "%s: average of %d times %04x is %04x",
                            gsi_dtype_name (halves[t]), n, i, out[i]);
        }
    }
}

START_TEST (identical_values_come_back)
{
    for (int n = 2; n <= 64; n++)
        average_of_equals (n);
    average_of_equals (1000);
}
END_TEST

/* The same where nodes add up theirs first, in fp32: nothing is rounded in between. */
START_TEST (sums_of_two_levels_are_rounded_once)
{
    static uint16_t all[65536], out[65536];
    static float sum[65536];
    const void *same[16], *sums[64];

    for (unsigned i = 0; i < 65536; i++)
        all[i] = (uint16_t) i;
    for (int s = 0; s < 64; s++)
        sums[s] = sum;
    for (int s = 0; s < 16; s++)
        same[s] = all;
    for (gs_dtype_t dtype = GS_F16; dtype <= GS_BF16; dtype++)
        for (int nodes = 1; nodes <= 64; nodes += 7)
            for (int local = 1; local <= 16; local += 3) {
                struct gsi_reduction how = {
                    .dtype = dtype, .op = GS_SUM, .divisor = 1, .sums = GSI_SUMS_OUT};
                gsi_host_reduce (&how, sum, same, local, 65536);
                how.divisor = nodes * local;
                how.sums = GSI_SUMS_IN;
                gsi_host_reduce (&how, out, sums, nodes, 65536);
                for (unsigned i = 0; i < 65536; i++) {
                    float x = (float) creall (wide_load (dtype, all, i));
                    if (fabsf (x) <= FLT_MAX / (float) (nodes * local))
                        unit_check (out[i] == i, "%s: the average of %d times %04x is %04x",
                                    gsi_dtype_name (dtype), nodes * local, i, out[i]);
                }
            }
}
END_TEST

/* The same for numbers whose sums are exact in the wider types: no division loses a bit. */
START_TEST (identical_integers_come_back)
{
    float small[1000];
    double large[1000];
    const void *same[2][64];

    for (int n = 2; n <= 64; n++) {
        struct gsi_reduction how = {.dtype = GS_F32, .op = GS_SUM, .divisor = n};
        for (int i = 0; i < 1000; i++)
            large[i] = small[i] = (float) i;
        for (int s = 0; s < n; s++) {
            same[0][s] = small;
            same[1][s] = large;
        }
        gsi_host_reduce (&how, small, same[0], n, 1000);
        how.dtype = GS_F64;
        gsi_host_reduce (&how, large, same[1], n, 1000);
        for (int i = 0; i < 1000; i++)
            unit_check (small[i] == (float) i && large[i] == i,
                        "the average of %d times %d is %a, %a", n, i, small[i], large[i]);
    }
}
END_TEST

START_TEST (nan_spreads)
{
    static const gs_dtype_t types[] = {GS_F16, GS_BF16, GS_F32, GS_F64, GS_F8_E4M3, GS_F8_E5M2};
    static const double others[] = {1, -1, 0, INFINITY, -INFINITY};

    for (int t = 0; t < 6; t++)
        for (gs_op_t op = GS_SUM; op <= GS_MAX; op++)
            for (int place = 0; place < 3; place++)
                for (int o = 0; o < 5; o++) {
                    struct gsi_reduction how = {.dtype = types[t], .op = op, .divisor = 1};
                    fill (types[t], 33);
                    for (int s = 0; s < 3; s++)
                        for (size_t i = 0; i < 33; i++)
                            wide_store (types[t], memory[s], i,
                                        s == place ? (double) NAN : others[o], 0);
                    gsi_host_reduce (&how, result, sources, 3, 33);
                    for (size_t i = 0; i < 33; i++)
                        unit_check (isnan (creall (wide_load (types[t], result, i))),
                                    "%s %s with a NaN in source %d", gsi_op_name (op),
                                    gsi_dtype_name (types[t]), place);
                }
}
END_TEST

START_TEST (infinities_and_overflow)
{
    struct gsi_reduction how = {.dtype = GS_F16, .op = GS_SUM, .divisor = 1};

    fill (GS_F16, 4);
    for (int s = 0; s < 2; s++) {
        wide_store (GS_F16, memory[s], 0, 65504, 0); /* sum too large for f16 */
        wide_store (GS_F16, memory[s], 1, s ? INFINITY : -INFINITY, 0); /* no number */
        wide_store (GS_F16, memory[s], 2, -65504, 0);
        wide_store (GS_F16, memory[s], 3, 0x1p-24, 0); /* subnormal */
    }
    gsi_host_reduce (&how, result, sources, 2, 4);
    ck_assert (isinf ((float) creall (wide_load (GS_F16, result, 0))));
    ck_assert (isnan ((float) creall (wide_load (GS_F16, result, 1))));
    ck_assert (creall (wide_load (GS_F16, result, 2)) == -INFINITY);
    ck_assert (creall (wide_load (GS_F16, result, 3)) == 0x1p-23L);
    how.divisor = 2; /* the sum exists in fp32, and its half in f16 */
    gsi_host_reduce (&how, result, sources, 2, 4);
    ck_assert (creall (wide_load (GS_F16, result, 0)) == 65504);
    ck_assert (creall (wide_load (GS_F16, result, 2)) == -65504);
}
END_TEST

START_TEST (negative_zero_of_one_source_stays)
{
    double minus_zero = -0.0;
    const void *one = &minus_zero;
    double out = 1;
    struct gsi_reduction how = {.dtype = GS_F64, .op = GS_SUM, .divisor = 3};

    gsi_host_reduce (&how, &out, &one, 1, 1);
    ck_assert (out == 0 && signbit (out));
}
END_TEST

UNIT_SUITE ("host_reduce", 120, small_counts, counts_at_block_edges, the_result_may_be_any_source,
            scaled_sources, sources_of_scale_0_are_not_read, half_averages_are_rounded_once,
            identical_values_come_back, sums_of_two_levels_are_rounded_once,
            identical_integers_come_back, nan_spreads, infinities_and_overflow,
            negative_zero_of_one_source_stays)
