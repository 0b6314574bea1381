/* SPDX-License-Identifier: BSD-3-Clause */
/* ckpt - what a plan knows: of what was added, and of the file. */
#ifndef GS_CKPT_CKPT_H
#define GS_CKPT_CKPT_H

#include <stdbool.h>

#include "ckpt/h5.h"
#include "ckpt/seal.h"
#include "comm/block.h"
#include "comm/feature.h"

#define GSI_CKPT_MAGIC 0x67734350

enum gsi_ckpt_kind { GSI_CKPT_REPLICATED, GSI_CKPT_SHARDED, GSI_CKPT_PER_RANK };

/* An array that was added. Its data set has the same number. */
struct gsi_ckpt_array {
    char *name;
    enum gsi_ckpt_kind kind;
    gs_dtype_t dtype;
    int dims;
    struct gsi_block block;           /* (sharded) of this rank */
    uint64_t shape[GS_CKPT_DIMS_MAX]; /* of the whole; (per rank) of what each rank has */
    void *data;
    size_t count; /* elements at data */
    bool on_gpu;
};

struct gs_ckpt {
    uint32_t magic;
    gs_comm_t *comm;
    int rank, size;
    struct gsi_tenant tenant;
    gs_ckpt_opts_t opts;
    char *dir;
    bool committed;

    int64_t damaged[2]; /* a read of the newest has found the steps from here to there damaged */

    int arrays, room;
    struct gsi_ckpt_array *array;

    /* The file, from the commit on: a data set for each array, then those of GSI_SET_*. */
    struct gsi_h5_set *set; /* [room + GSI_OWN_SETS] */
    bool has_own_sets;
    void *image; /* [image_bytes] with which each file begins */
    size_t image_bytes;
    uint64_t file_bytes;
    struct gsi_seal_block *block; /* [blocks] of the data, */
    size_t blocks;
    size_t *first; /* [arrays] of which each array's begin here */
    uint32_t *raw; /* [blocks] room for checksums of what this rank has of them, */
    uint8_t *bits; /* [32 * blocks] and for their exclusive or */
};

/* Data sets of our own, behind those of the arrays. */
enum gsi_ckpt_own { GSI_SET_STEP, GSI_SET_TIME, GSI_SET_RANKS, GSI_SET_BLOCKS, GSI_SET_SEAL };
#define GSI_OWN_SETS 5

/* GS_OK if [ckpt] is a plan; else GS_ERR_ARG or GS_ERR_STATE, naming [caller]. */
gs_status_t gsi_ckpt_valid (const gs_ckpt_t *ckpt, const char *caller);

/* The same for one that is committed. */
gs_status_t gsi_ckpt_ready (const gs_ckpt_t *ckpt, const char *caller);

/* commit.c: gives back what a commit has made. */
void gsi_ckpt_undo (gs_ckpt_t *ckpt);

#endif /* GS_CKPT_CKPT_H */
