/* SPDX-License-Identifier: BSD-3-Clause */
/* fetch - arrays of any memory as the host can read and write them, piece by piece. */
#ifndef GS_COMM_FETCH_H
#define GS_COMM_FETCH_H

#include <stdbool.h>

#include "comm/feature.h"

/* An array that is read; zeros where there is none. */
struct gsi_fetch {
    gs_comm_t *comm;
    gs_stream_t stream;
    void *pinned; /* NULL: the array is in host memory */
    bool keep;    /* a copy may still be under way */
};

/*
 * Checks the [count] elements at [data] as every collective does, waits for what the stream does
 * to them and, if they are on a GPU, gets room for pieces of [bytes]. gsi_fetch_close follows in
 * any case.
 */
gs_status_t gsi_fetch_open (struct gsi_fetch *f, gs_comm_t *comm, const char *caller,
                            const void *data, size_t count, gs_dtype_t dtype, size_t bytes,
                            gs_stream_t stream);
void gsi_fetch_close (struct gsi_fetch *f);

/* [bytes] at [at], as [*out], until the next call. */
gs_status_t gsi_fetch (struct gsi_fetch *f, const void *at, size_t bytes, const void **out);

/* The other way: where to write what belongs at [at], and then [bytes] of it to there. */
void *gsi_fetch_room (const struct gsi_fetch *f, void *at);
gs_status_t gsi_fetch_put (struct gsi_fetch *f, void *at, size_t bytes);

#endif /* GS_COMM_FETCH_H */
