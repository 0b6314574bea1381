/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * half - conversions of f16, bf16 and fp8 against a reference that shares nothing with them:
 * values by ldexp, and rounding by search in the table of all values.
 */
#include "base/half.h"

#include <math.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "unit/unit.h"

/* A format: [infinity] is the code of +infinity, which for rounding counts as the next power; or
 * that of the only NaN, where there is [none]. */
struct format {
    int fraction_bits, bias;
    uint16_t infinity, sign;
    bool none;
    uint16_t (*of_float) (float f);
    uint16_t (*of_double) (double d);
    float (*to_float) (uint16_t h);
};

static const struct format f16 = {
    10, 15, 0x7c00, 0x8000, false, gsi_f16_of_float, gsi_f16_of_double, gsi_float_of_f16};
static const struct format bf16 = {
    7, 127, 0x7f80, 0x8000, false, gsi_bf16_of_float, gsi_bf16_of_double, gsi_float_of_bf16};

/* Those of a byte, as of two. */
#define WIDE(name)                                \
    static uint16_t name##_of_float (float f)     \
    {                                             \
        return gsi_##name##_of_float (f);         \
    }                                             \
    static uint16_t name##_of_double (double d)   \
    {                                             \
        return gsi_##name##_of_double (d);        \
    }                                             \
    static float name##_to_float (uint16_t h)     \
    {                                             \
        return gsi_float_of_##name ((uint8_t) h); \
    }
WIDE (f8_e5m2)
WIDE (f8_e4m3)

static const struct format e5m2 = {
    2, 15, 0x7c, 0x80, false, f8_e5m2_of_float, f8_e5m2_of_double, f8_e5m2_to_float};
static const struct format e4m3 = {
    3, 7, 0x7f, 0x80, true, f8_e4m3_of_float, f8_e4m3_of_double, f8_e4m3_to_float};
static const struct format *const formats[] = {&f16, &bf16, &e5m2, &e4m3};
#define FORMATS (int) (sizeof (formats) / sizeof (formats[0]))

/* The value of a positive code up to [infinity]. */
static double value (const struct format *f, uint16_t code)
{
    int exponent = code >> f->fraction_bits;
    int fraction = code & ((1 << f->fraction_bits) - 1);

    if (!exponent)
        return ldexp (fraction, 1 - f->bias - f->fraction_bits);
    return ldexp (fraction + (1 << f->fraction_bits), exponent - f->bias - f->fraction_bits);
}

/* The code nearest to [x], not a NaN; ties to even. */
static uint16_t nearest (const struct format *f, double x)
{
    uint16_t low = 0, high = f->infinity, sign = signbit (x) ? f->sign : 0;
    double a = fabs (x), below, above;

    if (a >= value (f, high))
        return sign | f->infinity;
    while (high - low > 1) {
        uint16_t middle = (uint16_t) ((low + high) / 2);
        if (value (f, middle) <= a)
            low = middle;
        else
            high = middle;
    }
    below = a - value (f, low);
    above = value (f, high) - a;
    if (below == above)
        return sign | (low % 2 ? high : low);
    return sign | (below < above ? low : high);
}

static void check_rounding (const struct format *f, float x)
{
    uint16_t got = f->of_float (x), wanted = nearest (f, x);

    unit_check (got == wanted, "%a (bias %d): %04x, not %04x", x, f->bias, got, wanted);
}

START_TEST (every_value_goes_there_and_back)
{
    for (int i = 0; i < FORMATS; i++) {
        const struct format *f = formats[i];
        for (unsigned code = 0; code < 2u * f->sign; code++) {
            uint16_t magnitude = code & (f->sign - 1u), h = (uint16_t) code;
            float x = f->to_float (h);
            if (magnitude > f->infinity) { /* a NaN keeps sign and payload, and becomes quiet */
                unit_check (isnan (x) && !!signbit (x) == !!(code & f->sign) &&
                                f->of_float (x) == (code | 1u << (f->fraction_bits - 1)),
                            "NaN %04x becomes %04x", code, f->of_float (x));
                continue;
            }
            if (magnitude == f->infinity)
                unit_check (f->none ? isnan (x) : isinf (x), "%04x is %a", code, x);
            else
                unit_check (fabs ((double) x) == value (f, magnitude), "%04x is %a", code, x);
            unit_check (!!signbit (x) == !!(code & f->sign) && f->of_float (x) == code,
                        "%04x comes back as %04x", code, f->of_float (x));
        }
    }
}
END_TEST

