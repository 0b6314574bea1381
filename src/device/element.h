/* SPDX-License-Identifier: BSD-3-Clause */
/* element - what is done to one element, in the one source that hosts and GPUs share. */
#ifndef GS_DEVICE_ELEMENT_H
#define GS_DEVICE_ELEMENT_H

#include <stdbool.h>
#include <stdint.h>

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
