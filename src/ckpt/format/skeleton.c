/* SPDX-License-Identifier: BSD-3-Clause */
/* skeleton - files that are laid out before there are data for them. */
#include "ckpt/format/skeleton.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/log.h"
#include "base/status.h"
#include "ckpt/format/file.h"

/* Memory that the system shows as a file in /proc. */
static gs_status_t open_memory (struct gsi_scratch *s)
{
    s->fd = gsi_fault ("scratch.memory") ? -1 : memfd_create ("gradsync-layout", MFD_CLOEXEC);
    if (s->fd < 0)
        return gsi_file_fail ("layout", "memfd_create");
    snprintf (s->path, sizeof (s->path), "/proc/self/fd/%d", s->fd);
    return access (s->path, R_OK | W_OK) ? gsi_file_fail (s->path, "access") : GS_OK;
}

static gs_status_t open_named (struct gsi_scratch *s, const char *folder)
{
    snprintf (s->path, sizeof (s->path), "%s/.gs-layout-XXXXXX", folder);
    if ((s->fd = mkostemp (s->path, O_CLOEXEC)) < 0)
        return gsi_file_fail (s->path, "mkostemp");
    s->named = true;
    return GS_OK;
}

gs_status_t gsi_scratch_open (enum gsi_scratch_place place, const char *folder,
                              struct gsi_scratch *s)
{
    const char *tmpdir = getenv ("TMPDIR");

    if (place == GSI_SCRATCH_TMPDIR)
        folder = tmpdir && *tmpdir ? tmpdir : "/tmp";
    *s = (struct gsi_scratch){.fd = -1};
    return place == GSI_SCRATCH_MEMORY ? open_memory (s) : open_named (s, folder);
}

void gsi_scratch_close (struct gsi_scratch *s)
{
    if (s->named)
        unlink (s->path);
    if (s->fd >= 0)
        close (s->fd);
    *s = (struct gsi_scratch){.fd = -1};
}

gs_status_t gsi_skeleton_lay_out (const char *folder, struct gsi_h5_set *sets, size_t number,
                                  const struct gsi_h5_grid *grid, struct gsi_h5_image *image)
{
    gs_status_t st = GS_ERR_IO;

    for (int place = 0; place < GSI_SCRATCH_PLACES && st == GS_ERR_IO; place++) {
        struct gsi_scratch s;
        if (place)
            gsi_log (GS_LOG_INFO, "ckpt", "%s; another place is tried", gsi_last_text ());
        st = gsi_scratch_open ((enum gsi_scratch_place) place, folder, &s);
        if (!st)
            st = gsi_h5_lay_out (&s, sets, number, grid, image);
        gsi_scratch_close (&s);
    }
    return st;
}

gs_status_t gsi_skeleton_make (const char *folder, struct gsi_h5_set *sets, size_t number,
                               const struct gsi_h5_grid *grid, struct gsi_h5_image *image)
{
    const struct gsi_h5_set *last = &sets[number - 1];
    gs_status_t st = gsi_skeleton_lay_out (folder, sets, number, grid, image);

    if (!st && last->offset + gsi_h5_bytes (last) != image->file_bytes)
        st = gsi_fail (GS_ERR_FORMAT, "%s: HDF5 does not put %s last", folder, last->path);
    return st;
}

gs_status_t gsi_skeleton_create (const struct gsi_h5_image *image, int folder, const char *path,
                                 int *fd)
{
    gs_status_t st = gsi_file_open (folder, path, O_WRONLY | O_CREAT | O_EXCL, 0, fd);

    if (st)
        return st;
    st = gsi_file_write (*fd, path, image->data, image->bytes, 0);
    if (!st && ftruncate (*fd, (off_t) image->file_bytes))
        st = gsi_file_fail (path, "ftruncate");
    if (!st)
        return GS_OK;
    close (*fd);
    *fd = -1;
    gsi_file_unlink (folder, path, 0);
    return st;
}
