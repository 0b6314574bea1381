/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ckpt_damage - single bits of a checkpoint flipped all over its file or files, and these cut:
 * each time a read either says so and changes nothing, or all names, shapes, attributes and
 * values are what they were. GS_TEST_LONG: 100000 times for each layout.
 */
#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>

#include "unit/alone.h"
#include "base/crc32c.h"
#include "ckpt/format/reader.h"
#include "ckpt/format/h5.h"
#include "ckpt/format/trailer.h"

#define CELLS 5000

/* A file of it. */
struct victim {
    char path[96];
    unsigned char *whole;
    size_t bytes;
};

static char folder[64];
static struct victim victim[2]; /* the main file first */
static int victims;
static double field[CELLS];
static float weights[77];
static int64_t counter;
static gs_comm_t *comm;
static gs_ckpt_t *plan;
static struct gsi_h5_file facts;

static void fill (void)
{
    for (int i = 0; i < CELLS; i++)
        field[i] = 0.5 * i;
    for (int i = 0; i < 77; i++)
        weights[i] = (float) (i * i);
    counter = 42;
}

static bool is_filled (void)
{
    bool right = counter == 42;

    for (int i = 0; i < CELLS; i++)
        right = right && field[i] == 0.5 * i;
    for (int i = 0; i < 77; i++)
        right = right && weights[i] == (float) (i * i);
    return right;
}

static void wipe (void)
{
    memset (field, 0, sizeof (field));
    memset (weights, 0, sizeof (weights));
    counter = 0;
}

static bool is_wiped (void)
{
    bool right = !counter;

    for (int i = 0; i < CELLS; i++)
        right = right && !field[i];
    for (int i = 0; i < 77; i++)
        right = right && !weights[i];
    return right;
}