START_TEST (every_midpoint_goes_to_even)
{
    for (int i = 0; i < FORMATS; i++) {
        const struct format *f = formats[i];
        for (uint16_t code = 0; code < f->infinity; code++) {
            double middle = (value (f, code) + value (f, code + 1)) / 2;
            uint16_t even = code % 2 ? code + 1 : code;
            float x = (float) middle;
            unit_check (x == middle, "the middle above %04x is no float", code);
            unit_check (f->of_float (x) == even && f->of_float (-x) == (f->sign | even) &&
                            f->of_float (nextafterf (x, 0)) == code &&
                            f->of_float (nextafterf (x, INFINITY)) == code + 1,
                        "the middle above %04x is rounded wrongly", code);
        }
    }
}
END_TEST

START_TEST (random_floats)
{
    uint64_t state = 1;

    for (int i = 0; i < 400000; i++) {
        uint32_t bits = (uint32_t) (unit_random (&state) >> 32);
        /* every second one where f16 has its values and borders: exponents 2^-27 to 2^18 */
        if (i % 2)
            bits = (bits & 0x807fffffu) | (100 + bits % 46) << 23;
        float x = gsi_float_of_bits (bits);
        for (int f = 0; f < FORMATS; f++)
            if (isnan (x))
                unit_check (isnan (formats[f]->to_float (formats[f]->of_float (x))),
                            "NaN %08x is lost", bits);
            else
                check_rounding (formats[f], x);
    }
}
END_TEST

/* Beside a middle by less than a float can tell: going through float would round twice. */
START_TEST (doubles_are_rounded_once)
{
    uint64_t state = 1;

    for (int i = 0; i < FORMATS; i++) {
        const struct format *f = formats[i];
        for (uint16_t code = 0; code < f->infinity; code++) {
            double middle = (value (f, code) + value (f, code + 1)) / 2;
            uint16_t even = code % 2 ? code + 1 : code;
            unit_check (
                f->of_double (middle) == even && f->of_double (-middle) == (f->sign | even) &&
                    f->of_double (nextafter (middle, 0)) == code &&
                    f->of_double (nextafter (middle, INFINITY)) == code + 1 &&
                    f->of_double (-nextafter (middle, INFINITY)) == (f->sign | (code + 1)),
                "doubles beside the middle above %04x are rounded wrongly", code);
        }
        for (int n = 0; n < 200000; n++) {
            uint64_t bits = unit_random (&state);
            double x;
            if (n % 2) /* exponents 2^-150 to 2^133 */
                bits = (bits & 0x800fffffffffffff) | (873 + bits % 284) << 52;
            memcpy (&x, &bits, sizeof (x));
            unit_check (isnan (x) ? isnan (f->to_float (f->of_double (x)))
                                  : f->of_double (x) == nearest (f, x),
                        "%a becomes %04x", x, f->of_double (x));
        }
    }
}
END_TEST

