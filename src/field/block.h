/* SPDX-License-Identifier: BSD-3-Clause */
/* block - the part of a field that a rank has: where it lies, and how it fits to the others. */
#ifndef GS_FIELD_BLOCK_H
#define GS_FIELD_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gradsync.h"

/* In words, to be told to others. Without elements all extents are 0. */
struct gsi_block {
    uint64_t extents[GS_FIELD_DIMS_MAX], offsets[GS_FIELD_DIMS_MAX];
};

/* The blocks of all ranks: that of rank r lies r * [stride] bytes behind [first]. */
struct gsi_blocks {
    gs_comm_t *comm;
    const char *caller; /* begins texts */
    int dims;
    const uint64_t *shape; /* [dims] of the field, in C order */
    const struct gsi_block *first;
    size_t stride;
};

static inline bool gsi_block_is_empty (const struct gsi_block *block)
{
    return !block->extents[0];
}

static inline size_t gsi_block_count (const struct gsi_block *block, int dims)
{
    size_t count = 1;

    for (int d = 0; d < dims; d++)
        count *= block->extents[d];
    return count;
}

/* The first dimension from which on the block's elements follow each other in the field. */
int gsi_block_first_whole (const struct gsi_block *block, int dims, const uint64_t *shape);

/* The number, in the field, of an element of the block: [index] counts up to dimension [last]. */
size_t gsi_block_place (const struct gsi_block *block, int dims, const uint64_t *shape,
                        const size_t *index, int last);

/*
 * GS_ERR_ARG, the same on all ranks, if a block reaches outside of the field, or if two overlap;
 * [sorted] is room for a pointer for each rank.
 */
gs_status_t gsi_blocks_check (const struct gsi_blocks *b, const struct gsi_block **sorted);

#endif /* GS_FIELD_BLOCK_H */
