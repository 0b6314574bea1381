/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock - the locks of folders of checkpoints that this process has: one for all plans of a
 * folder, and one thread that touches all of them. Any thread.
 */
#ifndef GS_CKPT_FOLDER_LOCK_H
#define GS_CKPT_FOLDER_LOCK_H

#include <stdbool.h>

#include "gradsync.h"

struct gsi_lock;

/*
 * Takes the folder [dir] for a plan. [*taken] tells whether it was of another job step, which
 * writes nothing there any more. GS_ERR_STATE: another job has it; GS_ERR_IO; GS_ERR_NOMEM.
 */
gs_status_t gsi_lock_take (const char *caller, const char *dir, struct gsi_lock **lock,
                           bool *taken);

/*
 * Looks whether the folder is still of this job step; takes it again if it is nobody's.
 * GS_ERR_STATE: another job has it; GS_ERR_IO.
 */
gs_status_t gsi_lock_look (const char *caller, struct gsi_lock *lock);

/* Its id if this process has made it; if not, one that no other process has either. */
const char *gsi_lock_id (const struct gsi_lock *lock);

/* Whether a look has taken it from another job step since this was asked last. */
bool gsi_lock_took (struct gsi_lock *lock);

/* Whether another job was found to have taken it. */
bool gsi_lock_is_lost (struct gsi_lock *lock);

/* One plan less; the last one removes the lock. NULL is allowed. */
void gsi_lock_drop (struct gsi_lock *lock);

/* What the thread does every 10 s. */
void gsi_lock_beat (void);

#endif /* GS_CKPT_FOLDER_LOCK_H */
