/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pieces - what a rank sees to in a save, in the order in which it does: first what it writes,
 * then, of replicated arrays, what it only holds against the other ranks' by its digest.
 */
#ifndef GS_CKPT_SAVE_PIECES_H
#define GS_CKPT_SAVE_PIECES_H

#include "ckpt/plan/plan.h"

struct gsi_pieces {
    const gs_ckpt_t *c;
    gs_ckpt_compare_t digests; /* of replicated arrays: of all, a sample, or none */
    int64_t step;              /* which samples differ with */
    size_t most;               /* bytes of a piece; a multiple of 8 */
    size_t room; /* of a ring that no piece goes beyond the end of; 0: there is none */
};

/* Bytes that follow each other in an array. */
struct gsi_piece {
    int array;
    size_t at, bytes;                /* in the array */
    const struct gsi_region *region; /* (ours) where they go; NULL of others */
    uint64_t offset;                 /* in it */
    uint64_t pos;                    /* among all the pieces' bytes */
};

typedef gs_status_t (*gsi_piece_f) (void *context, const struct gsi_piece *piece);

/* Calls [each] for the pieces; ends at the first failure, which it returns. */
gs_status_t gsi_pieces_each (const struct gsi_pieces *how, gsi_piece_f each, void *context);

/* Where the last of them ends. */
uint64_t gsi_pieces_total (const struct gsi_pieces *how);

/* What a piece, whose bytes are at [data], adds to the digest of its array. */
uint64_t gsi_pieces_digest (const struct gsi_pieces *how, const struct gsi_piece *piece,
                            const void *data);

#endif /* GS_CKPT_SAVE_PIECES_H */
