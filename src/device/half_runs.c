/* SPDX-License-Identifier: BSD-3-Clause */
/* half_runs - many f16 to and from float, with F16C where the CPU has it. */
#include "device/half_runs.h"

#include <stdatomic.h>
#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>
#define WITH_F16C __attribute__ ((target ("avx2,f16c")))
#endif

#include "base/half.h"

void gsi_floats_of_f16_portable (float *out, const uint16_t *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = gsi_float_of_f16 (in[i]);
}

void gsi_f16_of_floats_portable (uint16_t *out, const float *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = gsi_f16_of_float (in[i]);
}

#ifdef WITH_F16C

/* N.B. clang 14 does not know "f16c" in __builtin_cpu_supports; "avx2" asks the system as well.
 */
static bool find_runs (void)
{
    unsigned a, b, c = 0, d;

    return __builtin_cpu_supports ("avx2") && __get_cpuid (1, &a, &b, &c, &d) && c & bit_F16C;
}

bool gsi_has_f16c (void)
{
    static atomic_int known; /* 0: not yet, 1: no, 2: yes */
    int has = atomic_load_explicit (&known, memory_order_relaxed);

    if (!has) {
        has = find_runs () ? 2 : 1;
        atomic_store_explicit (&known, has, memory_order_relaxed);
    }
    return has == 2;
}

/* The CPU makes signalling NaNs quiet ones, and half.h leaves them as they are. */
WITH_F16C static bool has_nan (__m128i halves)
{
    __m128i magnitude = _mm_and_si128 (halves, _mm_set1_epi16 (0x7fff));

    return _mm_movemask_epi8 (_mm_cmpgt_epi16 (magnitude, _mm_set1_epi16 (0x7c00)));
}

WITH_F16C static size_t widen (float *out, const uint16_t *in, size_t n)
{
    size_t i = 0;

    for (; i + 8 <= n; i += 8) {
        __m128i halves = _mm_loadu_si128 ((const __m128i *) (const void *) (in + i));
        if (has_nan (halves))
            gsi_floats_of_f16_portable (out + i, in + i, 8);
        else
            _mm256_storeu_ps (out + i, _mm256_cvtph_ps (halves));
    }
    return i;
}

WITH_F16C static size_t narrow (uint16_t *out, const float *in, size_t n)
{
    size_t i = 0;

    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128 ((__m128i *) (void *) (out + i),
                          _mm256_cvtps_ph (_mm256_loadu_ps (in + i), _MM_FROUND_TO_NEAREST_INT));
    return i;
}

#else

bool gsi_has_f16c (void)
{
    return false;
}

#define widen(out, in, n)  ((size_t) 0)
#define narrow(out, in, n) ((size_t) 0)

#endif

const float *gsi_floats_of_f16 (float *out, const uint16_t *in, size_t n)
{
    size_t done = gsi_has_f16c () ? widen (out, in, n) : 0;

    gsi_floats_of_f16_portable (out + done, in + done, n - done);
    return out;
}

void gsi_f16_of_floats (uint16_t *out, const float *in, size_t n)
{
    size_t done = gsi_has_f16c () ? narrow (out, in, n) : 0;

    gsi_f16_of_floats_portable (out + done, in + done, n - done);
}
