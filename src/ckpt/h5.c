/* SPDX-License-Identifier: BSD-3-Clause */
/* h5 - the one home of HDF5. */
#include "ckpt/h5.h"

#define H5_USE_110_API 1

#include <fcntl.h>
#include <hdf5.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dtype.h"
#include "base/status.h"
#include "ckpt/file.h"

#define PAGE       ((hsize_t) 4096) /* data of this size and more begin at multiples of it */
#define MOST_TEXTS 65535            /* of a data set; what HDF5 allows at most */
#define META_MOST  ((hsize_t) 1 << 30)

gs_status_t gsi_h5_present (const char *caller)
{
    (void) caller;
    return GS_OK;
}

/* ---- HDF5 beside the application's own ---- */

/* What an application has set for its own calls. */
struct guest {
    hid_t stack;
    H5E_auto2_t print;
    void *print_data;
};

static void enter (struct guest *g)
{
    g->stack = H5Eget_current_stack ();
    H5Eget_auto2 (H5E_DEFAULT, &g->print, &g->print_data);
    H5Eset_auto2 (H5E_DEFAULT, NULL, NULL);
}

static void leave (const struct guest *g)
{
    H5Eset_auto2 (H5E_DEFAULT, g->print, g->print_data);
    H5Eset_current_stack (g->stack); /* which closes it */
}

static herr_t note_reason (unsigned number, const H5E_error2_t *error, void *context)
{
    char *text = context;

    (void) number;
    if (!*text && error->desc)
        snprintf (text, 160, "%s", error->desc);
    return 0;
}

/* N.B. Right after the call that failed: the next one clears the reason. */
static gs_status_t failed (gs_status_t st, const char *path, const char *what)
{
    char reason[160] = "";

    H5Ewalk2 (H5E_DEFAULT, H5E_WALK_UPWARD, note_reason, reason);
    return gsi_fail (st, "%s: HDF5 could not %s: %s", path, what,
                     *reason ? reason : "it gives no reason");
}

/* ---- Types ---- */

/* A floating type of two bytes. */
static hid_t half_type (size_t exponent_at, size_t exponent, size_t mantissa, size_t bias)
{
    hid_t type = H5Tcopy (H5T_IEEE_F32LE);

    if (H5Tset_fields (type, 15, exponent_at, exponent, 0, mantissa) < 0 ||
        H5Tset_size (type, 2) < 0 || H5Tset_ebias (type, bias) < 0) {
        H5Tclose (type);
        return H5I_INVALID_HID;
    }
    return type;
}

static hid_t complex_type (hid_t part, size_t bytes)
{
    hid_t type = H5Tcreate (H5T_COMPOUND, 2 * bytes);

    if (H5Tinsert (type, "r", 0, part) < 0 || H5Tinsert (type, "i", bytes, part) < 0) {
        H5Tclose (type);
        return H5I_INVALID_HID;
    }
    return type;
}

/* To be closed. */
static hid_t type_of (gs_dtype_t dtype)
{
    switch (dtype) {
    case GS_F16: return half_type (10, 5, 10, 15);
    case GS_BF16: return half_type (7, 8, 7, 127);
    case GS_F32: return H5Tcopy (H5T_IEEE_F32LE);
    case GS_F64: return H5Tcopy (H5T_IEEE_F64LE);
    case GS_I8: return H5Tcopy (H5T_STD_I8LE);
    case GS_I16: return H5Tcopy (H5T_STD_I16LE);
    case GS_I32: return H5Tcopy (H5T_STD_I32LE);
    case GS_I64: return H5Tcopy (H5T_STD_I64LE);
    case GS_U8: return H5Tcopy (H5T_STD_U8LE);
    case GS_U16: return H5Tcopy (H5T_STD_U16LE);
    case GS_U32: return H5Tcopy (H5T_STD_U32LE);
    case GS_U64: return H5Tcopy (H5T_STD_U64LE);
    case GS_C64: return complex_type (H5T_IEEE_F32LE, 4);
    case GS_C128: return complex_type (H5T_IEEE_F64LE, 8);
    default: return H5I_INVALID_HID;
    }
}

/* 0 for what is none of ours. */
static gs_dtype_t dtype_of (hid_t type)
{
    for (int d = GS_F16; d <= GS_C128; d++) {
        hid_t ours = type_of ((gs_dtype_t) d);
        htri_t equal = H5Tequal (ours, type);
        H5Tclose (ours);
        if (equal > 0)
            return (gs_dtype_t) d;
    }
    return (gs_dtype_t) 0;
}

/* ---- Making a file ---- */

/* Names are UTF-8. */
static hid_t naming (hid_t list_class)
{
    hid_t list = H5Pcreate (list_class);

    H5Pset_char_encoding (list, H5T_CSET_UTF8);
    return list;
}

