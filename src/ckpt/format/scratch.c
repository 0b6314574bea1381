/* SPDX-License-Identifier: BSD-3-Clause */
/* scratch - an empty file for HDF5 to lay out. */
#include "ckpt/format/scratch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/status.h"
#include "ckpt/format/file.h"

/* Memory that the system shows as a file in /proc. */
static gs_status_t open_memory (struct gsi_scratch *s, size_t room)
{
    s->fd = gsi_fault ("scratch.memory") ? -1 : memfd_create ("gradsync-layout", MFD_CLOEXEC);
    if (s->fd < 0)
        return gsi_file_fail ("layout", "memfd_create");
    snprintf (s->path, room, "/proc/self/fd/%d", s->fd);
    return access (s->path, R_OK | W_OK) ? gsi_file_fail (s->path, "access") : GS_OK;
}

static gs_status_t open_named (struct gsi_scratch *s, const char *folder, size_t room)
{
    snprintf (s->path, room, "%s/.gs-layout-XXXXXX", folder);
    if ((s->fd = mkostemp (s->path, O_CLOEXEC)) < 0)
        return gsi_file_fail (s->path, "mkostemp");
    s->named = true;
    return GS_OK;
}

gs_status_t gsi_scratch_open (enum gsi_scratch_place place, const char *folder,
                              struct gsi_scratch *s)
{
    const char *tmpdir = getenv ("TMPDIR");
    size_t room;

    if (place == GSI_SCRATCH_TMPDIR)
        folder = tmpdir && *tmpdir ? tmpdir : "/tmp";
    room = strlen (folder) + 64;
    *s = (struct gsi_scratch){.fd = -1, .path = malloc (room)};
    if (!s->path)
        return gsi_fail (GS_ERR_NOMEM, "no memory for the name of a file in %s", folder);
    return place == GSI_SCRATCH_MEMORY ? open_memory (s, room) : open_named (s, folder, room);
}

void gsi_scratch_close (struct gsi_scratch *s)
{
    if (s->named)
        unlink (s->path);
    if (s->fd >= 0)
        close (s->fd);
    free (s->path);
    *s = (struct gsi_scratch){.fd = -1};
}
