/* SPDX-License-Identifier: BSD-3-Clause */
/* layout - which files there are, and where in them all that was added goes. */
#ifndef GS_CKPT_LAYOUT_H
#define GS_CKPT_LAYOUT_H

#include "ckpt/plan/plan.h"

/* Collective: lays out the files, and takes the folder; and gives back what that has made. */
gs_status_t gsi_ckpt_lay_out (gs_ckpt_t *ckpt, const char *caller);
void gsi_ckpt_undo (gs_ckpt_t *ckpt);

#endif /* GS_CKPT_LAYOUT_H */
