/* SPDX-License-Identifier: BSD-3-Clause */
/* host_runs - conversion, search and digest of arrays in host memory. */
#include "device/runs.h"

#include <string.h>

#include "base/dtype.h"
#include "device/clones.h"
#include "device/element.h"
#include "device/half_runs.h"

#define SAME(x) (x)

/* A is the type of the arithmetic; LOAD and STORE convert to and from it. */
#define DEFINE_CONVERT(NAME, FROM, TO, A, LOAD, STORE)                                   \
    GSI_CLONES static void NAME (const void *src, void *dst, size_t count, double scale) \
    {                                                                                    \
        const FROM *in = src;                                                            \
        TO *out = dst;                                                                   \
        A factor = (A) scale;                                                            \
        if (factor == 1)                                                                 \
            for (size_t i = 0; i < count; i++)                                           \
                out[i] = (TO) STORE ((A) LOAD (in[i]));                                  \
        else                                                                             \
            for (size_t i = 0; i < count; i++)                                           \
                out[i] = (TO) STORE ((A) LOAD (in[i]) * factor);                         \
    }

DEFINE_CONVERT (f16_bf16, uint16_t, uint16_t, float, gsi_float_of_f16, gsi_bf16_of_float)
DEFINE_CONVERT (f16_f64, uint16_t, double, double, gsi_float_of_f16, SAME)
DEFINE_CONVERT (bf16_f16, uint16_t, uint16_t, float, gsi_float_of_bf16, gsi_f16_of_float)
DEFINE_CONVERT (bf16_bf16, uint16_t, uint16_t, float, gsi_float_of_bf16, gsi_bf16_of_float)
DEFINE_CONVERT (bf16_f32, uint16_t, float, float, gsi_float_of_bf16, SAME)
DEFINE_CONVERT (bf16_f64, uint16_t, double, double, gsi_float_of_bf16, SAME)
DEFINE_CONVERT (f32_bf16, float, uint16_t, float, SAME, gsi_bf16_of_float)
DEFINE_CONVERT (f32_f32, float, float, float, SAME, SAME)
DEFINE_CONVERT (f32_f64, float, double, double, SAME, SAME)
DEFINE_CONVERT (f64_f16, double, uint16_t, double, SAME, gsi_f16_of_double)
DEFINE_CONVERT (f64_bf16, double, uint16_t, double, SAME, gsi_bf16_of_double)
DEFINE_CONVERT (f64_f32, double, float, double, SAME, SAME)
DEFINE_CONVERT (f64_f64, double, double, double, SAME, SAME)

/* Those that half_runs.h can help with. */

#define BLOCK 1024 /* elements: 4 KiB of floats */

static size_t block_of (size_t count, size_t base)
{
    return count - base < BLOCK ? count - base : BLOCK;
}

static void scale_floats (const float *in, float *out, size_t n, float factor)
{
    for (size_t i = 0; i < n && factor != 1; i++)
        out[i] = in[i] * factor;
}

static void f16_f32 (const void *src, void *dst, size_t count, double scale)
{
    for (size_t base = 0; base < count; base += BLOCK) {
        size_t n = block_of (count, base);
        float *out = (float *) dst + base;
        gsi_floats_of_f16 (out, (const uint16_t *) src + base, n);
        scale_floats (out, out, n, (float) scale);
    }
}

static void f32_f16 (const void *src, void *dst, size_t count, double scale)
{
    float block[BLOCK];

    for (size_t base = 0; base < count; base += BLOCK) {
        size_t n = block_of (count, base);
        const float *in = (const float *) src + base;
        scale_floats (in, block, n, (float) scale);
        gsi_f16_of_floats ((uint16_t *) dst + base, (float) scale == 1 ? in : block, n);
    }
}

static void f16_f16 (const void *src, void *dst, size_t count, double scale)
{
    float block[BLOCK];

    for (size_t base = 0; base < count; base += BLOCK) {
        size_t n = block_of (count, base);
        gsi_floats_of_f16 (block, (const uint16_t *) src + base, n);
        scale_floats (block, block, n, (float) scale);
        gsi_f16_of_floats ((uint16_t *) dst + base, block, n);
    }
}

typedef void (*convert_f) (const void *src, void *dst, size_t count, double scale);

#define FLOATING (GS_F64 + 1)
static const convert_f converters[FLOATING][FLOATING] = {
    [GS_F16] = {[GS_F16] = f16_f16, [GS_BF16] = f16_bf16, [GS_F32] = f16_f32, [GS_F64] = f16_f64},
    [GS_BF16] =
        {[GS_F16] = bf16_f16, [GS_BF16] = bf16_bf16, [GS_F32] = bf16_f32, [GS_F64] = bf16_f64},
    [GS_F32] = {[GS_F16] = f32_f16, [GS_BF16] = f32_bf16, [GS_F32] = f32_f32, [GS_F64] = f32_f64},
    [GS_F64] = {[GS_F16] = f64_f16, [GS_BF16] = f64_bf16, [GS_F32] = f64_f32, [GS_F64] = f64_f64},
};

void gsi_host_convert (const struct gsi_conversion *how, const struct gsi_run *runs,
                       size_t number)
{
    gs_dtype_t from = gsi_part_of (how->from), to = gsi_part_of (how->to);
    size_t parts = gsi_dtype_is_complex (how->from) ? 2 : 1;

    for (const struct gsi_run *run = runs; run < runs + number; run++) {
        size_t count = run->count * parts;
        if (!count)
            continue; /* its addresses may be NULL */
        if (from == to && how->scale == 1)
            memmove (run->dst, run->src, count * gs_dtype_size (from));
        else
            converters[from][to](run->src, run->dst, count, how->scale);
    }
}

