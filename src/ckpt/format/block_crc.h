/* SPDX-License-Identifier: BSD-3-Clause */
/* block_crc - checksums of blocks that are written in parts. Pure arithmetic. */
#ifndef GS_CKPT_FORMAT_BLOCK_CRC_H
#define GS_CKPT_FORMAT_BLOCK_CRC_H

#include "base/crc32c.h"
#include "ckpt/format/trailer.h"

#define GSI_BLOCK_CRC_GAPS 4 /* a block of a field in d dimensions leaves out d - 1 lengths */

/* Raw checksums of blocks, of what this rank has of them. */
struct gsi_block_crc {
    uint32_t *raw;  /* [blocks of the file] */
    size_t block;   /* that is being added to, */
    uint64_t end;   /* from its begin to here, */
    uint64_t bytes; /* of so many; 0: none is */
    uint32_t running;
    struct gsi_crc32c_gap gap[GSI_BLOCK_CRC_GAPS]; /* the last ones met */
    int oldest;
};

void gsi_block_crc_begin (struct gsi_block_crc *s, uint32_t *raw, size_t blocks);

/* Adds [bytes] at [offset] of a region of [region_bytes], whose first block is [first]. */
void gsi_block_crc_add (struct gsi_block_crc *s, size_t first, uint64_t region_bytes,
                        uint64_t offset, const void *data, size_t bytes);
void gsi_block_crc_end (struct gsi_block_crc *s);

#endif /* GS_CKPT_FORMAT_BLOCK_CRC_H */
