/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scheduler - who sees to the buckets, and when. On GPUs they are queued at once on the reducer's
 * stream. On hosts a thread sees to them, and the program's helps in finish; or the program's
 * does all, where calls may not be made by another one.
 */
#ifndef GS_GRAD_SCHEDULER_H
#define GS_GRAD_SCHEDULER_H

#include "grad/reducer.h"

gs_status_t gsi_scheduler_open (gs_reducer_t *r);
void gsi_scheduler_close (gs_reducer_t *r);

/* A step begins: the communicator is the reducer's, until gsi_lease_end. */
gs_status_t gsi_scheduler_begin (gs_reducer_t *r);

/* (GPUs) GS_ERR_UNSUPPORTED if [stream] is captured. */
gs_status_t gsi_scheduler_admit (gs_reducer_t *r, gs_stream_t stream);

/* (GPUs) The reducer's stream comes after what [stream] has now. */
gs_status_t gsi_scheduler_follow (gs_reducer_t *r, gs_stream_t stream);

/* Buckets up to r->launched may travel. */
gs_status_t gsi_scheduler_launch (gs_reducer_t *r);

/* Waits until all have travelled; on GPUs, until they are queued. */
gs_status_t gsi_scheduler_drain (gs_reducer_t *r);

/* (GPUs) [stream] comes after what the reducer's has now. */
gs_status_t gsi_scheduler_release (gs_reducer_t *r, gs_stream_t stream);

/* What r->averaged has returned, once, with its text. */
gs_status_t gsi_scheduler_callback (gs_reducer_t *r);

#endif /* GS_GRAD_SCHEDULER_H */
