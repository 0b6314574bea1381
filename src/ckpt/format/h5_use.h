/* SPDX-License-Identifier: BSD-3-Clause */
/* h5_use - what the files h5*.c share of HDF5; no others include this. */
#ifndef GS_CKPT_FORMAT_H5_USE_H
#define GS_CKPT_FORMAT_H5_USE_H

#define H5_USE_110_API 1

#include <hdf5.h>

#include "ckpt/format/h5.h"

#define GSI_H5_PAGE ((hsize_t) 4096) /* data of this size and more begin at multiples of it */

#define GSI_H5_REASON 160

/* What an application has set for its own calls; and what ours had no memory for, "" for none. */
struct gsi_h5_saved {
    hid_t stack;
    H5E_auto2_t print;
    void *print_data;
    char starved[GSI_H5_REASON];
};

/*
 * Around all calls for the file [path]: what fails in between is told to nobody but
 * gsi_h5_failed. Leaving gives [st] back or, when memory ran out inside HDF5, GS_ERR_NOMEM:
 * whatever came of that may look like a damaged file, or like one that has less in it.
 */
void gsi_h5_enter (struct gsi_h5_saved *g);
gs_status_t gsi_h5_leave (const struct gsi_h5_saved *g, const char *path, gs_status_t st);

/* [st] with HDF5's reason. N.B. Right after the call that failed: the next one clears it. */
gs_status_t gsi_h5_failed (gs_status_t st, const char *path, const char *what);

/* The type in files, to be closed; and back, 0 for what is none of ours. */
hid_t gsi_h5_type (gs_dtype_t dtype);
gs_dtype_t gsi_h5_dtype (hid_t type);

/* Lists of properties, to be closed: of names in UTF-8; of objects without times, so that files
 * of one plan begin with the same bytes; of files. */
hid_t gsi_h5_naming (hid_t list_class);
hid_t gsi_h5_timeless (hid_t list_class);
hid_t gsi_h5_access (hsize_t meta_bytes, bool has_virtual);

/* Makes the groups that [path] goes through, up to its last '/'. */
herr_t gsi_h5_groups (hid_t file, const char *path);

/* Writes an attribute of [object]: [count] of a type of files at [value], 0: one alone; and a
 * text in this set of characters. [names]: H5P_DEFAULT, or of UTF-8. */
herr_t gsi_h5_attribute (hid_t object, const char *name, hid_t names, hid_t type, hsize_t count,
                         const void *value);
herr_t gsi_h5_text (hid_t object, const char *name, hid_t names, H5T_cset_t set,
                    const char *text);

/* h5_vtk.c: makes /VTKHDF, with links to the sets that have a place there; and finds in it the
 * grid of [file], whose sets are known, and their places. What it does not know is not there. */
herr_t gsi_h5_put_grid (hid_t file, const struct gsi_h5_grid *grid, const struct gsi_h5_set *sets,
                        size_t number);
void gsi_h5_get_grid (hid_t root, struct gsi_h5_file *file);

#endif /* GS_CKPT_FORMAT_H5_USE_H */
