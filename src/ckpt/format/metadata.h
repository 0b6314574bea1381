/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metadata - the data sets of gradsync itself in a sealed file, behind those of the arrays: when
 * it was written, what is where, the table of blocks, and the seal.
 */
#ifndef GS_CKPT_FORMAT_METADATA_H
#define GS_CKPT_FORMAT_METADATA_H

#include "ckpt/format/h5.h"
#include "ckpt/format/trailer.h"

enum gsi_own_set {
    GSI_SET_INDEX,
    GSI_SET_STEP,
    GSI_SET_TIME,
    GSI_SET_RANKS,
    GSI_SET_PARTS, /* (parts) */
    GSI_SET_MAP,   /* (parts) */
    GSI_SET_BLOCKS,
    GSI_SET_SEAL
};
#define GSI_OWN_SETS 8

struct gsi_own {
    struct gsi_h5_set *set; /* [GSI_OWN_SETS] behind those of the arrays, */
    size_t arrays;          /* so many */
    const struct gsi_h5_grid *grid;
    size_t data_blocks, blocks;   /* rows of the table: of arrays; and of these sets, too */
    struct gsi_seal_block *block; /* [blocks] */
    const struct gsi_h5_image *image;
    int64_t step, time, ranks;
    struct gsi_seal_part *part;       /* [parts] */
    uint64_t *map;                    /* [regions * map_words] */
    size_t parts, regions, map_words; /* 0 in a file that has its data itself */
};

/* Makes the sets, with paths and shapes, and counts the blocks; texts begin with [caller].
 * GS_ERR_NOMEM. */
gs_status_t gsi_own_define (struct gsi_own *own, const char *caller);

/* Rows for the blocks of these sets, when it is known where they lie. */
void gsi_own_fill (const struct gsi_own *own);

/* When all other rows have their checksums: writes the sets, the seal last. GS_ERR_IO,
 * GS_ERR_NOMEM. */
gs_status_t gsi_own_write (const struct gsi_own *own, int fd, const char *path);

#endif /* GS_CKPT_FORMAT_METADATA_H */
