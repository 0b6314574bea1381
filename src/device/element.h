/* SPDX-License-Identifier: BSD-3-Clause */
/* element - what is done to one element, in the one source that hosts and GPUs share. */
#ifndef GS_DEVICE_ELEMENT_H
#define GS_DEVICE_ELEMENT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/half.h"
#include "gradsync.h"

/* The type that complex ones are two of; others are themselves. */
static inline gs_dtype_t gsi_part_of (gs_dtype_t dtype)
{
    switch ((int) dtype) {
#define GSI_COMPLEX(NAME, name, value, type, PART, ...) GSI_CASE (NAME, GS_##PART);
#include "base/dtype.def"
    default: return dtype;
    }
}

/* Number [i] of an array, of a type that is not complex; integers beyond 2^53 are rounded. The
 * array may lie anywhere. */
static inline double gsi_number_at (gs_dtype_t dtype, const void *array, size_t i)
{
    switch ((int) dtype) {
#define READ(NAME, T, VALUE)                                            \
    case GS_##NAME: {                                                   \
        T x;                                                            \
        memcpy (&x, (const char *) array + i * sizeof (x), sizeof (x)); \
        return (double) VALUE (x);                                      \
    }
#define GSI_REDUCED(NAME, name, value, T, ...)  READ (NAME, T, gsi_float_of_##name)
#define GSI_FLOATING(NAME, name, value, T, ...) READ (NAME, T, )
#define GSI_INTEGER(NAME, name, value, T, ...)  READ (NAME, T, )
#include "base/dtype.def"
#undef READ
    default: return NAN;
    }
}

GSI_BOTH bool gsi_bad_f32 (float f)
{
    return (gsi_bits_of_float (f) & 0x7f800000u) == 0x7f800000u;
}

GSI_BOTH bool gsi_bad_f64 (double d)
{
    return !(d - d == 0);
}

/* The share of word [w] with number [i] in a digest. */
GSI_BOTH uint64_t gsi_digest_word (uint64_t w, uint64_t i)
{
    uint64_t z = w + (i + 1) * 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

#endif /* GS_DEVICE_ELEMENT_H */
