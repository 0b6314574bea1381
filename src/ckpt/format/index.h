/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * index - what is in a file, as gradsync itself has it: the bytes of /gs/index, under the seal.
 * So a file is read without a look of HDF5 into it, which damage or malice may crash.
 */
#ifndef GS_CKPT_FORMAT_INDEX_H
#define GS_CKPT_FORMAT_INDEX_H

#include "ckpt/format/h5.h"

#define GSI_INDEX_VERSION 1

/* Its bytes for these sets, those without path left out; they do not depend on offsets. */
size_t gsi_index_bytes (const struct gsi_h5_set *set, size_t number);

/* Writes it to [out] of so many bytes; [grid] may be NULL. */
void gsi_index_write (const struct gsi_h5_set *set, size_t number, const struct gsi_h5_grid *grid,
                      void *out);

/*
 * The sets of such [data], in the order of their paths, and the grid, as gsi_h5_look gives them.
 * GS_ERR_FORMAT if it says what cannot be in a file of [file_bytes]; or, with [parts], in an
 * index that has arrays in other files. GS_ERR_NOMEM. Texts begin with [path].
 */
gs_status_t gsi_index_read (const char *path, const void *data, size_t bytes, uint64_t file_bytes,
                            bool parts, struct gsi_h5_file *file);

#endif /* GS_CKPT_FORMAT_INDEX_H */