START_TEST (borders)
{
    static const float xs[] = {0.0f,
                               0x1p-24f,
                               0x1p-25f,
                               0x1.000002p-25f,
                               0x1p-26f,
                               0x1p-14f,
                               0x1.ffcp15f,
                               65519.0f,
                               65519.996f,
                               65520.0f,
                               65536.0f,
                               0x1p-126f,
                               0x1p-149f,
                               0x1p-133f,
                               0x1p-134f,
                               0x1.fep127f,
                               0x1.fefffep127f,
                               0x1.ffp127f,
                               0x1.fffffep127f,
                               INFINITY,
                               448,
                               464,
                               0x1.d00002p8f,
                               480,
                               0x1p-9f,
                               0x1p-10f,
                               0x1.000002p-10f,
                               57344,
                               61439.996f,
                               61440,
                               0x1p-16f,
                               0x1p-17f,
                               0x1.000002p-17f};

    for (size_t i = 0; i < sizeof (xs) / sizeof (xs[0]); i++)
        for (int sign = -1; sign <= 1; sign += 2)
            for (int f = 0; f < FORMATS; f++)
                check_rounding (formats[f], (float) sign * xs[i]);
    ck_assert_uint_eq (gsi_f16_of_float (-0.0f), 0x8000);
    ck_assert_uint_eq (gsi_bf16_of_float (-0.0f), 0x8000);
    ck_assert_uint_eq (gsi_f16_of_float (65519.996f), 0x7bff);
    ck_assert_uint_eq (gsi_f16_of_float (65520.0f), 0x7c00);
    ck_assert_uint_eq (gsi_bf16_of_float (0x1.fffffep127f), 0x7f80);
    ck_assert_uint_eq (gsi_f8_e4m3_of_float (-448), 0xfe);
    ck_assert_uint_eq (gsi_f8_e4m3_of_float (-465), 0xff);
    ck_assert_uint_eq (gsi_f8_e5m2_of_float (61440), 0x7c);
}
END_TEST

START_TEST (nan_never_becomes_infinity)
{
    for (int i = 0; i < FORMATS; i++)
        for (uint32_t low = 0; low < 23; low++)
            for (uint32_t sign = 0; sign < 2; sign++) {
                float x = gsi_float_of_bits (sign << 31 | 0x7f800000u | 1u << low);
                float all = gsi_float_of_bits (sign << 31 | 0x7fffffffu);
                ck_assert (isnan (formats[i]->to_float (formats[i]->of_float (x))));
                ck_assert (isnan (formats[i]->to_float (formats[i]->of_float (all))));
                ck_assert (!!(formats[i]->of_float (x) & formats[i]->sign) == !!sign);
            }
}
END_TEST

#ifdef __SSE2__
/* All values of both formats of 8 bits, and of f16. */
static __attribute__ ((noinline)) void widen_all (float *wide)
{
    for (int i = 0; i < 256; i++) {
        *wide++ = gsi_float_of_f8_e4m3 ((uint8_t) i);
        *wide++ = gsi_float_of_f8_e5m2 ((uint8_t) i);
    }
    for (int i = 0; i < 65536; i++)
        *wide++ = gsi_float_of_f16 ((uint16_t) i);
}

/* And back, from floats that are no subnormals. */
static __attribute__ ((noinline)) void narrow_all (const float *wide, uint16_t *half)
{
    for (int i = 0; i < 512 + 65536; i++) {
        half[3 * i] = gsi_f16_of_float (wide[i]);
        half[3 * i + 1] = gsi_f8_e4m3_of_float (wide[i]);
        half[3 * i + 2] = gsi_f8_e5m2_of_float (wide[i]);
    }
}

/* Fortran compilers set a process up so (FTZ and DAZ), and C's with -ffast-math. */
START_TEST (subnormals_of_float_may_be_flushed)
{
    static float wide[2][512 + 65536];
    static uint16_t half[2][3 * (512 + 65536)];
    unsigned before = _mm_getcsr ();

    for (int flushed = 0; flushed < 2; flushed++) {
        _mm_setcsr (flushed ? before | 0x8040u : before & ~0x8040u);
        widen_all (wide[flushed]);
        narrow_all (wide[flushed], half[flushed]);
    }
    _mm_setcsr (before);
    ck_assert_mem_eq (wide[0], wide[1], sizeof (wide[0]));
    ck_assert_mem_eq (half[0], half[1], sizeof (half[0]));
}
END_TEST
#define FLUSHED , subnormals_of_float_may_be_flushed
#else
#define FLUSHED
#endif

UNIT_SUITE ("half", 60, every_value_goes_there_and_back, every_midpoint_goes_to_even,
            random_floats, doubles_are_rounded_once, borders, nan_never_becomes_infinity FLUSHED)
