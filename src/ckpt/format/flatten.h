/* SPDX-License-Identifier: BSD-3-Clause */
/* flatten - one file with all that the parts of a checkpoint have. */
#ifndef GS_CKPT_FORMAT_FLATTEN_H
#define GS_CKPT_FORMAT_FLATTEN_H

#include <stdbool.h>

#include "gradsync.h"

/*
 * Makes a file of the single layout at [path] from the checkpoint whose sealed file is at [from],
 * of the other layout: the one that its ranks would have written themselves. All checksums are
 * compared on the way; the file gets its name when it is whole and on disk. Of one that is
 * damaged, or if anything fails, nothing is left. GS_ERR_ARG, GS_ERR_FORMAT, GS_ERR_IO,
 * GS_ERR_NOMEM; GS_ERR_STATE, if there is such a file, unless [replace] says that it goes.
 */
gs_status_t gsi_flatten (const char *from, const char *path, bool replace);

#endif /* GS_CKPT_FORMAT_FLATTEN_H */
