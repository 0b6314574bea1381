/* SPDX-License-Identifier: BSD-3-Clause */
/* parts - which bytes of the file are whose; and their checksums. Pure arithmetic. */
#ifndef GS_CKPT_PARTS_H
#define GS_CKPT_PARTS_H

#include "base/crc32c.h"
#include "ckpt/ckpt.h"

/* Bytes that follow each other in an array and in its data set. */
struct gsi_part {
    size_t at;       /* in the array, */
    uint64_t offset; /* in the data set */
    size_t bytes;
};

typedef gs_status_t (*gsi_part_f) (void *context, const struct gsi_part *part);

/*
 * Calls [each] for the parts of an array that this rank sees to, in the order in which they lie
 * in the data set: of a replicated one for its share, of one per rank for place [slot] of the
 * data set. Ends at the first failure, which it returns.
 */
gs_status_t gsi_parts_each (const gs_ckpt_t *c, int array, int slot, gsi_part_f each,
                            void *context);

/* The share of rank [rank] of replicated array number [array], in elements. */
void gsi_parts_share (const gs_ckpt_t *c, int array, int rank, size_t *begin, size_t *count);

#define GSI_TALLY_GAPS 4 /* a block of a field in d dimensions leaves out d - 1 lengths */

/* Raw checksums of blocks, of what this rank has of them. */
struct gsi_tally {
    uint32_t *raw;  /* [blocks of the file] */
    size_t block;   /* that is being added to, */
    uint64_t end;   /* from its begin to here, */
    uint64_t bytes; /* of so many; 0: none is */
    uint32_t running;
    struct gsi_crc32c_gap gap[GSI_TALLY_GAPS]; /* the last ones met */
    int oldest;
};

void gsi_tally_begin (struct gsi_tally *s, uint32_t *raw, size_t blocks);

/* Adds [bytes] at [offset] of a data set of [set_bytes], whose first block is [first]. */
void gsi_tally_add (struct gsi_tally *s, size_t first, uint64_t set_bytes, uint64_t offset,
                    const void *data, size_t bytes);
void gsi_tally_end (struct gsi_tally *s);

#endif /* GS_CKPT_PARTS_H */
