/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * h5 - the one home of HDF5: lays out files into which others write with plain calls, and tells
 * what is in such files. No data go through it.
 *
 * N.B. HDF5 has one lock, or none: it is called on the caller's thread only.
 */
#ifndef GS_CKPT_H5_H
#define GS_CKPT_H5_H

#include <stddef.h>
#include <stdint.h>

#include "gradsync.h"

#define GSI_H5_DIMS_MAX (GS_CKPT_DIMS_MAX + 1)

struct gsi_h5_text {
    char *name, *text;
};

/* A data set: contiguous, at a place that does not change. */
struct gsi_h5_set {
    char *path; /* "/sharded/u" */
    gs_dtype_t dtype;
    int dims;
    uint64_t shape[GSI_H5_DIMS_MAX];
    struct gsi_h5_text *text; /* [texts] attributes, in the order of their names */
    int texts;
    uint64_t offset; /* in the file; 0 of one without elements */
};

/* What can be said of a file without its data. */
struct gsi_h5_file {
    struct gsi_h5_set *set; /* [sets] */
    size_t sets;
};

/* GS_OK, or GS_ERR_UNSUPPORTED in a build without HDF5. */
gs_status_t gsi_h5_present (const char *caller);

/* Bytes of a data set. */
size_t gsi_h5_bytes (const struct gsi_h5_set *set);

/* Gives it an attribute, or another text of that name. GS_ERR_NOMEM. */
gs_status_t gsi_h5_set_text (struct gsi_h5_set *set, const char *name, const char *text);

/* Frees texts and path. */
void gsi_h5_set_clear (struct gsi_h5_set *set);

/*
 * Lays out a file with these sets, in a file at [path], which must not be there and is not there
 * afterwards. Gives their offsets, the [*image_bytes] with which such a file begins, and its
 * length; all else in it are the data of the sets, or is never read. The last set ends it.
 * GS_ERR_IO; GS_ERR_NOMEM.
 */
gs_status_t gsi_h5_lay_out (const char *path, struct gsi_h5_set *sets, size_t number,
                            void **image, size_t *image_bytes, uint64_t *file_bytes);

/*
 * The data sets of a file, in the order of their paths, with their attributes that are texts.
 * GS_ERR_FORMAT if it has what gsi_h5_lay_out does not make; GS_ERR_NOMEM. A file without
 * data sets has none.
 */
gs_status_t gsi_h5_look (const char *path, struct gsi_h5_file *file);
void gsi_h5_file_clear (struct gsi_h5_file *file);

#endif /* GS_CKPT_H5_H */
