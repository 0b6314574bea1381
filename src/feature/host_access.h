/* SPDX-License-Identifier: BSD-3-Clause */
/* host_access - arrays of any memory as the host can read and write them, piece by piece. */
#ifndef GS_FEATURE_HOST_ACCESS_H
#define GS_FEATURE_HOST_ACCESS_H

#include <stdbool.h>

#include "feature/feature.h"

/* An array that is read; zeros where there is none. */
struct gsi_host_access {
    gs_comm_t *comm;
    gs_stream_t stream;
    void *pinned; /* NULL: the array is in host memory */
    bool keep;    /* a copy may still be under way */
};

/*
 * Checks the [count] elements at [data] as every collective does, waits for what the stream does
 * to them and, if they are on a GPU, gets room for pieces of [bytes]. gsi_host_access_close
 * follows in any case.
 */
gs_status_t gsi_host_access_open (struct gsi_host_access *f, gs_comm_t *comm, const char *caller,
                                  const void *data, size_t count, gs_dtype_t dtype, size_t bytes,
                                  gs_stream_t stream);
void gsi_host_access_close (struct gsi_host_access *f);

/* [bytes] at [at], as [*out], until the next call. */
gs_status_t gsi_host_access (struct gsi_host_access *f, const void *at, size_t bytes,
                             const void **out);

/* The other way: where to write what belongs at [at], and then [bytes] of it to there. */
void *gsi_host_access_room (const struct gsi_host_access *f, void *at);
gs_status_t gsi_host_access_put (struct gsi_host_access *f, void *at, size_t bytes);

#endif /* GS_FEATURE_HOST_ACCESS_H */
