/* SPDX-License-Identifier: BSD-3-Clause */
/* wide.h - elements of the floating types as numbers of a wider one; what is done with them, and
 * how exact it is. */
#ifndef GS_TESTS_WIDE_H
#define GS_TESTS_WIDE_H

#include <complex.h>
#include <float.h>
#include <math.h>

#include "base/dtype.h"
#include "base/half.h"
#include "gradsync.h"

typedef long double complex wide_t;

static inline wide_t wide_load (gs_dtype_t dtype, const void *array, size_t i)
{
    switch (dtype) {
#define GSI_REDUCED(NAME, name, value, T, ...) \
    GSI_CASE (NAME, gsi_float_of_##name (((const T *) array)[i]));
#include "base/dtype.def"
    case GS_F32: return ((const float *) array)[i];
    case GS_F64: return ((const double *) array)[i];
    case GS_C64: return ((const float complex *) array)[i];
    default: return ((const double complex *) array)[i];
    }
}

/* array[i] = re + im i, rounded to a floating type. */
static inline void wide_store (gs_dtype_t dtype, void *array, size_t i, double re, double im)
{
    switch (dtype) {
#define GSI_REDUCED(NAME, name, value, T, ...)                 \
    case GS_##NAME:                                            \
        ((T *) array)[i] = gsi_##name##_of_float ((float) re); \
        break;
#include "base/dtype.def"
    case GS_F32: ((float *) array)[i] = (float) re; break;
    case GS_F64: ((double *) array)[i] = re; break;
    case GS_C64: ((float complex *) array)[i] = (float) re + I * (float) im; break;
    default: ((double complex *) array)[i] = re + I * im; break;
    }
}

/* Half the distance of neighbouring numbers, relative, of the type and of what sums it. */
static inline long double wide_epsilon (gs_dtype_t dtype)
{
    switch (dtype) {
#define GSI_REDUCED(NAME, name, value, T, exponent, fraction, ...) \
    GSI_CASE (NAME, ldexpl (1, -fraction - 1));
#include "base/dtype.def"
    case GS_F32:
    case GS_C64: return FLT_EPSILON / 2;
    default: return DBL_EPSILON / 2;
    }
}

static inline long double wide_sum_epsilon (gs_dtype_t dtype)
{
    return gsi_dtype_is_reduced (dtype) ? FLT_EPSILON / 2 : wide_epsilon (dtype);
}

/* cabsl, which takes long, also of real numbers. */
static inline long double wide_absolute (wide_t x)
{
    return cimagl (x) == 0 ? fabsl (creall (x)) : cabsl (x);
}

/* Half the distance of subnormal numbers of a reduced type. */
static inline long double wide_least (gs_dtype_t dtype)
{
    switch ((int) dtype) {
#define GSI_REDUCED(NAME, name, value, T, exponent, fraction, ...) \
    GSI_CASE (NAME, ldexpl (1, 1 - (1 << (exponent - 1)) - fraction));
#include "base/dtype.def"
    default: return 0;
    }
}

/* What a result of the type may be off by for its own rounding, where [exact] is right. */
static inline long double wide_rounding (gs_dtype_t dtype, wide_t exact)
{
    return 1.0001L * wide_epsilon (dtype) * wide_absolute (exact) + wide_least (dtype);
}

/* a op b; GS_AVG is the sum. */
static inline wide_t wide_combine (gs_op_t op, wide_t a, wide_t b)
{
    switch (op) {
    case GS_PROD: return a * b;
    case GS_MIN: return creall (b) < creall (a) ? b : a;
    case GS_MAX: return creall (b) > creall (a) ? b : a;
    default: return a + b;
    }
}

#endif /* GS_TESTS_WIDE_H */
