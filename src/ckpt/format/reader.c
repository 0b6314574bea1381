/* SPDX-License-Identifier: BSD-3-Clause */
/* reader - a checkpoint that is there. */
#include "ckpt/format/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/status.h"
#include "ckpt/format/file.h"
#include "ckpt/format/metadata.h"

#define PART_ROOM 64 /* of the name of a part */

static gs_status_t reader_damaged (const struct gsi_reader *s, const char *what)
{
    return gsi_fail (GS_ERR_FORMAT, "%s: %s", s->path, what);
}

/* ---- The trailer ---- */

static gs_status_t look_at_trailer (struct gsi_reader *s, const uint64_t *words,
                                    uint64_t file_bytes)
{
    struct gsi_trailer *trailer = &s->trailer;

    memcpy (trailer, words, sizeof (*trailer));
    if (trailer->magic != GSI_TRAILER_MAGIC)
        return reader_damaged (s,
                               "it has no trailer at its end: not a checkpoint, or not complete");
    if (words[GSI_TRAILER_WORDS - 1] != gsi_crc32c (0, words, GSI_TRAILER_BYTES - 8))
        return reader_damaged (s, "the checksum of its trailer is wrong: it is damaged");
    if (!trailer->version || trailer->version > GSI_TRAILER_VERSION)
        return gsi_fail (GS_ERR_UNSUPPORTED,
                         "%s: it is of format %zu, this gradsync knows 1 to %d: use a later one",
                         s->path, (size_t) trailer->version, GSI_TRAILER_VERSION);
    if (trailer->file_bytes != file_bytes)
        return gsi_fail (GS_ERR_FORMAT, "%s: it has %zu bytes and should have %zu: it is damaged",
                         s->path, (size_t) file_bytes, (size_t) trailer->file_bytes);
    if (trailer->image_bytes > file_bytes || trailer->table_offset > file_bytes ||
        trailer->blocks >
            (file_bytes - trailer->table_offset) / sizeof (struct gsi_trailer_block) ||
        trailer->index_offset > file_bytes ||
        trailer->index_bytes > file_bytes - trailer->index_offset)
        return reader_damaged (s, "what its trailer names lies outside of the file");
    return GS_OK;
}

/* Reads [bytes] at [offset] to [*out], to be freed, and checks them; with NULL it only checks. */
static gs_status_t fetch (int fd, const char *path, uint64_t offset, uint64_t bytes, uint64_t crc,
                          void **out)
{
    void *data = malloc (bytes + 1);
    gs_status_t st;

    if (!data)
        return gsi_fail (GS_ERR_NOMEM, "%s: no memory for %zu bytes of it", path, (size_t) bytes);
    if (!(st = gsi_file_read (fd, path, data, bytes, offset)) &&
        gsi_crc32c (0, data, bytes) != crc)
        st =
            gsi_fail (GS_ERR_FORMAT,
                      "%s: the checksum of the %zu bytes from %zu on is wrong: it is damaged, or "
                      "was changed after it was written",
                      path, (size_t) bytes, (size_t) offset);
    if (st || !out)
        free (data);
    else
        *out = data;
    return st;
}

/* The trailer, the beginning and the table. */
static gs_status_t check_trailer (struct gsi_reader *s)
{
    const struct gsi_trailer *trailer = &s->trailer;
    uint64_t words[GSI_TRAILER_WORDS];
    struct stat facts;
    void *rows;
    gs_status_t st;

    if (fstat (s->fd, &facts))
        return gsi_file_fail (s->path, "fstat");
    if (facts.st_size < GSI_TRAILER_BYTES)
        return reader_damaged (s, "it is too short for a checkpoint");
    if ((st = gsi_file_read (s->fd, s->path, words, GSI_TRAILER_BYTES,
                             (uint64_t) facts.st_size - GSI_TRAILER_BYTES)) ||
        (st = look_at_trailer (s, words, (uint64_t) facts.st_size)) ||
        (st = fetch (s->fd, s->path, 0, trailer->image_bytes, trailer->image_crc, NULL)) ||
        (st = fetch (s->fd, s->path, trailer->table_offset, trailer->blocks * sizeof (*s->table),
                     trailer->table_crc, &rows)))
        return st;
    s->table = rows;
    return GS_OK;
}

/* ---- Opening ---- */

