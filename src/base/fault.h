/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fault - named places that can be made to fail on purpose, in builds made for tests.
 *
 * A place reads
 *     if (gsi_fault ("shards.memory"))
 *         return gsi_fail (GS_ERR_NOMEM, ...);
 * and GS_FAULT=point[:n][@rank] makes the n-th passage (default 1) of that place on that rank
 * (default all) fail; "*" names any place. Without --enable-fault-injection it is always false.
 */
#ifndef GS_BASE_FAULT_H
#define GS_BASE_FAULT_H

#include <stdbool.h>

bool gsi_fault (const char *point);

/* The rank of this process for @rank; set as soon as it is known. */
void gsi_fault_identity (int rank);

#endif /* GS_BASE_FAULT_H */
