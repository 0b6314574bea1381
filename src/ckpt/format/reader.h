/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reader - a checkpoint that is there: its main file, and its parts if it has such. All that
 * read checkpoints do by this: gs_ckpt_read, flatten, and gs-ckpt. No other process is asked.
 */
#ifndef GS_CKPT_FORMAT_READER_H
#define GS_CKPT_FORMAT_READER_H

#include "ckpt/format/h5.h"
#include "ckpt/format/region.h"
#include "ckpt/format/trailer.h"

struct gsi_reader {
    char *path; /* of the main file */
    int folder; /* that it is in: parts are of this one, whatever has its name later */
    int fd;
    struct gsi_trailer trailer;
    struct gsi_trailer_block *table; /* [trailer.blocks] */
    struct gsi_trailer_part *part;   /* [trailer.parts] */
    struct gsi_region *region;       /* [trailer.regions], whose arrays are numbers in [array] */
    char *part_path;                 /* of the part that is open, */
    int part_fd;                     /* -1: none is, */
    uint64_t part_number;            /* its number */

    /* From gsi_reader_list on: what is in it, and those of the data sets that are not gradsync's
     * own, in the order of their paths. */
    struct gsi_h5_file file;
    struct gsi_h5_set **array; /* [arrays] */
    size_t arrays;
};

#define GSI_READER_CLOSED                     \
    (struct gsi_reader)                       \
    {                                         \
        .folder = -1, .fd = -1, .part_fd = -1 \
    }

/* Opens that with the main file at [path], and checks all but the data and the parts.
 * gsi_reader_close follows in any case. GS_ERR_FORMAT, GS_ERR_UNSUPPORTED for a later version,
 * GS_ERR_IO, GS_ERR_NOMEM; texts begin with [path]. */
gs_status_t gsi_reader_open (const char *path, struct gsi_reader *s);
void gsi_reader_close (struct gsi_reader *s);

/* Checks the beginning and the length of a part. */
gs_status_t gsi_reader_check_part (struct gsi_reader *s, uint64_t part);

/* Checks the data that row [b] of the table is of, with [room] of GSI_BLOCK_BYTES. */
gs_status_t gsi_reader_check_block (struct gsi_reader *s, uint64_t b, void *room);

/* Reads [bytes] at [offset] of a part, or of the main file if there are none. */
gs_status_t gsi_reader_read (struct gsi_reader *s, uint64_t part, void *data, size_t bytes,
                             uint64_t offset);

/* Finds what is in it, as gsi_h5_list: from its index, in a file that has none by HDF5; or takes
 * [file], which was found so, for what is. */
gs_status_t gsi_reader_list (struct gsi_reader *s);
gs_status_t gsi_reader_take (struct gsi_reader *s, const struct gsi_h5_file *file);

/* ---- Data sets, in reader_data.c ---- */

/* All of it, in the dimensions that regions have of it; GS_ERR_FORMAT if it is no array. */
gs_status_t gsi_reader_view (const struct gsi_reader *s, const struct gsi_h5_set *set,
                             struct gsi_array_view *view);

/* The one of this path; NULL: there is none. And the regions of array [number], behind each
 * other: how many. */
struct gsi_h5_set *gsi_reader_find (const struct gsi_reader *s, const char *path);
size_t gsi_reader_regions (const struct gsi_reader *s, uint64_t number,
                           const struct gsi_region **first);

/* Reads bytes [at] to [at + bytes) of a data set, whatever files they are in; whole elements.
 * GS_ERR_FORMAT if they are in no file. */
gs_status_t gsi_reader_read_set (struct gsi_reader *s, const struct gsi_h5_set *set, uint64_t at,
                                 size_t bytes, void *data);

/* A number of gradsync's own, "/gs/time". GS_ERR_FORMAT if it has none. */
gs_status_t gsi_reader_number (struct gsi_reader *s, const char *path, int64_t *value);

typedef gs_status_t (*gsi_reader_bytes_f) (void *context, uint64_t at, const void *data,
                                           size_t bytes);

/*
 * Reads all of a data set that is no own one, each block once, into [room] of GSI_BLOCK_BYTES,
 * and compares it with its checksum. Calls [each] for bytes from [at] of the data set on: of each
 * file that has some in their order. Ends at the first failure. GS_ERR_FORMAT if not all are
 * there.
 */
gs_status_t gsi_reader_scan (struct gsi_reader *s, const struct gsi_h5_set *set, void *room,
                             gsi_reader_bytes_f each, void *context);

/* ---- One file of several, in flatten.c ---- */

/*
 * Makes a file of the single layout at [path] from the checkpoint whose main file is at [from],
 * of the other layout: the one that its ranks would have written themselves. All checksums are
 * compared on the way; the file gets its name when it is whole and on disk. Of one that is
 * damaged, or if anything fails, nothing is left. GS_ERR_ARG, GS_ERR_FORMAT, GS_ERR_IO,
 * GS_ERR_NOMEM; GS_ERR_STATE, if there is such a file, unless [replace] says that it goes.
 */
gs_status_t gsi_flatten (const char *from, const char *path, bool replace);

#endif /* GS_CKPT_FORMAT_READER_H */
