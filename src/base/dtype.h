/* SPDX-License-Identifier: BSD-3-Clause */
/* dtype - names and sizes of element types, and what may be done with them. */
#ifndef GS_BASE_DTYPE_H
#define GS_BASE_DTYPE_H

#include <stdbool.h>

#include "gradsync.h"

/* The number of types, and one: values go from 1 on. */
#define GSI_COUNTED(...) +1
enum {
    GSI_DTYPES_END = 1
#define GSI_REDUCED  GSI_COUNTED
#define GSI_FLOATING GSI_COUNTED
#define GSI_INTEGER  GSI_COUNTED
#define GSI_COMPLEX  GSI_COUNTED
#include "base/dtype.def"
};
#define GSI_DTYPES ((int) GSI_DTYPES_END)

/* "GS_F32"; "unknown type" outside the list. */
const char *gsi_dtype_name (gs_dtype_t dtype);

/* "GS_SUM"; "unknown op" outside the list. */
const char *gsi_op_name (gs_op_t op);

static inline bool gsi_dtype_is_integer (gs_dtype_t dtype)
{
    switch ((int) dtype) {
#define GSI_INTEGER(NAME, ...) GSI_CASE (NAME, true);
#include "base/dtype.def"
    default: return false;
    }
}

static inline bool gsi_dtype_is_complex (gs_dtype_t dtype)
{
    switch ((int) dtype) {
#define GSI_COMPLEX(NAME, ...) GSI_CASE (NAME, true);
#include "base/dtype.def"
    default: return false;
    }
}

/* Types that are accumulated in fp32, such as f16 and bf16. */
static inline bool gsi_dtype_is_reduced (gs_dtype_t dtype)
{
    switch ((int) dtype) {
#define GSI_REDUCED(NAME, ...) GSI_CASE (NAME, true);
#include "base/dtype.def"
    default: return false;
    }
}

/*
 * Bytes of [count] elements in [bytes]. The one place where a count is multiplied.
 * GS_ERR_ARG, with [caller] in the text, for an unknown type or when the product overflows
 * what memory can hold.
 */
gs_status_t gsi_dtype_bytes (const char *caller, size_t count, gs_dtype_t dtype, size_t *bytes);

#endif /* GS_BASE_DTYPE_H */
