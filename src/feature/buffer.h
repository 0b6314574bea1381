/* SPDX-License-Identifier: BSD-3-Clause */
/* buffer - memory of a feature's own that is reduced again and again, and where it is. */
#ifndef GS_FEATURE_BUFFER_H
#define GS_FEATURE_BUFFER_H

#include "coll/coll.h"

/* Memory of the communicator's device; local. */
gs_status_t gsi_buffer_alloc (gs_comm_t *comm, size_t bytes, struct gsi_buffer *buffer);

/*
 * Collective: registers the [number] buffers at [list], alike on all ranks, with the network, if
 * it can on all of them; logs for [subject] whether it has. The failure of that is none.
 */
gs_status_t gsi_buffer_register (gs_comm_t *comm, struct gsi_buffer *const *list, int number,
                                 const char *subject, gs_stream_t stream);

/* Frees it, as gs_device_free does, or warns that it is kept, without another text for the
 * caller's failure; local. One without memory is let be. */
void gsi_buffer_free (gs_comm_t *comm, struct gsi_buffer *buffer);

#endif /* GS_FEATURE_BUFFER_H */
