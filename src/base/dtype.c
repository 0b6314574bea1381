/* SPDX-License-Identifier: BSD-3-Clause */
/* dtype - names and sizes of element types, and what may be done with them. */
#include "base/dtype.h"

#include <complex.h>
#include <stdint.h>

#include "base/status.h"

#define ROW(NAME, name, value, type, ...) [GS_##NAME] = {"GS_" #NAME, sizeof (type)},
#define GSI_REDUCED                       ROW
#define GSI_FLOATING                      ROW
#define GSI_INTEGER                       ROW
#define GSI_COMPLEX                       ROW
static const struct {
    const char *name;
    size_t size;
} types[GSI_DTYPES] = {
#include "base/dtype.def"
};

#define SAME(NAME, name, value, ...) _Static_assert(GS_##NAME == value, "gradsync.h differs");
#define GSI_REDUCED                  SAME
#define GSI_FLOATING                 SAME
#define GSI_INTEGER                  SAME
#define GSI_COMPLEX                  SAME
#define GSI_OP                       SAME
#include "base/dtype.def"
#include "base/ops.def"

size_t gs_dtype_size (gs_dtype_t dtype)
{
    return (unsigned) dtype < GSI_DTYPES ? types[dtype].size : 0;
}

const char *gsi_dtype_name (gs_dtype_t dtype)
{
    return gs_dtype_size (dtype) ? types[dtype].name : "unknown type";
}

const char *gsi_op_name (gs_op_t op)
{
    static const char *const names[] = {
#define GSI_OP(NAME, ...) [GS_##NAME] = "GS_" #NAME,
#include "base/ops.def"
    };

    return (unsigned) op < sizeof (names) / sizeof (names[0]) && names[op] ? names[op]
                                                                           : "unknown op";
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
