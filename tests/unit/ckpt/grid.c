/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ckpt_grid - fields on a grid: what is refused, by name and without effect; what is found in the
 * file or the index, also with many fields, long names, and where /VTKHDF has things of others.
 */
#include <fcntl.h>
#include <math.h>

#include "unit/alone.h"
#include "ckpt/format/reader.h"
#include "ckpt/format/skeleton.h"

static const size_t none[4];
static const double quarter[] = {0.25, 0.25, 0.25};
static char folder[64], path[96];
static double data[720];
static gs_comm_t *comm;
static gs_ckpt_t *plan;

static void begin (void)
{
    strcpy (folder, "ckpt_grid.XXXXXX");
    ck_assert_ptr_nonnull (mkdtemp (folder));
    snprintf (path, sizeof (path), "%s/ck-000000000001.h5", folder);
    comm = alone_create ();
    unit_ok (gs_ckpt_create (comm, folder, NULL, &plan));
}

static void end (void)
{
    unit_ok (gs_ckpt_destroy (plan));
    unit_ok (gs_comm_destroy (comm));
    unlink (path);
    ck_assert_int_eq (rmdir (folder), 0);
}

static void add (const char *name, gs_dtype_t dtype, int dims, const size_t *shape)
{
    unit_ok (gs_ckpt_add_sharded (plan, name, dims, shape, none, shape, dtype, data));
}

static gs_status_t set (const char *name, gs_ckpt_place_t place, int dims)
{
    return gs_ckpt_set_grid (plan, name, place, dims, NULL, quarter);
}

/* What gs_ckpt_write leaves. */
static struct gsi_h5_file save (void)
{
    struct gsi_h5_file file;

    unit_ok (gs_ckpt_commit (plan));
    unit_ok (gs_ckpt_write (plan, 1, NULL));
    unit_ok (gs_ckpt_read (plan, 1, NULL, NULL));
    unit_ok (gsi_h5_list (path, &file));
    return file;
}

static const struct gsi_h5_set *find (const struct gsi_h5_file *file, const char *name)
{
    for (size_t i = 0; i < file->sets; i++)
        if (!strcmp (file->set[i].path, name))
            return &file->set[i];
    ck_abort_msg ("no %s", name);
}

START_TEST (arrays)
{
    const size_t cube[] = {3, 4, 5, 2}, flat[] = {3, 4, 1, 1};

    begin ();
    add ("cube", GS_F64, 3, cube);
    add ("line", GS_F64, 1, cube);
    add ("deep", GS_F64, 4, cube);
    add ("thin", GS_F64, 3, flat);
    add ("waves", GS_C128, 2, cube);
    unit_ok (gs_ckpt_add_replicated (plan, "same", 3, cube, GS_F64, data));
    unit_ok (gs_ckpt_add_per_rank (plan, "own", 3, cube, GS_F64, data));
    unit_fails (set ("other", GS_CKPT_POINTS, 2), GS_ERR_ARG, "gs_ckpt_set_grid", "'other'");
    unit_fails (set (NULL, GS_CKPT_POINTS, 2), GS_ERR_ARG, "no array 'NULL'");
    unit_fails (set ("same", GS_CKPT_POINTS, 3), GS_ERR_ARG, "'same' is not sharded");
    unit_fails (set ("own", GS_CKPT_POINTS, 3), GS_ERR_ARG, "'own' is not sharded");
    unit_fails (set ("waves", GS_CKPT_POINTS, 2), GS_ERR_ARG, "'waves'", "GS_C128", "complex");
    unit_fails (set ("line", GS_CKPT_POINTS, 1), GS_ERR_ARG, "dims is 1");
    unit_fails (set ("deep", GS_CKPT_POINTS, 4), GS_ERR_ARG, "dims is 4");
    unit_fails (set ("line", GS_CKPT_POINTS, 2), GS_ERR_ARG, "'line' has 1 dimensions");
    unit_fails (set ("deep", GS_CKPT_POINTS, 2), GS_ERR_ARG, "'deep' has 4 dimensions");
    unit_fails (set ("thin", GS_CKPT_POINTS, 2), GS_ERR_ARG, "'thin'", "2 components or more");
    unit_fails (set ("thin", GS_CKPT_POINTS, 3), GS_ERR_ARG, "dimension 3 of 'thin' has 1");
    unit_fails (set ("cube", (gs_ckpt_place_t) 2, 3), GS_ERR_ARG, "unknown place 2");
    unit_fails (gs_ckpt_set_grid (NULL, "cube", GS_CKPT_POINTS, 3, NULL, NULL), GS_ERR_ARG,
                "ckpt is NULL");
    unit_ok (set ("thin", GS_CKPT_CELLS, 3));
    end ();
}
END_TEST

