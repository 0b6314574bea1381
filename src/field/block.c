/* SPDX-License-Identifier: BSD-3-Clause */
/* block - the part of a field that a rank has: where it lies, and how it fits to the others. */
#include "field/block.h"

#include <stdlib.h>

#include "base/dims.h"
#include "base/status.h"

int gsi_block_first_whole (const struct gsi_block *block, int dims, const uint64_t *shape)
{
    int d = dims - 1;

    while (d > 0 && block->extents[d] == shape[d])
        d--;
    return d;
}

size_t gsi_block_place (const struct gsi_block *block, int dims, const uint64_t *shape,
                        const size_t *index, int last)
{
    size_t at = 0;

    for (int d = 0; d < dims; d++)
        at = at * shape[d] + block->offsets[d] + (d < last ? index[d] : 0);
    return at;
}

static const struct gsi_block *of_rank (const struct gsi_blocks *b, int rank)
{
    return (const struct gsi_block *) (const void *) ((const char *) b->first +
                                                      (size_t) rank * b->stride);
}

static int rank_of (const struct gsi_blocks *b, const struct gsi_block *block)
{
    return (int) ((size_t) ((const char *) block - (const char *) b->first) / b->stride);
}

static gs_status_t check_inside (const struct gsi_blocks *b)
{
    for (int r = 0; r < gs_comm_size (b->comm); r++) {
        const struct gsi_block *block = of_rank (b, r);
        for (int d = 0; d < b->dims && !gsi_block_is_empty (block); d++)
            if (block->offsets[d] > b->shape[d] ||
                block->extents[d] > b->shape[d] - block->offsets[d])
                return gsi_fail (GS_ERR_ARG,
                                 "%s: the block of rank %d (host %s) reaches outside of the "
                                 "field: in dimension %d of %d it has %zu from %zu on, the field "
                                 "has %zu",
                                 b->caller, r, gs_comm_host_of (b->comm, r),
                                 gsi_dims_number (d, b->dims), b->dims,
                                 (size_t) block->extents[d], (size_t) block->offsets[d],
                                 (size_t) b->shape[d]);
    }
    return GS_OK;
}

static int by_first_offset (const void *a, const void *b)
{
    const struct gsi_block *x = *(const struct gsi_block *const *) a,
                           *y = *(const struct gsi_block *const *) b;

    return (x->offsets[0] > y->offsets[0]) - (x->offsets[0] < y->offsets[0]);
}

static bool overlap (const struct gsi_block *a, const struct gsi_block *b, int dims)
{
    for (int d = 0; d < dims; d++)
        if (a->offsets[d] >= b->offsets[d] + b->extents[d] ||
            b->offsets[d] >= a->offsets[d] + a->extents[d])
            return false;
    return true;
}

static gs_status_t overlapping (const struct gsi_blocks *b, const struct gsi_block *one,
                                const struct gsi_block *other)
{
    return gsi_fail (GS_ERR_ARG,
                     "%s: the blocks of ranks %d and %d overlap: each element of the field is of "
                     "one rank, halos are left out",
                     b->caller, rank_of (b, one < other ? one : other),
                     rank_of (b, one < other ? other : one));
}

gs_status_t gsi_blocks_check (const struct gsi_blocks *b, const struct gsi_block **sorted)
{
    gs_status_t st = check_inside (b);
    int n = 0;

    for (int r = 0; r < gs_comm_size (b->comm) && !st; r++)
        if (!gsi_block_is_empty (of_rank (b, r)))
            sorted[n++] = of_rank (b, r);
    qsort (sorted, (size_t) n, sizeof (*sorted), by_first_offset);
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++) {
            if (sorted[j]->offsets[0] >= sorted[i]->offsets[0] + sorted[i]->extents[0])
                break;
            if (overlap (sorted[i], sorted[j], b->dims))
                return overlapping (b, sorted[i], sorted[j]);
        }
    return st;
}
