/* SPDX-License-Identifier: BSD-3-Clause */
/* same - whether all ranks were told the same, of which each makes a text, a line for each thing.
 */
#ifndef GS_FEATURE_SAME_H
#define GS_FEATURE_SAME_H

#include <stdbool.h>
#include <stddef.h>

#include "gradsync.h"

/* A text that grows. */
struct gsi_text {
    char *at;
    size_t used, room;
    bool failed; /* there was no memory for a line */
};

/* Adds to it; a line ends with its newline and has 1000 characters at most. */
__attribute__ ((format (printf, 2, 3))) void gsi_text_add (struct gsi_text *t, const char *format,
                                                           ...);

struct gsi_same {
    gs_comm_t *comm;
    const char *caller, *cure;
    gs_stream_t stream;
};

/*
 * Collective. [write] adds to a text what this rank was told. GS_OK on all ranks if all texts are
 * equal; else, on all of them, GS_ERR_MISMATCH and a text that begins with [caller], tells the
 * first line that differs, and ends in [cure]. GS_ERR_NOMEM on all ranks if one has no memory.
 */
gs_status_t gsi_same (const struct gsi_same *s,
                      void (*write) (struct gsi_text *text, const void *context),
                      const void *context);

#endif /* GS_FEATURE_SAME_H */
