/* SPDX-License-Identifier: BSD-3-Clause */
/* host_runs - conversion, search and digest of arrays in host memory. */
#include "device/runs.h"

#include <string.h>

#include "base/dtype.h"
#include "device/target_clones.h"
#include "device/element.h"
#include "device/half_runs.h"

#define SAME(x) (x)

/*
 * Conversion goes by blocks, which stay in the first-level cache, of the type of the arithmetic:
 * from any type to it, scaled, and from it to any type. Where one is that type there is no block.
 */
#define BLOCK 1024 /* elements */

/* [n] of [in] times [factor] are in what is returned: in [room], or where they were. */
#define DEFINE_LOAD(NAME, T, A, LOAD)                                                          \
    GSI_TARGET_CLONES static const A *NAME (A *room, const void *from, size_t n, double scale) \
    {                                                                                          \
        const T *in = from;                                                                    \
        A factor = (A) scale;                                                                  \
        if (factor == 1)                                                                       \
            for (size_t i = 0; i < n; i++)                                                     \
                room[i] = (A) LOAD (in[i]);                                                    \
        else                                                                                   \
            for (size_t i = 0; i < n; i++)                                                     \
                room[i] = (A) LOAD (in[i]) * factor;                                           \
        return room;                                                                           \
    }

#define DEFINE_STORE(NAME, T, A, STORE)                                         \
    GSI_TARGET_CLONES static void NAME (void *to, const A *block, size_t count) \
    {                                                                           \
        T *out = to;                                                            \
        for (size_t i = 0; i < count; i++)                                      \
            out[i] = (T) STORE (block[i]);                                      \
    }

