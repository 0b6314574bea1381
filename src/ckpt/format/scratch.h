/* SPDX-License-Identifier: BSD-3-Clause */
/* scratch - an empty file for HDF5 to lay out, which nobody else sees and which does not stay. */
#ifndef GS_CKPT_FORMAT_SCRATCH_H
#define GS_CKPT_FORMAT_SCRATCH_H

#include <stdbool.h>

#include "gradsync.h"

/* Where it can be, the best place first. */
enum gsi_scratch_place {
    GSI_SCRATCH_MEMORY, /* takes only the pages that are written, however long the file is */
    GSI_SCRATCH_TMPDIR,
    GSI_SCRATCH_FOLDER, /* of the checkpoints */
    GSI_SCRATCH_PLACES
};

struct gsi_scratch {
    int fd;     /* open to read and write; -1: there is none */
    char *path; /* that opens the same file */
    bool named; /* others see it: the close removes it */
};

/* GS_ERR_IO; GS_ERR_NOMEM. */
gs_status_t gsi_scratch_open (enum gsi_scratch_place place, const char *folder,
                              struct gsi_scratch *s);

/* Of one whose open has failed, too. */
void gsi_scratch_close (struct gsi_scratch *s);

#endif /* GS_CKPT_FORMAT_SCRATCH_H */
