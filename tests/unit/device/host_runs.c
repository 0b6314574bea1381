/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host_runs - conversion of every pair of types against arithmetic in long double, the search for
 * bad numbers at every place, and digests of pieces.
 */
#include "device/runs.h"

#include <math.h>

#include "base/dtype.h"
#include "base/half.h"
#include "device/element.h"
#include "unit/unit.h"

#define COUNT 1000
#define GUARD 4 /* elements behind the result that must stay as they are */

static const gs_dtype_t types[] = {GS_F16,     GS_BF16,    GS_F32, GS_F64,
                                   GS_F8_E4M3, GS_F8_E5M2, GS_C64, GS_C128};
#define REAL  6
#define TYPES 8
static _Alignas(16) unsigned char input[(COUNT + 1) * 16], output[(COUNT + GUARD) * 16];

static double load (gs_dtype_t part, const void *array, size_t i)
{
    switch (part) {
#define GSI_REDUCED(NAME, name, value, T, ...) \
    GSI_CASE (NAME, gsi_float_of_##name (((const T *) array)[i]));
#include "base/dtype.def"
    case GS_F32: return ((const float *) array)[i];
    default: return ((const double *) array)[i];
    }
}

static void store (gs_dtype_t part, void *array, size_t i, double x)
{
    switch (part) {
#define GSI_REDUCED(NAME, name, value, T, ...)         \
    case GS_##NAME:                                    \
        ((T *) array)[i] = gsi_##name##_of_double (x); \
        break;
#include "base/dtype.def"
    case GS_F32: ((float *) array)[i] = (float) x; break;
    default: ((double *) array)[i] = x; break;
    }
}

static void fill (gs_dtype_t part, size_t count)
{
    uint64_t state = 7;

    for (size_t i = 0; i < count; i++)
        store (part, input, i, ldexp ((double) unit_random (&state) - 0x1p63, -60 - (int) i % 9));
}

/* Distance to the next larger number of the type, where |x| is: 0 for double. */
static double unit_of (gs_dtype_t part, double x)
{
    static const int bits_of[] = {[GS_F16] = 10, [GS_BF16] = 7,    [GS_F32] = 23,
                                  [GS_F64] = 52, [GS_F8_E4M3] = 3, [GS_F8_E5M2] = 2};
    static const int least_of[] = {[GS_F16] = -14,   [GS_BF16] = -126,  [GS_F32] = -126,
                                   [GS_F64] = -1022, [GS_F8_E4M3] = -6, [GS_F8_E5M2] = -14};
    int bits = bits_of[part], least = least_of[part];
    int exponent = x == 0 ? least : ilogb (x);

    return ldexp (1, (exponent < least ? least : exponent) - bits);
}

static void check_pair (gs_dtype_t from, gs_dtype_t to, double scale)
{
    size_t parts = gsi_dtype_is_complex (from) ? 2 : 1;
    gs_dtype_t in = gsi_part_of (from), out = gsi_part_of (to);
    struct gsi_conversion how = {from, to, scale};
    struct gsi_run runs[3] = {
        {input, output, 10},
        {NULL, NULL, 0},
        {input + 10 * gs_dtype_size (from), output + 10 * gs_dtype_size (to), COUNT - 10}};

    fill (in, COUNT * parts);
    memset (output, 0x5a, sizeof (output));
    gsi_host_convert (&how, runs, 3);
    for (size_t i = 0; i < COUNT * parts; i++) {
        long double exact = (long double) scale * (long double) load (in, input, i);
        double got = load (out, output, i);
        /* half a unit, and a little for a scale and a product that are rounded as well */
        long double error = fabsl ((long double) got - exact);
        long double limit =
            0.5L * unit_of (out, got) +
            (scale == 1
                 ? 0
                 : fabsl (exact) * (in == GS_F64 || out == GS_F64 ? 0x1p-52L : 0x1.8p-23L));
        unit_check (error <= limit, "%d to %d times %g: %a becomes %a", from, to, scale,
                    load (in, input, i), got);
    }
    for (size_t i = COUNT * gs_dtype_size (to); i < (COUNT + GUARD) * gs_dtype_size (to); i++)
        unit_check (output[i] == 0x5a, "byte %zu behind the end is written", i);
}

START_TEST (every_pair)
{
    static const double scales[] = {1, 1.0 / 3, -0.125};

    for (int s = 0; s < 3; s++) {
        for (int f = 0; f < REAL; f++)
            for (int t = 0; t < REAL; t++)
                check_pair (types[f], types[t], scales[s]);
        check_pair (GS_C64, GS_C128, scales[s]);
        check_pair (GS_C128, GS_C64, scales[s]);
        check_pair (GS_C64, GS_C64, scales[s]);
    }
}
END_TEST

START_TEST (integers_and_bits_are_copied)
{
    static const gs_dtype_t copied[] = {GS_I8, GS_U16, GS_I32, GS_U64, GS_F16, GS_F64, GS_C128};

    for (size_t i = 0; i < sizeof (input); i++)
        input[i] = (unsigned char) (i * 37);
    for (int t = 0; t < 7; t++) {
        struct gsi_conversion how = {copied[t], copied[t], 1};
        struct gsi_run run = {input, output, COUNT};
        memset (output, 0, sizeof (output));
        gsi_host_convert (&how, &run, 1);
        ck_assert_mem_eq (output, input, COUNT * gs_dtype_size (copied[t]));
        ck_assert_uint_eq (output[COUNT * gs_dtype_size (copied[t])], 0);
    }
}
END_TEST

START_TEST (in_place)
{
    struct gsi_conversion how = {GS_F32, GS_F32, 0.5};
    struct gsi_run run = {input, input, 100};

    for (int i = 0; i < 100; i++)
        store (GS_F32, input, (size_t) i, i);
    gsi_host_convert (&how, &run, 1);
    for (int i = 0; i < 100; i++)
        ck_assert_double_eq (load (GS_F32, input, (size_t) i), 0.5 * i);
}
END_TEST

/* One bad number at each place of the second of three runs, the greatest finite one beside it. */
START_TEST (the_first_nonfinite_run)
{
    static const double bad[] = {INFINITY, -INFINITY, NAN};
    static const double greatest[] = {
        [GS_F16] = 65504,    [GS_BF16] = 0x1.fep127, [GS_F32] = 0x1.fffffep127,
        [GS_F64] = 0x1p1023, [GS_F8_E4M3] = 448,     [GS_F8_E5M2] = 57344};

    for (int t = 0; t < TYPES; t++) {
        size_t parts = gsi_dtype_is_complex (types[t]) ? 2 : 1, n = 20;
        gs_dtype_t part = gsi_part_of (types[t]);
        size_t size = gs_dtype_size (types[t]);
        struct gsi_run runs[] = {
            {input, NULL, 1}, {input + size, NULL, n - 2}, {input + (n - 1) * size, NULL, 1}};
        for (size_t i = 0; i < n * parts; i++)
            store (part, input, i, i % 2 ? greatest[part] : -greatest[part]);
        ck_assert_uint_eq (gsi_host_find_nonfinite (types[t], runs, 3), GSI_ALL_FINITE);
        ck_assert_uint_eq (gsi_host_find_nonfinite (types[t], runs, 0), GSI_ALL_FINITE);
        store (part, input, n * parts - 1, NAN);
        ck_assert_uint_eq (gsi_host_find_nonfinite (types[t], runs, 3), 2);
        for (size_t i = parts; i < (n - 1) * parts; i++) {
            store (part, input, i, bad[i % 3]);
            unit_check (gsi_host_find_nonfinite (types[t], runs, 3) == 1, "type %d, place %zu",
                        types[t], i);
            store (part, input, i, 1);
        }
    }
}
END_TEST

/* What was lost is what is missing, and over many steps nothing is. */
START_TEST (rounding_with_feedback)
{
    static const gs_dtype_t from[] = {GS_F32, GS_F64},
                            to[] = {GS_F16, GS_BF16, GS_F8_E4M3, GS_F8_E5M2};
    enum { NUMBERS = 41, TIMES = 1000 };

    for (int t = 0; t < 8; t++) {
        struct gsi_conversion how = {from[t / 4], to[t % 4], 1};
        unsigned char residual[NUMBERS * 8] = {0};
        struct gsi_run run = {input, output, NUMBERS};
        double sent[NUMBERS] = {0};
        for (size_t i = 0; i < NUMBERS; i++)
            store (from[t / 4], input, i, 1 + (double) i / 300);
        for (int n = 0; n < TIMES; n++) {
            gsi_host_quantize (&how, &run, residual);
            for (size_t i = 0; i < NUMBERS; i++)
                sent[i] += load (to[t % 4], output, i);
        }
        for (size_t i = 0; i < NUMBERS; i++) {
            double all = TIMES * load (from[t / 4], input, i);
            double left = load (from[t / 4], residual, i);
            unit_check (fabs (left) <= (t % 4 < 2 ? 0x1p-7 : 0x1p-2) &&
                            fabs (sent[i] + left - all) <= 1e-2,
                        "conversion %d: %g was sent of %g, %g is left", t, sent[i], all, left);
        }
    }
}
END_TEST

/* An infinity is sent, but does not stay. */
START_TEST (feedback_forgets_what_is_not_finite)
{
    struct gsi_conversion how = {GS_F32, GS_F16, 1};
    float in[] = {1e30f, NAN, -INFINITY}, residual[] = {1, 1, 1};
    uint16_t out[3];
    struct gsi_run run = {in, out, 3};

    gsi_host_quantize (&how, &run, residual);
    ck_assert_uint_eq (gsi_host_find_nonfinite (GS_F16, &(struct gsi_run){out, NULL, 1}, 1), 0);
    for (int i = 0; i < 3; i++)
        ck_assert_float_eq (residual[i], 0);
}
END_TEST

START_TEST (sums_of_squares)
{
    for (int t = 0; t < TYPES; t++)
        for (size_t count = 0; count < 40; count++) {
            size_t parts = gsi_dtype_is_complex (types[t]) ? 2 : 1;
            double sum = 0;
            for (size_t i = 0; i < count * parts; i++) {
                double x;
                store (gsi_part_of (types[t]), input, i, (double) i - 7);
                x = load (gsi_part_of (types[t]), input, i);
                sum += x * x;
            }
            ck_assert_double_eq (gsi_host_squares (types[t], input, count), sum);
        }
}
END_TEST

START_TEST (digests_add_up)
{
    const size_t bytes = 4093;
    uint64_t whole;

    for (size_t i = 0; i < bytes; i++)
        input[i] = (unsigned char) (i * i);
    whole = gsi_host_digest (input, bytes, 0);
    for (size_t cut = 0; cut <= bytes; cut += 8)
        ck_assert_uint_eq (gsi_host_digest (input, cut, 0) +
                               gsi_host_digest (input + cut, bytes - cut, cut / 8),
                           whole);
    for (size_t i = 0; i < bytes; i++) {
        input[i] ^= 1;
        unit_check (gsi_host_digest (input, bytes, 0) != whole, "byte %zu does not count", i);
        input[i] ^= 1;
    }
    memmove (output, input + 8, bytes - 8); /* the order of words counts */
    memcpy (output + bytes - 8, input, 8);
    ck_assert_uint_ne (gsi_host_digest (output, bytes, 0), whole);
    ck_assert_uint_eq (gsi_host_digest (input, 0, 5), 0);
}
END_TEST

/* splitmix64 from seed 0: its published first values are the shares of words that are 0. */
START_TEST (digest_of_a_known_sequence)
{
    static const uint64_t zero[3];

    ck_assert_uint_eq (gsi_host_digest (zero, 8, 0), 0xe220a8397b1dcdafu);
    ck_assert_uint_eq (gsi_host_digest (zero, 8, 1), 0x6e789e6aa1b965f4u);
    ck_assert_uint_eq (gsi_host_digest (zero, 24, 0),
                       0xe220a8397b1dcdafu + 0x6e789e6aa1b965f4u + 0x06c45d188009454fu);
}
END_TEST

UNIT_SUITE ("host_runs", 30, every_pair, integers_and_bits_are_copied, in_place,
            the_first_nonfinite_run, rounding_with_feedback, feedback_forgets_what_is_not_finite,
            sums_of_squares, digests_add_up, digest_of_a_known_sequence)
