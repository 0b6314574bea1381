/* SPDX-License-Identifier: BSD-3-Clause */
/* h5_create - makes files without data. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "ckpt/format/file.h"
#include "ckpt/format/h5_use.h"
#include "ckpt/format/skeleton.h"

#define MOST_TEXTS 65535 /* of a data set; what HDF5 allows at most */
#define META_MOST  ((hsize_t) 1 << 30)

/* ---- Making a file ---- */

static gs_status_t create_file (const char *path, hsize_t meta_bytes, bool has_virtual,
                                hid_t *file)
{
    hid_t creation = gsi_h5_timeless (H5P_FILE_CREATE),
          access = gsi_h5_access (meta_bytes, has_virtual);
    gs_status_t st = GS_OK;

    /* N.B. The usual driver asks what a link such as /proc/self/fd/3 leads to, and of memory that
     * is nothing that has a name. */
    H5Pset_fapl_stdio (access);
    if ((*file = H5Fcreate (path, H5F_ACC_TRUNC, creation, access)) < 0)
        st = gsi_h5_failed (GS_ERR_IO, path, "create it");
    H5Pclose (creation);
    H5Pclose (access);
    return st;
}

static void copy_shape (hsize_t *to, const uint64_t *from, int dims)
{
    for (int d = 0; d < dims; d++)
        to[d] = from[d];
}

/* N.B. HDF5 takes % in names of what lies elsewhere as the begin of a block's number. */
static char *without_pattern (const char *path)
{
    char *out = malloc (2 * strlen (path) + 1), *at = out;

    for (; out && *path; path++) {
        *at++ = *path;
        if (*path == '%')
            *at++ = '%';
    }
    if (out)
        *at = 0;
    return out;
}

/* Adds where one box of it comes from. */
static herr_t add_source (hid_t creation, hid_t space, const struct gsi_h5_set *set,
                          const struct gsi_h5_source *s)
{
    hsize_t begin[GSI_H5_DIMS_MAX], extents[GSI_H5_DIMS_MAX];
    char *path = without_pattern (s->path);
    hid_t whole;
    herr_t rc = path ? 0 : -1;

    copy_shape (begin, s->offsets, set->dims);
    copy_shape (extents, s->extents, set->dims);
    if (set->dims && rc >= 0)
        rc = H5Sselect_hyperslab (space, H5S_SELECT_SET, begin, NULL, extents, NULL);
    whole = set->dims ? H5Screate_simple (set->dims, extents, NULL) : H5Screate (H5S_SCALAR);
    if (rc >= 0)
        rc = H5Pset_virtual (creation, space, s->file, path, whole);
    H5Sclose (whole);
    free (path);
    return rc;
}

static herr_t set_layout (hid_t creation, hid_t space, const struct gsi_h5_set *set)
{
    herr_t rc = 0;

    for (size_t i = 0; i < set->sources && rc >= 0; i++)
        rc = add_source (creation, space, set, &set->source[i]);
    if (set->sources) {
        if (set->dims)
            H5Sselect_all (space);
        return rc;
    }
    H5Pset_layout (creation, H5D_CONTIGUOUS);
    H5Pset_alloc_time (creation, H5D_ALLOC_TIME_EARLY);
    return H5Pset_fill_time (creation, H5D_FILL_TIME_NEVER);
}

static hid_t create_set (hid_t file, const struct gsi_h5_set *set)
{
    hid_t creation = gsi_h5_timeless (H5P_DATASET_CREATE),
          names = gsi_h5_naming (H5P_LINK_CREATE);
    hid_t type = gsi_h5_type (set->dtype), space, out = H5I_INVALID_HID;
    hsize_t shape[GSI_H5_DIMS_MAX];

    copy_shape (shape, set->shape, set->dims);
    space = set->dims ? H5Screate_simple (set->dims, shape, NULL) : H5Screate (H5S_SCALAR);
    /* N.B. HDF5 would put more than 8 attributes elsewhere, when the file is closed: behind the
     * data. */
    H5Pset_attr_phase_change (creation, MOST_TEXTS, 0);
    if (set_layout (creation, space, set) >= 0)
        out = H5Dcreate2 (file, set->path, type, space, names, creation, H5P_DEFAULT);
    H5Sclose (space);
    H5Tclose (type);
    H5Pclose (names);
    H5Pclose (creation);
    return out;
}

