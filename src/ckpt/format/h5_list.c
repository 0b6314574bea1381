/* SPDX-License-Identifier: BSD-3-Clause */
/* h5_list - tells what is in a file. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "ckpt/format/file.h"
#include "ckpt/format/h5_use.h"

struct look {
    const char *path;
    struct gsi_h5_file *file;
    size_t room;
    gs_status_t st;
};

static gs_status_t look_no_memory (const char *path)
{
    return gsi_fail (GS_ERR_NOMEM, "%s: no memory for what is in it", path);
}

/* Attributes of a data set on their way. */
struct texts {
    struct gsi_h5_set *set;
    bool starved; /* there was no memory for one */
};

static herr_t note_attribute (hid_t object, const char *name, const H5A_info_t *info,
                              void *context)
{
    struct texts *texts = context;
    struct gsi_h5_set *set = texts->set;
    hid_t attribute = H5Aopen (object, name, H5P_DEFAULT), type = H5Aget_type (attribute);
    struct gsi_h5_text *larger, t = {.name = NULL};
    herr_t rc = -1;

    (void) info;
    if (H5Tget_class (type) == H5T_STRING && H5Tis_variable_str (type) == 0) {
        larger = realloc (set->text, (size_t) (set->texts + 1) * sizeof (*larger));
        set->text = larger ? larger : set->text;
        t.name = strdup (name);
        t.text = calloc (H5Tget_size (type) + 1, 1);
        texts->starved = !larger || !t.name || !t.text;
        if (!texts->starved && H5Aread (attribute, type, t.text) >= 0) {
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

/* Fills in [texts]->set, whose path is there. */
static bool describe_set (hid_t data, struct texts *texts)
{
    struct gsi_h5_set *set = texts->set;
    hid_t type = H5Dget_type (data), space = H5Dget_space (data), list;
    hsize_t shape[H5S_MAX_RANK], index = 0;
    haddr_t offset = H5Dget_offset (data);
    bool fine, is_virtual;
    H5O_info_t info;

    list = H5Dget_create_plist (data);
    is_virtual = H5Pget_layout (list) == H5D_VIRTUAL;
    set->dtype = gsi_h5_dtype (type);
    set->dims = H5Sget_simple_extent_ndims (space);
    fine = set->dtype && set->dims >= 0 && set->dims <= GSI_H5_DIMS_MAX &&
           (H5Pget_layout (list) == H5D_CONTIGUOUS || is_virtual) &&
           H5Sget_simple_extent_dims (space, shape, NULL) >= 0;
    for (int d = 0; d < set->dims && fine; d++)
        set->shape[d] = shape[d];
    set->offset = offset == HADDR_UNDEF ? 0 : offset;
    fine = fine && H5Oget_info (data, &info) >= 0;
    set->header = fine ? info.addr : 0;
    fine = fine && gsi_h5_bytes (set) != SIZE_MAX &&
           (offset != HADDR_UNDEF || is_virtual || !gsi_h5_bytes (set)) &&
           H5Aiterate2 (data, H5_INDEX_NAME, H5_ITER_INC, &index, note_attribute, texts) >= 0;
    H5Pclose (list);
    H5Sclose (space);
    H5Tclose (type);
    return fine;
}

static gs_status_t add_set (struct look *look, hid_t data, const char *name)
{
    struct gsi_h5_file *file = look->file;
    struct gsi_h5_set *set = file->set;
    struct texts texts = {.starved = false};

    if (file->sets == look->room) {
        look->room = look->room ? 2 * look->room : 64;
        if (!(set = realloc (file->set, look->room * sizeof (*set))))
            return look_no_memory (look->path);
        file->set = set;
    }
    set = &file->set[file->sets];
    *set = (struct gsi_h5_set){.path = malloc (strlen (name) + 2)};
    if (!set->path)
        return look_no_memory (look->path);
    set->path[0] = '/';
    strcpy (set->path + 1, name);
    file->sets++;
    texts.set = set;
    if (describe_set (data, &texts))
        return GS_OK;
    if (texts.starved) /* the file is none to go back from */
        return look_no_memory (look->path);
    return gsi_fail (GS_ERR_FORMAT, "%s: data set /%s is none that gradsync writes", look->path,
                     name);
}

static herr_t note_link (hid_t group, const char *name, const H5L_info_t *info, void *context)
{
    struct look *look = context;
    hid_t object;

    /* What is in /VTKHDF stands for arrays that are elsewhere. */
    if (info->type != H5L_TYPE_HARD || !strncmp (name, "VTKHDF/", 7))
        return 0;
    if ((object = H5Oopen (group, name, H5P_DEFAULT)) < 0)
        look->st = gsi_h5_failed (GS_ERR_FORMAT, look->path, "open an object of it");
    else if (H5Iget_type (object) == H5I_DATASET)
        look->st = add_set (look, object, name);
    if (object >= 0)
        H5Oclose (object);
    return look->st ? -1 : 0;
}

gs_status_t gsi_h5_list (const char *path, struct gsi_h5_file *file)
{
    struct look look = {.path = path, .file = file};
    struct gsi_h5_saved saved;
    hid_t access, root;
    int fd;

    *file = (struct gsi_h5_file){.set = NULL};
    /* The system's own reason, if it cannot be opened. */
    if ((fd = open (path, O_RDONLY | O_CLOEXEC)) < 0)
        return gsi_file_unread (path);
    close (fd);
    gsi_h5_enter (&saved);
    access = gsi_h5_access (GSI_H5_PAGE, false);
    /* N.B. HDF5 refuses a file that the program has open already with other properties. It sees
     * that only if both use one driver, and programs do not use this one. */
    H5Pset_fapl_stdio (access);
    errno = 0;
    if ((root = H5Fopen (path, H5F_ACC_RDONLY, access)) < 0) {
        look.st = gsi_h5_failed (gsi_file_short (errno) ? GS_ERR_NOMEM : GS_ERR_FORMAT, path,
                                 "open it");
    } else {
        if (H5Lvisit (root, H5_INDEX_NAME, H5_ITER_INC, note_link, &look) < 0 && !look.st)
            look.st = gsi_h5_failed (GS_ERR_FORMAT, path, "list what is in it");
        if (!look.st)
            gsi_h5_get_grid (root, file);
        H5Fclose (root);
    }
    H5Pclose (access);
    if ((look.st = gsi_h5_leave (&saved, path, look.st)))
        gsi_h5_file_clear (file);
    return look.st;
}
