/* SPDX-License-Identifier: BSD-3-Clause */
/* dtype - names and sizes of element types, and what may be done with them. */
#include "base/dtype.h"

#include <stdint.h>

#include "base/status.h"

static const struct {
    const char *name;
    size_t size;
} types[] = {
    [GS_F16] = {"GS_F16", 2}, [GS_BF16] = {"GS_BF16", 2},  [GS_F32] = {"GS_F32", 4},
    [GS_F64] = {"GS_F64", 8}, [GS_I8] = {"GS_I8", 1},      [GS_I16] = {"GS_I16", 2},
    [GS_I32] = {"GS_I32", 4}, [GS_I64] = {"GS_I64", 8},    [GS_U8] = {"GS_U8", 1},
    [GS_U16] = {"GS_U16", 2}, [GS_U32] = {"GS_U32", 4},    [GS_U64] = {"GS_U64", 8},
    [GS_C64] = {"GS_C64", 8}, [GS_C128] = {"GS_C128", 16},
};

static bool known (gs_dtype_t dtype)
{
    return (int) dtype >= GS_F16 && (int) dtype <= GS_C128;
}

size_t gs_dtype_size (gs_dtype_t dtype)
{
    return known (dtype) ? types[dtype].size : 0;
}

const char *gsi_dtype_name (gs_dtype_t dtype)
{
    return known (dtype) ? types[dtype].name : "unknown type";
}

const char *gsi_op_name (gs_op_t op)
{
    switch (op) {
    case GS_SUM: return "GS_SUM";
    case GS_PROD: return "GS_PROD";
    case GS_MIN: return "GS_MIN";
    case GS_MAX: return "GS_MAX";
    case GS_AVG: return "GS_AVG";
    case GS_OP_INT_SIZED: break;
    }
    return "unknown op";
}

bool gsi_dtype_is_integer (gs_dtype_t dtype)
{
    return dtype >= GS_I8 && dtype <= GS_U64;
}

bool gsi_dtype_is_complex (gs_dtype_t dtype)
{
    return dtype == GS_C64 || dtype == GS_C128;
}

bool gsi_dtype_is_half (gs_dtype_t dtype)
{
    return dtype == GS_F16 || dtype == GS_BF16;
}

gs_status_t gsi_dtype_bytes (const char *caller, size_t count, gs_dtype_t dtype, size_t *bytes)
{
    size_t size = gs_dtype_size (dtype);

    if (!size)
        return gsi_fail (GS_ERR_ARG, "%s: unknown dtype %d; see gs_dtype_t in gradsync.h", caller,
                         (int) dtype);
    if (__builtin_mul_overflow (count, size, bytes) || *bytes > PTRDIFF_MAX)
        return gsi_fail (GS_ERR_ARG,
                         "%s: count %zu of %s is more than memory can hold; count is in elements",
                         caller, count, types[dtype].name);
    return GS_OK;
}
