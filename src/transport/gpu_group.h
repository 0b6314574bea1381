/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu_group - the ranks that have one GPU: they meet in memory of it, and one of them, the
 * leader, takes part in NCCL for all.
 *
 * The leader has the memory, the room: for each of two turns a slot for each rank, one for the
 * sums, and one for the result. Streams wait for flags in memory of the host that all have.
 */
#ifndef GS_COLL_GPU_GROUP_H
#define GS_COLL_GPU_GROUP_H

#include <pthread.h>

#include "base/memfd.h"
#include "transport/coll.h"

#define GSI_GROUP_TURNS 2

/*
 * The flags of each rank of the group for each turn, 0 or 1. A rank fills its slot again behind
 * the result of the turn before, in its stream: so the slot has been read by then, and where it
 * is full again the result has been taken.
 */
enum gsi_group_flag {
    GSI_GROUP_FULL,  /* its slot is; the leader's streams wait for it */
    GSI_GROUP_READY, /* the result is there; the rank's streams wait for it */
    GSI_GROUP_FLAGS
};

#define GSI_GROUP_STRIDE 16 /* flags from one rank's to the next: a line of memory */

/* What the leader looks at before it frees memory that this one has mapped. */
struct gsi_group_process {
    int64_t pid; /* 0: it has never mapped it */
    uint64_t start, space;
};

struct gsi_gpu_group {
    int size, place; /* ranks, in their order; the leader has place 0 */
    struct gsi_memfd shm;
    bool pinned;
    bool stuck;                        /* a stream may wait for a flag in vain */
    uint32_t *flags;                   /* [GSI_GROUP_FLAGS][GSI_GROUP_TURNS][size], each
                                        * GSI_GROUP_STRIDE apart; NULL: not there, or no more */
    uint32_t *dead;                    /* [size], likewise: that rank has given up, */
    uint32_t *released;                /* [size], likewise: and its streams go on */
    uint32_t *parted;                  /* [size], likewise: it has not mapped the room any more */
    struct gsi_group_process *process; /* [size] */
    char *room;
    size_t slot_bytes;

    int *leader; /* [groups] ranks, in their order */
    struct gsi_memfd watch;
    const atomic_uint_fast64_t *told; /* (no leader) whether leaders give up; NULL: one group */

    struct gsi_coll *leaders; /* between those of all groups; NULL on others, or for one group */
    struct gsi_topo topo;     /* of the leaders, on all ranks */
    gs_stream_t net;          /* what the leader does behind a sum of its group */
    struct gsi_event *summed[GSI_GROUP_TURNS], *done[GSI_GROUP_TURNS], *before;
    int turn;       /* the next one, the same on all ranks */
    bool exchanged; /* the leaders have what they need for sums that NCCL cannot do; likewise */

    pthread_mutex_t guard; /* the flags, against who gives up; and these: */
    bool gave_up, ending;  /* [leaders] is being closed */
    bool waited;           /* NCCL's abort has been waited for, and the flags are released */
    int tellers;           /* threads that give up */
};

static inline uint32_t *gsi_group_flag (const struct gsi_gpu_group *g, enum gsi_group_flag kind,
                                        int turn, int place)
{
    size_t row = (size_t) kind * GSI_GROUP_TURNS + (size_t) turn;

    return g->flags + (row * (size_t) g->size + (size_t) place) * GSI_GROUP_STRIDE;
}

/* That of the rank at [place] in [flags], which is dead or parted. */
static inline uint32_t *gsi_group_mark (uint32_t *flags, int place)
{
    return flags + (size_t) place * GSI_GROUP_STRIDE;
}

/* Slot [i] of a turn: of the rank at that place, then the sums, then the result. */
static inline char *gsi_group_slot (const struct gsi_gpu_group *g, int turn, int i)
{
    return g->room + ((size_t) turn * (size_t) (g->size + 2) + (size_t) i) * g->slot_bytes;
}

/* The memory that an open works in, made before ranks wait for each other; NULL: there is none.
 */
struct gsi_group_opening;
struct gsi_group_opening *gsi_gpu_group_prepare (int size);
void gsi_gpu_group_unprepare (struct gsi_group_opening *o); /* NULL is allowed */

/*
 * Both are collective, by allgathers of [hosts], the transport between all ranks. Meet tells the
 * others how it went here, [st]; a failure is one of [hosts], or on all ranks the same: that a
 * rank had one, or that they were told different things; [mixed]: a rank has no GPU. Then open
 * makes the groups: NULL in
 * [out], on all ranks alike, with the reason as text in [why], if one could not: then all goes by
 * way of the hosts. A failure is one of [hosts].
 */
gs_status_t gsi_gpu_group_meet (struct gsi_group_opening *o, const struct gsi_coll_setup *setup,
                                struct gsi_coll *hosts, gs_status_t st, bool *mixed);
gs_status_t gsi_gpu_group_open (struct gsi_group_opening *o, struct gsi_gpu_group **out,
                                char *why, size_t room);

/*
 * Collective, by [hosts]: ends what open has made, if all goes well; discard follows in any case.
 * What is behind flags of a rank that gives up meanwhile stays.
 */
gs_status_t gsi_gpu_group_close (struct gsi_gpu_group *g, const struct gsi_device *device,
                                 struct gsi_coll *hosts, const struct gsi_call *call);

/*
 * This rank gives up: what its streams wait for is there, and does nothing any more. Any thread,
 * also beside close.
 */
void gsi_gpu_group_abort (struct gsi_gpu_group *g, const struct gsi_ending *how);

/* What begins it: nothing that this rank has queued writes where other ranks read. */
void gsi_gpu_group_die (struct gsi_gpu_group *g);

/* The same, and what leaders hand on is no result: silence of struct gsi_coll_ops. */
void gsi_gpu_group_silence (struct gsi_gpu_group *g, const struct gsi_ending *how);

/* gave_up and find_gone of struct gsi_coll_ops. */
enum gsi_gave_up gsi_gpu_group_gave_up (const struct gsi_gpu_group *g, struct gsi_ending *how);
void gsi_gpu_group_find_gone (const struct gsi_gpu_group *g, unsigned char *gone);

/* Frees what is this rank's; NULL is allowed. What graphs that were [captured] may use is kept
 * unless close went well. */
void gsi_gpu_group_discard (struct gsi_gpu_group *g, const struct gsi_device *device,
                            bool captured);

#endif /* GS_COLL_GPU_GROUP_H */
