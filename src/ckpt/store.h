/* SPDX-License-Identifier: BSD-3-Clause */
/* store - the folder of checkpoints: names, and what becomes of files. One rank uses it. */
#ifndef GS_CKPT_STORE_H
#define GS_CKPT_STORE_H

#include "ckpt/ckpt.h"

/* The path of a step's file, complete or, if [coming], not yet; to be freed. NULL: no memory. */
char *gsi_store_path (const gs_ckpt_t *c, int64_t step, bool coming);

/* The steps that there are files of, oldest first; to be freed. GS_ERR_IO, GS_ERR_NOMEM. */
gs_status_t gsi_store_list (const gs_ckpt_t *c, int64_t **steps, size_t *number);

/* Removes files of jobs that have died while they wrote; what fails is logged. */
void gsi_store_sweep (const gs_ckpt_t *c);

/* Makes the coming file of [step], with its beginning and its length. GS_ERR_STATE, _IO. */
gs_status_t gsi_store_begin (const gs_ckpt_t *c, int64_t step, const char *coming);

/* Puts the coming file, all of which is on disk, in its place. */
gs_status_t gsi_store_publish (const gs_ckpt_t *c, int64_t step, const char *coming);

/* Removes what the options do not hold of the steps up to [step]; what fails is logged. */
void gsi_store_retain (const gs_ckpt_t *c, int64_t step);

#endif /* GS_CKPT_STORE_H */
