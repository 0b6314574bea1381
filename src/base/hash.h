/* SPDX-License-Identifier: BSD-3-Clause */
/* hash - a short number for a text or a few bytes, not against malice (FNV-1a). */
#ifndef GS_BASE_HASH_H
#define GS_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* http://www.isthe.com/chongo/tech/comp/fnv/ */
static inline uint64_t gsi_hash (const void *data, size_t bytes)
{
    const unsigned char *at = data;
    uint64_t hash = UINT64_C (14695981039346656037);

    while (bytes--)
        hash = (hash ^ *at++) * UINT64_C (1099511628211);
    return hash;
}

#endif /* GS_BASE_HASH_H */
