/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock - DIR/.gs-lock, by which jobs that write to one folder of checkpoints stay apart: one for
 * all plans of a process in a folder, and a thread that touches it. Any thread.
 *
 * It is made by a link, which one of several succeeds with, also over NFS. Who takes it from a
 * job that has ended first makes a file named after that very lock, .gs-lock.ID.0, and looks
 * again; so one does it, and never to the lock of a third who was faster. Its age is told by
 * times that the file system has given, whatever the clocks of hosts say.
 */
#ifndef GS_CKPT_FOLDER_LOCK_H
#define GS_CKPT_FOLDER_LOCK_H

#include <stdbool.h>

#include "gradsync.h"

#define GSI_LOCK_NAME ".gs-lock"

struct gsi_lock;

/*
 * Takes the folder [dir] for a plan, unless a process of the same job step has: that is as good.
 * [*taken] tells whether it was of another one, which writes nothing there any more.
 * GS_ERR_STATE: another job has it; GS_ERR_IO; GS_ERR_NOMEM.
 */
gs_status_t gsi_lock_take (const char *caller, const char *dir, struct gsi_lock **lock,
                           bool *taken);

/*
 * Looks whether the folder is still of this job step; takes it again if it is nobody's, [*taken]
 * as above. GS_ERR_STATE: another job has it, and it stays lost; GS_ERR_IO.
 */
gs_status_t gsi_lock_look (const char *caller, struct gsi_lock *lock, bool *taken);

/* Its id if this process has made it; if not, one that no other process has either. */
const char *gsi_lock_id (const struct gsi_lock *lock);

/* Whether another job was found to have taken it. */
bool gsi_lock_is_lost (struct gsi_lock *lock);

/* One plan less; the last one removes the lock. NULL is allowed. */
void gsi_lock_drop (struct gsi_lock *lock);

/* What the thread does every 10 s: touches what is of this job step, also where the process that
 * made it has died, and notes if it is not any more. */
void gsi_lock_beat (struct gsi_lock *lock);

/* Whether the lock in [folder], a descriptor, has this id or is of this job step. */
bool gsi_lock_is (int folder, const char *id);

#endif /* GS_CKPT_FOLDER_LOCK_H */
