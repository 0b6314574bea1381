/* SPDX-License-Identifier: BSD-3-Clause */
/* ckpt_vtk_file - writes fields as VTKHDF, and as VTK's XML for versions that do not read it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/half.h"
#include "ckpt/format/file.h"
#include "ckpt/format/skeleton.h"
#include "tools/ckpt_vtk.h"

struct out {
    const char *path;
    int fd;
    gs_dtype_t dtype; /* of what is being copied, */
    uint64_t offset;  /* to here, */
    char *wide;       /* [2 * GSI_BLOCK_BYTES] numbers of 16 bits as f32; or NULL: as they are */
};

static bool failed_call (const struct out *out, const char *call)
{
    return ckpt_complain ("%s: %s: %s", out->path, call, strerror (errno));
}

/* Makes it, which must not be there. */
static bool open_out (struct out *out, const char *path)
{
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;

    *out = (struct out){.path = path, .fd = open (path, flags, 0666)};
    return out->fd >= 0 || failed_call (out, "open");
}

static bool close_out (struct out *out, bool fine)
{
    if (fine && fsync (out->fd))
        fine = failed_call (out, "fsync");
    if (close (out->fd) && fine)
        fine = failed_call (out, "close");
    return fine;
}

static bool put_bytes (const struct out *out, const void *data, size_t bytes, uint64_t offset)
{
    return !gsi_file_write (out->fd, out->path, data, bytes, offset) || ckpt_failed ();
}

/* ---- Data ---- */

/* VTK has no floating types below f32: numbers become that, so many times as long. */
static size_t growth (gs_dtype_t dtype)
{
    switch ((int) dtype) {
#define GSI_REDUCED(NAME, name, value, T, ...) GSI_CASE (NAME, sizeof (float) / sizeof (T));
#include "base/dtype.def"
    default: return 1;
    }
}

static float value_at (gs_dtype_t dtype, const void *array, size_t i)
{
    switch ((int) dtype) {
#define GSI_REDUCED(NAME, name, value, T, ...) \
    GSI_CASE (NAME, gsi_float_of_##name (((const T *) array)[i]));
#include "base/dtype.def"
    }
    return ((const float *) array)[i];
}

static void widen (gs_dtype_t dtype, const void *from, char *to, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float value = value_at (dtype, from, i);
        memcpy (to + i * sizeof (value), &value, sizeof (value));
    }
}

static gs_status_t put_piece (void *context, uint64_t at, const void *data, size_t bytes)
{
    const struct out *out = context;
    size_t times = growth (out->dtype);

    if (!out->wide)
        return gsi_file_write (out->fd, out->path, data, bytes, out->offset + at);
    widen (out->dtype, data, out->wide, bytes * times / sizeof (float));
    return gsi_file_write (out->fd, out->path, out->wide, times * bytes,
                           out->offset + times * at);
}

/* Copies the data of [set] to [offset]; with [wide] those of 16 bits or less as f32. */
static bool copy_set (struct ckpt_file *f, const struct gsi_h5_set *set, struct out *out,
                      uint64_t offset, bool wide)
{
    bool fine = true;

    out->dtype = set->dtype;
    out->offset = offset;
    if (wide && growth (set->dtype) > 1 &&
        !(out->wide = malloc (growth (set->dtype) * GSI_BLOCK_BYTES)))
        fine = ckpt_complain ("out of memory");
    fine = fine && ckpt_file_scan (f, set, put_piece, out);
    free (out->wide);
    out->wide = NULL;
    return fine;
}

/* ---- VTKHDF ---- */

/* A set of the new file, without attributes. */
static bool make_vtk_set (const struct ckpt_vtk_field *field, struct gsi_h5_set *set)
{
    const char *group = field->place == GSI_H5_CELLS ? "/VTKHDF/CellData/" : "/VTKHDF/PointData/";

    *set = *field->set;
    set->text = NULL;
    set->texts = 0;
    set->source = NULL;
    set->sources = 0;
    set->place = GSI_H5_NOWHERE;
    if (asprintf (&set->path, "%s%s", group, field->name) >= 0)
        return true;
    set->path = NULL;
    return ckpt_complain ("out of memory");
}

static bool fill_hdf (struct ckpt_file *f, const struct ckpt_vtk_image *image,
                      const struct gsi_h5_set *set, const struct gsi_h5_image *layout,
                      const char *to)
{
    struct out out = {.path = to};
    bool fine = true;

    if (gsi_skeleton_create (layout, AT_FDCWD, to, &out.fd))
        return ckpt_failed ();
    for (int i = 0; i < image->fields && fine; i++)
        fine = copy_set (f, image->field[i].set, &out, set[i].offset, false);
    return close_out (&out, fine);
}

static bool write_hdf (struct ckpt_file *f, const struct ckpt_vtk_image *image, const char *to)
{
    struct gsi_h5_set *set = calloc ((size_t) image->fields, sizeof (*set));
    struct gsi_h5_image layout = {.data = NULL};
    bool fine = set || ckpt_complain ("out of memory");

    for (int i = 0; i < image->fields && fine; i++)
        fine = make_vtk_set (&image->field[i], &set[i]);
    if (fine && gsi_skeleton_lay_out (".", set, (size_t) image->fields, &image->grid, &layout))
        fine = ckpt_failed ();
    fine = fine && fill_hdf (f, image, set, &layout, to);
    for (int i = 0; i < image->fields && set; i++)
        free (set[i].path);
    free (set);
    gsi_h5_image_clear (&layout);
    return fine;
}

