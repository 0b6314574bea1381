/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_nccl - what the files of the NCCL transport share. */
#ifndef GS_COLL_COLL_NCCL_H
#define GS_COLL_COLL_NCCL_H

#include <nccl.h>
#include <pthread.h>

#include "base/memfd.h"
#include "transport/coll.h"
#include "transport/notices.h"

/* The functions that every NCCL from 2.18 on has; a program that never meets a GPU needs none. */
#define GSI_NCCL_FUNCTIONS(X) \
    X (GetVersion)            \
    X (GetUniqueId)           \
    X (CommInitRankConfig)    \
    X (CommFinalize)          \
    X (CommDestroy)           \
    X (CommAbort)             \
    X (CommSplit)             \
    X (CommGetAsyncError)     \
    X (GetErrorString)        \
    X (GetLastError)          \
    X (GroupStart)            \
    X (GroupEnd)              \
    X (AllReduce)             \
    X (Broadcast)             \
    X (AllGather)             \
    X (Reduce)                \
    X (ReduceScatter)         \
    X (Send)                  \
    X (Recv)

#define GSI_NCCL_GROUP 1024 /* ranks in a group of calls, two for each */

/* NCCL as it was loaded. */
struct gsi_nccl {
    int version; /* 22809 is 2.28.9 */
#define GSI_NCCL_MEMBER(name) __typeof__ (&nccl##name) name;
    GSI_NCCL_FUNCTIONS (GSI_NCCL_MEMBER)
#undef GSI_NCCL_MEMBER
    /* (2.23, else NULL) */
    ncclResult_t (*CommInitRankScalable) (ncclComm_t *comm, int size, int rank, int ids,
                                          ncclUniqueId *id, ncclConfig_t *config);
};

/* NCCL, once gsi_coll_nccl_load has succeeded. */
extern struct gsi_nccl gsi_nccl;

/*
 * coll_nccl_end.c: where the ranks of a node meet before NCCL ends the communicator. Each rank
 * makes a room, before it is known who is the node's first; that one's serves, and the others
 * join it. A room that nobody joins any more is hidden.
 */
struct gsi_nccl_teardown;
struct gsi_nccl_node {
    struct gsi_memfd shared;            /* none where the rank is alone */
    struct gsi_nccl_teardown *teardown; /* NULL: there is nobody to meet */
    int size;
    atomic_uint_fast64_t alone, *gave_up; /* the first to give up, in one word; 0: none */
};
void *gsi_nccl_node_make (struct gsi_memfd_handle *handle);
void gsi_nccl_node_unmake (void *room);
void gsi_nccl_node_part (struct gsi_nccl_node *node); /* none waits for others any more */
void gsi_nccl_node_join (struct gsi_nccl_node *node, void *room, int size, bool watched, bool own,
                         const struct gsi_memfd_handle *first);

/* From now on none of the node takes what ends for a result, because of [how]; whether so. */
void gsi_nccl_node_give_up (struct gsi_nccl_node *node, const struct gsi_ending *how);
enum gsi_gave_up gsi_nccl_node_gave_up (const struct gsi_nccl_node *node, struct gsi_ending *how);
const atomic_uint_fast64_t *gsi_nccl_node_watch (const struct gsi_memfd_handle *first,
                                                 struct gsi_memfd *shm);

/* coll_nccl_notice.c: how ranks of other nodes learn that this one gives up. */
struct gsi_nccl_notices {
    struct gsi_notices *net; /* NULL: they do not */
    pthread_mutex_t guard;   /* of it */
    pthread_mutex_t asking;  /* one thread at a time asks who is [here], or tells: */
    bool told;               /* that this one gives up */
    atomic_int greeted;      /* by ranks, and asked */
    int size, node, nodes, place;
    int *node_of;       /* [size] */
    int *ranks, *seen;  /* [nodes] that can be told; while they are gone through */
    atomic_bool *acked; /* [nodes] that this one gives up */
    atomic_bool *here;  /* [nodes] that have said anything since they were asked, */
    atomic_bool *met;   /* [nodes] or ever: there is a way to them */
};

/*
 * NCCL's communicator, which outlives the transport where a captured graph still holds operations
 * of it: NCCL's abort waits for that graph. It blocks, as PyTorch's do: NCCL then makes no thread
 * for each call (from 2.23 on), and no list of a thread is left behind (2.22 to 2.25). What may
 * wait for other ranks is called from a thread of ours, with a deadline.
 */
struct gsi_nccl_handle {
    ncclComm_t comm; /* NULL: not made yet; NCCL writes it, others load it atomically */
    struct gsi_device device;
    _Atomic (const struct gsi_device *) own; /* which [device] is a copy of; NULL: gone */

