/* SPDX-License-Identifier: BSD-3-Clause */
/* h5_none - what stands for HDF5 in a build without it. */
#include "base/status.h"
#include "ckpt/format/skeleton.h"

gs_status_t gsi_h5_present (const char *caller)
{
    return gsi_fail (GS_ERR_UNSUPPORTED,
                     "%s: this gradsync was built without HDF5; configure it --with-hdf5",
                     caller);
}

gs_status_t gsi_h5_lay_out (const struct gsi_scratch *scratch, struct gsi_h5_set *sets,
                            size_t number, const struct gsi_h5_grid *grid,
                            struct gsi_h5_image *image)
{
    (void) sets, (void) number, (void) grid, (void) image;
    return gsi_h5_present (scratch->path);
}

gs_status_t gsi_h5_list (const char *path, struct gsi_h5_file *file)
{
    (void) file;
    return gsi_h5_present (path);
}
