/* SPDX-License-Identifier: BSD-3-Clause */
/* metadata - the data sets of gradsync itself in a sealed file. */
#include "ckpt/format/metadata.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/status.h"
#include "ckpt/format/file.h"
#include "ckpt/format/index.h"

/* ---- What they are ---- */

static gs_status_t define (const struct gsi_own *own, enum gsi_own_set which, const char *path,
                           const size_t *shape, const char *caller)
{
    struct gsi_h5_set *set = &own->set[which];

    *set = (struct gsi_h5_set){.path = strdup (path), .dtype = shape ? GS_U64 : GS_I64};
    for (int d = 0; shape && d < 2 && shape[d]; d++)
        set->shape[set->dims++] = shape[d];
    return set->path ? GS_OK : gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);
}

/* Bytes of the index, which has all sets, itself as well. */
static size_t index_bytes (const struct gsi_own *own)
{
    return gsi_index_bytes (own->set - own->arrays, own->arrays + GSI_OWN_SETS);
}

gs_status_t gsi_own_define (struct gsi_own *own, const char *caller)
{
    size_t parts[] = {own->parts, sizeof (*own->part) / 8};
    size_t map[] = {own->regions, own->map_words};
    size_t table[] = {1, sizeof (*own->block) / 8}, seal[] = {GSI_SEAL_WORDS, 0};
    size_t index[] = {1, 0};
    struct gsi_h5_set *set = own->set;
    gs_status_t st;

    memset (set, 0, GSI_OWN_SETS * sizeof (*set));
    if ((st = define (own, GSI_SET_INDEX, "/gs/index", index, caller)) ||
        (st = define (own, GSI_SET_STEP, "/gs/step", NULL, caller)) ||
        (st = define (own, GSI_SET_TIME, "/gs/time", NULL, caller)) ||
        (st = define (own, GSI_SET_RANKS, "/gs/ranks", NULL, caller)) ||
        (own->parts && (st = define (own, GSI_SET_PARTS, "/gs/parts", parts, caller))) ||
        (own->regions && (st = define (own, GSI_SET_MAP, "/gs/map", map, caller))) ||
        (st = define (own, GSI_SET_BLOCKS, "/gs/blocks", table, caller)) ||
        (st = define (own, GSI_SET_SEAL, "/gs/complete", seal, caller)) ||
        (st = gsi_h5_set_text (&set[GSI_SET_TIME], "units",
                               "nanoseconds since 1970-01-01 00:00:00 UTC")))
        return st;
    set[GSI_SET_INDEX].dtype = GS_U8;
    set[GSI_SET_INDEX].shape[0] = index_bytes (own);
    own->blocks = own->data_blocks;
    for (int which = 0; which < GSI_SET_BLOCKS; which++)
        own->blocks += gsi_seal_blocks (gsi_h5_bytes (&set[which]));
    set[GSI_SET_BLOCKS].shape[0] = own->blocks;
    return GS_OK;
}

void gsi_own_fill (const struct gsi_own *own)
{
    struct gsi_seal_block *row = own->block + own->data_blocks;

    for (int which = 0; which < GSI_SET_BLOCKS; which++)
        row = gsi_seal_rows (row, own->set[which].offset, gsi_h5_bytes (&own->set[which]));
}

/* ---- Writing ---- */

/* Those that the table tells of, in its order. */
static gs_status_t write_sets (const struct gsi_own *own, const void *index, int fd,
                               const char *path)
{
    const void *data[GSI_SET_BLOCKS] = {
        [GSI_SET_INDEX] = index,       [GSI_SET_STEP] = &own->step, [GSI_SET_TIME] = &own->time,
        [GSI_SET_RANKS] = &own->ranks, [GSI_SET_PARTS] = own->part, [GSI_SET_MAP] = own->map};
    struct gsi_seal_block *row = own->block + own->data_blocks;
    gs_status_t st = GS_OK;

    for (int which = 0; which < GSI_SET_BLOCKS && !st; which++) {
        size_t bytes = gsi_h5_bytes (&own->set[which]);
        for (size_t at = 0; at < bytes; at += row++->bytes)
            row->crc = gsi_crc32c (0, (const char *) data[which] + at, row->bytes);
        if (bytes)
            st = gsi_file_write (fd, path, data[which], bytes, own->set[which].offset);
    }
    return st;
}

static void add_parts (const struct gsi_own *own, struct gsi_seal *seal)
{
    const struct gsi_h5_set *parts = &own->set[GSI_SET_PARTS], *map = &own->set[GSI_SET_MAP];

    if (!own->parts)
        return;
    seal->parts = own->parts;
    seal->parts_offset = parts->offset;
    seal->parts_crc = gsi_crc32c (0, own->part, gsi_h5_bytes (parts));
    seal->regions = own->regions;
    seal->map_dims = (own->map_words - GSI_MAP_HEAD) / 2;
    seal->map_offset = map->offset;
    seal->map_crc = gsi_crc32c (0, own->map, gsi_h5_bytes (map));
}

static gs_status_t write_all (const struct gsi_own *own, const void *index, int fd,
                              const char *path)
{
    size_t table_bytes = own->blocks * sizeof (*own->block);
    size_t bytes = gsi_h5_bytes (&own->set[GSI_SET_INDEX]);
    struct gsi_seal seal = {.file_bytes = own->image->file_bytes,
                            .image_bytes = own->image->bytes,
                            .image_crc = gsi_crc32c (0, own->image->data, own->image->bytes),
                            .table_offset = own->set[GSI_SET_BLOCKS].offset,
                            .blocks = own->blocks,
                            .step = (uint64_t) own->step,
                            .ranks = (uint64_t) own->ranks,
                            .index_offset = own->set[GSI_SET_INDEX].offset,
                            .index_bytes = bytes,
                            .index_crc = gsi_crc32c (0, index, bytes)};
    uint64_t words[GSI_SEAL_WORDS];
    gs_status_t st;

    if ((st = write_sets (own, index, fd, path)) ||
        (st = gsi_file_write (fd, path, own->block, table_bytes, seal.table_offset)))
        return st;
    seal.table_crc = gsi_crc32c (0, own->block, table_bytes);
    add_parts (own, &seal);
    gsi_seal_write (&seal, words);
    return gsi_file_write (fd, path, words, sizeof (words), own->set[GSI_SET_SEAL].offset);
}

gs_status_t gsi_own_write (const struct gsi_own *own, int fd, const char *path)
{
    void *index = malloc (index_bytes (own));
    gs_status_t st;

    if (!index)
        return gsi_fail (GS_ERR_NOMEM, "%s: no memory for its index", path);
    gsi_index_write (own->set - own->arrays, own->arrays + GSI_OWN_SETS, own->grid, index);
    st = write_all (own, index, fd, path);
    free (index);
    return st;
}
