/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * region - where the elements of arrays lie in files. Pure arithmetic.
 *
 * To all of this a sharded array has its own dimensions; one per rank has two, the rank and what
 * each has; and a replicated one has one.
 */
#ifndef GS_CKPT_FORMAT_REGION_H
#define GS_CKPT_FORMAT_REGION_H

#include "field/block.h"

/* A box of an array that lies in one piece in a file. In words, to be told to others. */
struct gsi_region {
    uint64_t array;
    uint64_t part;   /* number of the file; 0 if there is one only */
    uint64_t offset; /* in it */
    uint64_t bytes;
    uint64_t first; /* of its rows in the table of blocks */
    struct gsi_block block;
};

/* An array, and the box of it that somebody is to see to. */
struct gsi_array_view {
    int dims;
    size_t element; /* bytes */
    uint64_t shape[GS_FIELD_DIMS_MAX];
    struct gsi_block mine; /* contiguous in memory, */
    size_t base;           /* from this byte of the array on */
};

/* Bytes that follow each other in memory and in a region. */
struct gsi_part {
    const struct gsi_region *region;
    size_t at;       /* in the array's memory, */
    uint64_t offset; /* in the region */
    size_t bytes;
};

typedef gs_status_t (*gsi_part_f) (void *context, const struct gsi_part *part);

/*
 * Calls [each] for what [regions] of the array have of [mine], in the order of the regions and in
 * each of its bytes. Ends at the first failure, which it returns.
 */
gs_status_t gsi_parts_each (const struct gsi_array_view *view, const struct gsi_region *region,
                            size_t regions, gsi_part_f each, void *context);

/*
 * Elements [begin] to [end] of a box, one behind the other, are those of at most 2 * dims - 1
 * smaller ones. Gives the first of these, and returns how many it has.
 */
uint64_t gsi_block_cut (const struct gsi_block *whole, int dims, uint64_t begin, uint64_t end,
                        struct gsi_block *cut);

#endif /* GS_CKPT_FORMAT_REGION_H */
