/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * grid - fields on a grid, of many types, at points and in cells, and arrays beside them: writes
 * them, and reads them with a plan that knows of no grid. vtk.py looks at the files.
 *
 *   grid.mt write DIR STEP DIMS [NODE]   2 or 3 dimensions; 0: three, and the plan is told of no
 *                                        grid; 3p: at points only; 2b: of several blocks of
 *                                        checksums; and to folder NODE with a file for each node
 *   grid.mt read DIR STEP DIMS [NODE]
 */
#include "../multi/data.h"

#define MOST_FIELDS 16
#define MOST_DIMS   4

struct field {
    const char *name;
    gs_dtype_t dtype;
    gs_ckpt_place_t place;
    bool on_grid;
    int dims;
    size_t shape[MOST_DIMS], extents[MOST_DIMS], offsets[MOST_DIMS];
    size_t count, bytes;
    char *data;
};

static gs_comm_t *world;
static struct field field[MOST_FIELDS];
static int fields, dims;

/* z, y, x */
static size_t points[] = {4, 5, 6};
static const double origin[] = {30, -2.5, 0.1}, spacing[] = {3, 0.5, 0.01};

static void add (const char *name, gs_dtype_t dtype, gs_ckpt_place_t place, size_t components)
{
    struct field *f = &field[fields++];
    int rank = gs_comm_rank (world), size = gs_comm_size (world);

    *f = (struct field){
        .name = name, .dtype = dtype, .place = place, .on_grid = true, .dims = dims, .count = 1};
    for (int d = 0; d < dims; d++)
        f->shape[d] = points[3 - dims + d] - (place == GS_CKPT_CELLS);
    if (components > 1)
        f->shape[f->dims++] = components;
    memcpy (f->extents, f->shape, sizeof (f->shape));
    f->offsets[0] = f->shape[0] * (size_t) rank / (size_t) size;
    f->extents[0] = f->shape[0] * (size_t) (rank + 1) / (size_t) size - f->offsets[0];
    for (int d = 0; d < f->dims; d++)
        f->count *= f->extents[d];
    f->bytes = f->count * gs_dtype_size (dtype);
    f->data = data_allocate (f->bytes);
}

static void make_large_fields (void)
{
    points[1] = 2100;
    points[2] = 2150;
    add ("ocean/temp", GS_BF16, GS_CKPT_POINTS, 1);
    add ("u", GS_F32, GS_CKPT_POINTS, 1);
}

static void make_fields (bool cells)
{
    add ("u", GS_F64, GS_CKPT_POINTS, 1);
    add ("ocean/temp", GS_BF16, GS_CKPT_POINTS, 1);
    add ("half", GS_F16, GS_CKPT_POINTS, 1);
    add ("v", GS_F32, GS_CKPT_POINTS, 3);
    add ("flags", GS_U8, GS_CKPT_POINTS, 1);
    add ("number", GS_I64, GS_CKPT_POINTS, 1);
    add ("waves", GS_C64, GS_CKPT_POINTS, 1);
    field[fields - 1].on_grid = false;
    if (cells) {
        add ("p", GS_F32, GS_CKPT_CELLS, 1);
        add ("flow", GS_F64, GS_CKPT_CELLS, 2);
    }
}

/* Small numbers that every type has exactly, different at neighbours. */
static void make_number (const struct field *f, size_t i, char *out)
{
    size_t at = i + f->offsets[0] * (f->count / (f->extents[0] ? f->extents[0] : 1));
    uint64_t number = (at * 7 + (size_t) (f - field)) % 127;

    if (gsi_dtype_is_integer (f->dtype))
        memcpy (out, &number, gs_dtype_size (f->dtype));
    else
        wide_store (f->dtype, out, 0, (double) number, -1);
}

static void fill (void)
{
    for (int n = 0; n < fields; n++)
        for (size_t i = 0; i < field[n].count; i++)
            make_number (&field[n], i, field[n].data + i * gs_dtype_size (field[n].dtype));
}

static void check_numbers (void)
{
    char right[16];

    for (int n = 0; n < fields; n++)
        for (size_t i = 0; i < field[n].count; i++) {
            size_t bytes = gs_dtype_size (field[n].dtype);
            make_number (&field[n], i, right);
            CHECK (!memcmp (field[n].data + i * bytes, right, bytes), "%s: number %zu is wrong",
                   field[n].name, i);
        }
}

