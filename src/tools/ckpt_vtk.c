/* SPDX-License-Identifier: BSD-3-Clause */
/* ckpt_vtk - which fields of a checkpoint are shown, and on which grid. */
#include "tools/ckpt_vtk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/printable.h"

#define SHARDED "/sharded/"

/* ---- Which fields ---- */

static bool is_real (const struct gsi_h5_set *set)
{
    return set->dtype != GS_C64 && set->dtype != GS_C128;
}

/* Whether VTK can show it as it is, in two or three dimensions without components. */
static bool is_plain (const struct gsi_h5_set *set, bool cells)
{
    bool fine = !strncmp (set->path, SHARDED, strlen (SHARDED)) && is_real (set) &&
                (set->dims == 2 || set->dims == 3);

    for (int d = 0; d < set->dims && fine; d++)
        fine = set->shape[d] >= (cells ? 1 : 2);
    return fine;
}

static bool has_shape (const struct gsi_h5_set *a, const struct gsi_h5_set *b)
{
    return a->dims == b->dims &&
           !memcmp (a->shape, b->shape, (size_t) a->dims * sizeof (*a->shape));
}

/* The first of those that have the shape most of them have; NULL if there are none. */
static const struct gsi_h5_set *find_usual (const struct gsi_h5_file *h5, bool cells)
{
    const struct gsi_h5_set *best = NULL;
    size_t most = 0;

    for (size_t i = 0; i < h5->sets; i++) {
        size_t same = 0;
        if (!is_plain (&h5->set[i], cells))
            continue;
        for (size_t k = i; k < h5->sets; k++)
            same += is_plain (&h5->set[k], cells) && has_shape (&h5->set[i], &h5->set[k]);
        if (same > most || (same == most && gsi_h5_bytes (&h5->set[i]) > gsi_h5_bytes (best))) {
            best = &h5->set[i];
            most = same;
        }
    }
    return best;
}

/* "u" or "/sharded/u" or "/replicated/u" */
static const struct gsi_h5_set *find_field (const struct gsi_h5_file *h5, const char *name)
{
    size_t folder = *name == '/' ? 0 : strlen (SHARDED);

    for (size_t i = 0; i < h5->sets; i++)
        if (!strncmp (h5->set[i].path, SHARDED, folder) &&
            !strcmp (h5->set[i].path + folder, name))
            return &h5->set[i];
    return NULL;
}

static bool add_field (struct ckpt_vtk_image *image, const struct gsi_h5_set *set, bool cells)
{
    struct ckpt_vtk_field *field = &image->field[image->fields];

    *field = (struct ckpt_vtk_field){.set = set, .place = set->place};
    if (!set->place)
        field->place = cells ? GSI_H5_CELLS : GSI_H5_POINTS;
    if (!(field->name = malloc (strlen (set->path) + 1)))
        return ckpt_complain ("out of memory");
    gsi_h5_field_name (set, field->name, strlen (set->path) + 1);
    image->fields++;
    return true;
}

static bool choose_named (const struct ckpt_file *f, const struct ckpt_vtk_request *r,
                          struct ckpt_vtk_image *image)
{
    for (int i = 0; i < r->fields; i++) {
        const struct gsi_h5_set *set = find_field (&f->reader.file, r->field[i]);
        if (!set)
            return ckpt_complain ("%s: it has no array %s%s; see gs-ckpt info", f->path,
                                  *r->field[i] == '/' ? "" : SHARDED, r->field[i]);
        if (!is_real (set))
            return ckpt_complain ("%s: %s is complex, and VTK knows no complex numbers", f->path,
                                  set->path);
        if (!add_field (image, set, r->cells))
            return false;
    }
    return true;
}

/* Those on the grid of the checkpoint, or all of the usual shape. */
static bool choose_all (const struct ckpt_file *f, const struct ckpt_vtk_request *r,
                        struct ckpt_vtk_image *image)
{
    const struct gsi_h5_set *usual =
        f->reader.file.grid.dims ? NULL : find_usual (&f->reader.file, r->cells);

    for (size_t i = 0; i < f->reader.file.sets; i++) {
        const struct gsi_h5_set *set = &f->reader.file.set[i];
        bool wanted = usual ? is_plain (set, r->cells) && has_shape (set, usual) : set->place;
        if (wanted && !add_field (image, set, r->cells))
            return false;
    }
    if (image->fields)
        return true;
    return ckpt_complain (
        "%s: it has no sharded array of real numbers in 2 or 3 dimensions of 2 or "
        "more; others are shown with --field",
        f->path);
}

