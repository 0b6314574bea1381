/* SPDX-License-Identifier: BSD-3-Clause */
/* save - a checkpoint that is being written: by a thread, while the caller may go on. */
#ifndef GS_CKPT_SAVE_H
#define GS_CKPT_SAVE_H

#include "ckpt/flow.h"
#include "ckpt/pieces.h"
#include "ckpt/tally.h"

#define GSI_PIECE_BYTES  ((size_t) 1 << 20) /* whose checksum is taken in the cache */
#define GSI_PIECE_DIRECT ((size_t) 8 << 20) /* the same with O_DIRECT */

struct gsi_save {
    gs_ckpt_t *c;
    int64_t step;
    char *sealed, *path; /* of the coming files: that which will be sealed, and is written to */
    struct gsi_pieces pieces;
    struct gsi_flow flow;
    pthread_t writer, stager;
    bool has_writer, has_stager;
    bool beside; /* the program goes on meanwhile */
    int64_t begin_ns;
};

/* writer.c: the work of the thread: writes all pieces, and ends the flow. */
void *gsi_save_write (void *save);

/* finish.c. Collective: gs_compare, whose texts name [caller], which the program knows of. */
gs_status_t gsi_save_compare (const char *caller, gs_comm_t *comm, const gs_array_t *arrays,
                              size_t number, gs_stream_t stream);

/* write.c: whether the system has given back the thread of a save that was given up. */
bool gsi_save_come_back (gs_ckpt_t *c);

/* finish.c. Collective: when the writers of all ranks have ended, looks how it went, and makes
 * the file a checkpoint. */
gs_status_t gsi_save_finish (struct gsi_save *s, const char *caller, gs_stream_t stream);

#endif /* GS_CKPT_SAVE_H */
