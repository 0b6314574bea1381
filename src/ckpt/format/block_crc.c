/* SPDX-License-Identifier: BSD-3-Clause */
/* block_crc - checksums of blocks that are written in parts. */
#include "ckpt/format/block_crc.h"

#include <string.h>

void gsi_block_crc_begin (struct gsi_block_crc *s, uint32_t *raw, size_t blocks)
{
    memset (raw, 0, blocks * sizeof (*raw));
    s->raw = raw;
    s->bytes = 0;
    s->oldest = 0;
    for (int i = 0; i < GSI_BLOCK_CRC_GAPS; i++)
        s->gap[i].bytes = 0;
}

void gsi_block_crc_end (struct gsi_block_crc *s)
{
    if (s->bytes)
        s->raw[s->block] ^= gsi_crc32c_shift (s->running, s->bytes - s->end);
    s->bytes = 0;
}

/* Nothing of this rank's for [bytes]. */
static void tally_pass (struct gsi_block_crc *s, uint64_t bytes)
{
    if (!bytes || !s->running)
        return;
    for (int i = 0; i < GSI_BLOCK_CRC_GAPS; i++)
        if (s->gap[i].bytes == bytes) {
            s->running = gsi_crc32c_gap_shift (&s->gap[i], s->running);
            return;
        }
    gsi_crc32c_gap_init (&s->gap[s->oldest], bytes);
    s->running = gsi_crc32c_gap_shift (&s->gap[s->oldest], s->running);
    s->oldest = (s->oldest + 1) % GSI_BLOCK_CRC_GAPS;
}

void gsi_block_crc_add (struct gsi_block_crc *s, size_t first, uint64_t region_bytes,
                        uint64_t offset, const void *data, size_t bytes)
{
    const char *at = data;

    while (bytes) {
        size_t number = (size_t) (offset / GSI_BLOCK_BYTES);
        uint64_t begin = (uint64_t) number * GSI_BLOCK_BYTES;
        uint64_t length =
            region_bytes - begin < GSI_BLOCK_BYTES ? region_bytes - begin : GSI_BLOCK_BYTES;
        size_t n = (size_t) (begin + length - offset);

        n = n < bytes ? n : bytes;
        if (!s->bytes || s->block != first + number) {
            gsi_block_crc_end (s);
            s->block = first + number;
            s->bytes = length;
            s->running = 0;
        } else {
            tally_pass (s, offset - begin - s->end);
        }
        s->running = gsi_crc32c_raw (s->running, at, n);
        offset += n;
        s->end = offset - begin;
        at += n;
        bytes -= n;
    }
}