/* A region, from its row; false if that cannot be one. */
static bool take_row (const struct gsi_reader *s, const uint64_t *row, struct gsi_region *r)
{
    size_t dims = (size_t) s->trailer.map_dims;
    uint64_t blocks = gsi_trailer_blocks (row[3]), elements = 1;
    bool fits = true;

    *r = (struct gsi_region){
        .array = row[0], .part = row[1], .offset = row[2], .bytes = row[3], .first = row[4]};
    memcpy (r->block.offsets, row + GSI_MAP_HEAD, dims * sizeof (*row));
    memcpy (r->block.extents, row + GSI_MAP_HEAD + dims, dims * sizeof (*row));
    for (size_t d = 0; d < dims && fits; d++)
        fits = !__builtin_mul_overflow (elements, r->block.extents[d], &elements);
    return fits && elements <= r->bytes && r->part < s->trailer.parts &&
           r->first <= s->trailer.blocks && blocks <= s->trailer.blocks - r->first &&
           r->offset <= s->part[r->part].file_bytes &&
           r->bytes <= s->part[r->part].file_bytes - r->offset;
}

static gs_status_t read_map (struct gsi_reader *s)
{
    size_t words = GSI_MAP_HEAD + 2 * (size_t) s->trailer.map_dims;
    void *map = NULL;
    gs_status_t st;

    if (s->trailer.map_dims > GS_FIELD_DIMS_MAX ||
        s->trailer.regions > s->trailer.file_bytes / (words * sizeof (uint64_t)))
        return reader_damaged (s, "its part map is corrupt");
    if (s->trailer.regions &&
        (st = fetch (s->fd, s->path, s->trailer.map_offset,
                     s->trailer.regions * words * sizeof (uint64_t), s->trailer.map_crc, &map)))
        return st;
    if (!(s->region = calloc ((size_t) s->trailer.regions + 1, sizeof (*s->region)))) {
        free (map);
        return gsi_fail (GS_ERR_NOMEM, "%s: no memory for its part map", s->path);
    }
    for (uint64_t i = 0; i < s->trailer.regions; i++)
        if (!take_row (s, (uint64_t *) map + i * words, &s->region[i])) {
            free (map);
            return reader_damaged (s, "its part map names what is not there");
        }
    free (map);
    return GS_OK;
}

static gs_status_t read_parts (struct gsi_reader *s)
{
    void *parts;
    gs_status_t st;

    if (!s->trailer.parts)
        return GS_OK;
    if (s->trailer.parts > s->trailer.file_bytes / sizeof (*s->part))
        return reader_damaged (s, "its part table is corrupt");
    if ((st = fetch (s->fd, s->path, s->trailer.parts_offset,
                     s->trailer.parts * sizeof (*s->part), s->trailer.parts_crc, &parts)))
        return st;
    s->part = parts;
    return read_map (s);
}

/* Where the name of a file begins, behind its folder. */
static size_t name_at (const char *path)
{
    const char *slash = strrchr (path, '/');

    return slash ? (size_t) (slash - path) + 1 : 0;
}

