/* SPDX-License-Identifier: BSD-3-Clause */
/* trailer - the end of a checkpoint, which says that it is whole. */
#include "ckpt/format/trailer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/crc32c.h"
#include "base/status.h"
#include "ckpt/format/file.h"

#define MAGIC UINT64_C (0x31504b4353445247) /* "GRDSCKP1" as bytes */

size_t gsi_trailer_blocks (uint64_t bytes)
{
    return (size_t) (bytes / GSI_BLOCK_BYTES + (bytes % GSI_BLOCK_BYTES != 0));
}

struct gsi_trailer_block *gsi_trailer_rows (struct gsi_trailer_block *row, uint64_t offset,
                                            uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += GSI_BLOCK_BYTES)
        *row++ = (struct gsi_trailer_block){
            .offset = offset + at,
            .bytes = bytes - at < GSI_BLOCK_BYTES ? bytes - at : GSI_BLOCK_BYTES};
    return row;
}

void gsi_trailer_write (const struct gsi_trailer *seal, uint64_t words[GSI_TRAILER_WORDS])
{
    struct gsi_trailer marked = *seal;

    marked.magic = MAGIC;
    marked.version = GSI_TRAILER_VERSION;
    memset (words, 0, GSI_TRAILER_BYTES);
    memcpy (words, &marked, sizeof (marked));
    words[GSI_TRAILER_WORDS - 1] = gsi_crc32c (0, words, GSI_TRAILER_BYTES - 8);
}

static gs_status_t seal_damaged (const char *path, const char *what)
{
    return gsi_fail (GS_ERR_FORMAT, "%s: %s", path, what);
}

static gs_status_t look_at_seal (const uint64_t *words, uint64_t file_bytes, const char *path,
                                 struct gsi_trailer *seal)
{
    memcpy (seal, words, sizeof (*seal));
    if (seal->magic != MAGIC)
        return seal_damaged (path,
                             "it has no seal at its end: not a checkpoint, or not complete");
    if (words[GSI_TRAILER_WORDS - 1] != gsi_crc32c (0, words, GSI_TRAILER_BYTES - 8))
        return seal_damaged (path, "the checksum of its seal is wrong: it is damaged");
    if (!seal->version || seal->version > GSI_TRAILER_VERSION)
        return gsi_fail (GS_ERR_UNSUPPORTED,
                         "%s: it is of format %zu, this gradsync knows 1 to %d: use a later one",
                         path, (size_t) seal->version, GSI_TRAILER_VERSION);
    if (seal->file_bytes != file_bytes)
        return gsi_fail (GS_ERR_FORMAT, "%s: it has %zu bytes and should have %zu: it is damaged",
                         path, (size_t) file_bytes, (size_t) seal->file_bytes);
    if (seal->image_bytes > file_bytes || seal->table_offset > file_bytes ||
        seal->blocks > (file_bytes - seal->table_offset) / sizeof (struct gsi_trailer_block) ||
        seal->index_offset > file_bytes || seal->index_bytes > file_bytes - seal->index_offset)
        return seal_damaged (path, "what its seal names lies outside of the file");
    return GS_OK;
}

gs_status_t gsi_trailer_fetch (int fd, const char *path, uint64_t offset, uint64_t bytes,
                               uint64_t crc, void **out)
{
    gs_status_t st;

    if (!(*out = malloc (bytes + 1)))
        return gsi_fail (GS_ERR_NOMEM, "%s: no memory for %zu bytes of it", path, (size_t) bytes);
    if (!(st = gsi_file_read (fd, path, *out, bytes, offset)) &&
        gsi_crc32c (0, *out, bytes) != crc)
        st =
            gsi_fail (GS_ERR_FORMAT,
                      "%s: the checksum of the %zu bytes from %zu on is wrong: it is damaged, or "
                      "was changed after it was written",
                      path, (size_t) bytes, (size_t) offset);
    if (st) {
        free (*out);
        *out = NULL;
    }
    return st;
}

gs_status_t gsi_trailer_check (int fd, const char *path, struct gsi_trailer *seal,
                               struct gsi_trailer_block **table)
{
    uint64_t words[GSI_TRAILER_WORDS];
    struct stat facts;
    void *image, *rows;
    gs_status_t st;

    *table = NULL;
    if (fstat (fd, &facts))
        return gsi_file_fail (path, "fstat");
    if (facts.st_size < GSI_TRAILER_BYTES)
        return seal_damaged (path, "it is too short for a checkpoint");
    if ((st = gsi_file_read (fd, path, words, GSI_TRAILER_BYTES,
                             (uint64_t) facts.st_size - GSI_TRAILER_BYTES)) ||
        (st = look_at_seal (words, (uint64_t) facts.st_size, path, seal)) ||
        (st = gsi_trailer_fetch (fd, path, 0, seal->image_bytes, seal->image_crc, &image)))
        return st;
    free (image);
    if ((st = gsi_trailer_fetch (fd, path, seal->table_offset, seal->blocks * sizeof (**table),
                                 seal->table_crc, &rows)))
        return st;
    *table = rows;
    return GS_OK;
}

gs_status_t gsi_trailer_check_block (int fd, const char *path,
                                     const struct gsi_trailer_block *block, void *room)
{
    gs_status_t st;

    if (block->bytes > GSI_BLOCK_BYTES)
        return seal_damaged (path, "a block of its table is too long");
    st = gsi_file_read (fd, path, room, block->bytes, block->offset);
    if (st || gsi_crc32c (0, room, block->bytes) == block->crc)
        return st;
    return gsi_fail (GS_ERR_FORMAT,
                     "%s: the checksum of the %zu bytes from %zu on is wrong: it is damaged",
                     path, (size_t) block->bytes, (size_t) block->offset);
}
