/* SPDX-License-Identifier: BSD-3-Clause */
/* h5_vtk - the group /VTKHDF, by which VTK finds the fields of a file and their grid. */
#include <stdbool.h>
#include <string.h>

#include "ckpt/format/h5_use.h"

#define NAME_ROOM 512

static const char *const groups[] = {
    [GSI_H5_POINTS] = "/VTKHDF/PointData/", [GSI_H5_CELLS] = "/VTKHDF/CellData/"};

/* ---- Making it ---- */

/* VTK has x first. N.B. Its versions 9.1 and 9.2 warn of a version above 1.0. */
static herr_t write_grid (hid_t group, const struct gsi_h5_grid *grid)
{
    static const double direction[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    int64_t extent[6] = {0}, version[2] = {1, 0};
    double origin[3] = {0}, spacing[3] = {1, 1, 1};

    for (int d = 0; d < grid->dims; d++) {
        int x = grid->dims - 1 - d;
        extent[2 * x + 1] = (int64_t) grid->points[d] - 1;
        origin[x] = grid->origin[d];
        spacing[x] = grid->spacing[d];
    }
    /* N.B. VTK 9.1 wants the type in ASCII and of fixed length. */
    if (gsi_h5_attribute (group, "Version", H5P_DEFAULT, H5T_STD_I64LE, 2, version) < 0 ||
        gsi_h5_text (group, "Type", H5P_DEFAULT, H5T_CSET_ASCII, "ImageData") < 0 ||
        gsi_h5_attribute (group, "WholeExtent", H5P_DEFAULT, H5T_STD_I64LE, 6, extent) < 0 ||
        gsi_h5_attribute (group, "Origin", H5P_DEFAULT, H5T_IEEE_F64LE, 3, origin) < 0 ||
        gsi_h5_attribute (group, "Spacing", H5P_DEFAULT, H5T_IEEE_F64LE, 3, spacing) < 0)
        return -1;
    return gsi_h5_attribute (group, "Direction", H5P_DEFAULT, H5T_IEEE_F64LE, 9, direction);
}

static void link_path (const struct gsi_h5_set *set, enum gsi_h5_place place,
                       char path[NAME_ROOM])
{
    size_t used = strlen (groups[place]);

    memcpy (path, groups[place], used + 1);
    gsi_h5_field_name (set, path + used, NAME_ROOM - used);
}

/* N.B. Symbolic: h5py and others that visit each object once, in the order of names, would meet
 * the data sets under these names and not under their own. */
static herr_t link_field (hid_t file, const struct gsi_h5_set *set)
{
    char path[NAME_ROOM];
    hid_t names = gsi_h5_naming (H5P_LINK_CREATE);
    herr_t rc;

    link_path (set, set->place, path);
    rc = gsi_h5_groups (file, path);
    if (rc >= 0)
        rc = H5Lcreate_soft (set->path, file, path, names, H5P_DEFAULT);
    H5Pclose (names);
    return rc;
}

herr_t gsi_h5_put_grid (hid_t file, const struct gsi_h5_grid *grid, const struct gsi_h5_set *sets,
                        size_t number)
{
    herr_t rc = gsi_h5_groups (file, "/VTKHDF/");
    hid_t group = rc < 0 ? -1 : H5Gopen2 (file, "/VTKHDF", H5P_DEFAULT);

    rc = group < 0 ? -1 : write_grid (group, grid);
    for (size_t i = 0; i < number && rc >= 0; i++)
        if (sets[i].place)
            rc = link_field (file, &sets[i]);
    if (group >= 0)
        H5Gclose (group);
    return rc;
}

/* ---- Finding it ---- */

static bool read_attribute (hid_t group, const char *name, hssize_t count, hid_t memory,
                            void *value)
{
    hid_t attribute, space;
    bool fine;

    if (H5Aexists (group, name) <= 0 || (attribute = H5Aopen (group, name, H5P_DEFAULT)) < 0)
        return false;
    space = H5Aget_space (attribute);
    fine =
        H5Sget_simple_extent_npoints (space) == count && H5Aread (attribute, memory, value) >= 0;
    H5Sclose (space);
    H5Aclose (attribute);
    return fine;
}

static void read_grid (hid_t group, struct gsi_h5_grid *grid)
{
    int64_t extent[6];
    double origin[3], spacing[3];
    int dims;

    if (!read_attribute (group, "WholeExtent", 6, H5T_NATIVE_INT64, extent) ||
        !read_attribute (group, "Origin", 3, H5T_NATIVE_DOUBLE, origin) ||
        !read_attribute (group, "Spacing", 3, H5T_NATIVE_DOUBLE, spacing))
        return;
    dims = extent[5] ? 3 : 2;
    for (int x = 0; x < 3; x++)
        if (extent[2 * x] || extent[2 * x + 1] < (x < dims) || extent[2 * x + 1] >= INT32_MAX)
            return;
    for (int d = 0; d < dims; d++) {
        int x = dims - 1 - d;
        grid->points[d] = (uint64_t) extent[2 * x + 1] + 1;
        grid->origin[d] = origin[x];
        grid->spacing[d] = spacing[x];
    }
    grid->dims = dims;
}

/* Whether the file has a symbolic link at [path] to [target]. */
static bool is_link (hid_t root, const char *path, const char *target)
{
    char found[NAME_ROOM];
    H5L_info_t info;

    return H5Lexists (root, path, H5P_DEFAULT) > 0 &&
           H5Lget_info (root, path, &info, H5P_DEFAULT) >= 0 && info.type == H5L_TYPE_SOFT &&
           info.u.val_size <= sizeof (found) &&
           H5Lget_val (root, path, found, sizeof (found), H5P_DEFAULT) >= 0 &&
           !strcmp (found, target);
}

static void find_field_places (hid_t root, struct gsi_h5_file *file, enum gsi_h5_place place)
{
    char path[NAME_ROOM], group[NAME_ROOM];

    strcpy (group, groups[place]);
    group[strlen (group) - 1] = 0;
    if (H5Lexists (root, group, H5P_DEFAULT) <= 0)
        return;
    for (size_t i = 0; i < file->sets; i++) {
        if (strncmp (file->set[i].path, "/sharded/", 9))
            continue;
        link_path (&file->set[i], place, path);
        if (is_link (root, path, file->set[i].path))
            file->set[i].place = place;
    }
}

void gsi_h5_get_grid (hid_t root, struct gsi_h5_file *file)
{
    hid_t group = -1;

    if (H5Lexists (root, "/VTKHDF", H5P_DEFAULT) > 0)
        group = H5Gopen2 (root, "/VTKHDF", H5P_DEFAULT);
    if (group < 0)
        return;
    read_grid (group, &file->grid);
    H5Gclose (group);
    if (!file->grid.dims)
        return;
    find_field_places (root, file, GSI_H5_POINTS);
    find_field_places (root, file, GSI_H5_CELLS);
}
