/* SPDX-License-Identifier: BSD-3-Clause */
/* adjoint - the gradients of collectives. */
#ifndef GS_COLLECTIVES_ADJOINT_H
#define GS_COLLECTIVES_ADJOINT_H

#include "gradsync.h"

/* GS_OK unless [dtype] is one of integers: GS_ERR_UNSUPPORTED. What is none is found later. */
gs_status_t gsi_gradient_dtype (const char *caller, gs_dtype_t dtype);

#endif /* GS_COLLECTIVES_ADJOINT_H */
