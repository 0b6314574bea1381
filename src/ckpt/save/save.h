/* SPDX-License-Identifier: BSD-3-Clause */
/* save - a checkpoint that is being written: by a thread, while the caller may go on. */
#ifndef GS_CKPT_SAVE_SAVE_H
#define GS_CKPT_SAVE_SAVE_H

#include "ckpt/save/flow.h"
#include "ckpt/plan/plan.h"
#include "ckpt/format/block_crc.h"

/*
 * Pieces, in pieces.c: what a rank sees to in a save, in the order in which it does: first what
 * it writes, then, of replicated arrays, what it only holds against the other ranks' by its
 * digest.
 */

struct gsi_save_pieces {
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

/* Calls [each], unless it is NULL, for the pieces; ends at the first failure, which it returns.
 * [*total], if asked for, is where the last of them ends. */
gs_status_t gsi_save_pieces_each (const struct gsi_save_pieces *how, gsi_piece_f each,
                                  void *context, uint64_t *total);

/* What a piece, whose bytes are at [data], adds to the digest of its array. */
uint64_t gsi_save_pieces_digest (const struct gsi_save_pieces *how, const struct gsi_piece *piece,
                                 const void *data);

#define GSI_PIECE_BYTES  ((size_t) 1 << 20) /* whose checksum is taken in the cache */
#define GSI_PIECE_DIRECT ((size_t) 8 << 20) /* the same with O_DIRECT */

struct gsi_save;

/* What a rank does with files. It calls neither HDF5, nor GPUs, nor other ranks. */
typedef gs_status_t (*gsi_save_work_f) (struct gsi_save *save);

struct gsi_save {
    struct gsi_save *left; /* another one that a thread still has */
    gs_ckpt_t *c;
    int64_t step;
    struct gsi_path main_file, path; /* of the coming files: the main one, that written to */
    struct gsi_save_pieces pieces;
    struct gsi_flow flow;
    const char *caller;    /* of a take, */
    struct gsi_lock *lock; /* and what is dropped */
    gsi_save_work_f work;  /* of the worker, a thread for each of them; it ends the flow */
    pthread_t worker, stager;
    bool has_worker, has_stager;
    bool completing; /* the parts of all ranks are on disk */
    bool beside;     /* the program goes on meanwhile */
    int64_t begin_ns;
};

/* writer.c: writes all pieces, to disk. */
gs_status_t gsi_save_write (struct gsi_save *save);

/* finish.c, on rank 0: completes what all ranks have written, and makes it a checkpoint. */
gs_status_t gsi_save_complete (struct gsi_save *save);

/* finish.c: logs on rank 0 that it is on disk. */
void gsi_save_log (const struct gsi_save *save);

/* finish.c. Collective: gs_arrays_compare, whose texts name [caller], which the program knows of.
 */
gs_status_t gsi_save_compare (const char *caller, gs_comm_t *comm, const gs_array_t *arrays,
                              size_t number, gs_stream_t stream);

/* write.c. Collective: gsi_store_take on rank 0, and whoever has the lock of a plan drops it: in
 * a thread, as all of a save. False: the file system has that thread, which goes on alone. */
gs_status_t gsi_save_take (gs_ckpt_t *c, const char *caller);
bool gsi_save_drop (const gs_ckpt_t *c);

/* write.c: whether the system has given back the thread of a save that was given up. */
bool gsi_save_come_back (gs_ckpt_t *c);

/* finish.c. Collective: when the parts of all ranks are on disk, looks how it went, and whether
 * replicas are that; rank 0 has the checksums of all blocks. */
gs_status_t gsi_save_settle (struct gsi_save *s, const char *caller, gs_stream_t stream);

/* ---- Copies of the arrays, that the writer reads while the program goes on, in stage.c ---- */

/* Has a ring of [room] bytes ready, pinned on GPUs, and a stream of its own there. */
gs_status_t gsi_stage_prepare (gs_ckpt_t *c, size_t room);
void gsi_stage_release (gs_ckpt_t *c);

/* From here on [stream] has made what is to be copied. */
gs_status_t gsi_stage_follow (const gs_ckpt_t *c, gs_stream_t stream);

/* Copies all pieces into the ring, as room comes; what fails, the flow is told. The thread's. */
void *gsi_stage_all (void *save);

#endif /* GS_CKPT_SAVE_SAVE_H */
