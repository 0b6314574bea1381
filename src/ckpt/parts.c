/* SPDX-License-Identifier: BSD-3-Clause */
/* parts - which bytes of the file are whose; and their checksums. */
#include "ckpt/parts.h"

#include <string.h>

#define UNIT_BYTES ((size_t) 64 << 10) /* of replicated arrays that one rank writes at least */

/* ---- Whose ---- */

void gsi_parts_share (const gs_ckpt_t *c, int array, int rank, size_t *begin, size_t *count)
{
    const struct gsi_ckpt_array *a = &c->array[array];
    size_t unit = UNIT_BYTES / gs_dtype_size (a->dtype), size = (size_t) c->size;
    size_t units = (a->count + unit - 1) / unit;
    size_t turn = ((size_t) rank + (size_t) array) % size; /* small arrays go round */
    size_t end = (units / size * (turn + 1) + units % size * (turn + 1) / size) * unit;

    *begin = (units / size * turn + units % size * turn / size) * unit;
    *begin = *begin < a->count ? *begin : a->count;
    *count = (end < a->count ? end : a->count) - *begin;
}

static gs_status_t each_of_block (const struct gsi_ckpt_array *a, gsi_part_f each, void *context)
{
    size_t index[GS_CKPT_DIMS_MAX] = {0}, element = gs_dtype_size (a->dtype);
    int last = gsi_block_first_whole (&a->block, a->dims, a->shape), d;
    struct gsi_part part = {.at = 0, .bytes = element};
    gs_status_t st = GS_OK;

    if (gsi_block_is_empty (&a->block))
        return GS_OK;
    for (d = last; d < a->dims; d++)
        part.bytes *= a->block.extents[d];
    do {
        part.offset = gsi_block_place (&a->block, a->dims, a->shape, index, last) * element;
        st = each (context, &part);
        part.at += part.bytes;
        for (d = last - 1; d >= 0 && ++index[d] == a->block.extents[d]; d--)
            index[d] = 0;
    } while (d >= 0 && !st);
    return st;
}

gs_status_t gsi_parts_each (const gs_ckpt_t *c, int array, int slot, gsi_part_f each,
                            void *context)
{
    const struct gsi_ckpt_array *a = &c->array[array];
    size_t element = gs_dtype_size (a->dtype), begin = 0, count = a->count;
    struct gsi_part part;

    if (a->kind == GSI_CKPT_SHARDED)
        return each_of_block (a, each, context);
    if (a->kind == GSI_CKPT_REPLICATED)
        gsi_parts_share (c, array, c->rank, &begin, &count);
    part = (struct gsi_part){begin * element, begin * element, count * element};
    if (a->kind == GSI_CKPT_PER_RANK)
        part.offset = (uint64_t) slot * part.bytes;
    return part.bytes ? each (context, &part) : GS_OK;
}

/* ---- Checksums ---- */

void gsi_tally_begin (struct gsi_tally *s, uint32_t *raw, size_t blocks)
{
    memset (raw, 0, blocks * sizeof (*raw));
    s->raw = raw;
    s->bytes = 0;
    s->oldest = 0;
    for (int i = 0; i < GSI_TALLY_GAPS; i++)
        s->gap[i].bytes = 0;
}

void gsi_tally_end (struct gsi_tally *s)
{
    if (s->bytes)
        s->raw[s->block] ^= gsi_crc32c_shift (s->running, s->bytes - s->end);
    s->bytes = 0;
}

/* Nothing of this rank's for [bytes]. */
static void pass (struct gsi_tally *s, uint64_t bytes)
{
    if (!bytes || !s->running)
        return;
    for (int i = 0; i < GSI_TALLY_GAPS; i++)
        if (s->gap[i].bytes == bytes) {
            s->running = gsi_crc32c_gap_shift (&s->gap[i], s->running);
            return;
        }
    gsi_crc32c_gap_init (&s->gap[s->oldest], bytes);
    s->running = gsi_crc32c_gap_shift (&s->gap[s->oldest], s->running);
    s->oldest = (s->oldest + 1) % GSI_TALLY_GAPS;
}

void gsi_tally_add (struct gsi_tally *s, size_t first, uint64_t set_bytes, uint64_t offset,
                    const void *data, size_t bytes)
{
    const char *at = data;

    while (bytes) {
        size_t number = (size_t) (offset / GSI_BLOCK_BYTES);
        uint64_t begin = (uint64_t) number * GSI_BLOCK_BYTES;
        uint64_t length =
            set_bytes - begin < GSI_BLOCK_BYTES ? set_bytes - begin : GSI_BLOCK_BYTES;
        size_t n = (size_t) (begin + length - offset);

        n = n < bytes ? n : bytes;
        if (!s->bytes || s->block != first + number) {
            gsi_tally_end (s);
            s->block = first + number;
            s->bytes = length;
            s->running = 0;
        } else {
            pass (s, offset - begin - s->end);
        }
        s->running = gsi_crc32c_raw (s->running, at, n);
        offset += n;
        s->end = offset - begin;
        at += n;
        bytes -= n;
    }
}
