/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * checkpoints - feeds readers of checkpoints with files that somebody made to do harm: whatever
 * becomes of them, their checksums are made right again, so that what is behind these is read. A
 * file is its own part, too. HDF5 is not asked here.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "ckpt/format/metadata.h"
#include "ckpt/format/region.h"
#include "ckpt/format/reader.h"
#include "fuzz/fuzz.h"

#define MAGIC       UINT64_C (0x31504b4353445247)
#define IMAGE_BYTES 512
#define ARRAYS      3
#define ROWS_MOST   1000

static char folder[64], path[80];
static void *room;

/* ---- Right checksums ---- */

static bool lies_in (uint64_t offset, uint64_t bytes, size_t size)
{
    return offset <= size && bytes <= size - offset;
}

static void set_crc (const uint8_t *data, size_t size, uint64_t offset, uint64_t bytes,
                     uint64_t *crc)
{
    if (lies_in (offset, bytes, size))
        *crc = gsi_crc32c (0, data + offset, (size_t) bytes);
}

/* Rows of three words, of which the last is a checksum of bytes of the file. */
static void checksum_rows (uint8_t *data, size_t size, uint64_t at, uint64_t rows, bool parts)
{
    uint64_t row[3];

    if (rows > ROWS_MOST || !lies_in (at, rows * sizeof (row), size))
        return;
    for (uint64_t i = 0; i < rows; i++, at += sizeof (row)) {
        memcpy (row, data + at, sizeof (row));
        if (parts && row[0])
            row[0] = size;
        set_crc (data, size, parts ? 0 : row[0], row[1], &row[2]);
        memcpy (data + at, row, sizeof (row));
    }
}

static void write_trailer (uint8_t *data, size_t size)
{
    uint64_t words[GSI_TRAILER_WORDS];
    struct gsi_trailer s;

    memcpy (&s, data + size - GSI_TRAILER_BYTES, sizeof (s));
    s.magic = MAGIC;
    s.version = GSI_TRAILER_VERSION;
    s.file_bytes = size;
    if (s.parts)
        checksum_rows (data, size, s.parts_offset, s.parts, true);
    checksum_rows (data, size, s.table_offset, s.blocks, false);
    set_crc (data, size, 0, s.image_bytes, &s.image_crc);
    if (s.blocks <= size)
        set_crc (data, size, s.table_offset, s.blocks * 24, &s.table_crc);
    if (s.parts <= size)
        set_crc (data, size, s.parts_offset, s.parts * 24, &s.parts_crc);
    if (s.regions <= size && s.map_dims <= GS_FIELD_DIMS_MAX)
        set_crc (data, size, s.map_offset, s.regions * (GSI_MAP_HEAD + 2 * s.map_dims) * 8,
                 &s.map_crc);
    set_crc (data, size, s.index_offset, s.index_bytes, &s.index_crc);
    memcpy (data + size - GSI_TRAILER_BYTES, &s, sizeof (s));
    memcpy (words, data + size - GSI_TRAILER_BYTES, sizeof (words));
    words[GSI_TRAILER_WORDS - 1] = gsi_crc32c (0, words, GSI_TRAILER_BYTES - 8);
    memcpy (data + size - GSI_TRAILER_BYTES, words, sizeof (words));
}

/* ---- Reading ---- */

static gs_status_t pass_by (void *context, uint64_t at, const void *data, size_t bytes)
{
    uint8_t *sum = context;

    (void) at;
    for (size_t i = 0; i < bytes; i++)
        *sum ^= ((const uint8_t *) data)[i];
    return GS_OK;
}

static void read_array (struct gsi_reader *s, const struct gsi_h5_set *set)
{
    size_t bytes = gsi_h5_bytes (set), element = gs_dtype_size (set->dtype);
    struct gsi_array_view view;
    uint8_t sum = 0;
    char some[4096];

    if (gsi_reader_view (s, set, &view))
        return;
    gsi_reader_scan (s, set, room, pass_by, &sum);
    bytes = bytes < sizeof (some) ? bytes : sizeof (some) / element * element;
    gsi_reader_read_set (s, set, 0, bytes, some);
    if (gsi_h5_bytes (set) > bytes + element)
        gsi_reader_read_set (s, set, gsi_h5_bytes (set) - bytes, bytes, some);
}

static void read_all (struct gsi_reader *s)
{
    for (uint64_t p = 0; p < s->trailer.parts && p < ROWS_MOST; p++)
        gsi_reader_check_part (s, p);
    for (uint64_t b = 0; b < s->trailer.blocks && b < ROWS_MOST; b++)
        gsi_reader_check_block (s, b, room);
    if (!s->trailer.index_bytes || gsi_reader_list (s))
        return;
    for (size_t i = 0; i < s->arrays; i++)
        read_array (s, s->array[i]);
}

/* ---- The folder of the file ---- */

static void name_part (int number, char *name)
{
    snprintf (name, 100, "%s/part-%04d.h5", folder, number);
}

static void remove_folder (void)
{
    char name[100];

    for (int i = 0; i < 3; i++) {
        name_part (i, name);
        unlink (name);
    }
    unlink (path);
    rmdir (folder);
}

