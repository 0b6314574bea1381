/* SPDX-License-Identifier: BSD-3-Clause */
/* metadata - the data sets of gradsync itself in a main file. */
#include "ckpt/format/metadata.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/status.h"
#include "ckpt/format/file.h"

/* ---- What they are ---- */

static gs_status_t define_set (const struct gsi_metadata *m, enum gsi_metadata_set which,
                               const char *path, const size_t *shape, const char *caller)
{
    struct gsi_h5_set *set = &m->set[which];

    *set = (struct gsi_h5_set){.path = strdup (path), .dtype = shape ? GS_U64 : GS_I64};
    for (int d = 0; shape && d < 2 && shape[d]; d++)
        set->shape[set->dims++] = shape[d];
    return set->path ? GS_OK : gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);
}

/* The index, which has all sets, itself as well, to [out], or NULL: its bytes. */
static size_t write_index (const struct gsi_metadata *m, void *out)
{
    return gsi_index_write (m->set - m->arrays, m->arrays + GSI_METADATA_SETS, m->grid, out);
}

gs_status_t gsi_metadata_define (struct gsi_metadata *m, const char *caller)
{
    size_t parts[] = {m->parts, sizeof (*m->part) / 8};
    size_t map[] = {m->regions, m->map_words};
    size_t table[] = {1, sizeof (*m->block) / 8}, trailer[] = {GSI_TRAILER_WORDS, 0};
    size_t index[] = {1, 0};
    struct gsi_h5_set *set = m->set;
    gs_status_t st;

    memset (set, 0, GSI_METADATA_SETS * sizeof (*set));
    if ((st = define_set (m, GSI_SET_INDEX, "/gs/index", index, caller)) ||
        (st = define_set (m, GSI_SET_STEP, "/gs/step", NULL, caller)) ||
        (st = define_set (m, GSI_SET_TIME, "/gs/time", NULL, caller)) ||
        (st = define_set (m, GSI_SET_RANKS, "/gs/ranks", NULL, caller)) ||
        (m->parts && (st = define_set (m, GSI_SET_PARTS, "/gs/parts", parts, caller))) ||
        (m->regions && (st = define_set (m, GSI_SET_MAP, "/gs/map", map, caller))) ||
        (st = define_set (m, GSI_SET_BLOCKS, "/gs/blocks", table, caller)) ||
        (st = define_set (m, GSI_SET_TRAILER, "/gs/complete", trailer, caller)) ||
        (st = gsi_h5_set_text (&set[GSI_SET_TIME], "units",
                               "nanoseconds since 1970-01-01 00:00:00 UTC")))
        return st;
    set[GSI_SET_INDEX].dtype = GS_U8;
    set[GSI_SET_INDEX].shape[0] = write_index (m, NULL);
    m->blocks = m->data_blocks;
    for (int which = 0; which < GSI_SET_BLOCKS; which++)
        m->blocks += gsi_trailer_blocks (gsi_h5_bytes (&set[which]));
    set[GSI_SET_BLOCKS].shape[0] = m->blocks;
    return GS_OK;
}

void gsi_metadata_fill (const struct gsi_metadata *m)
{
    struct gsi_trailer_block *row = m->block + m->data_blocks;

    for (int which = 0; which < GSI_SET_BLOCKS; which++)
        row = gsi_trailer_rows (row, m->set[which].offset, gsi_h5_bytes (&m->set[which]));
}

/* ---- Writing ---- */

/* Those that the table tells of, in its order. */
static gs_status_t write_sets (const struct gsi_metadata *m, const void *index, int fd,
                               const char *path)
{
    const void *data[GSI_SET_BLOCKS] = {
        [GSI_SET_INDEX] = index,     [GSI_SET_STEP] = &m->step, [GSI_SET_TIME] = &m->time,
        [GSI_SET_RANKS] = &m->ranks, [GSI_SET_PARTS] = m->part, [GSI_SET_MAP] = m->map};
    struct gsi_trailer_block *row = m->block + m->data_blocks;
    gs_status_t st = GS_OK;

    for (int which = 0; which < GSI_SET_BLOCKS && !st; which++) {
        size_t bytes = gsi_h5_bytes (&m->set[which]);
        for (size_t at = 0; at < bytes; at += row++->bytes)
            row->crc = gsi_crc32c (0, (const char *) data[which] + at, row->bytes);
        if (bytes)
            st = gsi_file_write (fd, path, data[which], bytes, m->set[which].offset);
    }
    return st;
}

static void add_parts (const struct gsi_metadata *m, struct gsi_trailer *trailer)
{
    const struct gsi_h5_set *parts = &m->set[GSI_SET_PARTS], *map = &m->set[GSI_SET_MAP];

    if (!m->parts)
        return;
    trailer->parts = m->parts;
    trailer->parts_offset = parts->offset;
    trailer->parts_crc = gsi_crc32c (0, m->part, gsi_h5_bytes (parts));
    trailer->regions = m->regions;
    trailer->map_dims = (m->map_words - GSI_MAP_HEAD) / 2;
    trailer->map_offset = map->offset;
    trailer->map_crc = gsi_crc32c (0, m->map, gsi_h5_bytes (map));
}

static gs_status_t write_with_index (const struct gsi_metadata *m, const void *index, int fd,
                                     const char *path)
{
    size_t table_bytes = m->blocks * sizeof (*m->block);
    size_t bytes = gsi_h5_bytes (&m->set[GSI_SET_INDEX]);
    struct gsi_trailer trailer = {.magic = GSI_TRAILER_MAGIC,
                                  .version = GSI_TRAILER_VERSION,
                                  .file_bytes = m->image->file_bytes,
                                  .image_bytes = m->image->bytes,
                                  .image_crc = gsi_crc32c (0, m->image->data, m->image->bytes),
                                  .table_offset = m->set[GSI_SET_BLOCKS].offset,
                                  .blocks = m->blocks,
                                  .step = (uint64_t) m->step,
                                  .ranks = (uint64_t) m->ranks,
                                  .index_offset = m->set[GSI_SET_INDEX].offset,
                                  .index_bytes = bytes,
                                  .index_crc = gsi_crc32c (0, index, bytes)};
    uint64_t words[GSI_TRAILER_WORDS] = {0};
    gs_status_t st;

    if ((st = write_sets (m, index, fd, path)) ||
        (st = gsi_file_write (fd, path, m->block, table_bytes, trailer.table_offset)))
        return st;
    trailer.table_crc = gsi_crc32c (0, m->block, table_bytes);
    add_parts (m, &trailer);
    memcpy (words, &trailer, sizeof (trailer));
    words[GSI_TRAILER_WORDS - 1] = gsi_crc32c (0, words, GSI_TRAILER_BYTES - 8);
    return gsi_file_write (fd, path, words, sizeof (words), m->set[GSI_SET_TRAILER].offset);
}

gs_status_t gsi_metadata_write (const struct gsi_metadata *m, int fd, const char *path)
{
    void *index = malloc (write_index (m, NULL));
    gs_status_t st;

    if (!index)
        return gsi_fail (GS_ERR_NOMEM, "%s: no memory for its index", path);
    write_index (m, index);
    st = write_with_index (m, index, fd, path);
    free (index);
    return st;
}
