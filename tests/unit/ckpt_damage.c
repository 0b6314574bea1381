/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ckpt_damage - single bits of a checkpoint flipped all over the file, and the file cut: each
 * time a read either says so and changes nothing, or all names, shapes, attributes and values are
 * what they were. GS_TEST_LONG: 100000 times.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "alone.h"
#include "base/crc32c.h"
#include "ckpt/h5.h"
#include "ckpt/seal.h"

#define CELLS 5000

static char folder[64], path[96];
static double field[CELLS];
static float weights[77];
static int64_t counter;
static gs_comm_t *comm;
static gs_ckpt_t *plan;
static unsigned char *whole;
static size_t bytes;
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

static void write_file (const void *data, size_t length)
{
    int fd = open (path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    unit_check (fd >= 0 && write (fd, data, length) == (ssize_t) length, "cannot write %s", path);
    close (fd);
}

static void read_file (void)
{
    struct stat about;
    int fd = open (path, O_RDONLY);

    ck_assert (fd >= 0 && !fstat (fd, &about));
    bytes = (size_t) about.st_size;
    ck_assert_ptr_nonnull (whole = malloc (bytes));
    ck_assert_int_eq (read (fd, whole, bytes), (ssize_t) bytes);
    close (fd);
}

static void make (void)
{
    const size_t cells[] = {100, 50}, none[] = {0, 0}, shape[] = {7, 11};

    strcpy (folder, "ckpt_damage.XXXXXX");
    ck_assert_ptr_nonnull (mkdtemp (folder));
    snprintf (path, sizeof (path), "%s/ck-000000000042.h5", folder);
    comm = alone_create ();
    unit_ok (gs_ckpt_create (comm, folder, NULL, &plan));
    unit_ok (gs_ckpt_add_sharded (plan, "u", 2, cells, none, cells, GS_F64, field));
    unit_ok (gs_ckpt_add_replicated (plan, "net/w", 2, shape, GS_F32, weights));
    unit_ok (gs_ckpt_add_per_rank (plan, "rng", 0, NULL, GS_I64, &counter));
    unit_ok (gs_ckpt_set_attribute (plan, "u", "units", "m s-1"));
    unit_ok (gs_ckpt_commit (plan));
    fill ();
    unit_ok (gs_ckpt_write (plan, 42, NULL));
    read_file ();
    unit_ok (gsi_h5_look (path, &facts));
    ck_assert_uint_eq (facts.sets, 8);
}

static void clean (void)
{
    gsi_h5_file_clear (&facts);
    free (whole);
    unit_ok (gs_ckpt_destroy (plan));
    unit_ok (gs_comm_destroy (comm));
    unlink (path);
    ck_assert_int_eq (rmdir (folder), 0);
}

static bool same_set (const struct gsi_h5_set *a, const struct gsi_h5_set *b)
{
    bool same = !strcmp (a->path, b->path) && a->dtype == b->dtype && a->dims == b->dims &&
                a->texts == b->texts && !memcmp (a->shape, b->shape, sizeof (a->shape));

    for (int i = 0; i < a->texts && same; i++)
        same = !strcmp (a->text[i].name, b->text[i].name) &&
               !strcmp (a->text[i].text, b->text[i].text);
    return same;
}

static bool same_facts (void)
{
    struct gsi_h5_file now;
    bool same = !gsi_h5_look (path, &now) && now.sets == facts.sets;

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

START_TEST (bits)
{
    int flips = getenv ("GS_TEST_LONG") ? 100000 : 2000, reported = 0;
    uint64_t state = 3;

    make ();
    for (int i = 0; i < flips; i++) {
        size_t bit = unit_random (&state) % (8 * bytes);
        whole[bit / 8] ^= (unsigned char) (1 << bit % 8);
        write_file (whole, bytes);
        reported += is_reported ("bit", bit);
        whole[bit / 8] ^= (unsigned char) (1 << bit % 8);
    }
    printf ("%d of %d flipped bits of %zu bytes are reported, the others are of no meaning\n",
            reported, flips, bytes);
    ck_assert_int_gt (reported, flips / 2);
    clean ();
}
END_TEST

START_TEST (lengths)
{
    int cuts = getenv ("GS_TEST_LONG") ? 10000 : 200;
    uint64_t state = 5;

    make ();
    for (int i = 0; i < cuts; i++) {
        size_t length = i < 20 ? bytes - 1 - (size_t) i : unit_random (&state) % bytes;
        write_file (whole, length);
        unit_check (is_reported ("length", length), "%zu of %zu bytes are enough", length, bytes);
    }
    clean ();
}
END_TEST

START_TEST (others)
{
    make ();
    write_file ("not HDF5", 8);
    unit_fails (gs_ckpt_read (plan, 42, NULL, NULL), GS_ERR_FORMAT, path, "too short");
    memset (whole, 0, bytes);
    write_file (whole, bytes);
    unit_fails (gs_ckpt_read (plan, 42, NULL, NULL), GS_ERR_FORMAT, path, "no seal");
    clean ();
}
END_TEST

/* The seal is made anew, so that only the version is different. */
START_TEST (later_version)
{
    struct gsi_seal *seal;

    make ();
    seal = (struct gsi_seal *) (void *) (whole + bytes - GSI_SEAL_BYTES);
    seal->version++;
    *(uint64_t *) (void *) (whole + bytes - 8) =
        gsi_crc32c (0, whole + bytes - GSI_SEAL_BYTES, GSI_SEAL_BYTES - 8);
    write_file (whole, bytes);
    unit_fails (gs_ckpt_read (plan, 42, NULL, NULL), GS_ERR_UNSUPPORTED, path, "format 2",
                "use a later one");
    clean ();
}
END_TEST

UNIT_MAIN ("ckpt_damage", 3000, bits, lengths, others, later_version)