#define DEFINE_LOOPS(name, T)                                     \
    DEFINE_LOAD (floats_of_##name, T, float, gsi_float_of_##name) \
    DEFINE_STORE (name##_of_floats, T, float, gsi_##name##_of_float)

/* By half_runs.h. */
#define DEFINE_RUNS(name, T)                                                                   \
    static const float *floats_of_##name (float *room, const void *in, size_t n, double scale) \
    {                                                                                          \
        gsi_floats_of_##name (room, in, n);                                                    \
        for (size_t i = 0; i < n && (float) scale != 1; i++)                                   \
            room[i] *= (float) scale;                                                          \
        return room;                                                                           \
    }                                                                                          \
    static void name##_of_floats (void *out, const float *block, size_t n)                     \
    {                                                                                          \
        gsi_##name##_of_floats (out, block, n);                                                \
    }

#define GSI_REDUCED(NAME, name, value, T, exponent, fraction, largest, nccl, BY)          \
    DEFINE_##BY (name, T) DEFINE_LOAD (doubles_of_##name, T, double, gsi_float_of_##name) \
        DEFINE_STORE (name##_of_doubles, T, double, gsi_##name##_of_double)
#include "base/dtype.def"

DEFINE_LOAD (scaled_floats, float, float, SAME)
DEFINE_LOAD (scaled_doubles, double, double, SAME)
DEFINE_LOAD (doubles_of_f32, float, double, SAME)
DEFINE_STORE (f32_of_doubles, float, double, SAME)

static const float *floats_of_f32 (float *room, const void *in, size_t n, double scale)
{
    return (float) scale == 1 ? in : scaled_floats (room, in, n, scale);
}

static const double *doubles_of_f64 (double *room, const void *in, size_t n, double scale)
{
    return scale == 1 ? in : scaled_doubles (room, in, n, scale);
}

static void f32_of_floats (void *out, const float *block, size_t n)
{
    if (out != block)
        memcpy (out, block, n * sizeof (float));
}

static void f64_of_doubles (void *out, const double *block, size_t n)
{
    if (out != block)
        memcpy (out, block, n * sizeof (double));
}

/* What a type is loaded and stored by, where floats are computed with, and where doubles are. */
static const struct {
    const float *(*floats) (float *room, const void *in, size_t n, double scale);
    void (*of_floats) (void *out, const float *block, size_t n);
    const double *(*doubles) (double *room, const void *in, size_t n, double scale);
    void (*of_doubles) (void *out, const double *block, size_t n);
} by[GSI_DTYPES] = {
#define GSI_REDUCED(NAME, name, ...) \
    [GS_##NAME] = {floats_of_##name, name##_of_floats, doubles_of_##name, name##_of_doubles},
#include "base/dtype.def"
    [GS_F32] = {floats_of_f32, f32_of_floats, doubles_of_f32, f32_of_doubles},
    [GS_F64] = {.doubles = doubles_of_f64, .of_doubles = f64_of_doubles},
};

#define DEFINE_CONVERT(NAME, A, WHOLE, LOAD, STORE)                                            \
    static void NAME (gs_dtype_t from, gs_dtype_t to, const struct gsi_run *run, size_t count, \
                      double scale)                                                            \
    {                                                                                          \
        size_t in = gs_dtype_size (from), out = gs_dtype_size (to);                            \
        A room[BLOCK];                                                                         \
        for (size_t at = 0; at < count; at += BLOCK) {                                         \
            size_t n = count - at < BLOCK ? count - at : BLOCK;                                \
            char *dst = (char *) run->dst + at * out;                                          \
            A *block = to == WHOLE ? (A *) (void *) dst : room;                                \
            by[to].STORE (                                                                     \
                dst, by[from].LOAD (block, (const char *) run->src + at * in, n, scale), n);   \
        }                                                                                      \
    }

DEFINE_CONVERT (convert_by_floats, float, GS_F32, floats, of_floats)
DEFINE_CONVERT (convert_by_doubles, double, GS_F64, doubles, of_doubles)

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
        else if (from == GS_F64 || to == GS_F64)
            convert_by_doubles (from, to, run, count, how->scale);
        else
            convert_by_floats (from, to, run, count, how->scale);
    }
}

/* FROM is the type of the arithmetic. */
#define DEFINE_QUANTIZE(NAME, FROM, T, STORE, LOAD)                                           \
    GSI_TARGET_CLONES static void NAME (const void *src, void *dst, void *left, size_t count) \
    {                                                                                         \
        const FROM *in = src;                                                                 \
        FROM *residual = left;                                                                \
        T *out = dst;                                                                         \
        for (size_t i = 0; i < count; i++) {                                                  \
            FROM whole = in[i] + residual[i];                                                 \
            T sent = STORE (whole);                                                           \
            FROM lost = whole - (FROM) LOAD (sent);                                           \
            out[i] = sent;                                                                    \
            residual[i] = lost - lost == 0 ? lost : 0;                                        \
        }                                                                                     \
    }

#define GSI_REDUCED(NAME, name, value, T, ...)                                                  \
    DEFINE_QUANTIZE (quantize_f32_##name, float, T, gsi_##name##_of_float, gsi_float_of_##name) \
    DEFINE_QUANTIZE (quantize_f64_##name, double, T, gsi_##name##_of_double, gsi_float_of_##name)
#include "base/dtype.def"

static void (*const quantize[GSI_DTYPES][2]) (const void *, void *, void *, size_t) = {
#define GSI_REDUCED(NAME, name, ...) [GS_##NAME] = {quantize_f32_##name, quantize_f64_##name},
#include "base/dtype.def"
};

void gsi_host_quantize (const struct gsi_conversion *how, const struct gsi_run *run,
                        void *residual)
{
    quantize[how->to][how->from == GS_F64](run->src, run->dst, residual, run->count);
}

#define LANES 8 /* sums side by side, for the compiler to vectorise; the order is fixed */

#define DEFINE_SQUARES(NAME, T, LOAD)                                             \
    GSI_TARGET_CLONES static double NAME (const void *data, size_t count)         \
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

#define GSI_REDUCED(NAME, name, value, T, ...) \
    DEFINE_SQUARES (squares_##name, T, gsi_float_of_##name)
#define GSI_FLOATING(NAME, name, value, T, ...) DEFINE_SQUARES (squares_##name, T, SAME)
#include "base/dtype.def"

static double (*const squares[GSI_DTYPES]) (const void *, size_t) = {
#define GSI_REDUCED(NAME, name, ...)  [GS_##NAME] = squares_##name,
#define GSI_FLOATING(NAME, name, ...) [GS_##NAME] = squares_##name,
#include "base/dtype.def"
};

double gsi_host_squares (gs_dtype_t dtype, const void *data, size_t count)
{
    size_t parts = gsi_dtype_is_complex (dtype) ? 2 : 1;

    return squares[gsi_part_of (dtype)](data, count * parts);
}

/* No early end: it would keep the loop from being vectorised, and finite data is the rule. */
#define DEFINE_SEARCH(NAME, T, BAD)                                     \
    GSI_TARGET_CLONES static bool NAME (const void *data, size_t count) \
    {                                                                   \
        const T *in = data;                                             \
        bool bad = false;                                               \
        for (size_t i = 0; i < count; i++)                              \
            bad |= BAD (in[i]);                                         \
        return bad;                                                     \
    }

#define SEARCH(NAME, name, value, T, ...) DEFINE_SEARCH (any_##name, T, gsi_bad_##name)
#define GSI_REDUCED                       SEARCH
#define GSI_FLOATING                      SEARCH
#include "base/dtype.def"

static bool (*const search[GSI_DTYPES]) (const void *, size_t) = {
#define GSI_REDUCED(NAME, name, ...)  [GS_##NAME] = any_##name,
#define GSI_FLOATING(NAME, name, ...) [GS_##NAME] = any_##name,
#include "base/dtype.def"
};

uint32_t gsi_host_find_nonfinite (gs_dtype_t dtype, const struct gsi_run *runs, size_t number)
{
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
