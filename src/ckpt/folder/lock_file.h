/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock_file - DIR/.gs-lock, by which jobs that write to one folder of checkpoints stay apart.
 *
 * It is made by a link, which one of several succeeds with, also over NFS. Who takes it from a
 * job that has ended first makes a file named after that very lock, .gs-lock.ID.0, and looks
 * again; so one does it, and never to the lock of a third who was faster. Its age is told by
 * times that the file system has given, whatever the clocks of hosts say.
 *
 * One thread at a time uses such a file.
 */
#ifndef GS_CKPT_FOLDER_LOCK_FILE_H
#define GS_CKPT_FOLDER_LOCK_FILE_H

#include <stdatomic.h>

#include "ckpt/folder/lock_owner.h"
#include "gradsync.h"

#define GSI_LOCK_NAME ".gs-lock"

struct gsi_lock_file {
    char *dir;               /* as it was given, for texts */
    char *path;              /* of the lock; whatever becomes of the working folder */
    char *own;               /* room for the name of a file that becomes the lock, */
    char *claim;             /* and for one that says who takes it from another */
    struct gsi_holder self;  /* what the lock says that is ours, */
    struct gsi_holder fresh; /* and what the next one will */
    bool ours;               /* the lock of [self] was made */
    bool took;               /* a look has taken it from another job step */
    bool warned;             /* it cannot be touched */
    atomic_bool lost;        /* then another job has taken it, */
    char who[512];           /* this one */
};

/* Knows the folder, and makes no file. GS_ERR_IO, GS_ERR_NOMEM. */
gs_status_t gsi_lock_file_open (struct gsi_lock_file *f, const char *dir);
void gsi_lock_file_close (struct gsi_lock_file *f);

/*
 * Makes or takes the lock, unless it is of the same job step: that is as good. [*taken] tells
 * whether it was of another one, and what that has left can go. GS_ERR_STATE: another job has it;
 * GS_ERR_IO.
 */
gs_status_t gsi_lock_file_take (struct gsi_lock_file *f, const char *caller, bool *taken);

/*
 * Looks whether the job step still has it, and makes it again if nobody has. GS_ERR_STATE:
 * another job has taken it, and it stays lost; GS_ERR_IO.
 */
gs_status_t gsi_lock_file_look (struct gsi_lock_file *f, const char *caller);

/* Whether the lock in [folder], a descriptor, has this id or is of this job step. */
bool gsi_lock_file_is (int folder, const char *id);

/* Touches what is ours, and notes if it is not any more. */
void gsi_lock_file_beat (struct gsi_lock_file *f);

/* Removes it, if it is ours. */
void gsi_lock_file_leave (struct gsi_lock_file *f);

#endif /* GS_CKPT_FOLDER_LOCK_FILE_H */