START_TEST (values)
{
    static const double wrong[][3] = {{1, 0, 1}, {1, 1, -1}, {NAN, 1, 1}, {1, INFINITY, 1}};
    const size_t cube[] = {3, 4, 5}, nothing[] = {3, 0, 5};

    begin ();
    add ("cube", GS_F64, 3, cube);
    add ("empty", GS_F64, 3, nothing);
    for (int i = 0; i < 4; i++)
        unit_fails (gs_ckpt_set_grid (plan, "cube", GS_CKPT_POINTS, 3, NULL, wrong[i]),
                    GS_ERR_ARG, "spacing is above 0");
    for (int i = 2; i < 4; i++)
        unit_fails (gs_ckpt_set_grid (plan, "cube", GS_CKPT_POINTS, 3, wrong[i], NULL),
                    GS_ERR_ARG, "both are finite");
    unit_fails (set ("empty", GS_CKPT_CELLS, 3), GS_ERR_ARG, "dimension 2 of 'empty' has 0");
    end ();
}
END_TEST

/* Fields on grids of their own, or of one name; and a plan after its commit. */
START_TEST (pairs)
{
    const size_t cube[] = {3, 4, 5}, cells[] = {2, 3, 4}, flat[] = {4, 5, 2};
    const double other[] = {0.25, 0.25, 0.5}, minus[] = {-0.0, 0.0, -0.0};
    struct gsi_h5_file file;

    begin ();
    add ("a/b", GS_F64, 3, cube);
    add ("a_b", GS_F64, 3, cube);
    add ("c", GS_F32, 3, cube);
    add ("cells", GS_F32, 3, cells);
    add ("flat", GS_F32, 2, flat);
    add ("vector", GS_F32, 3, flat);
    unit_ok (set ("a/b", GS_CKPT_POINTS, 3));
    unit_fails (set ("a_b", GS_CKPT_POINTS, 3), GS_ERR_ARG, "'a_b' and 'a/b' are both a_b");
    unit_fails (set ("flat", GS_CKPT_POINTS, 2), GS_ERR_ARG, "'flat' is on 4 x 5 points",
                "'a/b' on 3 x 4 x 5");
    unit_fails (set ("c", GS_CKPT_CELLS, 3), GS_ERR_ARG, "'c' is on 4 x 5 x 6 points",
                "'a/b' on 3 x 4 x 5");
    unit_fails (gs_ckpt_set_grid (plan, "c", GS_CKPT_POINTS, 3, other, quarter), GS_ERR_ARG,
                "'c' has another origin or spacing than 'a/b'");
    unit_fails (gs_ckpt_set_grid (plan, "c", GS_CKPT_POINTS, 3, NULL, other), GS_ERR_ARG,
                "'c' has another origin or spacing than 'a/b'");
    unit_ok (gs_ckpt_set_grid (plan, "c", GS_CKPT_POINTS, 3, minus, quarter));
    unit_ok (set ("cells", GS_CKPT_CELLS, 3));
    file = save ();
    ck_assert_int_eq (file.grid.dims, 3);
    for (int d = 0; d < 3; d++) {
        ck_assert_uint_eq (file.grid.points[d], cube[d]);
        ck_assert (file.grid.origin[d] == 0 && file.grid.spacing[d] == 0.25);
    }
    ck_assert_uint_eq (file.sets, 12);
    ck_assert_int_eq (find (&file, "/sharded/a/b")->place, GSI_H5_POINTS);
    ck_assert_int_eq (find (&file, "/sharded/a_b")->place, GSI_H5_NOWHERE);
    ck_assert_int_eq (find (&file, "/sharded/c")->place, GSI_H5_POINTS);
    ck_assert_int_eq (find (&file, "/sharded/cells")->place, GSI_H5_CELLS);
    gsi_h5_file_clear (&file);
    unit_fails (set ("c", GS_CKPT_POINTS, 3), GS_ERR_STATE, "is committed");
    end ();
}
END_TEST

/* With a file for each node the index has the grid, and so has one file that is made of it. */
START_TEST (nodes)
{
    const size_t cube[] = {3, 4, 5}, cells[] = {2, 3, 4};
    const double origin[] = {1, 2, 3};
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    char index[120], part[120], top[96];
    struct gsi_h5_file file;

    begin ();
    unit_ok (gs_ckpt_destroy (plan));
    opts.layout = GS_CKPT_LAYOUT_NODE;
    unit_ok (gs_ckpt_create (comm, folder, &opts, &plan));
    add ("a/b", GS_F64, 3, cube);
    add ("cells", GS_F32, 3, cells);
    unit_ok (gs_ckpt_set_grid (plan, "a/b", GS_CKPT_POINTS, 3, origin, quarter));
    unit_ok (gs_ckpt_set_grid (plan, "cells", GS_CKPT_CELLS, 3, origin, quarter));
    unit_ok (gs_ckpt_commit (plan));
    unit_ok (gs_ckpt_write (plan, 1, NULL));
    unit_ok (gs_ckpt_read (plan, 1, NULL, NULL));
    snprintf (top, sizeof (top), "%s/ck-000000000001", folder);
    snprintf (index, sizeof (index), "%s/index.h5", top);
    snprintf (part, sizeof (part), "%s/part-0000.h5", top);
    unit_ok (gsi_flatten (index, path, false));
    unit_ok (gsi_h5_list (part, &file));
    ck_assert_int_eq (file.grid.dims, 0);
    gsi_h5_file_clear (&file);
    for (int i = 0; i < 2; i++) {
        unit_ok (gsi_h5_list (i ? path : index, &file));
        ck_assert_int_eq (file.grid.dims, 3);
        ck_assert (!memcmp (file.grid.origin, origin, sizeof (origin)));
        ck_assert_int_eq (find (&file, "/sharded/a/b")->place, GSI_H5_POINTS);
        ck_assert_int_eq (find (&file, "/sharded/cells")->place, GSI_H5_CELLS);
        gsi_h5_file_clear (&file);
    }
    unlink (part);
    unlink (index);
    ck_assert_int_eq (rmdir (top), 0);
    end ();
}
END_TEST

