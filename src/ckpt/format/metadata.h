/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metadata - the data sets of gradsync itself in a main file, behind those of the arrays: when
 * it was written, what is where, the table of blocks, and the trailer.
 */
#ifndef GS_CKPT_FORMAT_METADATA_H
#define GS_CKPT_FORMAT_METADATA_H

#include "ckpt/format/h5.h"
#include "ckpt/format/trailer.h"

enum gsi_metadata_set {
    GSI_SET_INDEX,
    GSI_SET_STEP,
    GSI_SET_TIME,
    GSI_SET_RANKS,
    GSI_SET_PARTS, /* (parts) */
    GSI_SET_MAP,   /* (parts) */
    GSI_SET_BLOCKS,
    GSI_SET_TRAILER
};
#define GSI_METADATA_SETS 8

struct gsi_metadata {
    struct gsi_h5_set *set; /* [GSI_METADATA_SETS] behind those of the arrays, */
    size_t arrays;          /* so many */
    const struct gsi_h5_grid *grid;
    size_t data_blocks, blocks;      /* rows of the table: of arrays; and of these sets, too */
    struct gsi_trailer_block *block; /* [blocks] */
    const struct gsi_h5_image *image;
    int64_t step, time, ranks;
    struct gsi_trailer_part *part;    /* [parts] */
    uint64_t *map;                    /* [regions * map_words] */
    size_t parts, regions, map_words; /* 0 in a file that has its data itself */
};

/* Makes the sets, with paths and shapes, and counts the blocks; texts begin with [caller].
 * GS_ERR_NOMEM. */
gs_status_t gsi_metadata_define (struct gsi_metadata *m, const char *caller);

/* Rows for the blocks of these sets, when it is known where they lie. */
void gsi_metadata_fill (const struct gsi_metadata *m);

/* When all other rows have their checksums: writes the sets, the trailer last. GS_ERR_IO,
 * GS_ERR_NOMEM. */
gs_status_t gsi_metadata_write (const struct gsi_metadata *m, int fd, const char *path);

/* ---- The index, in index.c: what is in a file, as gradsync itself has it, under the trailer. So
 * it is read without a look of HDF5 into it, which damage or malice may crash. ---- */

#define GSI_INDEX_VERSION 1

/* Its bytes for these sets, those without path left out; they depend neither on offsets nor on
 * [grid], which may be NULL. Writes it to [out] of so many, unless that is NULL. */
size_t gsi_index_write (const struct gsi_h5_set *set, size_t number,
                        const struct gsi_h5_grid *grid, void *out);

/*
 * The sets of such [data], in the order of their paths, and the grid, as gsi_h5_list gives them.
 * GS_ERR_FORMAT if it says what cannot be in a file of [file_bytes]; or, with [parts], in an
 * index that has arrays in other files. GS_ERR_NOMEM. Texts begin with [path].
 */
gs_status_t gsi_index_read (const char *path, const void *data, size_t bytes, uint64_t file_bytes,
                            bool parts, struct gsi_h5_file *file);

#endif /* GS_CKPT_FORMAT_METADATA_H */
