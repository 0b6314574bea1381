/* SPDX-License-Identifier: BSD-3-Clause */
/* skeleton - files that are laid out before there are data for them. */
#ifndef GS_CKPT_FORMAT_SKELETON_H
#define GS_CKPT_FORMAT_SKELETON_H

#include <limits.h>
#include <stdbool.h>

#include "ckpt/format/h5.h"

/* Where it can be, the best place first. */
enum gsi_scratch_place {
    GSI_SCRATCH_MEMORY, /* takes only the pages that are written, however long the file is */
    GSI_SCRATCH_TMPDIR,
    GSI_SCRATCH_FOLDER, /* of the checkpoints */
    GSI_SCRATCH_PLACES
};

struct gsi_scratch {
    int fd;                   /* open to read and write; -1: there is none */
    char path[PATH_MAX + 64]; /* that opens the same file */
    bool named;               /* others see it: the close removes it */
};

/* GS_ERR_IO; GS_ERR_NOMEM. */
gs_status_t gsi_scratch_open (enum gsi_scratch_place place, const char *folder,
                              struct gsi_scratch *s);

/* Of one whose open has failed, too. */
void gsi_scratch_close (struct gsi_scratch *s);

/* Lays out a file with these sets, see gsi_h5_lay_out, in memory, or perhaps in [folder]; and
 * with the last of them at its end. */
gs_status_t gsi_skeleton_lay_out (const char *folder, struct gsi_h5_set *sets, size_t number,
                                  const struct gsi_h5_grid *grid, struct gsi_h5_image *image);
gs_status_t gsi_skeleton_make (const char *folder, struct gsi_h5_set *sets, size_t number,
                               const struct gsi_h5_grid *grid, struct gsi_h5_image *image);

/* Makes a file in [folder], as file.h has it, that begins so and is as long, which must not be
 * there, and leaves it open to write. What fails leaves none. */
gs_status_t gsi_skeleton_create (const struct gsi_h5_image *image, int folder, const char *path,
                                 int *fd);

#endif /* GS_CKPT_FORMAT_SKELETON_H */
