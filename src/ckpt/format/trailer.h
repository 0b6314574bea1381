/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trailer - the end of a checkpoint, which says that it is whole: checksums of its beginning,
 * which HDF5 reads, and of the table of blocks, which has one for each 8 MiB of data. It is the
 * content of the data set /gs/complete, the last GSI_TRAILER_BYTES of the file, so that a file
 * can be judged before HDF5 sees it. All numbers are little endian.
 */
#ifndef GS_CKPT_FORMAT_TRAILER_H
#define GS_CKPT_FORMAT_TRAILER_H

#include <stddef.h>
#include <stdint.h>

#include "gradsync.h"

#define GSI_TRAILER_BYTES   4096
#define GSI_TRAILER_WORDS   (GSI_TRAILER_BYTES / 8)
#define GSI_TRAILER_MAGIC   UINT64_C (0x31504b4353445247) /* "GRDSCKP1" as bytes */
#define GSI_TRAILER_VERSION 1
#define GSI_BLOCK_BYTES     ((size_t) 8 << 20)

/* Files of a checkpoint that is a folder. */
#define GSI_PART_NAME  "part-%04d.h5"
#define GSI_INDEX_FILE "index.h5"

struct gsi_trailer {
    uint64_t magic, version;
    uint64_t file_bytes;
    uint64_t image_bytes, image_crc;
    uint64_t table_offset, blocks, table_crc;
    uint64_t step, ranks; /* that wrote it */

    /* 0 in a file that has its data itself. */
    uint64_t parts, parts_offset, parts_crc;         /* files with the data */
    uint64_t regions, map_dims, map_offset, map_crc; /* what is where in them */

    uint64_t index_offset, index_bytes, index_crc; /* 0: it has none, and HDF5 has to look */
}; /* zeros follow, then the checksum of all before it */

/* A row of the table: up to 8 MiB of one data set. */
struct gsi_trailer_block {
    uint64_t offset, bytes, crc;
};

/* A file with data. None, if it has no bytes. */
struct gsi_trailer_part {
    uint64_t file_bytes, image_bytes, image_crc;
};

/* A row of the map is: number of the data set, in the order of their paths; part, offset there,
 * bytes, first block; and for each dimension offset and extent. */
#define GSI_MAP_HEAD 5

/* Rows for data of so many bytes. */
static inline size_t gsi_trailer_blocks (uint64_t bytes)
{
    return (size_t) (bytes / GSI_BLOCK_BYTES + (bytes % GSI_BLOCK_BYTES != 0));
}

/* Fills them in at [row], all but the checksums, for such that lie at [offset]: returns the row
 * behind them. */
static inline struct gsi_trailer_block *gsi_trailer_rows (struct gsi_trailer_block *row,
                                                          uint64_t offset, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += GSI_BLOCK_BYTES)
        *row++ = (struct gsi_trailer_block){
            .offset = offset + at,
            .bytes = bytes - at < GSI_BLOCK_BYTES ? bytes - at : GSI_BLOCK_BYTES};
    return row;
}

#endif /* GS_CKPT_FORMAT_TRAILER_H */
