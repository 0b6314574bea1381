/* SPDX-License-Identifier: BSD-3-Clause */
/* store - the folder of checkpoints: names, and what becomes of files. One rank uses it. */
#ifndef GS_CKPT_FOLDER_STORE_H
#define GS_CKPT_FOLDER_STORE_H

#include "ckpt/plan/plan.h"

#define GSI_COMING ".tmp" /* the end of the name of what is not complete, or to be removed */
#define GSI_OLD    ".old" /* of a folder that a new one takes the place of */

/* Makes it if the plan is to. GS_ERR_IO if there is no folder. */
gs_status_t gsi_store_check_folder (const gs_ckpt_t *c, const char *caller);

/* On the other ranks, when rank 0 has taken it: whether they see its lock. GS_ERR_IO. */
gs_status_t gsi_store_see (const gs_ckpt_t *c, const char *caller);

/* GS_ERR_IO, naming [what] and both hosts: this rank does not see what rank 0 has made. */
gs_status_t gsi_store_unseen (const gs_ckpt_t *c, const char *what);

/* Whether its file system keeps one file whole to which several nodes write, and is quick so. */
bool gsi_store_is_coherent (const gs_ckpt_t *c);

/* Whether it is one of those that are known, whose files have the same inode on all nodes. */
bool gsi_store_is_known (const gs_ckpt_t *c);

/* ---- Names, in names.c ---- */

/* DIR/ck-<step>, with [end]; that of one that is complete. */
struct gsi_path gsi_store_path (const gs_ckpt_t *c, int64_t step, const char *end);
const char *gsi_store_end_of (const gs_ckpt_t *c);

/* The step of a file or folder of ours, from its name; -1 of another one. [*coming] tells whether
 * it is not complete. */
int64_t gsi_store_step_of (const char *name, bool *coming);

/* Paths of a step. */
enum gsi_store_what {
    GSI_STORE_TOP,  /* the file, or the folder of its files */
    GSI_STORE_MAIN, /* the file that gets the trailer: the only one, or the folder's index */
    GSI_STORE_PART  /* the file, or that of this node */
};
struct gsi_path gsi_store_coming (const gs_ckpt_t *c, int64_t step, enum gsi_store_what what);

/* The path of the main file of a step that is complete, as it is there, or would be. */
struct gsi_path gsi_store_find (const gs_ckpt_t *c, int64_t step);

/* The steps that there are checkpoints of, oldest first; to be freed. GS_ERR_IO, GS_ERR_NOMEM. */
gs_status_t gsi_store_list (const gs_ckpt_t *c, int64_t **steps, size_t *number);

/* ---- What becomes of them ---- */

/* Notes that a step could not be read, or is whole: what is damaged does not count among those
 * that are kept, and may be written again. */
void gsi_store_note (gs_ckpt_t *c, int64_t step, bool damaged);

/*
 * Takes the folder, unless the plan only reads; and removes files of jobs that have died while
 * they wrote. GS_ERR_STATE: another job has it; GS_ERR_IO, GS_ERR_NOMEM.
 */
gs_status_t gsi_store_take (gs_ckpt_t *c, const char *caller);

/* Looks whether the folder is still of this job step. GS_ERR_STATE, _IO. */
gs_status_t gsi_store_hold (const gs_ckpt_t *c);

/* Makes the coming file of [step], with its beginning and its length, if need be in a folder, and
 * keeps it open: gsi_store_end follows. GS_ERR_STATE, _IO. */
gs_status_t gsi_store_begin (gs_ckpt_t *c, int64_t step);

/* The same for the file of this node, in the folder of the inode [number], 0: any; closed. */
gs_status_t gsi_store_begin_part (gs_ckpt_t *c, int64_t step, uint64_t number);

/* Removes what is coming. Its name is ours alone, whosever the folder is now. */
void gsi_store_give_up (gs_ckpt_t *c, int64_t step);

/* Puts what is coming, all of which is on disk, in its place. GS_ERR_STATE: another job has taken
 * the folder, before or meanwhile: it is not there, or may not stay. */
gs_status_t gsi_store_publish (gs_ckpt_t *c, int64_t step);

/* Closes what begin has opened; of any plan. */
void gsi_store_end (gs_ckpt_t *c);

/* After publication: removes what the options do not hold of the steps up to [step], and what
 * that has taken the place of, [beside] the program or now; what fails is logged. */
void gsi_store_tidy (const gs_ckpt_t *c, int64_t step, bool beside);

#endif /* GS_CKPT_FOLDER_STORE_H */
