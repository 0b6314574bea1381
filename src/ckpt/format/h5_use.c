/* SPDX-License-Identifier: BSD-3-Clause */
/* h5_use - HDF5 beside the application's own; types and lists of properties. */
#include "ckpt/format/h5_use.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/status.h"

gs_status_t gsi_h5_present (const char *caller)
{
    (void) caller;
    return GS_OK;
}

/* ---- HDF5 beside the application's own ---- */

/* N.B. HDF5 has both numbers for memory; both also stand for room in a file that is written. */
static herr_t note_starved (unsigned number, const H5E_error2_t *error, void *context)
{
    struct gsi_h5_saved *g = context;

    (void) number;
    if ((error->min_num == H5E_NOSPACE || error->min_num == H5E_CANTALLOC) && !*g->starved)
        snprintf (g->starved, sizeof (g->starved), "%s", error->desc ? error->desc : "no reason");
    return 0;
}

/* HDF5 calls it for each call that fails, whether or not its result is looked at. */
static herr_t note_failure (hid_t stack, void *context)
{
    return H5Ewalk2 (stack, H5E_WALK_UPWARD, note_starved, context);
}

void gsi_h5_enter (struct gsi_h5_saved *g)
{
    *g->starved = 0;
    g->stack = H5Eget_current_stack ();
    H5Eget_auto2 (H5E_DEFAULT, &g->print, &g->print_data);
    H5Eset_auto2 (H5E_DEFAULT, note_failure, g);
}

gs_status_t gsi_h5_leave (const struct gsi_h5_saved *g, const char *path, gs_status_t st)
{
    H5Eset_auto2 (H5E_DEFAULT, g->print, g->print_data);
    H5Eset_current_stack (g->stack); /* which closes it */
    if (!*g->starved || st == GS_ERR_NOMEM)
        return st;
    return gsi_fail (GS_ERR_NOMEM, "%s: HDF5 has no memory: %s", path, g->starved);
}

static herr_t note_reason (unsigned number, const H5E_error2_t *error, void *context)
{
    char *text = context;

    (void) number;
    if (!*text && error->desc)
        snprintf (text, GSI_H5_REASON, "%s", error->desc);
    return 0;
}

gs_status_t gsi_h5_failed (gs_status_t st, const char *path, const char *what)
{
    char reason[GSI_H5_REASON] = "";

    H5Ewalk2 (H5E_DEFAULT, H5E_WALK_UPWARD, note_reason, reason);
    return gsi_fail (st, "%s: HDF5 could not %s: %s", path, what,
                     *reason ? reason : "it gives no reason");
}

/* ---- Types ---- */

/* A floating type of two bytes or less: sign, exponent and fraction. */
static hid_t reduced_type (size_t exponent, size_t fraction)
{
    hid_t type = H5Tcopy (H5T_IEEE_F32LE);

    if (H5Tset_fields (type, exponent + fraction, fraction, exponent, 0, fraction) < 0 ||
        H5Tset_size (type, (1 + exponent + fraction) / 8) < 0 ||
        H5Tset_ebias (type, ((size_t) 1 << (exponent - 1)) - 1) < 0) {
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

hid_t gsi_h5_type (gs_dtype_t dtype)
{
    switch ((int) dtype) {
#define GSI_REDUCED(NAME, name, value, T, exponent, fraction, ...) \
    GSI_CASE (NAME, reduced_type (exponent, fraction));
#define GSI_FLOATING(NAME, ...) GSI_CASE (NAME, H5Tcopy (H5T_IEEE_##NAME##LE));
#define GSI_INTEGER(NAME, ...)  GSI_CASE (NAME, H5Tcopy (H5T_STD_##NAME##LE));
#define GSI_COMPLEX(NAME, name, value, T, PART, part) \
    GSI_CASE (NAME, complex_type (H5T_IEEE_##PART##LE, gs_dtype_size (dtype) / 2));
#include "base/dtype.def"
    default: return H5I_INVALID_HID;
    }
}

gs_dtype_t gsi_h5_dtype (hid_t type)
{
    for (int d = 1; d < GSI_DTYPES; d++) {
        hid_t ours = gsi_h5_type ((gs_dtype_t) d);
        htri_t equal = H5Tequal (ours, type);
        H5Tclose (ours);
        if (equal > 0)
            return (gs_dtype_t) d;
    }
    return (gs_dtype_t) 0;
}

/* ---- Lists of properties ---- */

hid_t gsi_h5_naming (hid_t list_class)
{
    hid_t list = H5Pcreate (list_class);

    H5Pset_char_encoding (list, H5T_CSET_UTF8);
    return list;
}

hid_t gsi_h5_timeless (hid_t list_class)
{
    hid_t list = H5Pcreate (list_class);

    if (H5Pset_obj_track_times (list, 0) >= 0)
        return list;
    H5Pclose (list);
    return H5I_INVALID_HID;
}

hid_t gsi_h5_access (hsize_t meta_bytes, bool has_virtual)
{
    hid_t list = H5Pcreate (H5P_FILE_ACCESS);

    /* N.B. Virtual data sets want later bounds; the superblock stays that of 1.8. */
    H5Pset_libver_bounds (list, H5F_LIBVER_V18, has_virtual ? H5F_LIBVER_V110 : H5F_LIBVER_V18);
    H5Pset_fclose_degree (list, H5F_CLOSE_STRONG);
    /* N.B. HDF5 puts data in the gaps that it leaves to align the heap of virtual ones. */
    if (!has_virtual)
        H5Pset_alignment (list, GSI_H5_PAGE, GSI_H5_PAGE);
    H5Pset_meta_block_size (list, meta_bytes);
/* N.B. 1.12.0 has no such call, 1.10.7 has. */
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 12, 0))
    H5Pset_file_locking (list, 0, 1); /* nobody else has this file */
#endif
    return list;
}

herr_t gsi_h5_groups (hid_t file, const char *path)
{
    hid_t creation = gsi_h5_timeless (H5P_GROUP_CREATE), names = gsi_h5_naming (H5P_LINK_CREATE);
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

/* ---- Attributes ---- */

/* N.B. Types of files are those of memory, too: a CPU of the other order has no checkpoints. */
herr_t gsi_h5_attribute (hid_t object, const char *name, hid_t names, hid_t type, hsize_t count,
                         const void *value)
{
    hid_t space = count ? H5Screate_simple (1, &count, NULL) : H5Screate (H5S_SCALAR);
    hid_t attribute = H5Acreate2 (object, name, type, space, names, H5P_DEFAULT);
    herr_t rc = attribute < 0 ? -1 : H5Awrite (attribute, type, value);

    if (attribute >= 0)
        H5Aclose (attribute);
    H5Sclose (space);
    return rc;
}

herr_t gsi_h5_text (hid_t object, const char *name, hid_t names, H5T_cset_t set, const char *text)
{
    hid_t type = H5Tcopy (H5T_C_S1);
    herr_t rc;

    H5Tset_size (type, strlen (text));
    H5Tset_cset (type, set);
    H5Tset_strpad (type, H5T_STR_NULLPAD);
    rc = gsi_h5_attribute (object, name, names, type, 0, text);
    H5Tclose (type);
    return rc;
}
