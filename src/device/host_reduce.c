/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host_reduce - combines arrays of host memory in the order given.
 *
 * Works in blocks that stay in the first-level cache: the sources are combined into an
 * accumulator one by one, which is then divided and stored, rounded once. The loops over a block
 * are plain, without calls or branches, for the compiler to vectorise.
 */
#include <complex.h>
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/half.h"
#include "device/clones.h"
#include "device/device.h"
#include "device/half_runs.h"

#define BLOCK 1024 /* elements: at most 16 KiB of accumulator, half a first-level cache */

/* Fills the accumulator of one block. */
#define LOOP(expression)           \
    for (size_t i = 0; i < n; i++) \
    acc[i] = (expression)

/* Round and store one block. */
#define PUT(expression)            \
    for (size_t i = 0; i < n; i++) \
    out[i] = (expression)

#define PUT_BF16(expression)       \
    for (size_t i = 0; i < n; i++) \
    out[i] = gsi_bf16_of_float (expression)

#define PUT_F16(expression)              \
    do {                                 \
        LOOP (expression);               \
        gsi_f16_of_floats (out, acc, n); \
    } while (0)

/* A block of a source as the loops take it, with room for two at a time. */
#define TAKE(room, in, n)     ((void) (room), (in))
#define TAKE_F16(room, in, n) gsi_floats_of_f16 (room, in, n)

/* A NaN on either side gives NaN: it differs from itself, and no comparison with it is true. */
#define MIN_REAL(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))
#define MAX_REAL(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))

#define COMBINE_REAL(a, b)                      \
    switch (how->op) {                          \
    case GS_PROD: LOOP ((a) * (b)); break;      \
    case GS_MIN: LOOP (MIN_REAL (a, b)); break; \
    case GS_MAX: LOOP (MAX_REAL (a, b)); break; \
    default: LOOP ((a) + (b)); break;           \
    }

#define COMBINE_COMPLEX(a, b) \
    if (how->op == GS_PROD)   \
        LOOP ((a) * (b));     \
    else                      \
        LOOP ((a) + (b));

/* Division by a power of two is multiplication by its exact inverse, which is faster. */
static bool is_power_of_two (double x)
{
    int exponent;

    return frexp (x, &exponent) == 0.5;
}

/*
 * Defines NAME: T is the element of sources, L what TAKE makes of it, O that of dst, A the
 * accumulator, R its real type; LOAD and PUT convert, and COMBINE knows the operations. The first
 * source waits ([first]) to be combined with the second in one pass.
 */
#define DEFINE_FLOATING(NAME, T, L, O, A, R, TAKE, LOAD, PUT, COMBINE)              \
    GSI_CLONES static void NAME (const struct gsi_reduction *how, void *dst,        \
                                 const void *const *src, int sources, size_t count) \
    {                                                                               \
        A acc[BLOCK];                                                               \
        L room[2][BLOCK];                                                           \
        R divisor = (R) how->divisor;                                               \
        bool inverse = is_power_of_two (how->divisor);                              \
        for (size_t base = 0; base < count; base += BLOCK) {                        \
            size_t n = count - base < BLOCK ? count - base : BLOCK;                 \
            O *out = (O *) dst + base;                                              \
            const L *first = NULL;                                                  \
            bool empty = true;                                                      \
            for (int s = 0; s < sources; s++) {                                     \
                const L *in;                                                        \
                R scale = how->scale ? (R) how->scale[s] : 1;                       \
                if (scale == 0)                                                     \
                    continue;                                                       \
                in = TAKE (room[first != NULL], (const T *) src[s] + base, n);      \
                if (empty && scale == 1) {                                          \
                    first = in;                                                     \
                } else if (empty) {                                                 \
                    LOOP (LOAD (in[i]) * scale);                                    \
                } else if (first && scale == 1) {                                   \
                    COMBINE (LOAD (first[i]), LOAD (in[i]))                         \
                    first = NULL;                                                   \
                } else if (first) {                                                 \
                    LOOP (LOAD (first[i]) + LOAD (in[i]) * scale);                  \
                    first = NULL;                                                   \
                } else if (scale == 1) {                                            \
                    COMBINE (acc[i], LOAD (in[i]))                                  \
                } else {                                                            \
                    LOOP (acc[i] + LOAD (in[i]) * scale);                           \
                }                                                                   \
                empty = false;                                                      \
            }                                                                       \
            if (empty)                                                              \
                LOOP (0);                                                           \
            if (first)                                                              \
                LOOP (LOAD (first[i]));                                             \
            if (divisor == 1)                                                       \
                PUT (acc[i]);                                                       \
            else if (inverse)                                                       \
                PUT (acc[i] * (1 / divisor));                                       \
            else                                                                    \
                PUT (acc[i] / divisor);                                             \
        }                                                                           \
    }

#define SAME(x) (x)