static gs_ckpt_t *plan (const char *dir, gs_ckpt_layout_t layout, bool with_grid,
                        double last_spacing)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    static double same[30]; /* on all ranks, and of the fields' shape in 2 dimensions */
    double by[3];
    gs_ckpt_t *ckpt;

    memcpy (by, spacing, sizeof (by));
    by[2] = last_spacing;
    opts.layout = layout;
    CHECK_OK (gs_ckpt_create (world, dir, &opts, &ckpt));
    for (int n = 0; n < fields; n++) {
        const struct field *f = &field[n];
        CHECK_OK (gs_ckpt_add_sharded (ckpt, f->name, f->dims, f->extents, f->offsets, f->shape,
                                       f->dtype, f->data));
        if (with_grid && f->on_grid)
            CHECK_OK (gs_ckpt_set_grid (ckpt, f->name, f->place, dims, origin + 3 - dims,
                                        by + 3 - dims));
    }
    CHECK_OK (gs_ckpt_add_replicated (ckpt, "w", 2, (const size_t[]){5, 6}, GS_F64, same));
    return ckpt;
}

/* Ranks that tell of other grids. */
static void check_mismatch (const char *dir)
{
    int rank = gs_comm_rank (world), last = gs_comm_size (world) - 1;
    gs_ckpt_t *ckpt = plan (dir, GS_CKPT_LAYOUT_SINGLE, true, rank == last ? 7 : spacing[2]);

    if (last)
        CHECK_FAILS (gs_ckpt_commit (ckpt), GS_ERR_MISMATCH, "grid of", "spacing 7.");
    CHECK_OK (gs_ckpt_destroy (ckpt));
    ckpt = plan (dir, GS_CKPT_LAYOUT_SINGLE, rank != last, spacing[2]);
    if (last)
        CHECK_FAILS (gs_ckpt_commit (ckpt), GS_ERR_MISMATCH, "', at points of the grid");
    CHECK_OK (gs_ckpt_destroy (ckpt));
}

static void save (const char *dir, gs_ckpt_layout_t layout, int64_t step, bool with_grid)
{
    gs_ckpt_t *ckpt = plan (dir, layout, with_grid, spacing[2]);

    CHECK_OK (gs_ckpt_commit (ckpt));
    fill ();
    CHECK_OK (gs_ckpt_write (ckpt, step, NULL));
    CHECK_OK (gs_ckpt_destroy (ckpt));
}

static void load (const char *dir, int64_t step)
{
    gs_ckpt_t *ckpt = plan (dir, GS_CKPT_LAYOUT_AUTO, false, spacing[2]);

    for (int n = 0; n < fields; n++)
        memset (field[n].data, 0x22, field[n].bytes);
    CHECK_OK (gs_ckpt_commit (ckpt));
    CHECK_OK (gs_ckpt_read (ckpt, step, NULL, NULL));
    check_numbers ();
    CHECK_OK (gs_ckpt_destroy (ckpt));
}

int main (int argc, char **argv)
{
    bool writes = argc > 1 && !strcmp (argv[1], "write");
    int64_t step;

    if (argc < 5 || argc > 6 || (!writes && strcmp (argv[1], "read"))) {
        fprintf (stderr, "grid.mt write | read DIR STEP DIMS [NODE]\n");
        return 99;
    }
    step = atoll (argv[3]);
    dims = atoi (argv[4]) ? atoi (argv[4]) : 3;
    world = multi_create (NULL);
    if (strchr (argv[4], 'b'))
        make_large_fields ();
    else
        make_fields (!strchr (argv[4], 'p'));
    if (writes && atoi (argv[4]))
        check_mismatch (argv[2]);
    for (int i = 2; i < argc; i += 3) { /* DIR, then NODE */
        if (writes)
            save (argv[i], i == 2 ? GS_CKPT_LAYOUT_SINGLE : GS_CKPT_LAYOUT_NODE, step,
                  atoi (argv[4]));
        else
            load (argv[i], step);
    }
    for (int n = 0; n < fields; n++)
        CHECK (data_free (field[n].data, field[n].bytes), "%s: written behind its end",
               field[n].name);
    CHECK_OK (gs_comm_destroy (world));
    return multi_end ("done");
}