/* ---- XML ---- */

static void print_name (FILE *to, const char *name)
{
    for (; *name; name++) {
        if (strchr ("&<>\"'", *name) || (unsigned char) *name < ' ')
            fprintf (to, "&#%d;", (unsigned char) *name);
        else
            fputc (*name, to);
    }
}

static uint64_t xml_bytes (const struct ckpt_vtk_field *field)
{
    return gsi_h5_bytes (field->set) * growth (field->set->dtype);
}

/* The fields of one place; [*offset] is where the data of the first are, behind the header. */
static void print_fields (FILE *to, const struct ckpt_vtk_image *image, enum gsi_h5_place place,
                          const uint64_t *offset)
{
    static const char *const types[] = {
#define GSI_REDUCED(NAME, ...)                         [GS_##NAME] = "Float32",
#define GSI_INTEGER(NAME, name, value, T, U, vtk, ...) [GS_##NAME] = #vtk,
#include "base/dtype.def"
        [GS_F32] = "Float32", [GS_F64] = "Float64"};
    const char *name = place == GSI_H5_CELLS ? "CellData" : "PointData";

    fprintf (to, "      <%s>\n", name);
    for (int i = 0; i < image->fields; i++) {
        const struct ckpt_vtk_field *field = &image->field[i];
        if (field->place != place)
            continue;
        fprintf (to, "        <DataArray type=\"%s\" Name=\"", types[field->set->dtype]);
        print_name (to, field->name);
        fprintf (to,
                 "\" NumberOfComponents=\"%zu\" format=\"appended\" offset=\"%" PRIu64 "\"/>\n",
                 ckpt_vtk_components (image, field), offset[i]);
    }
    fprintf (to, "      </%s>\n", name);
}

/* x first. */
static void print_grid (FILE *to, const struct gsi_h5_grid *grid)
{
    double origin[3] = {0}, spacing[3] = {1, 1, 1};
    uint64_t last[3] = {0};
    char extent[100];

    for (int d = 0; d < grid->dims; d++) {
        int x = grid->dims - 1 - d;
        last[x] = grid->points[d] - 1;
        origin[x] = grid->origin[d];
        spacing[x] = grid->spacing[d];
    }
    snprintf (extent, sizeof (extent), "0 %" PRIu64 " 0 %" PRIu64 " 0 %" PRIu64, last[0], last[1],
              last[2]);
    fprintf (to,
             "  <ImageData WholeExtent=\"%s\" Origin=\"%.17g %.17g %.17g\""
             " Spacing=\"%.17g %.17g %.17g\">\n    <Piece Extent=\"%s\">\n",
             extent, origin[0], origin[1], origin[2], spacing[0], spacing[1], spacing[2], extent);
}

/* All before the data; to be freed. */
static char *make_header (const struct ckpt_vtk_image *image, const uint64_t *offset)
{
    char *text = NULL;
    size_t bytes;
    FILE *to = open_memstream (&text, &bytes);

    if (!to)
        return NULL;
    fputs ("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<VTKFile type=\"ImageData\""
           " version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\">\n",
           to);
    print_grid (to, &image->grid);
    print_fields (to, image, GSI_H5_POINTS, offset);
    print_fields (to, image, GSI_H5_CELLS, offset);
    fputs ("    </Piece>\n  </ImageData>\n  <AppendedData encoding=\"raw\">\n_", to);
    if (!fclose (to))
        return text;
    free (text);
    return NULL;
}

/* Behind the header: of each field the number of its bytes, and these. */
static bool fill_xml (struct ckpt_file *f, const struct ckpt_vtk_image *image, const char *header,
                      const uint64_t *offset, const char *to)
{
    static const char end[] = "\n  </AppendedData>\n</VTKFile>\n";
    size_t begin = strlen (header);
    struct out out;
    bool fine;

    if (!open_out (&out, to))
        return false;
    fine = put_bytes (&out, header, begin, 0);
    for (int i = 0; i < image->fields && fine; i++) {
        uint64_t at = begin + offset[i], bytes = xml_bytes (&image->field[i]);
        fine = put_bytes (&out, &bytes, sizeof (bytes), at) &&
               copy_set (f, image->field[i].set, &out, at + sizeof (bytes), true);
    }
    fine = fine && put_bytes (&out, end, strlen (end), begin + offset[image->fields]);
    return close_out (&out, fine);
}

static bool write_xml (struct ckpt_file *f, const struct ckpt_vtk_image *image, const char *to)
{
    uint64_t *offset = calloc ((size_t) image->fields + 1, sizeof (*offset));
    char *header = NULL;
    bool fine = offset != NULL;

    for (int i = 0; i < image->fields && fine; i++)
        offset[i + 1] = offset[i] + sizeof (uint64_t) + xml_bytes (&image->field[i]);
    if (fine && (header = make_header (image, offset)))
        fine = fill_xml (f, image, header, offset, to);
    else
        fine = ckpt_complain ("out of memory");
    free (header);
    free (offset);
    return fine;
}

bool ckpt_vtk_write (struct ckpt_file *f, const struct ckpt_vtk_image *image, const char *ending,
                     const char *to)
{
    return !strcmp (ending, ".vti") ? write_xml (f, image, to) : write_hdf (f, image, to);
}
