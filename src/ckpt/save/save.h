/* SPDX-License-Identifier: BSD-3-Clause */
/* save - a checkpoint that is being written: by a thread, while the caller may go on. */
#ifndef GS_CKPT_SAVE_SAVE_H
#define GS_CKPT_SAVE_SAVE_H

#include "ckpt/save/flow.h"
#include "ckpt/save/pieces.h"
#include "ckpt/format/block_crc.h"

#define GSI_PIECE_BYTES  ((size_t) 1 << 20) /* whose checksum is taken in the cache */
#define GSI_PIECE_DIRECT ((size_t) 8 << 20) /* the same with O_DIRECT */

struct gsi_save;

/* What a rank does with files. It calls neither HDF5, nor GPUs, nor other ranks. */
typedef gs_status_t (*gsi_save_work_f) (struct gsi_save *save);

struct gsi_save {
    struct gsi_save *left; /* another one that a thread still has */
    gs_ckpt_t *c;
    int64_t step;
    struct gsi_path sealed, path; /* of the coming files: that will be sealed, is written to */
    struct gsi_pieces pieces;
    struct gsi_flow flow;
    const char *caller;    /* of a take, */
    struct gsi_lock *lock; /* and what is dropped */
    gsi_save_work_f work;  /* of the worker, a thread for each of them; it ends the flow */
    pthread_t worker, stager;
    bool has_worker, has_stager;
    bool sealing; /* the parts of all ranks are on disk */
    bool beside;  /* the program goes on meanwhile */
    int64_t begin_ns;
};

/* Makes the coming file, if need be in a folder; or that of this node. */
gs_status_t gsi_save_make (struct gsi_save *save);
gs_status_t gsi_save_make_part (struct gsi_save *save);

/* writer.c: writes all pieces, to disk. */
gs_status_t gsi_save_write (struct gsi_save *save);

/* finish.c, on rank 0: seals what all ranks have written, and makes it a checkpoint. */
gs_status_t gsi_save_seal (struct gsi_save *save);

/* finish.c. Collective: gs_compare, whose texts name [caller], which the program knows of. */
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

#endif /* GS_CKPT_SAVE_SAVE_H */
