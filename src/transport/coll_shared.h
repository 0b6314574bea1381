/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_shared - what the files of the transport between ranks that share GPUs have in common. */
#ifndef GS_COLL_COLL_SHARED_H
#define GS_COLL_COLL_SHARED_H

#include <pthread.h>

#include "transport/coll.h"
#include "transport/gpu_group.h"

#define GSI_BOUNCES 2 /* pieces under way: one on the bus, one between the hosts */

/* Pinned memory that arrays of the GPU go through on their way between hosts. */
struct gsi_bounce {
    char *memory; /* [bytes], NULL: none yet */
    size_t bytes;
    struct gsi_event *fetched, *returned; /* it has what was on the GPU, the GPU what it had */
};

struct gsi_coll_shared {
    struct gsi_coll base;
    struct gsi_coll *hosts;      /* the transport between the hosts, for all ranks */
    struct gsi_gpu_group *group; /* of this rank's GPU; NULL: all goes by way of the hosts */
    struct gsi_device *host;
    const struct gsi_device *device;
    const struct gsi_stream_ops *queue; /* of [device]; NULL: this rank has no GPU */
    int rank, size;
    gs_stream_t stream;       /* by which arrays leave the GPU */
    struct gsi_event *before; /* what the caller's stream had to do before the call */
    struct gsi_bounce bounce[GSI_BOUNCES];
    size_t *length; /* [4 * size] places and lengths of a part of an alltoallv */

    pthread_mutex_t inside; /* [hosts] is used by one thread at a time */
    uint64_t seq, message;  /* the last call that ranks meet in on [hosts]; 0: it was queued */
    uint64_t broken;        /* one of them that failed here, so that others wait in it; 0: none */
    bool ended;             /* with all ranks: nothing of it is left but memory */
    atomic_bool gave_up;    /* the others are told, or will be by who is inside */
    atomic_bool must_tell;
    atomic_flag said;
    struct gsi_ending ending; /* before must_tell: what the first to give up says */
};

/* Whether the arrays of [call] are in memory of the host. */
static inline bool gsi_shared_on_host (const struct gsi_coll_shared *c,
                                       const struct gsi_call *call)
{
    return !c->queue || call->staged;
}

/*
 * Whether [call] hands its arrays to the hosts as they are: on all ranks alike, so not where some
 * ranks have no GPU, and others may have their arrays on theirs, which go in pieces.
 */
static inline bool gsi_shared_whole (const struct gsi_coll_shared *c, const struct gsi_call *call)
{
    return call->staged && !c->base.mixed;
}

/* coll_shared_ops.c: the operations, by way of the hosts, and coll_shared_pieces.c: alltoallv and
 * messages. */
gs_status_t gsi_shared_allreduce (struct gsi_coll *coll, void *buf, size_t count,
                                  const struct gsi_reduction *how, const struct gsi_call *call);
gs_status_t gsi_shared_broadcast (struct gsi_coll *coll, void *buf, size_t bytes, int root,
                                  const struct gsi_call *call);
gs_status_t gsi_shared_allgather (struct gsi_coll *coll, const void *send, void *recv,
                                  size_t bytes, const struct gsi_call *call);
gs_status_t gsi_shared_alltoallv (struct gsi_coll *coll, const struct gsi_alltoallv *x,
                                  const struct gsi_call *call);
gs_status_t gsi_shared_reduce_scatter (struct gsi_coll *coll, const void *send, void *recv,
                                       size_t count, const struct gsi_reduction *how,
                                       const struct gsi_call *call);
gs_status_t gsi_shared_reduce_scatterv (struct gsi_coll *coll, const void *send, const size_t *at,
                                        const size_t *count, void *recv,
                                        const struct gsi_reduction *how,
                                        const struct gsi_call *call);
gs_status_t gsi_shared_reduce (struct gsi_coll *coll, const void *send, void *recv, size_t count,
                               const struct gsi_reduction *how, int root,
                               const struct gsi_call *call);
gs_status_t gsi_shared_messages (struct gsi_coll *coll, struct gsi_message *list, int number,
                                 const struct gsi_call *call);
gs_status_t gsi_shared_barrier (struct gsi_coll *coll, const struct gsi_call *call);

/*
 * The transport between hosts is used between these; enter fails if this rank has given up, and
 * at the deadline of [call] if another thread is inside. Leave adds up what was sent and returns
 * [st]. A call that is queued instead says so: no rank waits in the transport between hosts then.
 */
gs_status_t gsi_shared_enter (struct gsi_coll_shared *c, const struct gsi_call *call);
gs_status_t gsi_shared_leave (struct gsi_coll_shared *c, gs_status_t st);
void gsi_shared_queued (struct gsi_coll_shared *c);

/* coll_shared_sums.c: whether the groups do this sum; it is queued. */
bool gsi_shared_sums (const struct gsi_coll_shared *c, const struct gsi_reduction *how,
                      const struct gsi_call *call);
gs_status_t gsi_shared_sum (struct gsi_coll_shared *c, void *buf, size_t count,
                            const struct gsi_reduction *how, const struct gsi_call *call);

/* coll_shared_bounce.c: frees what there is; a bounce of [bytes] that nobody uses any more. */
void gsi_bounce_close (struct gsi_coll_shared *c);
gs_status_t gsi_bounce_take (struct gsi_coll_shared *c, int turn, size_t bytes,
                             const struct gsi_call *call);

/* What [call]'s stream has to do before it; the work of this rank's stream waits for it. */
gs_status_t gsi_bounce_begin (struct gsi_coll_shared *c, const struct gsi_call *call);

/*
 * Copies to a bounce are queued, then waited for; from it they are queued on the call's stream.
 * Of arrays on hosts they have been made when these return.
 */
gs_status_t gsi_bounce_fetch (struct gsi_coll_shared *c, int turn, size_t at, const void *from,
                              size_t bytes, const struct gsi_call *call);
gs_status_t gsi_bounce_fetched (struct gsi_coll_shared *c, int turn, const struct gsi_call *call);
gs_status_t gsi_bounce_await (struct gsi_coll_shared *c, int turn, const struct gsi_call *call);
gs_status_t gsi_bounce_return (struct gsi_coll_shared *c, int turn, size_t at, void *to,
                               size_t bytes, const struct gsi_call *call);
gs_status_t gsi_bounce_returned (struct gsi_coll_shared *c, int turn,
                                 const struct gsi_call *call);

#endif /* GS_COLL_COLL_SHARED_H */