static herr_t h5_make_set (hid_t file, struct gsi_h5_set *set)
{
    hid_t data = gsi_h5_groups (file, set->path) < 0 ? -1 : create_set (file, set);
    hid_t names = gsi_h5_naming (H5P_ATTRIBUTE_CREATE);
    haddr_t offset;
    herr_t rc = data < 0 ? -1 : 0;

    for (int i = 0; i < set->texts && rc >= 0; i++)
        rc = gsi_h5_text (data, set->text[i].name, names, H5T_CSET_UTF8, set->text[i].text);
    H5Pclose (names);
    if (rc >= 0 && !set->sources) {
        offset = H5Dget_offset (data);
        set->offset = offset == HADDR_UNDEF ? 0 : offset;
        rc = offset == HADDR_UNDEF && gsi_h5_bytes (set) ? -1 : 0;
    }
    if (data >= 0)
        H5Dclose (data);
    return rc;
}

static gs_status_t h5_make_file (const char *path, struct gsi_h5_set *sets, size_t number,
                                 const struct gsi_h5_grid *grid, hsize_t meta_bytes)
{
    bool has_virtual = false;
    hid_t file;
    gs_status_t st;

    for (size_t i = 0; i < number; i++)
        has_virtual = has_virtual || sets[i].sources;
    if ((st = create_file (path, meta_bytes, has_virtual, &file)))
        return st;
    for (size_t i = 0; i < number && !st; i++)
        if (sets[i].path && h5_make_set (file, &sets[i]) < 0)
            st = gsi_h5_failed (GS_ERR_IO, sets[i].path, "make this data set");
    if (!st && grid && grid->dims && gsi_h5_put_grid (file, grid, sets, number) < 0)
        st = gsi_h5_failed (GS_ERR_IO, path, "make the group /VTKHDF");
    if (H5Fclose (file) < 0 && !st)
        st = gsi_h5_failed (GS_ERR_IO, path, "close it");
    return st;
}

/* ---- The beginning of a file ---- */

