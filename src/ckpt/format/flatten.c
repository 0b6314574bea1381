/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flatten - one file with all that the parts of a checkpoint have. Each block of the parts is
 * read once, compared with its checksum, and written where its rows go.
 */
#include "ckpt/format/reader.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "ckpt/format/file.h"
#include "ckpt/format/skeleton.h"
#include "ckpt/format/metadata.h"
#include "ckpt/format/block_crc.h"

#define PUSH_BYTES ((uint64_t) 32 << 20) /* are brought to disk while others are read */

struct flatten {
    struct gsi_reader reader;
    struct gsi_h5_set *set; /* [reader.arrays + GSI_METADATA_SETS] of the new file, the arrays
                               with the paths and texts of the reader */
    char *path, *coming, *folder;
    int fd;
    char *room; /* [GSI_BLOCK_BYTES] */
    struct gsi_metadata own;
    struct gsi_h5_image image;
    uint32_t *raw; /* [own.data_blocks] */
    struct gsi_block_crc crcs;
    struct gsi_region to; /* the array that is being copied, all of it, in the new file */
    uint64_t end;         /* of what was written last of it */
    uint64_t pushed, written;
};

static gs_status_t flatten_no_memory (const struct flatten *f)
{
    return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", f->path);
}

/* ---- What there is ---- */

/* The order in which arrays were added. */
static int by_header (const void *a, const void *b)
{
    const struct gsi_h5_set *x = a, *y = b;

    return (x->header > y->header) - (x->header < y->header);
}

/* Whether all of each array is there. */
static gs_status_t check_map (const struct gsi_reader *s)
{
    for (uint64_t i = 0; i < s->trailer.regions; i++)
        if (s->region[i].array >= s->arrays)
            return gsi_fail (GS_ERR_FORMAT, "%s: its map names an array that it has not",
                             s->path);
    for (size_t k = 0; k < s->arrays; k++) {
        uint64_t bytes = 0;
        for (uint64_t i = 0; i < s->trailer.regions; i++)
            bytes += s->region[i].array == k ? s->region[i].bytes : 0;
        if (bytes != gsi_h5_bytes (s->array[k]))
            return gsi_fail (GS_ERR_FORMAT, "%s: its parts have not all of %s, or more than that",
                             s->path, s->array[k]->path);
    }
    return GS_OK;
}

/* All but the data of arrays. */
static gs_status_t check_reader (struct flatten *f)
{
    struct gsi_reader *s = &f->reader;
    const struct gsi_region *last =
        s->trailer.regions ? &s->region[s->trailer.regions - 1] : NULL;
    gs_status_t st = GS_OK;

    for (uint64_t p = 0; p < s->trailer.parts && !st; p++)
        st = gsi_reader_check_part (s, p);
    for (uint64_t b = last ? last->first + gsi_trailer_blocks (last->bytes) : 0;
         b < s->trailer.blocks && !st; b++)
        st = gsi_reader_check_block (s, b, f->room);
    return st;
}

static gs_status_t flatten_look (struct flatten *f, const char *from)
{
    gs_status_t st;

    if ((st = gsi_reader_open (from, &f->reader)))
        return st;
    if (!f->reader.trailer.parts)
        return gsi_fail (GS_ERR_ARG, "%s: it is one file already", from);
    if (!(f->room = malloc (GSI_BLOCK_BYTES)))
        return flatten_no_memory (f);
    if ((st = check_reader (f)) || (st = gsi_reader_list (&f->reader)) ||
        (st = check_map (&f->reader)))
        return st;
    return gsi_reader_number (&f->reader, "/gs/time", &f->own.time);
}

/* ---- The new file ---- */

static gs_status_t flatten_lay_out (struct flatten *f)
{
    struct gsi_metadata *own = &f->own;
    size_t block = 0;
    gs_status_t st;

    if (!(f->set = calloc (f->reader.arrays + GSI_METADATA_SETS, sizeof (*f->set))))
        return flatten_no_memory (f);
    for (size_t i = 0; i < f->reader.arrays; i++) {
        f->set[i] = *f->reader.array[i];
        own->data_blocks += gsi_trailer_blocks (gsi_h5_bytes (&f->set[i]));
    }
    qsort (f->set, f->reader.arrays, sizeof (*f->set), by_header);
    own->set = &f->set[f->reader.arrays];
    own->arrays = f->reader.arrays;
    own->grid = &f->reader.file.grid;
    own->image = &f->image;
    own->step = (int64_t) f->reader.trailer.step;
    own->ranks = (int64_t) f->reader.trailer.ranks;
    if ((st = gsi_metadata_define (own, f->path)) ||
        (st = gsi_skeleton_make (f->folder, f->set, f->reader.arrays + GSI_METADATA_SETS,
                                 &f->reader.file.grid, &f->image)))
        return st;
    own->block = calloc (own->blocks, sizeof (*own->block));
    f->raw = calloc (own->blocks, sizeof (*f->raw));
    if (!own->block || !f->raw)
        return flatten_no_memory (f);
    for (size_t i = 0; i < f->reader.arrays; i++)
        block = (size_t) (gsi_trailer_rows (&own->block[block], f->set[i].offset,
                                            gsi_h5_bytes (&f->set[i])) -
                          own->block);
    gsi_metadata_fill (own);
    gsi_block_crc_begin (&f->crcs, f->raw, own->data_blocks);
    return GS_OK;
}

