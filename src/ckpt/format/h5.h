/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * h5 - the one home of HDF5: lays out files into which others write with plain calls, and tells
 * what is in such files. No data go through it.
 *
 * N.B. HDF5 has one lock, or none: it is called on the caller's thread only.
 */
#ifndef GS_CKPT_FORMAT_H5_H
#define GS_CKPT_FORMAT_H5_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gradsync.h"

#define GSI_H5_DIMS_MAX (GS_CKPT_DIMS_MAX + 1)

/* A regular grid of points, in two or three dimensions, in the order of C. */
struct gsi_h5_grid {
    int dims; /* 0: there is none */
    uint64_t points[3];
    double origin[3], spacing[3];
};

enum gsi_h5_place { GSI_H5_NOWHERE, GSI_H5_POINTS, GSI_H5_CELLS };

struct gsi_h5_text {
    char *name, *text;
};

/* A box of a data set that is all of one in another file. */
struct gsi_h5_source {
    char file[32], *path;
    uint64_t offsets[GSI_H5_DIMS_MAX], extents[GSI_H5_DIMS_MAX];
};

/* A data set: contiguous, at a place that does not change; or put together from others, for
 * those who look. Without path there is none. */
struct gsi_h5_set {
    char *path; /* "/sharded/u" */
    gs_dtype_t dtype;
    int dims;
    uint64_t shape[GSI_H5_DIMS_MAX];
    struct gsi_h5_text *text; /* [texts] attributes, in the order of their names */
    int texts;
    struct gsi_h5_source *source; /* [sources] */
    size_t sources;
    enum gsi_h5_place place; /* on the grid of the file */
    uint64_t offset;         /* in the file; 0 of one without elements, or with sources */
    uint64_t header; /* of one that is there: where it is described, in the order of the making */
};

/* What can be said of a file without its data. */
struct gsi_h5_file {
    struct gsi_h5_set *set; /* [sets] */
    size_t sets;
    struct gsi_h5_grid grid;
};

/* GS_OK, or GS_ERR_UNSUPPORTED in a build without HDF5. */
gs_status_t gsi_h5_present (const char *caller);

/* Bytes of a data set in its own file; SIZE_MAX: more than there can be. */
size_t gsi_h5_bytes (const struct gsi_h5_set *set);

/* Gives it an attribute, or another text of that name. GS_ERR_NOMEM. */
gs_status_t gsi_h5_set_text (struct gsi_h5_set *set, const char *name, const char *text);

/* The same of [number] names, each with its text: of all or, when it fails, of none. */
#define GSI_H5_TEXTS 2 /* as many at once */
gs_status_t gsi_h5_set_texts (struct gsi_h5_set *set, const char *const text[][2], int number);

/* Frees sources, and it has none; or all that it has. */
void gsi_h5_set_forget (struct gsi_h5_set *set);
void gsi_h5_set_clear (struct gsi_h5_set *set);

/* The name of a field for VTK: "ocean_temp" of "/sharded/ocean/temp". */
void gsi_h5_field_name (const struct gsi_h5_set *set, char *name, size_t room);

/* What files of one layout have in common, beside their lengths. */
struct gsi_h5_image {
    void *data; /* [bytes] with which they begin */
    size_t bytes;
    uint64_t file_bytes;
};

void gsi_h5_image_clear (struct gsi_h5_image *image);

struct gsi_scratch; /* of skeleton.h */

/*
 * Lays out a file with these sets, those with sources first, at a scratch path. Gives their
 * offsets and the image; all else in the file are the data of the sets, or is never read. With a
 * [grid] that is not NULL nor of 0 dimensions it has a group /VTKHDF, by which VTK finds the sets
 * that have a place on it. GS_ERR_IO; GS_ERR_NOMEM; GS_ERR_UNSUPPORTED.
 */
gs_status_t gsi_h5_lay_out (const struct gsi_scratch *scratch, struct gsi_h5_set *sets,
                            size_t number, const struct gsi_h5_grid *grid,
                            struct gsi_h5_image *image);

/*
 * The data sets of a file, in the order of their paths, with their attributes that are texts;
 * and its grid. GS_ERR_FORMAT if it has what gsi_h5_lay_out does not make, but for /VTKHDF, where
 * anything may be; GS_ERR_NOMEM. A file without data sets has none.
 */
gs_status_t gsi_h5_list (const char *path, struct gsi_h5_file *file);
void gsi_h5_file_clear (struct gsi_h5_file *file);

#endif /* GS_CKPT_FORMAT_H5_H */
