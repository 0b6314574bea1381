/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sized - structs of the public interface that begin with their size, a size_t: that of the
 * header which the program was compiled with. It may be of an earlier or a later version.
 */
#ifndef GS_BASE_SIZED_H
#define GS_BASE_SIZED_H

#include <stddef.h>

#include "gradsync.h"

#define GSI_SIZED_MOST 4096 /* more is no size, but memory that was not initialised */

/*
 * Takes options: copies [in] over the defaults in [out], of [bytes]. What [in] does not have
 * keeps its default; what it has beyond [out], and from [reserved] on in it, must be 0. [what]
 * and [init] are for messages: "gs_comm_create: opts", "GS_COMM_OPTS_INIT".
 */
gs_status_t gsi_sized_take (void *out, size_t bytes, size_t reserved, const void *in,
                            const char *what, const char *init);

/* Gives a result, [in] of [bytes]: as much as [out] has room for, and 0 beyond. */
gs_status_t gsi_sized_give (void *out, const void *in, size_t bytes, const char *what);

#endif /* GS_BASE_SIZED_H */
