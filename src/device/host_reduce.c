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
#include "device/target_clones.h"
#include "device/device.h"
#include "device/half_runs.h"

#define BLOCK 1024 /* elements: at most 16 KiB of accumulator, half a first-level cache */

/* Fills the accumulator of one block. */
#define LOOP(expression)           \
    for (size_t i = 0; i < n; i++) \
    acc[i] = (expression)

/* Round and store one block. */
#define PUT(STORE, expression)     \
    for (size_t i = 0; i < n; i++) \
    out[i] = STORE (expression)

/* A block of a source as the loops take it, with room for two at a time. */
#define TAKE(room, in, n) ((void) (room), (in))

/* Those of f16 are converted in runs, by instructions that vectorised loops do not have. */
#define PUT_F16(STORE, expression)       \
    do {                                 \
        LOOP (expression);               \
        gsi_f16_of_floats (out, acc, n); \
    } while (0)
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
#define DEFINE_FLOATING(NAME, T, L, O, A, R, TAKE, LOAD, PUT, STORE, COMBINE)              \
    GSI_TARGET_CLONES static void NAME (const struct gsi_reduction *how, void *dst,        \
                                        const void *const *src, int sources, size_t count) \
    {                                                                                      \
        A acc[BLOCK];                                                                      \
        L room[2][BLOCK];                                                                  \
        R divisor = (R) how->divisor;                                                      \
        bool inverse = is_power_of_two (how->divisor);                                     \
        for (size_t base = 0; base < count; base += BLOCK) {                               \
            size_t n = count - base < BLOCK ? count - base : BLOCK;                        \
            O *out = (O *) dst + base;                                                     \
            const L *first = NULL;                                                         \
            bool empty = true;                                                             \
            for (int s = 0; s < sources; s++) {                                            \
                const L *in;                                                               \
                R scale = how->scale ? (R) how->scale[s] : 1;                              \
                if (scale == 0)                                                            \
                    continue;                                                              \
                in = TAKE (room[first != NULL], (const T *) src[s] + base, n);             \
                if (empty && scale == 1) {                                                 \
                    first = in;                                                            \
                } else if (empty) {                                                        \
                    LOOP (LOAD (in[i]) * scale);                                           \
                } else if (first && scale == 1) {                                          \
                    COMBINE (LOAD (first[i]), LOAD (in[i]))                                \
                    first = NULL;                                                          \
                } else if (first) {                                                        \
                    LOOP (LOAD (first[i]) + LOAD (in[i]) * scale);                         \
                    first = NULL;                                                          \
                } else if (scale == 1) {                                                   \
                    COMBINE (acc[i], LOAD (in[i]))                                         \
                } else {                                                                   \
                    LOOP (acc[i] + LOAD (in[i]) * scale);                                  \
                }                                                                          \
                empty = false;                                                             \
            }                                                                              \
            if (empty)                                                                     \
                LOOP (0);                                                                  \
            if (first)                                                                     \
                LOOP (LOAD (first[i]));                                                    \
            if (divisor == 1)                                                              \
                PUT (STORE, acc[i]);                                                       \
            else if (inverse)                                                              \
                PUT (STORE, acc[i] * (1 / divisor));                                       \
            else                                                                           \
                PUT (STORE, acc[i] / divisor);                                             \
        }                                                                                  \
    }

#define SAME(x) (x)

/* To itself, to sums in fp32, and from them. */
#define DEFINE_REDUCED(name, T, L, TAKE_L, LOAD, PUT_L, STORE)                              \
    DEFINE_FLOATING (reduce_##name, T, L, T, float, float, TAKE_L, LOAD, PUT_L, STORE,      \
                     COMBINE_REAL)                                                          \
    DEFINE_FLOATING (sum_##name, T, L, float, float, float, TAKE_L, LOAD, PUT, SAME,        \
                     COMBINE_REAL)                                                          \
    DEFINE_FLOATING (round_##name, float, float, T, float, float, TAKE, SAME, PUT_L, STORE, \
                     COMBINE_REAL)