static gs_status_t flatten_put (void *context, uint64_t at, const void *data, size_t bytes)
{
    struct flatten *f = context;
    gs_status_t st;

    if (at < f->end) /* another part */
        gsi_block_crc_end (&f->crcs);
    gsi_block_crc_add (&f->crcs, (size_t) f->to.first, f->to.bytes, at, data, bytes);
    f->end = at + bytes;
    st = gsi_file_write (f->fd, f->coming, data, bytes, f->to.offset + at);
    f->written += bytes;
    if (f->written - f->pushed >= PUSH_BYTES) {
        gsi_file_push (f->fd);
        f->pushed = f->written;
    }
    return st;
}

static gs_status_t copy_array (struct flatten *f, size_t i)
{
    gs_status_t st;

    f->to.offset = f->set[i].offset;
    f->to.bytes = gsi_h5_bytes (&f->set[i]);
    f->end = 0;
    st = gsi_reader_scan (&f->reader, &f->set[i], f->room, flatten_put, f);
    gsi_block_crc_end (&f->crcs);
    f->to.first += gsi_trailer_blocks (f->to.bytes);
    return st;
}

static gs_status_t fill_file (struct flatten *f)
{
    gs_status_t st = GS_OK;

    for (size_t i = 0; i < f->reader.arrays && !st; i++)
        st = copy_array (f, i);
    for (size_t b = 0; b < f->own.data_blocks; b++)
        f->own.block[b].crc = f->raw[b] ^ gsi_crc32c_zeros (f->own.block[b].bytes);
    if (st || (st = gsi_metadata_write (&f->own, f->fd, f->coming)))
        return st;
    return fsync (f->fd) ? gsi_file_fail (f->coming, "fsync") : GS_OK;
}

/* ---- Its name ---- */

static gs_status_t make_names (struct flatten *f, const char *path)
{
    const char *slash = strrchr (path, '/');
    size_t length = strlen (path), folder = slash ? (size_t) (slash - path) + 1 : 0;

    f->path = strdup (path);
    f->folder = calloc (folder + 2, 1);
    f->coming = malloc (length + 40);
    if (!f->path || !f->folder || !f->coming)
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", path);
    memcpy (f->folder, folder ? path : ".", folder ? folder : 1);
    snprintf (f->coming, length + 40, "%s.%ld.tmp", path, (long) getpid ());
    unlink (f->coming);
    return GS_OK;
}

static gs_status_t rename_flattened (const struct flatten *f)
{
    if (!gsi_file_is (f->fd, AT_FDCWD, f->coming))
        return gsi_fail (GS_ERR_STATE, "%s: someone has put another file in its place",
                         f->coming);
    return gsi_file_rename (AT_FDCWD, f->coming, f->path);
}

static gs_status_t write_file (struct flatten *f)
{
    gs_status_t st = gsi_skeleton_create (&f->image, AT_FDCWD, f->coming, &f->fd);

    if (st)
        return st;
    if (!(st = gsi_file_reserve (f->fd, f->coming, 0, f->image.file_bytes)) &&
        !(st = fill_file (f)))
        st = rename_flattened (f);
    if (close (f->fd) && !st)
        st = gsi_file_fail (f->coming, "close");
    if (st)
        unlink (f->coming);
    return st ? st : gsi_file_sync_folder (f->folder);
}

static void flatten_clear (struct flatten *f)
{
    for (int i = 0; i < GSI_METADATA_SETS && f->own.set; i++)
        gsi_h5_set_clear (&f->own.set[i]);
    gsi_reader_close (&f->reader);
    free (f->set);
    free (f->path);
    free (f->coming);
    free (f->folder);
    free (f->room);
    free (f->own.block);
    free (f->image.data);
    free (f->raw);
}

gs_status_t gsi_flatten (const char *from, const char *path, bool replace)
{
    struct flatten f = {.reader = GSI_READER_CLOSED, .fd = -1};
    gs_status_t st;

    if (!replace && !access (path, F_OK))
        return gsi_fail (GS_ERR_STATE, "%s: there is such a file", path);
    if (!(st = make_names (&f, path)) && !(st = flatten_look (&f, from)) &&
        !(st = flatten_lay_out (&f)))
        st = write_file (&f);
    flatten_clear (&f);
    return st;
}
