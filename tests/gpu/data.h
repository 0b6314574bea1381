/* SPDX-License-Identifier: BSD-3-Clause */
/* data.h - arrays to try kernels on, and their comparison. */
#ifndef GS_TESTS_GPU_DATA_H
#define GS_TESTS_GPU_DATA_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/half.h"
#include "device/device.h"
#include "device/element.h"

/* xorshift64 (G. Marsaglia, Xorshift RNGs, 2003). */
static inline uint64_t data_random (void)
{
    static uint64_t state = 88172645463325252;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Random bits, among them subnormals and NaN, and every fourth time what they would rarely give.
 */
static inline void data_fill_bits (void *data, size_t bytes)
{
    static const uint64_t rare[] = {
        0x8000000000000000,                     /* -0 of f64, f32 and halves */
        0x7ff0000000000000, 0xfff0000000000000, /* infinities of f64 ... */
        0x7f8000003f800000, 0x3f800000ff800000, /* ... f32 ... */
        0x7c00fc007f80ff80,                     /* ... f16 and bf16 */
        0x7fc000007f800000, 0xff8000007f800000, /* infinity beside NaN, infinity */
        0x7ff8000000000000, 0x7fefffffffffffff, /* NaN and greatest of f64 ... */
        0x7f7fffffff7fffff, 0x7f7f7bff00010001, /* greatest and least of the others */
    };

    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t x = data_random ();
        if (x % 4 == 0)
            x = rare[(x >> 8) % (sizeof (rare) / sizeof (rare[0]))];
        memcpy ((unsigned char *) data + i, &x, bytes - i < 8 ? bytes - i : 8);
    }
}

/* Random bits for integers; else moderate numbers, so that sums have neither overflows nor NaN.
 */
static inline void data_fill_numbers (gs_dtype_t dtype, void *data, size_t bytes)
{
    gs_dtype_t part = gsi_part_of (dtype);
    size_t count = bytes / gs_dtype_size (part);

    if (gsi_dtype_is_integer (dtype)) {
        data_fill_bits (data, bytes);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        double x = ((double) (data_random () >> 40) - 8388608.0) / 32768.0; /* fp8 ends at 448 */
        switch (part) {
#define GSI_REDUCED(NAME, name, value, T, ...)               \
    case GS_##NAME:                                          \
        ((T *) data)[i] = gsi_##name##_of_float ((float) x); \
        break;
#include "base/dtype.def"
        case GS_F32: ((float *) data)[i] = (float) x; break;
        default: ((double *) data)[i] = x; break;
        }
    }
}

static inline bool data_is_nan (gs_dtype_t part, const void *p)
{
    uint16_t h;
    uint32_t f;
    uint64_t d;

    switch (part) {
    case GS_F16: return memcpy (&h, p, 2), (h & 0x7fff) > 0x7c00;
    case GS_BF16: return memcpy (&h, p, 2), (h & 0x7fff) > 0x7f80;
    case GS_F8_E4M3: return (*(const uint8_t *) p & 0x7f) == 0x7f;
    case GS_F8_E5M2: return (*(const uint8_t *) p & 0x7f) > 0x7c;
    case GS_F32: return memcpy (&f, p, 4), (f & 0x7fffffff) > 0x7f800000;
    case GS_F64: return memcpy (&d, p, 8), (d & 0x7fffffffffffffff) > 0x7ff0000000000000;
    default: return false;
    }
}

/* Whether [bytes] are the same; where they are NaN of type [dtype] both must be. */
static inline bool data_same (gs_dtype_t dtype, const unsigned char *got,
                              const unsigned char *wanted, size_t bytes)
{
    gs_dtype_t part = gsi_part_of (dtype);
    size_t size = gs_dtype_size (part);

    if (!memcmp (got, wanted, bytes))
        return true;
    for (size_t i = 0; i + size <= bytes; i += size)
        if (memcmp (got + i, wanted + i, size) &&
            !(data_is_nan (part, got + i) && data_is_nan (part, wanted + i))) {
            printf ("# element %zu differs\n", i / size);
            return false;
        }
    return true;
}

/* The type of the result of [how], or of its sources. */
static inline gs_dtype_t data_type_of (const struct gsi_reduction *how, enum gsi_sums end)
{
    return how->sums == end ? GS_F32 : how->dtype;
}

/* Whether a reduction of [dtype] with [op] exists. */
static inline bool data_reduces (gs_dtype_t dtype, gs_op_t op)
{
    return !gsi_dtype_is_complex (dtype) || op == GS_SUM || op == GS_PROD;
}

#endif /* GS_TESTS_GPU_DATA_H */
