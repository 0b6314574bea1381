/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reader - a checkpoint that is there: its sealed file, and its parts if it has such. One process
 * looks at it; no other is asked.
 */
#ifndef GS_CKPT_FORMAT_READER_H
#define GS_CKPT_FORMAT_READER_H

#include "ckpt/format/h5.h"
#include "ckpt/format/region.h"
#include "ckpt/format/trailer.h"

struct gsi_source {
    char *path; /* of the sealed file */
    int fd;
    struct gsi_seal seal;
    struct gsi_seal_block *table; /* [seal.blocks] */
    struct gsi_seal_part *part;   /* [seal.parts] */
    struct gsi_region *region;    /* [seal.regions], whose arrays are numbers by path */
    char *part_path;              /* of the part that is open, */
    int part_fd;                  /* -1: none is, */
    uint64_t part_number;         /* its number */
};

/* Opens that with the sealed file at [path], and checks all but the data and the parts.
 * gsi_source_close follows in any case. Statuses are those of gsi_seal_check. */
gs_status_t gsi_source_open (const char *path, struct gsi_source *s);
void gsi_source_close (struct gsi_source *s);

/* Checks the beginning and the length of a part. */
gs_status_t gsi_source_check_part (struct gsi_source *s, uint64_t part);

/* Checks the data that row [b] of the table is of, with [room] of GSI_BLOCK_BYTES. */
gs_status_t gsi_source_check_block (struct gsi_source *s, uint64_t b, void *room);

/* Reads [bytes] at [offset] of a part, or of the sealed file if there are none. */
gs_status_t gsi_source_read (struct gsi_source *s, uint64_t part, void *data, size_t bytes,
                             uint64_t offset);

/* What is in it, as gsi_h5_look: from its index; that of a file that has none HDF5 finds. */
gs_status_t gsi_source_look (const struct gsi_source *s, struct gsi_h5_file *file);

/* The data sets that are not gradsync's own, in the order of their paths, of [file]: pointers to
 * be freed. NULL: no memory. */
struct gsi_h5_set **gsi_source_sort (const struct gsi_h5_file *file, size_t *number);

/* ---- Data sets, in reader_data.c ---- */

/* All of it, in the dimensions that regions have of it; GS_ERR_FORMAT if it is no array. */
gs_status_t gsi_source_view (const struct gsi_source *s, const struct gsi_h5_set *set,
                             struct gsi_view *view);

/*
 * Reads bytes [at] to [at + bytes) of a data set, whatever files they are in; whole elements.
 * [number] is that of gsi_source_sort; one of gradsync's own has none. GS_ERR_FORMAT if they are
 * in no file.
 */
gs_status_t gsi_source_read_set (struct gsi_source *s, const struct gsi_h5_set *set,
                                 uint64_t number, uint64_t at, size_t bytes, void *data);

typedef gs_status_t (*gsi_source_bytes_f) (void *context, uint64_t at, const void *data,
                                           size_t bytes);

/*
 * Reads all of a data set that is no own one, each block once, into [room] of GSI_BLOCK_BYTES,
 * and compares it with its checksum. Calls [each] for bytes from [at] of the data set on: of each
 * file that has some in their order. Ends at the first failure. GS_ERR_FORMAT if not all are
 * there.
 */
gs_status_t gsi_source_scan (struct gsi_source *s, const struct gsi_h5_set *set, uint64_t number,
                             void *room, gsi_source_bytes_f each, void *context);

#endif /* GS_CKPT_FORMAT_READER_H */