/* No times: files of one plan begin with the same bytes. */
static hid_t timeless (hid_t list_class)
{
    hid_t list = H5Pcreate (list_class);

    if (H5Pset_obj_track_times (list, 0) >= 0)
        return list;
    H5Pclose (list);
    return H5I_INVALID_HID;
}

static hid_t access_list (hsize_t meta_bytes)
{
    hid_t list = H5Pcreate (H5P_FILE_ACCESS);

    H5Pset_libver_bounds (list, H5F_LIBVER_V18, H5F_LIBVER_V18);
    H5Pset_fclose_degree (list, H5F_CLOSE_STRONG);
    H5Pset_alignment (list, PAGE, PAGE);
    H5Pset_meta_block_size (list, meta_bytes);
/* N.B. 1.12.0 has no such call, 1.10.7 has. */
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 12, 0))
    H5Pset_file_locking (list, 0, 1); /* nobody else has this file */
#endif
    return list;
}

static gs_status_t create_file (const char *path, hsize_t meta_bytes, hid_t *file)
{
    hid_t creation = timeless (H5P_FILE_CREATE), access = access_list (meta_bytes);
    gs_status_t st = GS_OK;

    if ((*file = H5Fcreate (path, H5F_ACC_TRUNC, creation, access)) < 0)
        st = failed (GS_ERR_IO, path, "create it");
    H5Pclose (creation);
    H5Pclose (access);
    return st;
}

/* The groups that [path] goes through. */
static herr_t create_groups (hid_t file, const char *path)
{
    hid_t creation = timeless (H5P_GROUP_CREATE), names = naming (H5P_LINK_CREATE);
    char *part = strdup (path), *end = part;
    herr_t rc = part ? 0 : -1;

    while (rc >= 0 && (end = strchr (end + 1, '/'))) {
        *end = 0;
        if (H5Lexists (file, part, H5P_DEFAULT) == 0) {
            hid_t group = H5Gcreate2 (file, part, names, creation, H5P_DEFAULT);
            rc = group < 0 ? -1 : H5Gclose (group);
        }
        *end = '/';
    }
    free (part);
    H5Pclose (creation);
    H5Pclose (names);
    return rc;
}

static hid_t text_type (size_t bytes)
{
    hid_t type = H5Tcopy (H5T_C_S1);

    H5Tset_size (type, bytes);
    H5Tset_cset (type, H5T_CSET_UTF8);
    H5Tset_strpad (type, H5T_STR_NULLPAD);
    return type;
}

static herr_t write_text (hid_t object, const struct gsi_h5_text *t)
{
    hid_t type = text_type (strlen (t->text)), space = H5Screate (H5S_SCALAR);
    hid_t names = naming (H5P_ATTRIBUTE_CREATE);
    hid_t attribute = H5Acreate2 (object, t->name, type, space, names, H5P_DEFAULT);
    herr_t rc = attribute < 0 ? -1 : H5Awrite (attribute, type, t->text);

    if (attribute >= 0)
        H5Aclose (attribute);
    H5Pclose (names);
    H5Sclose (space);
    H5Tclose (type);
    return rc;
}

