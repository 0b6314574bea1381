/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_num - reductions as NCCL computes them: every intermediate sum is rounded to the data
 * type, an average of floating-point numbers multiplies each contribution by 1/N in the type
 * first, and one of integers lets the sum wrap and divides it last.
 */
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "nccl_sim.h"

static const struct {
    const char *name;
    size_t bytes;
    bool reducible;
} types[] = {
    [ncclInt8] = {"int8", 1, true},
    [ncclUint8] = {"uint8", 1, true},
    [ncclInt32] = {"int32", 4, true},
    [ncclUint32] = {"uint32", 4, true},
    [ncclInt64] = {"int64", 8, true},
    [ncclUint64] = {"uint64", 8, true},
    [ncclFloat16] = {"float16", 2, true},
    [ncclFloat32] = {"float32", 4, true},
    [ncclFloat64] = {"float64", 8, true},
    [ncclBfloat16] = {"bfloat16", 2, true},
    [ncclFloat8e4m3] = {"float8e4m3", 1, false},
    [ncclFloat8e5m2] = {"float8e5m2", 1, false},
};

static bool exists (ncclDataType_t type)
{
    return (int) type >= 0 && type < sizeof (types) / sizeof (types[0]);
}

size_t nsim_type_bytes (ncclDataType_t type)
{
    return exists (type) ? types[type].bytes : 0;
}

const char *nsim_type_name (ncclDataType_t type)
{
    return exists (type) ? types[type].name : "no type";
}

/* The 8-bit floats are carried, but not reduced: nothing here can say how hardware rounds them.
 */
bool nsim_can_reduce (ncclDataType_t type)
{
    return exists (type) && types[type].reducible;
}

/*
 * One set of functions for each type. What is stored (S) is computed in C: for 16-bit floats
 * float, in which sums and products of two of them lose nothing that one rounding would keep.
 * Integers are computed unsigned, where wrapping is defined, and compared as they are.
 */
#define DEFINE_TYPE(NAME, S, C, LOAD, STORE, MIN, MAX)                               \
    static void NAME##_scale (S *data, size_t count, S scalar)                       \
    {                                                                                \
        for (size_t i = 0; i < count; i++)                                           \
            data[i] = (S) STORE ((C) LOAD (data[i]) * (C) LOAD (scalar));            \
    }                                                                                \
    static void NAME##_reduce (ncclRedOp_t op, const S *from, S *into, size_t count) \
    {                                                                                \
        for (size_t i = 0; i < count; i++) {                                         \
            S a = from[i], b = into[i];                                              \
                                                                                     \
            if (op == ncclProd)                                                      \
                into[i] = (S) STORE ((C) LOAD (a) * (C) LOAD (b));                   \
            else if (op == ncclMax)                                                  \
                into[i] = MAX;                                                       \
            else if (op == ncclMin)                                                  \
                into[i] = MIN;                                                       \
            else                                                                     \
                into[i] = (S) STORE ((C) LOAD (a) + (C) LOAD (b));                   \
        }                                                                            \
    }

#define SAME(x)             (x)
#define INTEGER(NAME, S, C) DEFINE_TYPE (NAME, S, C, SAME, SAME, (a < b ? a : b), (a < b ? b : a))

INTEGER (int8, int8_t, uint32_t)
INTEGER (uint8, uint8_t, uint32_t)
INTEGER (int32, int32_t, uint32_t)
INTEGER (uint32, uint32_t, uint32_t)
INTEGER (int64, int64_t, uint64_t)
INTEGER (uint64, uint64_t, uint64_t)
DEFINE_TYPE (f16, uint16_t, float, gsi_float_of_f16, gsi_f16_of_float,
             gsi_f16_of_float (fminf (gsi_float_of_f16 (a), gsi_float_of_f16 (b))),
             gsi_f16_of_float (fmaxf (gsi_float_of_f16 (a), gsi_float_of_f16 (b))))
DEFINE_TYPE (bf16, uint16_t, float, gsi_float_of_bf16, gsi_bf16_of_float,
             gsi_bf16_of_float (fminf (gsi_float_of_bf16 (a), gsi_float_of_bf16 (b))),
             gsi_bf16_of_float (fmaxf (gsi_float_of_bf16 (a), gsi_float_of_bf16 (b))))
DEFINE_TYPE (f32, float, float, SAME, SAME, fminf (a, b), fmaxf (a, b))
DEFINE_TYPE (f64, double, double, SAME, SAME, fmin (a, b), fmax (a, b))

#define EACH_TYPE(DO)                 \
    DO (ncclInt8, int8, int8_t)       \
    DO (ncclUint8, uint8, uint8_t)    \
    DO (ncclInt32, int32, int32_t)    \
    DO (ncclUint32, uint32, uint32_t) \
    DO (ncclInt64, int64, int64_t)    \
    DO (ncclUint64, uint64, uint64_t) \
    DO (ncclFloat16, f16, uint16_t)   \
    DO (ncclBfloat16, bf16, uint16_t) \
    DO (ncclFloat32, f32, float)      \
    DO (ncclFloat64, f64, double)

static bool is_float (ncclDataType_t type)
{
    return type == ncclFloat16 || type == ncclBfloat16 || type == ncclFloat32 ||
           type == ncclFloat64;
}

/* 1/N, rounded to the type. */
static void reciprocal (ncclDataType_t type, int ranks, void *scalar)
{
    double d = 1.0 / ranks;
    float f = (float) d;
    uint16_t h = type == ncclFloat16 ? gsi_f16_of_float (f) : gsi_bf16_of_float (f);

    if (type == ncclFloat64)
        memcpy (scalar, &d, sizeof (d));
    else if (type == ncclFloat32)
        memcpy (scalar, &f, sizeof (f));
    else
        memcpy (scalar, &h, sizeof (h));
}

void nsim_before (const struct nsim_op *op, const void *scalar, void *data, size_t count)
{
    unsigned char own[8];

    if (op->op == ncclAvg && is_float (op->type)) {
        reciprocal (op->type, op->comm->ranks, own);
        scalar = own;
    } else if (op->op != ncclNumOps) {
        return;
    }
#define SCALE(TYPE, NAME, S)             \
    case TYPE: {                         \
        S s;                             \
        memcpy (&s, scalar, sizeof (s)); \
        NAME##_scale (data, count, s);   \
        break;                           \
    }
    switch (op->type) {
        EACH_TYPE (SCALE)
    default: break;
    }
}

void nsim_reduce (const struct nsim_op *op, const void *from, void *into, size_t count)
{
#define REDUCE(TYPE, NAME, S) \
    case TYPE: NAME##_reduce (op->op, from, into, count); break;
    switch (op->type) {
        EACH_TYPE (REDUCE)
    default: break;
    }
}

/* Towards zero; the most negative number divides like the others. */
void nsim_after (const struct nsim_op *op, void *data, size_t count)
{
    if (op->op != ncclAvg || is_float (op->type))
        return;
#define DIVIDE(TYPE, NAME, S)                                              \
    case TYPE:                                                             \
        for (size_t i = 0; i < count; i++)                                 \
            ((S *) data)[i] = (S) (((S *) data)[i] / (S) op->comm->ranks); \
        break;
    switch (op->type) {
        EACH_TYPE (DIVIDE)
    default: break;
    }
}