/* What is no file is not waited for. */
static gs_status_t open_regular (int folder, const char *path, int *fd)
{
    struct stat facts;

    if ((*fd = openat (folder, path + name_at (path), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) < 0)
        return gsi_file_unread (path);
    if (fstat (*fd, &facts))
        return gsi_file_fail (path, "fstat");
    return S_ISREG (facts.st_mode) ? GS_OK : gsi_fail (GS_ERR_FORMAT, "%s: it is no file", path);
}

gs_status_t gsi_reader_open (const char *path, struct gsi_reader *s)
{
    size_t folder = name_at (path);
    gs_status_t st;

    *s = GSI_READER_CLOSED;
    s->path = strdup (path);
    s->part_path = malloc (strlen (path) + PART_ROOM);
    if (!s->path || !s->part_path)
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", path);
    snprintf (s->part_path, PART_ROOM + folder, "%.*s", folder ? (int) folder : 1,
              folder ? path : ".");
    if ((s->folder = open (s->part_path, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
        return gsi_file_unread (path);
    if ((st = open_regular (s->folder, path, &s->fd)) || (st = check_trailer (s)))
        return st;
    return read_parts (s);
}

static void close_part (struct gsi_reader *s)
{
    if (s->part_fd >= 0)
        close (s->part_fd);
    s->part_fd = -1;
}

void gsi_reader_close (struct gsi_reader *s)
{
    close_part (s);
    if (s->fd >= 0)
        close (s->fd);
    if (s->folder >= 0)
        close (s->folder);
    free (s->path);
    free (s->table);
    free (s->part);
    free (s->region);
    free (s->part_path);
    free (s->array);
    gsi_h5_file_clear (&s->file);
    *s = GSI_READER_CLOSED;
}

/* ---- Parts ---- */

/* It lies beside the main file. */
static gs_status_t open_part (struct gsi_reader *s, uint64_t part)
{
    size_t folder = name_at (s->path);
    gs_status_t st;

    if (s->part_fd >= 0 && s->part_number == part)
        return GS_OK;
    close_part (s);
    memcpy (s->part_path, s->path, folder);
    snprintf (s->part_path + folder, PART_ROOM, GSI_PART_NAME, (int) part);
    if ((st = open_regular (s->folder, s->part_path, &s->part_fd))) {
        int reason = errno;
        bool none = s->part_fd < 0;
        close_part (s);
        /* N.B. The trailer says that it was there. */
        return none && reason == ENOENT
                   ? gsi_fail (GS_ERR_FORMAT, "%s: open: %s", s->part_path, strerror (reason))
                   : st;
    }
    s->part_number = part;
    return GS_OK;
}

gs_status_t gsi_reader_check_part (struct gsi_reader *s, uint64_t part)
{
    const struct gsi_trailer_part *p = &s->part[part];
    struct stat facts;
    gs_status_t st;

    if (!p->file_bytes)
        return GS_OK; /* there is none */
    if ((st = open_part (s, part)))
        return st;
    if (fstat (s->part_fd, &facts))
        return gsi_file_fail (s->part_path, "fstat");
    if ((uint64_t) facts.st_size != p->file_bytes)
        return gsi_fail (GS_ERR_FORMAT, "%s: it has %zu bytes and should have %zu: it is damaged",
                         s->part_path, (size_t) facts.st_size, (size_t) p->file_bytes);
    if (p->image_bytes > p->file_bytes)
        return reader_damaged (s, "its part table is corrupt");
    return fetch (s->part_fd, s->part_path, 0, p->image_bytes, p->image_crc, NULL);
}

/* The part that row [b] is of; that of the last region is before our own data sets. */
static bool find_part (const struct gsi_reader *s, uint64_t b, uint64_t *part)
{
    uint64_t low = 0, high = s->trailer.parts ? s->trailer.regions : 0;
    const struct gsi_region *r;

    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (s->region[middle].first <= b)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low)
        return false;
    r = &s->region[low - 1];
    *part = r->part;
    return b < r->first + gsi_trailer_blocks (r->bytes);
}

gs_status_t gsi_reader_check_block (struct gsi_reader *s, uint64_t b, void *room)
{
    const struct gsi_trailer_block *block = &s->table[b];
    int fd = s->fd;
    const char *path = s->path;
    uint64_t part;
    gs_status_t st;

    if (find_part (s, b, &part)) {
        if ((st = open_part (s, part)))
            return st;
        fd = s->part_fd;
        path = s->part_path;
    }
    if (block->bytes > GSI_BLOCK_BYTES)
        return gsi_fail (GS_ERR_FORMAT, "%s: a block of its table is too long", path);
    st = gsi_file_read (fd, path, room, block->bytes, block->offset);
    if (st || gsi_crc32c (0, room, block->bytes) == block->crc)
        return st;
    return gsi_fail (GS_ERR_FORMAT,
                     "%s: the checksum of the %zu bytes from %zu on is wrong: it is damaged",
                     path, (size_t) block->bytes, (size_t) block->offset);
}

gs_status_t gsi_reader_read (struct gsi_reader *s, uint64_t part, void *data, size_t bytes,
                             uint64_t offset)
{
    gs_status_t st;

    if (!s->trailer.parts)
        return gsi_file_read (s->fd, s->path, data, bytes, offset);
    if ((st = open_part (s, part)))
        return st;
    return gsi_file_read (s->part_fd, s->part_path, data, bytes, offset);
}

/* ---- What is in it ---- */

static int by_path (const void *a, const void *b)
{
    return strcmp ((*(struct gsi_h5_set *const *) a)->path,
                   (*(struct gsi_h5_set *const *) b)->path);
}

gs_status_t gsi_reader_take (struct gsi_reader *s, const struct gsi_h5_file *file)
{
    s->file = *file;
    if (!(s->array = calloc (file->sets + 1, sizeof (struct gsi_h5_set *))))
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", s->path);
    for (size_t i = 0; i < file->sets; i++)
        if (strncmp (file->set[i].path, "/gs/", 4) != 0)
            s->array[s->arrays++] = &file->set[i];
    qsort (s->array, s->arrays, sizeof (*s->array), by_path);
    return GS_OK;
}

gs_status_t gsi_reader_list (struct gsi_reader *s)
{
    const struct gsi_trailer *trailer = &s->trailer;
    struct gsi_h5_file file;
    void *index;
    gs_status_t st;

    if (!trailer->index_bytes)
        return (st = gsi_h5_list (s->path, &file)) ? st : gsi_reader_take (s, &file);
    if ((st = fetch (s->fd, s->path, trailer->index_offset, trailer->index_bytes,
                     trailer->index_crc, &index)))
        return st;
    st = gsi_index_read (s->path, index, (size_t) trailer->index_bytes, trailer->file_bytes,
                         trailer->parts, &file);
    free (index);
    return st ? st : gsi_reader_take (s, &file);
}
