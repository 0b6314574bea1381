/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * index - what gradsync's own index says of a file is what HDF5 finds there; and one that says
 * what cannot be is refused, whatever it says.
 */
#include "ckpt/format/metadata.h"

#include <sys/stat.h>

#include "ckpt/format/reader.h"
#include "unit/alone.h"

static char folder[64];
static double data[720];

static void begin (void)
{
    strcpy (folder, "index.XXXXXX");
    ck_assert_ptr_nonnull (mkdtemp (folder));
}

static void end (void)
{
    char command[100];

    snprintf (command, sizeof (command), "rm -r %s", folder);
    ck_assert_int_eq (system (command), 0);
}

/* A checkpoint of all kinds of things. */
static void write_one (gs_ckpt_layout_t layout)
{
    const size_t shape[] = {6, 10}, none[] = {0, 10}, zero[] = {0, 0};
    const double origin[] = {1, 2}, spacing[] = {3, 4};
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    gs_comm_t *comm = alone_create ();
    gs_ckpt_t *plan;

    opts.layout = layout;
    unit_ok (gs_ckpt_create (comm, folder, &opts, &plan));
    unit_ok (gs_ckpt_add_sharded (plan, "u", 2, shape, zero, shape, GS_F64, data));
    unit_ok (gs_ckpt_add_replicated (plan, "net/b", 1, shape, GS_BF16, data));
    unit_ok (gs_ckpt_add_replicated (plan, "net.a", 2, none, GS_C128, data));
    unit_ok (gs_ckpt_add_replicated (plan, "net/a/x", 0, NULL, GS_I8, data));
    unit_ok (gs_ckpt_add_per_rank (plan, "seed", 0, NULL, GS_U64, data));
    unit_ok (gs_ckpt_set_attribute (plan, "u", "units", "m s-1"));
    unit_ok (gs_ckpt_set_attribute (plan, "u", "about", "eight by\xc3\xa4"));
    unit_ok (gs_ckpt_set_grid (plan, "u", GS_CKPT_POINTS, 2, origin, spacing));
    unit_ok (gs_ckpt_commit (plan));
    unit_ok (gs_ckpt_write (plan, 1, NULL));
    unit_ok (gs_ckpt_destroy (plan));
    unit_ok (gs_comm_destroy (comm));
}

static void same_set (const struct gsi_h5_set *a, const struct gsi_h5_set *b)
{
    ck_assert_str_eq (a->path, b->path);
    ck_assert_int_eq (a->dtype, b->dtype);
    ck_assert_int_eq (a->dims, b->dims);
    ck_assert_mem_eq (a->shape, b->shape, (size_t) a->dims * sizeof (*a->shape));
    ck_assert_uint_eq (a->offset, b->offset);
    ck_assert_int_eq (a->place, b->place);
    ck_assert_int_eq (a->texts, b->texts);
    for (int i = 0; i < a->texts; i++) {
        ck_assert_str_eq (a->text[i].name, b->text[i].name);
        ck_assert_str_eq (a->text[i].text, b->text[i].text);
    }
}

static void check_same (gs_ckpt_layout_t layout, const char *name)
{
    struct gsi_reader reader;
    const struct gsi_h5_file *ours = &reader.file;
    struct gsi_h5_file theirs;
    char path[128];

    write_one (layout);
    snprintf (path, sizeof (path), "%s/%s", folder, name);
    unit_ok (gsi_reader_open (path, &reader));
    ck_assert_uint_gt (reader.trailer.index_bytes, 0);
    unit_ok (gsi_reader_list (&reader));
    unit_ok (gsi_h5_list (path, &theirs));
    ck_assert_uint_eq (ours->sets, theirs.sets);
    for (size_t i = 0; i < ours->sets; i++)
        same_set (&ours->set[i], &theirs.set[i]);
    ck_assert_int_eq (ours->grid.dims, 2);
    ck_assert_mem_eq (&ours->grid.points, &theirs.grid.points, 2 * sizeof (uint64_t));
    ck_assert_mem_eq (&ours->grid.origin, &theirs.grid.origin, 2 * sizeof (double));
    ck_assert_mem_eq (&ours->grid.spacing, &theirs.grid.spacing, 2 * sizeof (double));
    gsi_h5_file_clear (&theirs);
    gsi_reader_close (&reader);
}

START_TEST (as_hdf5_has_it)
{
    check_same (GS_CKPT_LAYOUT_SINGLE, "ck-000000000001.h5");
    end ();
    begin ();
    check_same (GS_CKPT_LAYOUT_NODE, "ck-000000000001/index.h5");
}
END_TEST

/* Each word of it in turn is something else; and its end is missing. */
START_TEST (whatever_it_says)
{
    static const uint64_t values[] = {0,         1,
                                      2,         7,
                                      16,        17,
                                      255,       4096,
                                      1u << 31,  UINT64_C (1) << 60,
                                      INT64_MAX, UINT64_MAX - 7,
                                      UINT64_MAX};
    char path_a[] = "/sharded/u", path_b[] = "/gs/step", name[] = "gs_order", text[] = "C";
    struct gsi_h5_text order = {name, text};
    struct gsi_h5_set set[] = {{.path = path_a,
                                .dtype = GS_F64,
                                .dims = 2,
                                .shape = {6, 4},
                                .text = &order,
                                .texts = 1,
                                .offset = 512,
                                .place = GSI_H5_POINTS},
                               {.path = path_b, .dtype = GS_I64, .offset = 4096}};
    const struct gsi_h5_grid grid = {2, {6, 4}, {0, 0}, {1, 1}};
    size_t bytes = gsi_index_write (set, 2, &grid, NULL), refused = 0, words = bytes / 8;
    uint64_t *index = malloc (bytes), *changed = malloc (bytes);
    struct gsi_h5_file file;

    ck_assert_uint_eq (gsi_index_write (set, 2, &grid, index), bytes);
    unit_ok (gsi_index_read ("it", index, bytes, 8192, false, &file));
    ck_assert_uint_eq (file.sets, 2);
    gsi_h5_file_clear (&file);
    unit_fails (gsi_index_read ("it", index, bytes, 4096, false, &file), GS_ERR_FORMAT, "it: its",
                "index");
    for (size_t n = 0; n < bytes; n++)
        unit_fails (gsi_index_read ("it", index, n, 8192, false, &file), GS_ERR_FORMAT, "index");
    for (size_t w = 0; w < words; w++)
        for (size_t v = 0; v < sizeof (values) / sizeof (*values); v++) {
            memcpy (changed, index, bytes);
            changed[w] = values[v];
            refused += gsi_index_read ("it", changed, bytes, 8192, false, &file) == GS_ERR_FORMAT;
            gsi_h5_file_clear (&file);
        }
    ck_assert_uint_gt (refused, words * 5);
    free (index);
    free (changed);
}
END_TEST

UNIT_SUITE_WITH ("index", 60, begin, end, as_hdf5_has_it, whatever_it_says)
