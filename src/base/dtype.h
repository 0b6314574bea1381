/* SPDX-License-Identifier: BSD-3-Clause */
/* dtype - names and sizes of element types, and what may be done with them. */
#ifndef GS_BASE_DTYPE_H
#define GS_BASE_DTYPE_H

#include <stdbool.h>

#include "gradsync.h"

/* "GS_F32"; "unknown type" outside the list. */
const char *gsi_dtype_name (gs_dtype_t dtype);

/* "GS_SUM"; "unknown op" outside the list. */
const char *gsi_op_name (gs_op_t op);

bool gsi_dtype_is_integer (gs_dtype_t dtype);
bool gsi_dtype_is_complex (gs_dtype_t dtype);

/* Types that are accumulated in fp32: f16 and bf16. */
bool gsi_dtype_is_half (gs_dtype_t dtype);

/*
 * Bytes of [count] elements in [bytes]. The one place where a count is multiplied.
 * GS_ERR_ARG, with [caller] in the text, for an unknown type or when the product overflows
 * what memory can hold.
 */
gs_status_t gsi_dtype_bytes (const char *caller, size_t count, gs_dtype_t dtype, size_t *bytes);

#endif /* GS_BASE_DTYPE_H */