#define DEFINE_LOOPS(name, T) \
    DEFINE_REDUCED (name, T, T, TAKE, gsi_float_of_##name, PUT, gsi_##name##_of_float)
#define DEFINE_RUNS(name, T) DEFINE_REDUCED (name, T, float, TAKE_F16, SAME, PUT_F16, SAME)

#define GSI_REDUCED(NAME, name, value, T, exponent, fraction, largest, nccl, BY) \
    DEFINE_##BY (name, T)
#define GSI_FLOATING(NAME, name, value, T, ...) \
    DEFINE_FLOATING (reduce_##name, T, T, T, T, T, TAKE, SAME, PUT, SAME, COMBINE_REAL)
#define REAL_f32 float
#define REAL_f64 double
#define GSI_COMPLEX(NAME, name, value, T, PART, part)                               \
    DEFINE_FLOATING (reduce_##name, T, T, T, T, REAL_##part, TAKE, SAME, PUT, SAME, \
                     COMBINE_COMPLEX)
#include "base/dtype.def"

/* Integers: sums and products in the unsigned type U, no narrower than int, which wraps. */
#define DEFINE_INTEGER(NAME, T, U)                                                         \
    GSI_TARGET_CLONES static void NAME (const struct gsi_reduction *how, void *dst,        \
                                        const void *const *src, int sources, size_t count) \
    {                                                                                      \
        T acc[BLOCK];                                                                      \
        for (size_t base = 0; base < count; base += BLOCK) {                               \
            size_t n = count - base < BLOCK ? count - base : BLOCK;                        \
            memcpy (acc, (const T *) src[0] + base, n * sizeof (T));                       \
            for (int s = 1; s < sources; s++) {                                            \
                const T *in = (const T *) src[s] + base;                                   \
                switch (how->op) {                                                         \
                case GS_PROD: LOOP ((T) ((U) acc[i] * (U) in[i])); break;                  \
                case GS_MIN: LOOP (acc[i] < in[i] ? acc[i] : in[i]); break;                \
                case GS_MAX: LOOP (acc[i] > in[i] ? acc[i] : in[i]); break;                \
                default: LOOP ((T) ((U) acc[i] + (U) in[i])); break;                       \
                }                                                                          \
            }                                                                              \
            memcpy ((T *) dst + base, acc, n * sizeof (T));                                \
        }                                                                                  \
    }

#define GSI_INTEGER(NAME, name, value, T, U, ...) DEFINE_INTEGER (reduce_##name, T, U)
#include "base/dtype.def"

typedef void (*reduce_f) (const struct gsi_reduction *how, void *dst, const void *const *src,
                          int sources, size_t count);

#define ITSELF(NAME, name, ...) [GS_##NAME] = reduce_##name,
static const reduce_f functions[][GSI_DTYPES] = {
    [GSI_SUMS_NONE] =
        {
#define GSI_REDUCED  ITSELF
#define GSI_FLOATING ITSELF
#define GSI_INTEGER  ITSELF
#define GSI_COMPLEX  ITSELF
#include "base/dtype.def"
        },
    [GSI_SUMS_OUT] =
        {
#define GSI_REDUCED(NAME, name, ...) [GS_##NAME] = sum_##name,
#include "base/dtype.def"
        },
    [GSI_SUMS_IN] =
        {
#define GSI_REDUCED(NAME, name, ...) [GS_##NAME] = round_##name,
#include "base/dtype.def"
        },
};

void gsi_host_reduce (const struct gsi_reduction *how, void *dst, const void *const *src,
                      int sources, size_t count)
{
    enum gsi_sums sums = gsi_dtype_is_reduced (how->dtype) ? how->sums : GSI_SUMS_NONE;

    functions[sums][how->dtype](how, dst, src, sources, count);
}