static void make_folder (void)
{
    char name[100];

    if (room)
        return;
    strcpy (folder, "/dev/shm/gs-fuzz.XXXXXX");
    if (!mkdtemp (folder) || !(room = malloc (GSI_BLOCK_BYTES)))
        abort ();
    atexit (remove_folder);
    snprintf (path, sizeof (path), "%s/index.h5", folder);
    close (open (path, O_WRONLY | O_CREAT, 0666));
    for (int i = 0; i < 3; i++) {
        name_part (i, name);
        if (link (path, name))
            abort ();
    }
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    struct gsi_reader reader;
    uint8_t *copy;
    int fd;

    make_folder ();
    if (size < GSI_TRAILER_BYTES || !(copy = malloc (size)))
        return 0;
    memcpy (copy, data, size);
    write_trailer (copy, size);
    fd = open (path, O_WRONLY | O_TRUNC);
    if (fd < 0 || write (fd, copy, size) != (ssize_t) size || close (fd))
        abort ();
    free (copy);
    if (!gsi_reader_open (path, &reader))
        read_all (&reader);
    gsi_reader_close (&reader);
    return 0;
}

/* ---- Files to begin with ---- */

static uint64_t place (struct gsi_h5_set *set, uint64_t at)
{
    set->offset = gsi_h5_bytes (set) ? at : 0;
    return at + gsi_h5_bytes (set);
}

static struct {
    struct gsi_h5_set set[ARRAYS + GSI_METADATA_SETS];
    struct gsi_metadata own;
} kept[2]; /* what was allocated for seeds */

/* Array 1 in two regions of one part, or all in one file. */
static void make_seed (const char *name, bool parts)
{
    struct gsi_h5_set set[ARRAYS + GSI_METADATA_SETS] = {
        {.path = strdup ("/rank/seed"), .dtype = GS_I64, .dims = 1, .shape = {2}},
        {.path = strdup ("/sharded/u"), .dtype = GS_F64, .dims = 2, .shape = {6, 4}},
        {.path = strdup ("/replicated/w"), .dtype = GS_BF16, .dims = 3, .shape = {2, 3, 1}}};
    static const char beginning[IMAGE_BYTES];
    struct gsi_h5_image image = {(void *) (uintptr_t) beginning, IMAGE_BYTES, 0};
    struct gsi_h5_grid grid = {2, {6, 4}, {0, 1}, {1, 1}};
    struct gsi_trailer_part part[2] = {{1, IMAGE_BYTES, 0}, {1, 0, 0}};
    uint64_t map[3][GSI_MAP_HEAD + 4] = {{0, 0, 512, 16, 0, 0, 0, 2, 1},
                                         {2, 0, 528, 96, 1, 0, 0, 3, 4},
                                         {2, 1, 624, 96, 2, 3, 0, 3, 4}};
    struct gsi_metadata own = {.set = &set[ARRAYS],
                               .arrays = ARRAYS,
                               .grid = &grid,
                               .image = &image,
                               .data_blocks = ARRAYS,
                               .step = 7,
                               .ranks = 2};
    uint64_t at = IMAGE_BYTES;
    int fd = open (name, O_WRONLY | O_CREAT | O_TRUNC, 0666);

    set[1].place = GSI_H5_POINTS;
    if (parts) {
        own.parts = 2;
        own.part = part;
        own.regions = 3;
        own.map_words = GSI_MAP_HEAD + 4;
        own.map = *map;
        at += 16 + 192; /* as a part it has these */
    }
    if (gsi_h5_set_text (&set[1], "gs_order", "C") || gsi_metadata_define (&own, "seed"))
        abort ();
    for (int i = parts ? ARRAYS : 0; i < ARRAYS + GSI_METADATA_SETS; i++)
        at = place (&set[i], at);
    image.file_bytes = at;
    own.block = calloc (own.blocks, sizeof (*own.block));
    for (int i = 0; i < ARRAYS; i++)
        gsi_trailer_rows (&own.block[i], parts ? map[i][2] : set[i].offset,
                          parts ? map[i][3] : gsi_h5_bytes (&set[i]));
    gsi_metadata_fill (&own);
    if (fd < 0 || ftruncate (fd, (off_t) at) || gsi_metadata_write (&own, fd, name) || close (fd))
        abort ();
    memcpy (kept[parts].set, set, sizeof (set));
    kept[parts].own = own;
}

size_t fuzz_seed (unsigned number, uint8_t *data, size_t bytes)
{
    static uint8_t seed[2][8192];
    static ssize_t size[2];
    char name[100];
    int fd, k = number % 2;

    if (!size[k]) {
        make_folder ();
        snprintf (name, sizeof (name), "%s/seed", folder);
        make_seed (name, k);
        if ((fd = open (name, O_RDONLY)) < 0 ||
            (size[k] = read (fd, seed[k], sizeof (seed[k]))) <= 0 || close (fd) || unlink (name))
            abort ();
    }
    bytes = bytes < (size_t) size[k] ? bytes : (size_t) size[k];
    memcpy (data, seed[k], bytes);
    return bytes;
}
