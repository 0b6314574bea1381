/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * feature - what features that are built on communicators have of them beside the public
 * interface. Of the layers of communicators they include this, what is made of the public
 * interface alone (consensus.h, host_access.h, same.h and field/block.h), and
 * collectives/weights.h.
 */
#ifndef GS_FEATURE_FEATURE_H
#define GS_FEATURE_FEATURE_H

#include <stdbool.h>

#include "call/lease.h"
#include "device/device.h"
#include "gradsync.h"

/* The deadline of one operation on it. */
int64_t gsi_feature_timeout_ns (const gs_comm_t *comm);

/* GS_OK while no failure of it is known. gs_comm_check looks for one, which takes a while. */
gs_status_t gsi_feature_alive (const gs_comm_t *comm);

/* Its device; [streams] of the operations is NULL on hosts. */
const struct gsi_device *gsi_feature_device (const gs_comm_t *comm);

/* Whether some ranks have a GPU, others none: what all ranks must do alike is done as on hosts.
 */
bool gsi_feature_mixed (const gs_comm_t *comm);

/*
 * Checks an array as every collective does: overflow, alignment, the device; and tells whether it
 * would be [staged], of the host while the communicator is on GPUs, if that is not NULL.
 */
gs_status_t gsi_feature_check (const gs_comm_t *comm, const char *caller, const void *buf,
                               size_t count, gs_dtype_t dtype, bool *staged);

/* Whether calls may be made by a thread of the feature's, beside the application's in MPI. */
bool gsi_feature_any_thread (const gs_comm_t *comm);

/* Combines [buf] over the ranks, in place, as call with [argument]; in memory of the device. */
gs_status_t gsi_feature_reduce (gs_comm_t *comm, void *buf, size_t count,
                                const struct gsi_reduction *how, int argument,
                                gs_stream_t stream);

/* Before a stream that was given to gsi_feature_reduce is closed: false if it must stay. */
bool gsi_feature_part (gs_comm_t *comm);

#endif /* GS_FEATURE_FEATURE_H */