    atomic_int inside;    /* threads in a call of NCCL on it */
    atomic_bool starting; /* it is being made */
    atomic_bool ended;    /* no other call begins */
    atomic_bool stopped;  /* all who wait in it, here and on the GPU, are told to end */
    atomic_bool quiet;    /* the abort has the communicator to itself */
    atomic_int fate;      /* after an abort: coll_nccl_life.c */
    atomic_bool later;    /* NCCL frees it when others have no work */
    atomic_bool kept;     /* NCCL will never free it */
    atomic_bool gone;     /* that, or NCCL has freed it */
    atomic_int holders;
    struct gsi_nccl_node node;
    struct gsi_nccl_notices notices;
    struct gsi_ending ending; /* before its thread begins; */
    bool spoils;              /* something is under way then */

    struct gsi_shut shut;    /* coll_nccl_end.c alone */
    bool is_shut, finalized; /* before its thread begins */
};

struct gsi_coll_nccl {
    struct gsi_coll base;
    struct gsi_nccl_handle *handle;
    const struct gsi_device *device;
    const struct gsi_stream_ops *queue; /* of [device] */
    int rank, size;
    bool ordered;   /* GS_DETERMINISTIC: NCCL's own sums are in an order of its choice */
    bool exact;     /* f16 and bf16 are summed in fp32 */
    void *word;     /* device memory, what a barrier sums */
    void *space;    /* device memory, where the contributions to a shard meet; NULL: none yet */
    size_t *length; /* [4 * size] places and lengths of an alltoallv */
    struct gsi_nccl_rails *rails; /* or NULL: there are no sums between nodes in fp32 */
    double *scale;                /* [size] device memory, of a weighted sum */
    double *scale_pinned;         /* [scales] of them are there, once queued */
    int scales;
    struct gsi_event *space_free, *scale_free; /* when the last user of each has done with it */
};

/*
 * [card]: where this rank can be told that one gives up. Open is local, with all cards, [stride]
 * bytes from each other; close is for the last holder. hear takes in what has come: called now
 * and then by each rank. tell, before an abort: returns when a rank of each other node knows, and
 * has told its node, or after a second; once. ask: find_gone of struct gsi_coll_ops.
 */
void gsi_nccl_notices_prepare (const struct gsi_boot *boot, struct gsi_notice_card *card);
void gsi_nccl_notices_open (struct gsi_nccl_handle *h, const struct gsi_topo *topo,
                            const void *cards, size_t stride);
void gsi_nccl_notices_hear (struct gsi_nccl_handle *h);
void gsi_nccl_notices_tell (struct gsi_nccl_handle *h, const struct gsi_ending *how);
void gsi_nccl_notices_ask (struct gsi_nccl_handle *h, unsigned char *gone);
void gsi_nccl_notices_close (struct gsi_nccl_handle *h);

/* What every communicator is made with, into NCCL's defaults. */
void gsi_nccl_configure (ncclConfig_t *config);

/* The failure [rc] of [what] as a status, with NCCL's own words. */
gs_status_t gsi_nccl_fail (const char *what, ncclResult_t rc);

/*
 * A call of NCCL on the communicator is made between these. Enter gives NULL, which NCCL refuses,
 * once the communicator was ended; leave says what [rc] of [what] means. Both always.
 */
ncclComm_t gsi_nccl_enter (const struct gsi_coll_nccl *c);
gs_status_t gsi_nccl_leave (const struct gsi_coll_nccl *c, const char *what, ncclResult_t rc);

/*
 * Ends the communicator by force, without waiting: what runs is told to stop, and a thread of
 * ours frees it when nobody is inside and no graph holds it. Close does that too, if need be, and
 * waits a moment for it.
 */
void gsi_nccl_abort (struct gsi_coll_nccl *c, const struct gsi_ending *how);
/* settled of struct gsi_coll_ops: what an abort has ended may be freed. Without it, never. */
void gsi_nccl_settled (struct gsi_coll *coll);
/* silence and is_silent of struct gsi_coll_ops. */
void gsi_nccl_silence (struct gsi_coll *coll, const struct gsi_ending *how);
bool gsi_nccl_is_silent (const struct gsi_coll *coll);
void gsi_nccl_handle_close (struct gsi_coll_nccl *c);

/*
 * Ends a communicator of which nothing is under way: NCCL does when no GPU of the node has work
 * of others, by a thread if that takes longer than [most_ns]. Where it was [captured] it waits
 * for graphs that have operations of it.
 */
ncclResult_t gsi_nccl_end (struct gsi_nccl_handle *h, bool captured, int64_t most_ns);

/* The same for one of this rank alone that nobody has used, without waiting. */
void gsi_nccl_end_single (const struct gsi_device *device, ncclComm_t comm);

/*
 * For an abort, which ends the communicator on this rank alone: lets the work of others end
 * first, for [most_ns] at most, and keeps calls out of the GPU from then on; whether it does. Has
 * entered the GPU; never returns where the process ends.
 */
bool gsi_nccl_shut_in_turn (struct gsi_nccl_handle *h, int64_t most_ns);
void gsi_nccl_reopen (struct gsi_nccl_handle *h);

/* coll_nccl_life.c: for a thread of ours, for good; one that takes no part in the end of the
 * process; a handle without a communicator, or NULL; the end of one's use of it; a thread for
 * [work] with the handle, which it releases, or a text. */
