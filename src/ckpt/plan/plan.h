/* SPDX-License-Identifier: BSD-3-Clause */
/* plan - what a plan knows: of what was added, and of the file. */
#ifndef GS_CKPT_PLAN_PLAN_H
#define GS_CKPT_PLAN_PLAN_H

#include <limits.h>
#include <stdbool.h>

#include "ckpt/format/metadata.h"
#include "ckpt/format/region.h"
#include "feature/feature.h"
#include "stop/stop.h"

#define GSI_CKPT_MAGIC 0x67734350

/* The path of a file in the folder of a plan: that is not longer than the system takes. */
struct gsi_path {
    char text[PATH_MAX + 128];
};

enum gsi_ckpt_kind { GSI_CKPT_REPLICATED, GSI_CKPT_SHARDED, GSI_CKPT_PER_RANK };

/* An array that was added. Its data set has the same number. */
struct gsi_ckpt_array {
    const char *name; /* in the path of its data set */
    enum gsi_ckpt_kind kind;
    gs_dtype_t dtype;
    int dims;
    struct gsi_block block;           /* (sharded) of this rank */
    uint64_t shape[GS_CKPT_DIMS_MAX]; /* of the whole; (per rank) of what each rank has */
    void *data;
    size_t count; /* elements at data */
    bool on_gpu;
    bool filled; /* by the last read */
};

/* Where arrays are copied to, so that the program may change them. */
struct gsi_save_staging {
    void *ring; /* [room], pinned on GPUs */
    size_t room;
    gs_stream_t stream;               /* (GPUs) of the copies, */
    struct gsi_event *ready, *copied; /* before the first, and behind the last ones */
    bool keep;                        /* a copy may still be under way */
};

/* The files of a save, before they have their names. */
struct gsi_coming {
    char id[17]; /* in their names, of the lock: no other process has it */
    int folder;  /* (rank 0) of the checkpoints, open: what is made, renamed and removed is in it
                  */
    int top;     /* (rank 0) the file or folder that gets the name; -1 */
    int main_file;   /* (rank 0) that with the trailer; -1 */
    uint64_t number; /* inodes; of the first of these, on rank 0; */
    uint64_t told;   /* what the others know of it: 0, where nodes may see other ones; */
    uint64_t part;   /* and of the file of this node, which its ranks see alike */
    uint64_t *parts; /* [2 * size] room to hear of that */
};

struct gsi_remover;
struct gsi_save;

struct gs_ckpt {
    uint32_t magic;
    gs_comm_t *comm;
    int rank, size;
    int64_t timeout_ns; /* of the communicator, which may be gone before a thread comes back, */
    char host[72], first_host[72]; /* and where this rank and rank 0 are */
    struct gsi_client client;
    gs_ckpt_opts_t opts;
    char *given, *dir; /* the folder as it was named, and by its absolute path */
    bool committed;

    /* On rank 0 of a plan that is committed and writes: of the folder, and for files in it. */
    struct gsi_lock *lock;
    struct gsi_remover *remover;
    struct gsi_stop stop;
    struct gsi_coming coming;
    int64_t *damaged; /* [damages] steps that could not be read, and were not saved since */
    size_t damages;

    int arrays, room;
    struct gsi_ckpt_array *array;
    struct gsi_h5_grid grid; /* of all fields */

    /* The files, from the commit on. The main file has a data set for each array, and
     * those of [metadata]; it is the only one, or it tells of parts, one for each node. */
    struct gsi_h5_set *set; /* [room + GSI_METADATA_SETS] */
    struct gsi_metadata metadata;
    struct gsi_h5_image main_file, mine; /* and that of this node's part, on its first rank */
    int nodes, node;                     /* 0 and 0: there are no parts */
    struct gsi_region *region; /* [regions] of the data, those of an array behind each other */
    size_t regions, *first_region; /* [arrays + 1] */
    int writer, writers; /* of replicated arrays: the number of this rank, -1 if it is none */
    uint32_t *raw;       /* [metadata.blocks] room for checksums of what this rank has of them, */
    uint8_t *bits;       /* [32 * metadata.blocks] and for their exclusive or */
    uint64_t *digest; /* [3 * arrays] of replicated ones: this rank's, and room to compare them */

    struct gsi_save *save; /* that is under way */
    struct gsi_save *hung; /* that was given up while the system still has its thread */
    struct gsi_save_staging staging;
};

/* What a plan must be for a call. */
enum gsi_ckpt_need {
    GSI_CKPT_ANY,
    GSI_CKPT_OPEN, /* not committed */
    GSI_CKPT_COMMITTED,
    GSI_CKPT_WRITABLE /* committed, and not read_only */
};

/* GS_OK if [ckpt] is such a plan; else GS_ERR_ARG or GS_ERR_STATE, naming [caller]. */
gs_status_t gsi_ckpt_check (const gs_ckpt_t *ckpt, const char *caller, enum gsi_ckpt_need need);

/* The number of an array of a plan that is not committed: GS_ERR_ARG, GS_ERR_STATE. */
gs_status_t gsi_ckpt_find (const gs_ckpt_t *ckpt, const char *caller, const char *name, int *i);

/* Until when this rank may wait for a file system alone: the others wait for it longer. */
int64_t gsi_ckpt_until_ns (const gs_ckpt_t *ckpt);

/* After how long ranks that wait for file systems tell each other that they are still there. */
int64_t gsi_ckpt_slice_ns (const gs_ckpt_t *ckpt);

/* ---- Which elements are whose ---- */

/* All of array [i], of [ranks] if it is one per rank; [mine] is empty. */
void gsi_array_view_open (const gs_ckpt_t *c, int i, uint64_t ranks, struct gsi_array_view *view);

/* What this rank writes of it; and what it reads, of one per rank what rank [slot] has written.
 */
void gsi_array_view_to_write (const gs_ckpt_t *c, int i, struct gsi_array_view *view);
void gsi_array_view_to_read (const gs_ckpt_t *c, int i, uint64_t ranks, int slot,
                             struct gsi_array_view *view);

/* Elements of a replicated array that is shared out to [number]: of the one of [index], in turns
 * by array. */
void gsi_array_view_share (const gs_ckpt_t *c, int i, int index, int number, size_t *begin,
                           size_t *count);

#endif /* GS_CKPT_PLAN_PLAN_H */