/* FROM is the type of the arithmetic. */
#define DEFINE_ROUND_OFF(NAME, FROM, STORE, LOAD)                                          \
    GSI_CLONES static void NAME (const FROM *src, uint16_t *out, FROM *rest, size_t count) \
    {                                                                                      \
        for (size_t i = 0; i < count; i++) {                                               \
            FROM whole = src[i] + rest[i];                                                 \
            uint16_t sent = STORE (whole);                                                 \
            FROM lost = whole - (FROM) LOAD (sent);                                        \
            out[i] = sent;                                                                 \
            rest[i] = lost - lost == 0 ? lost : 0;                                         \
        }                                                                                  \
    }

DEFINE_ROUND_OFF (round_off_f32_f16, float, gsi_f16_of_float, gsi_float_of_f16)
DEFINE_ROUND_OFF (round_off_f32_bf16, float, gsi_bf16_of_float, gsi_float_of_bf16)
DEFINE_ROUND_OFF (round_off_f64_f16, double, gsi_f16_of_double, gsi_float_of_f16)
DEFINE_ROUND_OFF (round_off_f64_bf16, double, gsi_bf16_of_double, gsi_float_of_bf16)

void gsi_host_round_off (const struct gsi_conversion *how, const struct gsi_run *run, void *rest)
{
    bool half = how->to == GS_F16;

    if (how->from == GS_F32)
        (half ? round_off_f32_f16 : round_off_f32_bf16) (run->src, run->dst, rest, run->count);
    else
        (half ? round_off_f64_f16 : round_off_f64_bf16) (run->src, run->dst, rest, run->count);
}

#define LANES 8 /* sums side by side, for the compiler to vectorise; the order is fixed */

#define DEFINE_SQUARES(NAME, T, LOAD)                                             \
    GSI_CLONES static double NAME (const void *data, size_t count)                \
    {                                                                             \
        const T *in = data;                                                       \
        double lane[LANES] = {0}, sum = 0;                                        \
        size_t whole = count / LANES * LANES;                                     \
        for (size_t i = 0; i < whole; i += LANES)                                 \
            for (size_t k = 0; k < LANES; k++)                                    \
                lane[k] += (double) LOAD (in[i + k]) * (double) LOAD (in[i + k]); \
        for (size_t i = whole; i < count; i++)                                    \
            lane[i - whole] += (double) LOAD (in[i]) * (double) LOAD (in[i]);     \
        for (size_t k = 0; k < LANES; k++)                                        \
            sum += lane[k];                                                       \
        return sum;                                                               \
    }

DEFINE_SQUARES (squares_f16, uint16_t, gsi_float_of_f16)
DEFINE_SQUARES (squares_bf16, uint16_t, gsi_float_of_bf16)
DEFINE_SQUARES (squares_f32, float, SAME)
DEFINE_SQUARES (squares_f64, double, SAME)

double gsi_host_squares (gs_dtype_t dtype, const void *data, size_t count)
{
    static double (*const squares[]) (const void *, size_t) = {[GS_F16] = squares_f16,
                                                               [GS_BF16] = squares_bf16,
                                                               [GS_F32] = squares_f32,
                                                               [GS_F64] = squares_f64};
    size_t parts = gsi_dtype_is_complex (dtype) ? 2 : 1;

    return squares[gsi_part_of (dtype)](data, count * parts);
}

/* No early end: it would keep the loop from being vectorised, and finite data is the rule. */
#define DEFINE_SEARCH(NAME, T, BAD)                              \
    GSI_CLONES static bool NAME (const void *data, size_t count) \
    {                                                            \
        const T *in = data;                                      \
        bool bad = false;                                        \
        for (size_t i = 0; i < count; i++)                       \
            bad |= BAD (in[i]);                                  \
        return bad;                                              \
    }

DEFINE_SEARCH (any_f16, uint16_t, gsi_bad_f16)
DEFINE_SEARCH (any_bf16, uint16_t, gsi_bad_bf16)
DEFINE_SEARCH (any_f32, float, gsi_bad_f32)
DEFINE_SEARCH (any_f64, double, gsi_bad_f64)

uint32_t gsi_host_first_bad (gs_dtype_t dtype, const struct gsi_run *runs, size_t number)
{
    static bool (*const search[]) (const void *, size_t) = {
        [GS_F16] = any_f16, [GS_BF16] = any_bf16, [GS_F32] = any_f32, [GS_F64] = any_f64};
    size_t parts = gsi_dtype_is_complex (dtype) ? 2 : 1;

    for (size_t r = 0; r < number; r++)
        if (search[gsi_part_of (dtype)](runs[r].src, runs[r].count * parts))
            return (uint32_t) r;
    return GSI_ALL_FINITE;
}

uint64_t gsi_host_digest (const void *data, size_t bytes, uint64_t begin)
{
    const unsigned char *in = data;
    uint64_t sum = 0, word;
    size_t words = bytes / sizeof (word);

    for (size_t i = 0; i < words; i++) {
        memcpy (&word, in + i * sizeof (word), sizeof (word));
        sum += gsi_digest_word (word, begin + i);
    }
    if (bytes % sizeof (word)) {
        word = 0;
        memcpy (&word, in + words * sizeof (word), bytes % sizeof (word));
        sum += gsi_digest_word (word, begin + words);
    }
    return sum;
}
