/* SPDX-License-Identifier: BSD-3-Clause */
/* stage - copies of the arrays, that the writer reads while the program goes on. */
#ifndef GS_CKPT_SAVE_STAGE_H
#define GS_CKPT_SAVE_STAGE_H

#include "ckpt/save/save.h"

/* Has a ring of [room] bytes ready, pinned on GPUs, and a stream of its own there. */
gs_status_t gsi_stage_prepare (gs_ckpt_t *c, size_t room);
void gsi_stage_release (gs_ckpt_t *c);

/* From here on [stream] has made what is to be copied. */
gs_status_t gsi_stage_follow (const gs_ckpt_t *c, gs_stream_t stream);

/* Copies all pieces into the ring, as room comes; what fails, the flow is told. The thread's. */
void *gsi_stage_all (void *save);

#endif /* GS_CKPT_SAVE_STAGE_H */