static int by_offset (const void *a, const void *b)
{
    const struct gsi_h5_set *x = *(const struct gsi_h5_set *const *) a,
                            *y = *(const struct gsi_h5_set *const *) b;

    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Whether there are only zeros from [begin] to [end]. */
static gs_status_t find_zeros (int fd, const char *path, uint64_t begin, uint64_t end,
                               bool *zeros)
{
    char room[GSI_H5_PAGE];
    gs_status_t st = GS_OK;

    while (begin < end && *zeros && !st) {
        size_t n = end - begin < sizeof (room) ? (size_t) (end - begin) : sizeof (room);
        st = gsi_file_read (fd, path, room, n, begin);
        for (size_t i = 0; i < n && !st; i++)
            *zeros = *zeros && !room[i];
        begin += n;
    }
    return st;
}

/* Looks whether all that HDF5 has written is before the data. */
static gs_status_t look_between (const struct gsi_scratch *scratch, struct gsi_h5_set **sorted,
                                 size_t n, bool *apart)
{
    gs_status_t st = GS_OK;

    *apart = true;
    for (size_t i = 0; i + 1 < n && !st; i++)
        st = find_zeros (scratch->fd, scratch->path, sorted[i]->offset + gsi_h5_bytes (sorted[i]),
                         sorted[i + 1]->offset, apart);
    return st;
}

static gs_status_t read_image (const struct gsi_scratch *scratch, struct gsi_h5_set **sorted,
                               size_t n, struct gsi_h5_image *image, bool *apart)
{
    struct stat facts;
    gs_status_t st;

    image->file_bytes = sorted[n - 1]->offset + gsi_h5_bytes (sorted[n - 1]);
    image->bytes = (size_t) sorted[0]->offset;
    if (fstat (scratch->fd, &facts))
        st = gsi_file_fail (scratch->path, "fstat");
    else
        st = look_between (scratch, sorted, n, apart);
    *apart = *apart && !st && (uint64_t) facts.st_size == image->file_bytes;
    if (!*apart)
        return st;
    if (!(image->data = malloc (image->bytes)))
        return gsi_fail (GS_ERR_NOMEM, "%s: no memory for %zu bytes", scratch->path,
                         image->bytes);
    return gsi_file_read (scratch->fd, scratch->path, image->data, image->bytes, 0);
}

/* What HDF5 will write, at first sight. */
static hsize_t guess_meta (const struct gsi_h5_set *sets, size_t number,
                           const struct gsi_h5_grid *grid)
{
    hsize_t bytes = GSI_H5_PAGE + (grid && grid->dims ? 2048 : 0);

    for (size_t i = 0; i < number; i++) {
        if (sets[i].path)
            bytes += 512; /* its header and a link, if it has no attributes */
        for (size_t k = 0; k < sets[i].sources; k++)
            bytes += 128 + strlen (sets[i].source[k].path) + 64 * (hsize_t) sets[i].dims;
        for (int k = 0; k < sets[i].texts; k++)
            bytes += 128 + strlen (sets[i].text[k].text);
        if (sets[i].place)
            bytes += 64 + 2 * strlen (sets[i].path);
    }
    return bytes;
}

/*
 * Whether there is room for the file, which is empty. N.B. What HDF5 could not write it cannot
 * close either, and then it crashes or complains when the process ends.
 */
static gs_status_t try_room (const struct gsi_scratch *scratch, const struct gsi_h5_set *sets,
                             size_t number, hsize_t meta_bytes)
{
    size_t bytes = meta_bytes + GSI_H5_PAGE;
    void *zeros = calloc (1, bytes);
    gs_status_t st;

    if (!zeros)
        st = gsi_fail (GS_ERR_NOMEM, "%s: no memory for %zu bytes", scratch->path, bytes);
    else
        st = gsi_file_write (scratch->fd, scratch->path, zeros, bytes, 0);
    for (size_t i = 0; i < number; i++)
        bytes += gsi_h5_bytes (&sets[i]) + GSI_H5_PAGE;
    if (!st && ftruncate (scratch->fd, (off_t) bytes))
        st = gsi_file_fail (scratch->path, "ftruncate");
    free (zeros);
    return st;
}

static gs_status_t h5_lay_out (const struct gsi_scratch *scratch, struct gsi_h5_set *sets,
                               size_t number, const struct gsi_h5_grid *grid,
                               struct gsi_h5_set **sorted, struct gsi_h5_image *image)
{
    const char *path = scratch->path;
    hsize_t meta_bytes = guess_meta (sets, number, grid);
    size_t n = 0;
    bool apart = false;
    gs_status_t st = GS_OK;

    while (!st && !apart) {
        n = 0;
        if (meta_bytes > META_MOST)
            return gsi_fail (
                GS_ERR_UNSUPPORTED,
                "%s: HDF5 puts names and attributes between the data of arrays: give "
                "fewer or shorter ones",
                path);
        if ((st = try_room (scratch, sets, number, meta_bytes)) ||
            (st = h5_make_file (path, sets, number, grid, meta_bytes)))
            break;
        for (size_t i = 0; i < number; i++)
            if (gsi_h5_bytes (&sets[i]))
                sorted[n++] = &sets[i];
        qsort (sorted, n, sizeof (*sorted), by_offset);
        st = read_image (scratch, sorted, n, image, &apart);
        meta_bytes *= 2;
    }
    return st;
}

gs_status_t gsi_h5_lay_out (const struct gsi_scratch *scratch, struct gsi_h5_set *sets,
                            size_t number, const struct gsi_h5_grid *grid,
                            struct gsi_h5_image *image)
{
    struct gsi_h5_set **sorted = calloc (number, sizeof (struct gsi_h5_set *));
    struct gsi_h5_saved saved;
    gs_status_t st;

    *image = (struct gsi_h5_image){.data = NULL};
    if (!sorted)
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", scratch->path);
    gsi_h5_enter (&saved);
    st = gsi_h5_leave (&saved, scratch->path,
                       h5_lay_out (scratch, sets, number, grid, sorted, image));
    free (sorted);
    if (st)
        gsi_h5_image_clear (image);
    return st;
}
