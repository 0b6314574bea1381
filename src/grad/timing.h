/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timing - when buckets are reduced on a GPU, by events on its streams, in the first steps and in
 * one of several then. They are read once they are past, when a step begins or somebody asks;
 * nobody waits for them, and a step that is still under way when the second one after it is timed
 * is left out. On hosts there is none of this.
 */
#ifndef GS_GRAD_TIMING_H
#define GS_GRAD_TIMING_H

#include "grad/reducer.h"

gs_status_t gsi_timing_open (gs_reducer_t *r);
void gsi_timing_close (gs_reducer_t *r);

/* A step begins with what [stream] has now; finish is called, behind what it has. */
gs_status_t gsi_timing_begin (gs_reducer_t *r, gs_stream_t stream);
gs_status_t gsi_timing_finish (gs_reducer_t *r, gs_stream_t stream);

/* What the caller records: when bucket [b] is ready, has arrived, and the program may go on; NULL
 * in a step that is not timed. */
struct gsi_event *gsi_timing_ready (const gs_reducer_t *r, int b);
struct gsi_event *gsi_timing_end (const gs_reducer_t *r, int b);
struct gsi_event *gsi_timing_release (const gs_reducer_t *r);

/* All events of the step are recorded: they may be read. */
void gsi_timing_released (gs_reducer_t *r);

/* Brings the times of the buckets and r->totals.seen up to the last step that is past. */
gs_status_t gsi_timing_read (gs_reducer_t *r);

#endif /* GS_GRAD_TIMING_H */