static bool choose_fields (const struct ckpt_file *f, const struct ckpt_vtk_request *r,
                           struct ckpt_vtk_image *image)
{
    size_t most = f->reader.file.sets + (size_t) r->fields;

    if (!(image->field = calloc (most, sizeof (*image->field))))
        return ckpt_complain ("out of memory");
    if (!(r->fields ? choose_named (f, r, image) : choose_all (f, r, image)))
        return false;
    for (int i = 0; i < image->fields; i++)
        for (int k = 0; k < i; k++)
            if (!strcmp (image->field[i].name, image->field[k].name))
                return ckpt_complain (
                    "%s: %s and %s are both %s for VTK: choose one with --field", f->path,
                    image->field[k].set->path, image->field[i].set->path, image->field[i].name);
    return true;
}

/* ---- Which grid ---- */

/* Dimensions of the grid: the checkpoint's, as many as numbers were given, or as the fields have.
 */
static int find_dims (const struct ckpt_file *f, const struct ckpt_vtk_request *r,
                      const struct ckpt_vtk_image *image)
{
    int dims = 3;

    for (int i = 0; i < image->fields; i++)
        if (image->field[i].set->place)
            return f->reader.file.grid.dims;
    if (r->origins || r->spacings)
        return r->origins ? r->origins : r->spacings;
    for (int i = 0; i < image->fields; i++)
        if (image->field[i].set->dims < dims)
            dims = image->field[i].set->dims;
    return dims;
}

/* Whether [field] is on a grid of [dims] dimensions, whose points it gives. */
static bool grid_of (const struct ckpt_file *f, const struct ckpt_vtk_field *field, int dims,
                     uint64_t points[3])
{
    const struct gsi_h5_set *set = field->set;
    uint64_t cells = field->place == GSI_H5_CELLS;
    char shape[256];
    bool fine =
        dims >= 2 && (set->dims == dims || (set->dims == dims + 1 && set->shape[dims] > 1));

    for (int d = 0; d < dims && fine; d++) {
        fine = set->shape[d] >= 2 - cells && set->shape[d] <= INT32_MAX - cells;
        points[d] = set->shape[d] + cells;
    }
    if (fine)
        return true;
    ckpt_file_describe (set, shape, sizeof (shape));
    return ckpt_complain (
        "%s: %s is %s: VTK shows 2 or 3 dimensions of 2 or more, and perhaps one of "
        "components behind them",
        f->path, set->path, shape);
}

static bool measure_all (const struct ckpt_file *f, struct ckpt_vtk_image *image)
{
    struct gsi_h5_grid *grid = &image->grid;
    char first[256], other[256];
    uint64_t points[3];

    for (int i = 0; i < image->fields; i++) {
        if (!grid_of (f, &image->field[i], grid->dims, i ? points : grid->points))
            return false;
        if (!i || !memcmp (points, grid->points, (size_t) grid->dims * sizeof (*points)))
            continue;
        ckpt_file_describe (image->field[0].set, first, sizeof (first));
        ckpt_file_describe (image->field[i].set, other, sizeof (other));
        return ckpt_complain (
            "%s: %s is %s and %s is %s: they are not on one grid; show them in files "
            "of their own",
            f->path, image->field[0].set->path, first, image->field[i].set->path, other);
    }
    return true;
}

static bool place_fields (const struct ckpt_file *f, const struct ckpt_vtk_request *r,
                          struct ckpt_vtk_image *image)
{
    struct gsi_h5_grid *grid = &image->grid;
    const struct gsi_h5_grid *own = &f->reader.file.grid;
    bool known;

    grid->dims = find_dims (f, r, image);
    if ((r->origins && r->origins != grid->dims) || (r->spacings && r->spacings != grid->dims))
        return ckpt_complain (
            "%s: the grid has %d dimensions, as many numbers are in --origin and "
            "--spacing",
            f->path, grid->dims);
    if (!measure_all (f, image))
        return false;
    known = own->dims == grid->dims &&
            !memcmp (own->points, grid->points, (size_t) own->dims * sizeof (*own->points));
    for (int d = 0; d < grid->dims; d++) {
        int x = grid->dims - 1 - d;
        grid->origin[d] = r->origins ? r->origin[x] : known ? own->origin[d] : 0;
        grid->spacing[d] = r->spacings ? r->spacing[x] : known ? own->spacing[d] : 1;
    }
    return true;
}