/* The only field there is may be moved to another grid. */
START_TEST (again)
{
    const size_t shape[] = {4, 5, 6};
    const double first[] = {1, 2, 3}, last[] = {4, 5, 6};
    struct gsi_h5_file file;

    begin ();
    add ("v", GS_F64, 3, shape);
    unit_ok (gs_ckpt_set_grid (plan, "v", GS_CKPT_POINTS, 3, first, NULL));
    unit_ok (gs_ckpt_set_grid (plan, "v", GS_CKPT_CELLS, 2, last, quarter));
    file = save ();
    ck_assert_int_eq (file.grid.dims, 2);
    ck_assert (file.grid.points[0] == 5 && file.grid.points[1] == 6);
    ck_assert (file.grid.origin[0] == 4 && file.grid.origin[1] == 5);
    ck_assert_int_eq (find (&file, "/sharded/v")->place, GSI_H5_CELLS);
    gsi_h5_file_clear (&file);
    end ();
}
END_TEST

START_TEST (many)
{
    static const int numbers[] = {1, 8, 9, 300};
    const size_t shape[] = {2, 2};
    char name[GS_CKPT_NAME_MAX + 1];

    for (int i = 0; i < 8; i++) {
        struct gsi_h5_file file;
        begin ();
        for (int k = 0; k < numbers[i / 2]; k++) {
            snprintf (name, sizeof (name), "%0*d", i % 2 ? GS_CKPT_NAME_MAX : 4, k);
            add (name, GS_F64, 2, shape);
            unit_ok (set (name, GS_CKPT_POINTS, 2));
        }
        file = save ();
        ck_assert_uint_eq (file.sets, (size_t) numbers[i / 2] + 6);
        for (size_t k = 0; k < file.sets; k++)
            ck_assert_int_eq (file.set[k].place, strncmp (file.set[k].path, "/gs/", 4)
                                                     ? GSI_H5_POINTS
                                                     : GSI_H5_NOWHERE);
        gsi_h5_file_clear (&file);
        end ();
    }
}
END_TEST

/* Data sets in /VTKHDF are no arrays; and files can end in any of the sets. */
START_TEST (strangers)
{
    char own[] = "/sharded/u", odd[] = "/VTKHDF/PointData/odd", far[] = "/VTKHDF/Steps/x";
    const struct gsi_h5_grid grid = {
        .dims = 2, .points = {6, 10}, .origin = {1, 2}, .spacing = {3, 4}};

    for (int turn = 0; turn < 6; turn++) {
        struct gsi_h5_set set[3] = {
            {.path = odd, .dtype = GS_F64, .dims = 2, .shape = {6, turn % 2 ? 1000 : 1}},
            {.path = own, .dtype = GS_F64, .dims = 2, .shape = {6, 10}, .place = GSI_H5_POINTS},
            {.path = far, .dtype = GS_U8, .dims = 1, .shape = {turn < 2 ? 1 : 4000 * turn}}};
        struct gsi_h5_image image;
        struct gsi_h5_file file;
        struct gsi_scratch scratch;
        int fd;
        begin ();
        unit_ok (gsi_scratch_open (GSI_SCRATCH_MEMORY, folder, &scratch));
        unit_ok (gsi_h5_lay_out (&scratch, set, 3, &grid, &image));
        gsi_scratch_close (&scratch);
        unit_ok (gsi_skeleton_create (&image, AT_FDCWD, path, &fd));
        close (fd);
        unit_ok (gsi_h5_list (path, &file));
        ck_assert_uint_eq (file.sets, 1);
        ck_assert_str_eq (file.set[0].path, own);
        ck_assert_uint_eq (file.set[0].offset, set[1].offset);
        ck_assert_int_eq (file.set[0].place, GSI_H5_POINTS);
        ck_assert (!memcmp (&file.grid, &grid, sizeof (grid)));
        gsi_h5_file_clear (&file);
        gsi_h5_image_clear (&image);
        end ();
    }
}
END_TEST

UNIT_SUITE ("ckpt_grid", 120, arrays, values, pairs, nodes, again, many, strangers)