void gsi_nccl_enter_device (const struct gsi_nccl_handle *h);
_Noreturn void gsi_nccl_stop_here (void);
struct gsi_nccl_handle *gsi_nccl_handle_make (const struct gsi_device *device);
void gsi_nccl_handle_release (struct gsi_nccl_handle *h);
bool gsi_nccl_leave_to_thread (struct gsi_nccl_handle *h, void *(*work) (void *),
                               const char *owner);

/*
 * Has [work] done by a thread of ours, on the device and inside [c]; waits for it until
 * [deadline_ns], the end of the communicator or that of another rank. [rc] is what NCCL said.
 * Takes [job], from malloc, over; before it is freed [kept] has a success in time, and [late] one
 * that came too late, in that thread.
 */
struct gsi_nccl_job {
    struct gsi_coll_nccl *c;
    const char *what;
    ncclResult_t (*work) (void *job);
    void (*kept) (void *job); /* or NULL */
    void (*late) (void *job); /* or NULL */
    int64_t deadline_ns;
};
gs_status_t gsi_nccl_run (const struct gsi_nccl_job *how, void *job, ncclResult_t *rc);

/* coll_nccl_split.c: starts the communicator of a group, [c], from that of its parent; what a
 * rank in no group does meanwhile. Collective over the parent's ranks.
 */
gs_status_t gsi_nccl_split (struct gsi_coll_nccl *c, const struct gsi_coll_setup *setup);
gs_status_t gsi_nccl_pass (struct gsi_coll *parent, int64_t deadline_ns);

/* Whether a wait that began at [begin_ns] must end without success; else a pause has passed. */
gs_status_t gsi_nccl_wait_on (const struct gsi_coll_nccl *c, const char *what, int64_t begin_ns,
                              int64_t deadline_ns);

/* Waits on the host for what was queued before [event]; one never recorded has passed. */
gs_status_t gsi_nccl_await (const struct gsi_coll_nccl *c, struct gsi_event *event,
                            int64_t deadline_ns);

/*
 * Reduces what NCCL cannot, or would round at every step: each rank sums its shard of every
 * block, in rank order, and hands it to the others. It sends as many bytes as a ring.
 */
gs_status_t gsi_nccl_shards_reduce (struct gsi_coll_nccl *c, void *buf, size_t count,
                                    const struct gsi_reduction *how, const struct gsi_call *call);

/* The same where the result stays in parts of [count], or goes to [root]. */
gs_status_t gsi_nccl_shards_scatter (struct gsi_coll_nccl *c, const void *send, void *recv,
                                     size_t count, const struct gsi_reduction *how,
                                     const struct gsi_call *call);
gs_status_t gsi_nccl_shards_to_root (struct gsi_coll_nccl *c, const void *send, void *recv,
                                     size_t count, const struct gsi_reduction *how, int root,
                                     const struct gsi_call *call);

/* coll_nccl_alltoallv.c: alltoallv of struct gsi_coll_ops. */
gs_status_t gsi_nccl_alltoallv (struct gsi_coll *coll, const struct gsi_alltoallv *x,
                                const struct gsi_call *call);

/* The same file: messages of it. */
gs_status_t gsi_nccl_messages (struct gsi_coll *coll, struct gsi_message *list, int number,
                               const struct gsi_call *call);

/* Elements that parts of an array are a multiple of: aligned words. */
#define GSI_SHARD_STEP 64

static inline size_t gsi_shard_round_up (size_t elements)
{
    return (elements + GSI_SHARD_STEP - 1) / GSI_SHARD_STEP * GSI_SHARD_STEP;
}

/* The memory for reductions: made at the first use, or before it. */
size_t gsi_nccl_space_bytes (const struct gsi_coll_nccl *c);
gs_status_t gsi_nccl_shards_open (struct gsi_coll_nccl *c);
void gsi_nccl_shards_close (struct gsi_coll_nccl *c);

/* A reduction uses it between these; [scale] is NULL or weights of all ranks, of which those of
 * the node's ranks [of] come to c->scale, or all if it is NULL. */
gs_status_t gsi_nccl_space_begin (struct gsi_coll_nccl *c, const double *scale, const int *of,
                                  const struct gsi_call *call);
gs_status_t gsi_nccl_space_end (struct gsi_coll_nccl *c, const struct gsi_call *call);

/*
 * coll_nccl_rails.c: sums of f16, bf16 and f8 over several nodes, first within each. Open leaves
 * c->rails NULL where shards send no more.
 */
gs_status_t gsi_nccl_rails_open (struct gsi_coll_nccl *c);
void gsi_nccl_rails_close (struct gsi_coll_nccl *c);
gs_status_t gsi_nccl_rails_reduce (struct gsi_coll_nccl *c, void *buf, size_t count,
                                   const struct gsi_reduction *how, const struct gsi_call *call);

#endif /* GS_COLL_COLL_NCCL_H */