static hid_t create_set (hid_t file, const struct gsi_h5_set *set)
{
    hid_t creation = timeless (H5P_DATASET_CREATE), names = naming (H5P_LINK_CREATE);
    hid_t type = type_of (set->dtype), space, out;
    hsize_t shape[GSI_H5_DIMS_MAX];

    for (int d = 0; d < set->dims; d++)
        shape[d] = set->shape[d];
    space = set->dims ? H5Screate_simple (set->dims, shape, NULL) : H5Screate (H5S_SCALAR);
    H5Pset_layout (creation, H5D_CONTIGUOUS);
    H5Pset_alloc_time (creation, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time (creation, H5D_FILL_TIME_NEVER);
    /* N.B. HDF5 would put more than 8 attributes elsewhere, when the file is closed: behind the
     * data. */
    H5Pset_attr_phase_change (creation, MOST_TEXTS, 0);
    out = H5Dcreate2 (file, set->path, type, space, names, creation, H5P_DEFAULT);
    H5Sclose (space);
    H5Tclose (type);
    H5Pclose (names);
    H5Pclose (creation);
    return out;
}

static herr_t make_set (hid_t file, struct gsi_h5_set *set)
{
    hid_t data = create_groups (file, set->path) < 0 ? -1 : create_set (file, set);
    haddr_t offset;
    herr_t rc = data < 0 ? -1 : 0;

    for (int i = 0; i < set->texts && rc >= 0; i++)
        rc = write_text (data, &set->text[i]);
    if (rc >= 0) {
        offset = H5Dget_offset (data);
        set->offset = offset == HADDR_UNDEF ? 0 : offset;
        rc = offset == HADDR_UNDEF && gsi_h5_bytes (set) ? -1 : 0;
    }
    if (data >= 0)
        H5Dclose (data);
    return rc;
}

static gs_status_t make_file (const char *path, struct gsi_h5_set *sets, size_t number,
                              hsize_t meta_bytes)
{
    hid_t file;
    gs_status_t st = create_file (path, meta_bytes, &file);

    if (st)
        return st;
    for (size_t i = 0; i < number && !st; i++)
        if (make_set (file, &sets[i]) < 0)
            st = failed (GS_ERR_IO, sets[i].path, "make this data set");
    if (H5Fclose (file) < 0 && !st)
        st = failed (GS_ERR_IO, path, "close it");
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
    char room[PAGE];
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
static gs_status_t look_between (int fd, const char *path, struct gsi_h5_set **sorted, size_t n,
                                 bool *apart)
{
    gs_status_t st = GS_OK;

    *apart = true;
    for (size_t i = 0; i + 1 < n && !st; i++)
        st = find_zeros (fd, path, sorted[i]->offset + gsi_h5_bytes (sorted[i]),
                         sorted[i + 1]->offset, apart);
    return st;
}

static gs_status_t read_image (const char *path, struct gsi_h5_set **sorted, size_t n,
                               void **image, size_t *image_bytes, bool *apart)
{
    int fd = open (path, O_RDONLY | O_CLOEXEC);
    uint64_t end = sorted[n - 1]->offset + gsi_h5_bytes (sorted[n - 1]);
    struct stat facts;
    gs_status_t st;

    if (fd < 0)
        return gsi_file_fail (path, "open");
    *image_bytes = (size_t) sorted[0]->offset;
    if (!(*image = malloc (*image_bytes)))
        st = gsi_fail (GS_ERR_NOMEM, "%s: no memory for %zu bytes", path, *image_bytes);
    else if (fstat (fd, &facts))
        st = gsi_file_fail (path, "fstat");
    else if (!(st = gsi_file_read (fd, path, *image, *image_bytes, 0)))
        st = look_between (fd, path, sorted, n, apart);
    *apart = *apart && !st && (uint64_t) facts.st_size == end;
    close (fd);
    if (st || !*apart) {
        free (*image);
        *image = NULL;
    }
    return st;
}

static gs_status_t lay_out (const char *path, struct gsi_h5_set *sets, size_t number,
                            struct gsi_h5_set **sorted, void **image, size_t *image_bytes)
{
    hsize_t meta_bytes = PAGE;
    size_t n = 0;
    bool apart = false;
    gs_status_t st = GS_OK;

    for (size_t i = 0; i < number; i++) {
        meta_bytes += 512; /* its header and a link, if it has no attributes */
        for (int k = 0; k < sets[i].texts; k++)
            meta_bytes += 128 + strlen (sets[i].text[k].text);
    }
    while (!st && !apart) {
        n = 0;
        if (meta_bytes > META_MOST)
            return gsi_fail (
                GS_ERR_UNSUPPORTED,
                "%s: HDF5 puts names and attributes between the data of arrays: give "
                "fewer or shorter ones",
                path);
        if ((st = make_file (path, sets, number, meta_bytes)))
            break;
        for (size_t i = 0; i < number; i++)
            if (gsi_h5_bytes (&sets[i]))
                sorted[n++] = &sets[i];
        qsort (sorted, n, sizeof (*sorted), by_offset);
        st = read_image (path, sorted, n, image, image_bytes, &apart);
        meta_bytes *= 2;
        unlink (path);
    }
    if (!st && sorted[n - 1] != &sets[number - 1])
        st = gsi_fail (GS_ERR_FORMAT, "%s: HDF5 puts %s last, which should be %s", path,
                       sorted[n - 1]->path, sets[number - 1].path);
    return st;
}

gs_status_t gsi_h5_lay_out (const char *path, struct gsi_h5_set *sets, size_t number,
                            void **image, size_t *image_bytes, uint64_t *file_bytes)
{
    struct gsi_h5_set **sorted = calloc (number, sizeof (struct gsi_h5_set *));
    const struct gsi_h5_set *last = &sets[number - 1];
    struct guest guest;
    gs_status_t st;
    int fd;

    *image = NULL;
    if (!sorted)
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", path);
    /* The system's own reason, if it cannot be made. */
    if ((fd = open (path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) < 0) {
        free (sorted);
        return gsi_file_fail (path, "open");
    }
    close (fd);
    enter (&guest);
    st = lay_out (path, sets, number, sorted, image, image_bytes);
    leave (&guest);
    free (sorted);
    if (st) {
        unlink (path);
        free (*image);
        *image = NULL;
        return st;
    }
    *file_bytes = last->offset + gsi_h5_bytes (last);
    return GS_OK;
}

/* ---- Looking at a file ---- */

struct look {
    const char *path;
    struct gsi_h5_file *file;
    size_t room;
    gs_status_t st;
};

static gs_status_t out_of_memory (const char *path)
{
    return gsi_fail (GS_ERR_NOMEM, "%s: no memory for what is in it", path);
}

static herr_t note_attribute (hid_t object, const char *name, const H5A_info_t *info,
                              void *context)
{
    struct gsi_h5_set *set = context;
    hid_t attribute = H5Aopen (object, name, H5P_DEFAULT), type = H5Aget_type (attribute);
    struct gsi_h5_text *larger, t = {.name = NULL};
    herr_t rc = -1;

    (void) info;
    if (H5Tget_class (type) == H5T_STRING && H5Tis_variable_str (type) == 0) {
        larger = realloc (set->text, (size_t) (set->texts + 1) * sizeof (*larger));
        set->text = larger ? larger : set->text;
        t.name = strdup (name);
        t.text = calloc (H5Tget_size (type) + 1, 1);
        if (larger && t.name && t.text && H5Aread (attribute, type, t.text) >= 0) {
            set->text[set->texts++] = t;
            rc = 0;
        } else {
            free (t.name);
            free (t.text);
        }
    }
    H5Tclose (type);
    H5Aclose (attribute);
    return rc;
}

/* Fills in [set], whose path is there. */
static bool describe (hid_t data, struct gsi_h5_set *set)
{
    hid_t type = H5Dget_type (data), space = H5Dget_space (data), list;
    hsize_t shape[H5S_MAX_RANK], index = 0;
    haddr_t offset = H5Dget_offset (data);
    bool fine;

    list = H5Dget_create_plist (data);
    set->dtype = dtype_of (type);
    set->dims = H5Sget_simple_extent_ndims (space);
    fine = set->dtype && set->dims >= 0 && set->dims <= GSI_H5_DIMS_MAX &&
           H5Pget_layout (list) == H5D_CONTIGUOUS &&
           H5Sget_simple_extent_dims (space, shape, NULL) >= 0;
    for (int d = 0; d < set->dims && fine; d++)
        set->shape[d] = shape[d];
    set->offset = offset == HADDR_UNDEF ? 0 : offset;
    fine = fine && (offset != HADDR_UNDEF || !gsi_h5_bytes (set)) &&
           H5Aiterate2 (data, H5_INDEX_NAME, H5_ITER_INC, &index, note_attribute, set) >= 0;
    H5Pclose (list);
    H5Sclose (space);
    H5Tclose (type);
    return fine;
}

static gs_status_t add_set (struct look *look, hid_t data, const char *name)
{
    struct gsi_h5_file *file = look->file;
    struct gsi_h5_set *set = file->set;

    if (file->sets == look->room) {
        look->room = look->room ? 2 * look->room : 64;
        if (!(set = realloc (file->set, look->room * sizeof (*set))))
            return out_of_memory (look->path);
        file->set = set;
    }
    set = &file->set[file->sets];
    *set = (struct gsi_h5_set){.path = malloc (strlen (name) + 2)};
    if (!set->path)
        return out_of_memory (look->path);
    set->path[0] = '/';
    strcpy (set->path + 1, name);
    file->sets++;
    if (describe (data, set))
        return GS_OK;
    return gsi_fail (GS_ERR_FORMAT, "%s: data set /%s is none that gradsync writes", look->path,
                     name);
}

static herr_t note_link (hid_t group, const char *name, const H5L_info_t *info, void *context)
{
    struct look *look = context;
    hid_t object;

    if (info->type != H5L_TYPE_HARD)
        return 0;
    if ((object = H5Oopen (group, name, H5P_DEFAULT)) < 0)
        look->st = failed (GS_ERR_FORMAT, look->path, "open an object of it");
    else if (H5Iget_type (object) == H5I_DATASET)
        look->st = add_set (look, object, name);
    if (object >= 0)
        H5Oclose (object);
    return look->st ? -1 : 0;
}

gs_status_t gsi_h5_look (const char *path, struct gsi_h5_file *file)
{
    struct look look = {.path = path, .file = file};
    struct guest guest;
    hid_t access, root;

    *file = (struct gsi_h5_file){.set = NULL};
    enter (&guest);
    access = access_list (PAGE);
    if ((root = H5Fopen (path, H5F_ACC_RDONLY, access)) < 0) {
        look.st = failed (GS_ERR_FORMAT, path, "open it");
    } else {
        if (H5Lvisit (root, H5_INDEX_NAME, H5_ITER_INC, note_link, &look) < 0 && !look.st)
            look.st = failed (GS_ERR_FORMAT, path, "list what is in it");
        H5Fclose (root);
    }
    H5Pclose (access);
    leave (&guest);
    if (look.st)
        gsi_h5_file_clear (file);
    return look.st;
}