static void write_file (const struct victim *v, const void *data, size_t length)
{
    int fd = open (v->path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    unit_check (fd >= 0 && write (fd, data, length) == (ssize_t) length, "cannot write %s",
                v->path);
    close (fd);
}

static void read_file (struct victim *v)
{
    struct stat about;
    int fd = open (v->path, O_RDONLY);

    ck_assert (fd >= 0 && !fstat (fd, &about));
    v->bytes = (size_t) about.st_size;
    ck_assert_ptr_nonnull (v->whole = malloc (v->bytes));
    ck_assert_int_eq (read (fd, v->whole, v->bytes), (ssize_t) v->bytes);
    close (fd);
}

static void make (gs_ckpt_layout_t layout)
{
    const size_t cells[] = {100, 50}, none[] = {0, 0}, shape[] = {7, 11};
    bool by_node = layout == GS_CKPT_LAYOUT_NODE;
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;

    strcpy (folder, "ckpt_damage.XXXXXX");
    ck_assert_ptr_nonnull (mkdtemp (folder));
    snprintf (victim[0].path, sizeof (victim[0].path), "%s/ck-000000000042%s", folder,
              by_node ? "/index.h5" : ".h5");
    snprintf (victim[1].path, sizeof (victim[1].path), "%s/ck-000000000042/part-0000.h5", folder);
    victims = by_node ? 2 : 1;
    comm = alone_create ();
    opts.layout = layout;
    unit_ok (gs_ckpt_create (comm, folder, &opts, &plan));
    unit_ok (gs_ckpt_add_sharded (plan, "u", 2, cells, none, cells, GS_F64, field));
    unit_ok (gs_ckpt_add_replicated (plan, "net/w", 2, shape, GS_F32, weights));
    unit_ok (gs_ckpt_add_per_rank (plan, "rng", 0, NULL, GS_I64, &counter));
    unit_ok (gs_ckpt_set_attribute (plan, "u", "units", "m s-1"));
    unit_ok (gs_ckpt_set_grid (plan, "u", GS_CKPT_POINTS, 2, NULL, (const double[]){0.5, 2}));
    unit_ok (gs_ckpt_commit (plan));
    fill ();
    unit_ok (gs_ckpt_write (plan, 42, NULL));
    for (int i = 0; i < victims; i++)
        read_file (&victim[i]);
    unit_ok (gsi_h5_list (victim[0].path, &facts));
    ck_assert_uint_eq (facts.sets, by_node ? 11 : 9);
    ck_assert_int_eq (facts.grid.dims, 2);
}

static void clean (void)
{
    char command[96];

    gsi_h5_file_clear (&facts);
    for (int i = 0; i < victims; i++)
        free (victim[i].whole);
    unit_ok (gs_ckpt_destroy (plan));
    unit_ok (gs_comm_destroy (comm));
    snprintf (command, sizeof (command), "rm -r %s", folder);
    ck_assert_int_eq (system (command), 0);
}

static bool same_set (const struct gsi_h5_set *a, const struct gsi_h5_set *b)
{
    bool same = !strcmp (a->path, b->path) && a->dtype == b->dtype && a->dims == b->dims &&
                a->place == b->place && a->texts == b->texts &&
                !memcmp (a->shape, b->shape, sizeof (a->shape));

    for (int i = 0; i < a->texts && same; i++)
        same = !strcmp (a->text[i].name, b->text[i].name) &&
               !strcmp (a->text[i].text, b->text[i].text);
    return same;
}

static bool same_facts (void)
{
    struct gsi_h5_file now;
    bool same = !gsi_h5_list (victim[0].path, &now) && now.sets == facts.sets &&
                !memcmp (&now.grid, &facts.grid, sizeof (facts.grid));

    for (size_t i = 0; i < facts.sets && same; i++)
        same = same_set (&facts.set[i], &now.set[i]);
    gsi_h5_file_clear (&now);
    return same;
}

/* Whether the damage is reported; else nothing may be different. */
static bool is_reported (const char *what, size_t at)
{
    gs_status_t st;

    wipe ();
    st = gs_ckpt_read (plan, 42, NULL, NULL);
    if (st) {
        unit_check (st == GS_ERR_FORMAT || st == GS_ERR_UNSUPPORTED, "%s %zu gives %s: %s", what,
                    at, gs_status_string (st), gs_last_error ());
        unit_check (is_wiped (), "%s %zu is reported, and something was read", what, at);
        return true;
    }
    unit_check (is_filled () && same_facts (), "%s %zu is not reported", what, at);
    return false;
}

/* Flips bits all over its files. */
static void flip (gs_ckpt_layout_t layout)
{
    int flips = getenv ("GS_TEST_LONG") ? 100000 : 1000, reported = 0;
    uint64_t state = 3;

    make (layout);
    for (int i = 0; i < flips; i++) {
        struct victim *v = &victim[i % victims];
        size_t bit = unit_random (&state) % (8 * v->bytes);
        v->whole[bit / 8] ^= (unsigned char) (1 << bit % 8);
        write_file (v, v->whole, v->bytes);
        reported += is_reported ("bit", bit);
        v->whole[bit / 8] ^= (unsigned char) (1 << bit % 8);
        if (victims > 1)
            write_file (v, v->whole, v->bytes);
    }
    printf ("%d of %d flipped bits of %zu bytes are reported, the others are of no meaning\n",
            reported, flips, victim[0].bytes + (victims > 1 ? victim[1].bytes : 0));
    ck_assert_int_gt (reported, flips / 2);
    clean ();
}

START_TEST (bits)
{
    flip (GS_CKPT_LAYOUT_SINGLE);
}
END_TEST

START_TEST (bits_of_parts)
{
    flip (GS_CKPT_LAYOUT_NODE);
}
END_TEST

/* Cuts its files. */
static void cut (gs_ckpt_layout_t layout)
{
    int cuts = getenv ("GS_TEST_LONG") ? 10000 : 200;
    uint64_t state = 5;

    make (layout);
    for (int i = 0; i < cuts; i++) {
        struct victim *v = &victim[i % victims];
        size_t length = i < 20 ? v->bytes - 1 - (size_t) i : unit_random (&state) % v->bytes;
        write_file (v, v->whole, length);
        unit_check (is_reported ("length", length), "%zu of %zu bytes are enough", length,
                    v->bytes);
        write_file (v, v->whole, v->bytes);
    }
    for (int i = 1; i < victims; i++) {
        unlink (victim[i].path);
        unit_fails (gs_ckpt_read (plan, 42, NULL, NULL), GS_ERR_FORMAT, victim[i].path,
                    "No such file");
    }
    clean ();
}

START_TEST (lengths)
{
    cut (GS_CKPT_LAYOUT_SINGLE);
}
END_TEST

START_TEST (lengths_of_parts)
{
    cut (GS_CKPT_LAYOUT_NODE);
}
END_TEST

START_TEST (others)
{
    make (GS_CKPT_LAYOUT_SINGLE);
    write_file (victim, "not HDF5", 8);
    unit_fails (gs_ckpt_read (plan, 42, NULL, NULL), GS_ERR_FORMAT, victim->path, "too short");
    memset (victim->whole, 0, victim->bytes);
    write_file (victim, victim->whole, victim->bytes);
    unit_fails (gs_ckpt_read (plan, 42, NULL, NULL), GS_ERR_FORMAT, victim->path, "no trailer");
    clean ();
}
END_TEST

/* The trailer is made anew, so that only the version is different. */
START_TEST (later_version)
{
    struct gsi_trailer *trailer;
    unsigned char *end;

    make (GS_CKPT_LAYOUT_SINGLE);
    end = victim->whole + victim->bytes;
    trailer = (struct gsi_trailer *) (void *) (end - GSI_TRAILER_BYTES);
    trailer->version++;
    *(uint64_t *) (void *) (end - 8) =
        gsi_crc32c (0, end - GSI_TRAILER_BYTES, GSI_TRAILER_BYTES - 8);
    write_file (victim, victim->whole, victim->bytes);
    unit_fails (gs_ckpt_read (plan, 42, NULL, NULL), GS_ERR_UNSUPPORTED, victim->path, "format 2",
                "use a later one");
    clean ();
}
END_TEST

/* ---- Files that somebody has made so: all checksums are right ---- */

static uint64_t get (const struct victim *v, uint64_t offset)
{
    uint64_t word;

    memcpy (&word, v->whole + offset, sizeof (word));
    return word;
}

static void put (const struct victim *v, uint64_t offset, uint64_t word)
{
    memcpy (v->whole + offset, &word, sizeof (word));
}

static struct gsi_trailer trailer_of (const struct victim *v)
{
    struct gsi_trailer trailer;

    memcpy (&trailer, v->whole + v->bytes - GSI_TRAILER_BYTES, sizeof (trailer));
    return trailer;
}

/* The checksums of an index anew. What it says may be out of it: then there is none. */
static void rewrite_trailer (const struct victim *v)
{
    unsigned char *end = v->whole + v->bytes - GSI_TRAILER_BYTES;
    struct gsi_trailer trailer = trailer_of (v);
    size_t map = trailer.regions * (GSI_MAP_HEAD + 2 * trailer.map_dims) * 8;

    for (uint64_t b = 0; b < trailer.blocks; b++) {
        uint64_t row = trailer.table_offset + b * sizeof (struct gsi_trailer_block);
        uint64_t offset = get (v, row), bytes = get (v, row + 8);
        if (offset == trailer.parts_offset || offset == trailer.map_offset)
            put (v, row + 16, gsi_crc32c (0, v->whole + offset, bytes));
    }
    if (trailer.parts == 1)
        trailer.parts_crc = gsi_crc32c (0, v->whole + trailer.parts_offset, 24);
    if (map <= v->bytes - trailer.map_offset)
        trailer.map_crc = gsi_crc32c (0, v->whole + trailer.map_offset, map);
    trailer.table_crc = gsi_crc32c (0, v->whole + trailer.table_offset,
                                    trailer.blocks * sizeof (struct gsi_trailer_block));
    memcpy (end, &trailer, sizeof (trailer));
    put (v, v->bytes - 8, gsi_crc32c (0, end, GSI_TRAILER_BYTES - 8));
}

/* The word of the index at [offset] becomes [value]. */
static void forge (uint64_t offset, uint64_t value, const char *what)
{
    const struct victim *v = &victim[0];
    unsigned char *before = malloc (v->bytes);
    char flat[96];
    gs_status_t st;

    ck_assert_ptr_nonnull (before);
    memcpy (before, v->whole, v->bytes);
    put (v, offset, value);
    rewrite_trailer (v);
    write_file (v, v->whole, v->bytes);
    wipe ();
    st = gs_ckpt_read (plan, 42, NULL, NULL); /* a box may be larger than the array */
    unit_check (st == GS_ERR_IO ? strstr (gs_last_error (), "may have been filled") != NULL
                                : (st == GS_ERR_FORMAT ? is_wiped () : !st && is_filled ()),
                "%s gives %s: %s", what, gs_status_string (st), gs_last_error ());
    snprintf (flat, sizeof (flat), "%s/flat.h5", folder);
    st = gsi_flatten (v->path, flat, false);
    unit_check (st == GS_ERR_FORMAT, "%s flattened gives %s: %s", what, gs_status_string (st),
                gs_last_error ());
    memcpy (v->whole, before, v->bytes);
    free (before);
}

static void forge_trailer (size_t at, uint64_t value, const char *what)
{
    forge (victim->bytes - GSI_TRAILER_BYTES + at, value, what);
}

/* A row of the map. */
static void forge_box (uint64_t row, const struct gsi_trailer *trailer)
{
    uint64_t extent = row + 8 * (GSI_MAP_HEAD + trailer->map_dims), is = get (victim, extent);

    forge (extent, is + (UINT64_C (1) << 61), "a box that wraps");
    forge (extent, is + 1, "a box too large");
    forge (extent, 0, "a box of nothing");
    forge (row + 16, UINT64_MAX - 8, "a box beyond its part");
    forge (row + 32, trailer->blocks, "a box of no blocks");
}

START_TEST (forged)
{
    struct gsi_trailer trailer;
    uint64_t part, bytes;

    make (GS_CKPT_LAYOUT_NODE);
    trailer = trailer_of (victim);
    part = trailer.parts_offset;
    bytes = get (victim, part);
    rewrite_trailer (victim);
    write_file (victim, victim->whole, victim->bytes);
    unit_ok (gs_ckpt_read (plan, 42, NULL, NULL)); /* it is made well */
    forge (part + 8, UINT64_MAX, "a part's image without end");
    forge (part + 8, bytes + 1, "a part's image longer than it");
    forge (part, UINT64_MAX, "a part without end");
    forge_trailer (offsetof (struct gsi_trailer, parts), (UINT64_C (1) << 61) + 1,
                   "endless parts");
    forge_trailer (offsetof (struct gsi_trailer, regions), (UINT64_C (1) << 60) + trailer.regions,
                   "endless regions");
    forge_trailer (offsetof (struct gsi_trailer, regions), trailer.regions - 1,
                   "a region too few");
    forge_trailer (offsetof (struct gsi_trailer, map_dims), 0, "boxes of no dimension");
    for (uint64_t r = 0; r < trailer.regions; r++)
        forge_box (trailer.map_offset + r * 8 * (GSI_MAP_HEAD + 2 * trailer.map_dims), &trailer);
    clean ();
}
END_TEST

/* A row of the table is of less than the box has there: what is not compared is not taken. */
START_TEST (short_row)
{
    uint64_t row, offset, bytes;
    char flat[96];

    make (GS_CKPT_LAYOUT_NODE);
    row = trailer_of (victim).table_offset;
    offset = get (victim, row);
    bytes = get (victim, row + 8) - 8;
    put (victim, row + 8, bytes);
    put (victim, row + 16, gsi_crc32c (0, victim[1].whole + offset, bytes));
    rewrite_trailer (victim);
    write_file (victim, victim->whole, victim->bytes);
    snprintf (flat, sizeof (flat), "%s/flat.h5", folder);
    unit_fails (gsi_flatten (victim->path, flat, false), GS_ERR_FORMAT, victim->path, "its map",
                "/sharded/u");
    clean ();
}
END_TEST

static gs_status_t look_where (void *most, uint64_t at, const void *data, size_t bytes)
{
    (void) data;
    *(uint64_t *) most = at + bytes > *(uint64_t *) most ? at + bytes : *(uint64_t *) most;
    return GS_OK;
}

/* Names of data sets say less than the table has of them; and more than can be. */
START_TEST (sizes_lie)
{
    struct gsi_h5_set set = {
        .path = (char *) (uintptr_t) "/sharded/u", .dtype = GS_F64, .dims = 2};
    struct gsi_reader reader;
    uint64_t most = 0;
    void *room = malloc (GSI_BLOCK_BYTES);

    set.shape[0] = (uint64_t) 1 << 61;
    set.shape[1] = 1;
    ck_assert_uint_eq (gsi_h5_bytes (&set), SIZE_MAX);
    set.shape[0] = ((uint64_t) 1 << 61) + 1;
    ck_assert_uint_eq (gsi_h5_bytes (&set), SIZE_MAX);
    set.shape[1] = 0;
    ck_assert_uint_eq (gsi_h5_bytes (&set), 0);
    make (GS_CKPT_LAYOUT_SINGLE);
    for (size_t i = 0; i < facts.sets; i++)
        if (!strcmp (facts.set[i].path, set.path))
            set = facts.set[i];
    set.shape[0] = 10; /* of 100 */
    unit_ok (gsi_reader_open (victim[0].path, &reader));
    unit_fails (gsi_reader_scan (&reader, &set, room, look_where, &most), GS_ERR_FORMAT,
                victim[0].path, "/sharded/u");
    ck_assert_uint_le (most, gsi_h5_bytes (&set));
    gsi_reader_close (&reader);
    free (room);
    clean ();
}
END_TEST

UNIT_SUITE ("ckpt_damage", 3000, bits, bits_of_parts, lengths, lengths_of_parts, others,
            later_version, forged, short_row, sizes_lie)
