/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * half - conversion of IEEE binary16, bfloat16 and fp8 to and from float, round to nearest even.
 *
 * The same bits on every compiler and CPU, also where a process flushes subnormals of float, as
 * Fortran compilers have it: arithmetic of integers, and sums of floats that are none. And no
 * branch that would keep a loop from being vectorised. Formats: IEEE 754-2019 section 3.6;
 * bfloat16 is the upper half of a binary32; fp8: arXiv:2209.05433. A NaN stays one and keeps the
 * upper bits of its fraction, and what is too large becomes infinity, or NaN in E4M3, which has
 * no infinity.
 */
#ifndef GS_BASE_HALF_H
#define GS_BASE_HALF_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* What hosts and GPUs compute alike: the same source, the same bits. */
#ifdef __CUDACC__
#define GSI_BOTH static inline __host__ __device__
#else
#define GSI_BOTH static inline
#endif

GSI_BOTH float gsi_float_of_bits (uint32_t bits)
{
    float f;

    memcpy (&f, &bits, sizeof (f));
    return f;
}

GSI_BOTH uint32_t gsi_bits_of_float (float f)
{
    uint32_t bits;

    memcpy (&bits, &f, sizeof (bits));
    return bits;
}

GSI_BOTH float gsi_float_of_bf16 (uint16_t h)
{
    return gsi_float_of_bits ((uint32_t) h << 16);
}

GSI_BOTH uint16_t gsi_bf16_of_float (float f)
{
    uint32_t bits = gsi_bits_of_float (f);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    uint32_t quiet = (bits >> 16) | 0x40u; /* rounding could carry a NaN into infinity */

    return (uint16_t) ((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

GSI_BOTH float gsi_float_of_f16 (uint16_t h)
{
    uint32_t sign = (uint32_t) (h & 0x8000u) << 16;
    uint32_t rest = (uint32_t) (h & 0x7fffu) << 13; /* exponent and fraction in float's place */
    /* From bias 15 to bias 127. Subnormals, whose fraction stands behind 2^-14 first, are those
     * of no float on the way: a process may take such for 0, as Fortran compilers set it up. */
    float small = gsi_float_of_bits (rest + 0x38800000u) - 0x1p-14f;
    uint32_t special = rest | 0x7f800000u; /* infinity and NaN keep their fraction */
    uint32_t finite = rest < 0x00800000u ? gsi_bits_of_float (small) : rest + 0x38000000u;

    return gsi_float_of_bits (sign | ((h & 0x7c00u) == 0x7c00u ? special : finite));
}

GSI_BOTH uint16_t gsi_f16_of_float (float f)
{
    uint32_t bits = gsi_bits_of_float (f);
    uint32_t sign = (bits >> 16) & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    /* Normal: move the bias by -112 and round away 13 bits; a carry runs into the exponent. */
    uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    /* Below 2^-14: adding 0.5 aligns the last bit of the float with the last subnormal bit, so
     * that the addition itself rounds to nearest even. */
    uint32_t small = gsi_bits_of_float (gsi_float_of_bits (magnitude) + 0.5f) - 0x3f000000u;
    uint32_t big = magnitude > 0x7f800000u ? 0x7e00u | (magnitude >> 13 & 0x3ffu) : 0x7c00u;
    uint32_t finite = magnitude < 0x38800000u ? small : normal;

    return (uint16_t) (sign | (magnitude >= 0x47800000u ? big : finite));
}

GSI_BOTH float gsi_float_of_f8_e5m2 (uint8_t h)
{
    return gsi_float_of_f16 ((uint16_t) (h << 8));
}

/* As gsi_f16_of_float, with 21 bits to round away, and subnormals of 2^-16. */
GSI_BOTH uint8_t gsi_f8_e5m2_of_float (float f)
{
    uint32_t bits = gsi_bits_of_float (f);
    uint32_t sign = (bits >> 24) & 0x80u;
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t normal = (magnitude - 0x38000000u + 0xfffffu + ((magnitude >> 21) & 1u)) >> 21;
    uint32_t small = gsi_bits_of_float (gsi_float_of_bits (magnitude) + 0x1p7f) - 0x43000000u;
    uint32_t big = magnitude > 0x7f800000u ? 0x7eu | (magnitude >> 21 & 3u) : 0x7cu;
    uint32_t finite = magnitude < 0x38800000u ? small : normal;

    return (uint8_t) (sign | (magnitude >= 0x47800000u ? big : finite));
}

GSI_BOTH float gsi_float_of_f8_e4m3 (uint8_t h)
{
    uint32_t sign = (uint32_t) (h & 0x80u) << 24;
    uint32_t rest = (uint32_t) (h & 0x7fu) << 20;
    /* From bias 7 to bias 127, as in gsi_float_of_f16. */
    float small = gsi_float_of_bits (rest + 0x3c800000u) - 0x1p-6f;
    uint32_t finite = rest < 0x00800000u ? gsi_bits_of_float (small) : rest + 0x3c000000u;

    return gsi_float_of_bits (sign | ((h & 0x7fu) == 0x7fu ? 0x7fc00000u : finite));
}

/* Likewise with 20 bits, and subnormals of 2^-9. Above 464, the middle of 448 and 480, is NaN. */
GSI_BOTH uint8_t gsi_f8_e4m3_of_float (float f)
{
    uint32_t bits = gsi_bits_of_float (f);
    uint32_t sign = (bits >> 24) & 0x80u;
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t normal = (magnitude - 0x3c000000u + 0x7ffffu + ((magnitude >> 20) & 1u)) >> 20;
    uint32_t small = gsi_bits_of_float (gsi_float_of_bits (magnitude) + 0x1p14f) - 0x46800000u;
    uint32_t finite = magnitude < 0x3c800000u ? small : normal;

    return (uint8_t) (sign | (magnitude > 0x43e80000u ? 0x7fu : finite));
}

/*
 * The float next to [d] whose last bit is 1 unless it is exact ("round to odd"). Rounded again to
 * 16 bits it gives what rounding [d] once would: S. Boldo, G. Melquiond, Emulation of FMA and
 * correctly rounded sums, IEEE Transactions on Computers 57 (2008) 462.
 */
GSI_BOTH float gsi_odd_float_of_double (double d)
{
    float f = (float) d; /* to nearest: at most one unit too far from zero */
    uint32_t bits = gsi_bits_of_float (f);
    double back = f, too_far = d < 0 ? d - back : back - d;

    if (back == d || d != d)
        return f;
    return gsi_float_of_bits ((bits - (too_far > 0 ? 1u : 0u)) | 1u);
}

/*
 * For each type its number next to [d], and whether one is infinity or NaN: of those whose
 * exponent is all [ones], but of E4M3, which has no infinity, NaN alone.
 */
#define GSI_NARROW(name, uint, ones)                                \
    GSI_BOTH uint gsi_##name##_of_double (double d)                 \
    {                                                               \
        return gsi_##name##_of_float (gsi_odd_float_of_double (d)); \
    }                                                               \
    GSI_BOTH bool gsi_bad_##name (uint h)                           \
    {                                                               \
        return (h & (ones)) == (ones);                              \
    }
GSI_NARROW (f16, uint16_t, 0x7c00u)
GSI_NARROW (bf16, uint16_t, 0x7f80u)
GSI_NARROW (f8_e5m2, uint8_t, 0x7cu)
GSI_NARROW (f8_e4m3, uint8_t, 0x7fu)
#undef GSI_NARROW

#endif /* GS_BASE_HALF_H */
