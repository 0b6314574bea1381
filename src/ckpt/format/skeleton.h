/* SPDX-License-Identifier: BSD-3-Clause */
/* skeleton - files that are laid out before there are data for them. */
#ifndef GS_CKPT_FORMAT_SKELETON_H
#define GS_CKPT_FORMAT_SKELETON_H

#include "ckpt/format/h5.h"

/* Lays out a file with these sets, see gsi_h5_lay_out, in memory, or perhaps in [folder]; and
 * with the last of them at its end. */
gs_status_t gsi_image_lay_out (const char *folder, struct gsi_h5_set *sets, size_t number,
                               const struct gsi_h5_grid *grid, struct gsi_h5_image *image);
gs_status_t gsi_image_make (const char *folder, struct gsi_h5_set *sets, size_t number,
                            const struct gsi_h5_grid *grid, struct gsi_h5_image *image);

/* Makes a file in [folder], as file.h has it, that begins so and is as long, which must not be
 * there, and leaves it open to write. What fails leaves none. */
gs_status_t gsi_image_create (const struct gsi_h5_image *image, int folder, const char *path,
                              int *fd);

#endif /* GS_CKPT_FORMAT_SKELETON_H */