DEFINE_FLOATING (reduce_f16, uint16_t, float, uint16_t, float, float, TAKE_F16, SAME, PUT_F16,
                 COMBINE_REAL)
DEFINE_FLOATING (reduce_bf16, uint16_t, uint16_t, uint16_t, float, float, TAKE, gsi_float_of_bf16,
                 PUT_BF16, COMBINE_REAL)
DEFINE_FLOATING (reduce_f32, float, float, float, float, float, TAKE, SAME, PUT, COMBINE_REAL)
DEFINE_FLOATING (reduce_f64, double, double, double, double, double, TAKE, SAME, PUT,
                 COMBINE_REAL)
DEFINE_FLOATING (reduce_c64, float complex, float complex, float complex, float complex, float,
                 TAKE, SAME, PUT, COMBINE_COMPLEX)
DEFINE_FLOATING (reduce_c128, double complex, double complex, double complex, double complex,
                 double, TAKE, SAME, PUT, COMBINE_COMPLEX)

/* To and from sums in fp32. */
DEFINE_FLOATING (sum_f16, uint16_t, float, float, float, float, TAKE_F16, SAME, PUT, COMBINE_REAL)
DEFINE_FLOATING (sum_bf16, uint16_t, uint16_t, float, float, float, TAKE, gsi_float_of_bf16, PUT,
                 COMBINE_REAL)
DEFINE_FLOATING (round_f16, float, float, uint16_t, float, float, TAKE, SAME, PUT_F16,
                 COMBINE_REAL)
DEFINE_FLOATING (round_bf16, float, float, uint16_t, float, float, TAKE, SAME, PUT_BF16,
                 COMBINE_REAL)

/* Integers: sums and products in the unsigned type U, no narrower than int, which wraps. */
#define DEFINE_INTEGER(NAME, T, U)                                                  \
    GSI_CLONES static void NAME (const struct gsi_reduction *how, void *dst,        \
                                 const void *const *src, int sources, size_t count) \
    {                                                                               \
        T acc[BLOCK];                                                               \
        for (size_t base = 0; base < count; base += BLOCK) {                        \
            size_t n = count - base < BLOCK ? count - base : BLOCK;                 \
            memcpy (acc, (const T *) src[0] + base, n * sizeof (T));                \
            for (int s = 1; s < sources; s++) {                                     \
                const T *in = (const T *) src[s] + base;                            \
                switch (how->op) {                                                  \
                case GS_PROD: LOOP ((T) ((U) acc[i] * (U) in[i])); break;           \
                case GS_MIN: LOOP (acc[i] < in[i] ? acc[i] : in[i]); break;         \
                case GS_MAX: LOOP (acc[i] > in[i] ? acc[i] : in[i]); break;         \
                default: LOOP ((T) ((U) acc[i] + (U) in[i])); break;                \
                }                                                                   \
            }                                                                       \
            memcpy ((T *) dst + base, acc, n * sizeof (T));                         \
        }                                                                           \
    }

DEFINE_INTEGER (reduce_i8, int8_t, uint32_t)
DEFINE_INTEGER (reduce_i16, int16_t, uint32_t)
DEFINE_INTEGER (reduce_i32, int32_t, uint32_t)
DEFINE_INTEGER (reduce_i64, int64_t, uint64_t)
DEFINE_INTEGER (reduce_u8, uint8_t, uint32_t)
DEFINE_INTEGER (reduce_u16, uint16_t, uint32_t)
DEFINE_INTEGER (reduce_u32, uint32_t, uint32_t)
DEFINE_INTEGER (reduce_u64, uint64_t, uint64_t)

typedef void (*reduce_f) (const struct gsi_reduction *how, void *dst, const void *const *src,
                          int sources, size_t count);

static const reduce_f functions[] = {
    [GS_F32] = reduce_f32, [GS_F64] = reduce_f64, [GS_I8] = reduce_i8,   [GS_I16] = reduce_i16,
    [GS_I32] = reduce_i32, [GS_I64] = reduce_i64, [GS_U8] = reduce_u8,   [GS_U16] = reduce_u16,
    [GS_U32] = reduce_u32, [GS_U64] = reduce_u64, [GS_C64] = reduce_c64, [GS_C128] = reduce_c128,
};

void gsi_host_reduce (const struct gsi_reduction *how, void *dst, const void *const *src,
                      int sources, size_t count)
{
    static const reduce_f halves[][GS_BF16 + 1] = {
        [GSI_SUMS_NONE] = {[GS_F16] = reduce_f16, [GS_BF16] = reduce_bf16},
        [GSI_SUMS_OUT] = {[GS_F16] = sum_f16, [GS_BF16] = sum_bf16},
        [GSI_SUMS_IN] = {[GS_F16] = round_f16, [GS_BF16] = round_bf16},
    };
    bool half = how->dtype == GS_F16 || how->dtype == GS_BF16;

    (half ? halves[how->sums] : functions)[how->dtype](how, dst, src, sources, count);
}