size_t ckpt_vtk_components (const struct ckpt_vtk_image *image,
                            const struct ckpt_vtk_field *field)
{
    return field->set->dims > image->grid.dims ? field->set->shape[image->grid.dims] : 1;
}

/* ---- The file ---- */

/* "ck-000000000042.hdf" of "ck-000000000042.h5", or of a folder without that; to be freed. */
static char *name_output (const struct ckpt_file *f)
{
    const char *path = f->reader.path;
    size_t stem = strlen (path);
    char *name;

    if (f->reader.trailer.parts && ((name = ckpt_file_beside (path, ".hdf")) || errno))
        return name;
    if (stem > 3 && !strcmp (path + stem - 3, ".h5"))
        stem -= 3;
    return asprintf (&name, "%.*s.hdf", (int) stem, path) < 0 ? NULL : name;
}

static const char *ending_of (const char *path)
{
    const char *dot = strrchr (path, '.');

    return dot ? dot : "";
}

static bool is_same_file (const char *path, const char *other)
{
    struct stat a, b;

    return !stat (path, &a) && !stat (other, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Whether it would take the place of a file of the checkpoint; or there is no memory to know. */
static bool is_own (const struct ckpt_file *f, const char *output)
{
    const struct gsi_reader *s = &f->reader;
    const char *slash = strrchr (s->path, '/');
    size_t folder = slash ? (size_t) (slash - s->path) + 1 : 0;
    char *part = malloc (folder + 64);
    bool own = !part || is_same_file (s->path, output);

    for (uint64_t p = 0; p < s->trailer.parts && !own; p++) {
        memcpy (part, s->path, folder);
        snprintf (part + folder, 64, GSI_PART_NAME, (int) p);
        own = is_same_file (part, output);
    }
    free (part);
    return own;
}

static bool check_output (const struct ckpt_file *f, const char *output, bool force)
{
    if (is_own (f, output))
        return ckpt_complain ("%s: is the checkpoint itself: give another name with -o", output);
    return force || access (output, F_OK) ||
           ckpt_complain ("%s: is there already: give --force, or another name with -o", output);
}

static bool make_vtk_file (struct ckpt_file *f, const struct ckpt_vtk_image *image,
                           const char *output)
{
    char *coming;
    bool fine;

    if (asprintf (&coming, "%s.%ld.tmp", output, (long) getpid ()) < 0)
        return ckpt_complain ("out of memory");
    unlink (coming);
    fine = ckpt_vtk_write (f, image, ending_of (output), coming);
    if (fine && rename (coming, output))
        fine = ckpt_complain ("%s: %s", output, strerror (errno));
    if (!fine)
        unlink (coming);
    free (coming);
    return fine;
}

static void report (const struct ckpt_vtk_image *image, const char *output)
{
    const struct gsi_h5_grid *grid = &image->grid;
    bool cells = false;

    printf ("%s: ", output);
    for (int d = grid->dims - 1; d >= 0; d--)
        printf ("%" PRIu64 "%s", grid->points[d], d ? " x " : " points;");
    for (int i = 0; i < image->fields; i++) {
        printf ("%s ", i ? "," : "");
        gsi_printable_put (stdout, image->field[i].name);
        cells = cells || image->field[i].place == GSI_H5_CELLS;
    }
    putchar ('\n');
    if ((grid->dims == 2 || cells) && strcmp (ending_of (output), ".vti"))
        fprintf (stderr,
                 "gs-ckpt: %s: fields %s are for ParaView 5.12, VTK 9.3 and later; for earlier "
                 "ones give a name that ends in .vti with -o\n",
                 output, grid->dims == 2 ? "in 2 dimensions" : "in cells");
}

static bool show_fields (struct ckpt_file *f, const struct ckpt_vtk_request *request)
{
    struct ckpt_vtk_image image = {.fields = 0};
    char *named = request->output ? NULL : name_output (f);
    const char *output = request->output ? request->output : named;
    bool fine = output || ckpt_complain ("out of memory");

    fine = fine && check_output (f, output, request->force) &&
           choose_fields (f, request, &image) && place_fields (f, request, &image) &&
           make_vtk_file (f, &image, output);
    if (fine)
        report (&image, output);
    for (int i = 0; i < image.fields; i++)
        free (image.field[i].name);
    free (image.field);
    free (named);
    return fine;
}

bool ckpt_vtk (const char *path, const struct ckpt_vtk_request *request)
{
    struct ckpt_file f;
    bool fine = ckpt_file_open (path, &f);

    if (fine) {
        fine = show_fields (&f, request);
        ckpt_file_close (&f);
    }
    return fine;
}
