/* SPDX-License-Identifier: BSD-3-Clause */
/* skeleton - a layout is the same wherever its file was, takes no room, and leaves nothing. */
#include "ckpt/format/skeleton.h"

#include <dirent.h>
#include <sys/stat.h>

#include "ckpt/format/h5.h"
#include "unit/unit.h"

#define TIB ((uint64_t) 1 << 40)

struct layout {
    uint64_t offset[2];
    struct gsi_h5_image image;
};

static char folder[64];

static void make_folder (void)
{
    strcpy (folder, "scratch.XXXXXX");
    ck_assert_ptr_nonnull (mkdtemp (folder));
}

static int files (void)
{
    DIR *dir = opendir (folder);
    int number = 0;

    while (readdir (dir))
        number++;
    closedir (dir);
    return number - 2;
}

/* [elements] of 8 bytes and a few more, laid out at [place]; tells the blocks that it took. */
static gs_status_t lay_out (enum gsi_scratch_place place, uint64_t elements, struct layout *out,
                            long *taken)
{
    char path[2][32] = {"/sharded/u", "/gs/complete"};
    struct gsi_h5_set sets[] = {
        {.path = path[0], .dtype = GS_F64, .dims = 1, .shape = {elements}},
        {.path = path[1], .dtype = GS_U64, .dims = 1, .shape = {512}}};
    struct gsi_scratch s;
    struct stat facts = {.st_blocks = 0};
    gs_status_t st = gsi_scratch_open (place, folder, &s);

    if (!st) {
        ck_assert_int_eq (files (), place == GSI_SCRATCH_FOLDER);
        st = gsi_h5_lay_out (&s, sets, 2, NULL, &out->image);
        fstat (s.fd, &facts);
        *taken = (long) facts.st_blocks;
        out->offset[0] = sets[0].offset;
        out->offset[1] = sets[1].offset;
    }
    gsi_scratch_close (&s);
    ck_assert_int_eq (files (), 0);
    return st;
}

START_TEST (places)
{
    struct layout first, other;
    long taken;

    make_folder ();
    setenv ("TMPDIR", folder, 1);
    unit_ok (lay_out (GSI_SCRATCH_MEMORY, 1000, &first, &taken));
    ck_assert_uint_eq (first.image.file_bytes, first.offset[1] + 4096);
    unsetenv ("TMPDIR");
    for (int place = GSI_SCRATCH_TMPDIR; place < GSI_SCRATCH_PLACES; place++) {
        unit_ok (lay_out ((enum gsi_scratch_place) place, 1000, &other, &taken));
        ck_assert_mem_eq (other.offset, first.offset, sizeof (other.offset));
        ck_assert_uint_eq (other.image.bytes, first.image.bytes);
        ck_assert_mem_eq (other.image.data, first.image.data, first.image.bytes);
        gsi_h5_image_clear (&other.image);
    }
    gsi_h5_image_clear (&first.image);
    ck_assert_int_eq (rmdir (folder), 0);
}
END_TEST

START_TEST (huge)
{
    struct layout out;
    long taken;

    make_folder ();
    unit_ok (lay_out (GSI_SCRATCH_MEMORY, 40 * TIB / 8, &out, &taken));
    ck_assert_uint_ge (out.offset[1], 40 * TIB);
    unit_check (taken < 64, "40 TiB take %ld blocks of 512 bytes", taken);
    gsi_h5_image_clear (&out.image);
    ck_assert_int_eq (rmdir (folder), 0);
}
END_TEST

START_TEST (nowhere)
{
    struct gsi_scratch s;

    setenv ("TMPDIR", "/nowhere/at all", 1);
    unit_fails (gsi_scratch_open (GSI_SCRATCH_TMPDIR, ".", &s), GS_ERR_IO, "/nowhere/at all/",
                "No such file or directory");
    gsi_scratch_close (&s);
    unit_fails (gsi_scratch_open (GSI_SCRATCH_FOLDER, "gone", &s), GS_ERR_IO, "gone/",
                "No such file or directory");
    gsi_scratch_close (&s);
}
END_TEST

UNIT_SUITE ("skeleton", 60, places, huge, nowhere)
