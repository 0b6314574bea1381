/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll - a transport: carries collectives between the ranks of one communicator.
 *
 * To add one: for a network of hosts, see src/base/transport.h; else write coll_NAME.c with a
 * const struct gsi_coll_ops gsi_coll_NAME, declare it below, and give it a row there and a place
 * in gsi_coll_find () of coll.c.
 *
 * Life: find (local) -> prepare (local, before the card exchange) -> open (collective, after
 * it) -> operations -> close (collective) or, after a failure, discard (local).
 */
#ifndef GS_COLL_COLL_H
#define GS_COLL_COLL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memfd.h"
#include "boot/boot.h"
#include "boot/topo.h"
#include "device/device.h"
#include "gradsync.h"

#define GSI_COLL_CARD_BYTES 336 /* what a transport may put on a rank's card */

struct gsi_coll_ops;

/*
 * How a rank gives up: why, because of what other rank (or -1), and [by] whom; [missed] as below.
 * Between transports that number ranks in their own way [culprit] is the communicator's number.
 */
struct gsi_ending {
    gs_status_t status;
    int culprit, by;
    uint64_t missed;
};

/* Whether it tells no more than that a connection has ended: who has died, others may know. */
static inline bool gsi_ending_is_vague (const struct gsi_ending *how)
{
    return how->status == GS_ERR_TRANSPORT && how->culprit < 0;
}

/* The same but missed in one word, which is not 0, and back. */
#define GSI_ENDING_RANK_BITS 24 /* of ranks, from -1 on; above them is the status */

static inline uint64_t gsi_ending_pack (const struct gsi_ending *how)
{
    const uint64_t mask = (UINT64_C (1) << GSI_ENDING_RANK_BITS) - 1;

    return (uint64_t) how->status << 2 * GSI_ENDING_RANK_BITS |
           (((uint64_t) how->by + 1) & mask) << GSI_ENDING_RANK_BITS |
           (((uint64_t) how->culprit + 1) & mask);
}

static inline void gsi_ending_unpack (uint64_t word, struct gsi_ending *how)
{
    const uint64_t mask = (UINT64_C (1) << GSI_ENDING_RANK_BITS) - 1;

    how->status = (gs_status_t) (word >> 2 * GSI_ENDING_RANK_BITS);
    how->by = (int) (word >> GSI_ENDING_RANK_BITS & mask) - 1;
    how->culprit = (int) (word & mask) - 1;
}

/* UNKNOWN: look at flight records. */
enum gsi_gave_up { GSI_NONE_GAVE_UP, GSI_GAVE_UP, GSI_GAVE_UP_UNKNOWN };

/* Why a communicator ended; shared with the transport so that its waits can see it. */
enum gsi_life { GSI_ALIVE = 0, GSI_ABORTED = 1, GSI_DEAD = 2 };

/* Of a transport for a group: that of the communicator which the group's ranks belong to. */
struct gsi_coll_parent {
    struct gsi_coll *coll; /* of any kind; inside a call, with nothing queued */
    const int *rank;       /* [size of the group] ranks there */
    bool entered;          /* set by open: this rank has done its part of what all ranks do */

    /* Open calls it if the parent has failed with [st]: it ends it, and gives what open says. */
    gs_status_t (*broken) (void *context, gs_status_t st);
    void *context;
};

/* Where an array of a call is; what hosts have is theirs as a device's is its. */
enum gsi_told_memory { GSI_TOLD_DEVICE, GSI_TOLD_HOST, GSI_TOLD_NOTHING };

/* A call, as ranks tell each other of it when something is wrong. */
struct gsi_told {
    uint64_t seq, count;
    int64_t step; /* of the feature that the communicator is let to; -step: after that; 0: none */
    int32_t op, dtype, argument, memory;
};

/* What open gets. Everything outlives the transport but [cards] and [parent]. */
struct gsi_coll_setup {
    struct gsi_boot *boot;
    const struct gsi_topo *topo;
    const struct gsi_device *device;
    const void *cards;      /* [size] of GSI_COLL_CARD_BYTES each, from prepare */
    const atomic_int *life; /* enum gsi_life */
    int64_t deadline_ns;
    gs_status_t (*others) (void *context);              /* or NULL, see struct gsi_coll */
    void (*tell) (void *context, struct gsi_told *own); /* likewise */
    int (*died) (void *context);                        /* likewise */
    bool (*busy) (void *context);                       /* likewise */
    void *context;
    struct gsi_coll_parent *parent; /* of a group, else NULL */
    void *room;                     /* from prepare, now the transport's */
    bool watched; /* by ranks that are none of its own: see struct gsi_coll_ops */
};

/* What a call has sent to other ranks, of this node and of others; unknown: there was more. */
struct gsi_sent {
    uint64_t within, between;
    bool unknown_within, unknown_between;
};

struct gsi_coll {
    const struct gsi_coll_ops *ops;
    struct gsi_sent sent; /* cleared before each call, by its caller */
    const struct gsi_topo *topo;
    const atomic_int *life;
    atomic_bool captured; /* (queued) a graph has, or had, calls */
    bool any_thread;      /* (not queued) the calling threads need not be the application's */
    pthread_t owner;      /* else only that of the last call may use the network beside calls */
    bool mixed;         /* some ranks have a GPU, others none: a call may be of arrays of both */
    atomic_int culprit; /* the rank that a failure here is because of; -1: not known; */
    atomic_bool told;   /* it told so: its deadline passed */

    /*
     * Asked in waits now and then: (queued) whether another rank gave up before it did its part
     * of what is under way, for a transport that does not tell; (all) whether the wait has no
     * end.
     */
    gs_status_t (*others) (void *context);
    void (*tell) (void *context, struct gsi_told *own); /* the call that this rank is in */
    int (*died) (void *context); /* a rank of this node that has ended without a word; -1: none */
    bool (*busy) (void *context); /* (queued) whether anything of this rank's is under way */
    void *context;
};

/* What open begins with: what [setup] gives to every transport. */
static inline void gsi_coll_set_up (struct gsi_coll *coll, const struct gsi_coll_ops *ops,
                                    const struct gsi_coll_setup *setup)
{
    coll->ops = ops;
    coll->topo = setup->topo;
    coll->life = setup->life;
    coll->others = setup->others;
    coll->tell = setup->tell;
    coll->died = setup->died;
    coll->busy = setup->busy;
    coll->context = setup->context;
    coll->culprit = -1;
    coll->owner = pthread_self ();
}

/* Whether this thread may use its network outside of a call. */
static inline bool gsi_coll_is_allowed (const struct gsi_coll *coll)
{
    return coll->any_thread || pthread_equal (coll->owner, pthread_self ());
}

/* One call: what every operation gets beside its buffers. */
struct gsi_call {
    uint64_t seq; /* the communicator's operation number, the same on all ranks; of messages, that
                   * of the next operation */
    uint64_t message; /* number of messages on this rank, 0: this is an operation of all ranks */
    int op;           /* enum gsi_record_op */
    gs_stream_t stream;
    bool staged;          /* the arrays are in host memory of a rank on a GPU */
    bool capturing;       /* [stream] is captured into a graph */
    int64_t deadline_ns;  /* of gsi_now_ns () */
    int argument;         /* op, root or what a feature's call is of */
    uint32_t fingerprint; /* of op, dtype, count, argument: alike on all ranks; 0: not known */
    const atomic_bool
        *yielding; /* (not queued, or NULL) waits leave the core to others if it is */
};

/*
 * What every rank hands to each: what one sends to another is as long as what that one receives.
 * Lengths and places are in bytes, for each rank, its own included.
 */
struct gsi_alltoallv {
    const char *send;
    char *recv;
    const size_t *send_at, *send_bytes, *recv_at, *recv_bytes; /* [size] */

    /*
     * Where it is regular: [block], the same on all ranks, is what a rank that sends at all has
     * at [send], and what this one receives begins [pick] into the block of each rank. Else 0.
     * [own] is what this rank has of its block; 0: all.
     */
    size_t block, pick, own;
};

/* What is left of [all] behind [done], but at most [step]. */
static inline size_t gsi_step_of (size_t all, size_t done, size_t step)
{
    if (done >= all)
        return 0;
    return all - done < step ? all - done : step;
}

/* Counts [bytes] sent to rank [peer]. */
static inline void gsi_coll_sent (struct gsi_coll *coll, int peer, size_t bytes)
{
    if (coll->topo->node_of[peer] == coll->topo->node)
        coll->sent.within += bytes;
    else
        coll->sent.between += bytes;
}

/* Bytes went through memory that ranks of the node share: nobody counts who reads how many. */
static inline void gsi_coll_unknown_within (struct gsi_coll *coll)
{
    coll->sent.unknown_within |= coll->topo->local_size > 1;
}

/* A library decided which bytes go where. */
static inline void gsi_coll_unknown (struct gsi_coll *coll)
{
    gsi_coll_unknown_within (coll);
    coll->sent.unknown_between |= coll->topo->nodes > 1;
}

/* Something that goes to or comes from another rank. */
struct gsi_message {
    void *buf; /* read if it is sent */
    size_t bytes;
    int peer;
    gs_dtype_t dtype;
    bool send;
    bool staged; /* (call->staged) [buf] is in host memory of a rank on a GPU */

    /* Written by transports that do not queue: whether the peer came to it, and with what. */
    bool met;
    gs_dtype_t other_dtype;
    size_t other_bytes;
};

/* Whether the peer came to it with the same. */
static inline bool gsi_message_fits (const struct gsi_message *m)
{
    return m->met && m->other_bytes == m->bytes && m->other_dtype == m->dtype;
}

/* What was heard of the peers of [moved], which is [list] in other memory. */
static inline void gsi_message_heard (struct gsi_message *list, const struct gsi_message *moved,
                                      int number)
{
    for (int i = 0; i < number; i++) {
        list[i].met = moved[i].met;
        list[i].other_dtype = moved[i].other_dtype;
        list[i].other_bytes = moved[i].other_bytes;
    }
}

/*
 * Every operation but messages is collective. All are checked (no NULL, no overflow, count > 0)
 * and in order. Status of each: GS_ERR_TIMEOUT when the deadline passes here or passed on another
 * rank; GS_ERR_STATE when [life] stops being GSI_ALIVE or another rank aborted; GS_ERR_TRANSPORT.
 * After any of these the communicator is dead: no operation is called again, only discard.
 * GS_ERR_UNSUPPORTED, on all ranks alike, refuses the call before anything was done, and the
 * communicator goes on.
 */
struct gsi_coll_ops {
    const char *name;

    /*
     * The operations are queued on call->stream, on buffers in memory of the device, and have not
     * ended when they return; what fails later is seen by poll. The calling thread has entered
     * the device. Else they have ended when they return, and buffers are in host memory.
     */
    bool queued;

    /*
     * (queued) Operations take arrays of host memory (call->staged) where they are, once the
     * call's stream has done what was queued there, and have ended when they return. Messages of
     * such a call may be in either memory: those in the device's have ended when the stream has.
     */
    bool takes_hosts;

    /*
     * (optional) Writes line [line], from 0, of how operations would go among the ranks of [topo]
     * into [text]; false behind the last. Local, without a transport.
     */
    bool (*describe) (const struct gsi_topo *topo, int line, char *text, size_t room);

    /*
     * (optional, both) Fills [card] of GSI_COLL_CARD_BYTES, without communication. [parent]: that
     * of the communicator that the ranks are a group of, or NULL. [room]: what open cannot do
     * without; open takes it over, or else unprepare frees it, NULL too.
     */
    gs_status_t (*prepare) (const struct gsi_boot *boot, const struct gsi_coll *parent,
                            void *card, void **room);
    void (*unprepare) (void *room);

    /* (required) Collective. A failure of a queued transport may be this rank's alone. */
    gs_status_t (*open) (const struct gsi_coll_setup *setup, struct gsi_coll **out);

    /*
     * (optional) Of a transport in whose open all ranks of the parent take part: what a rank does
     * that opens none. A failure of either is one of [parent], which is dead.
     */
    gs_status_t (*pass) (struct gsi_coll *parent, int64_t deadline_ns);

    /*
     * (optional, both) Arrays that the operations take where they are; false: not had, and not
     * one of these. Any thread; [free] also after a failure.
     */
    bool (*alloc) (struct gsi_coll *coll, size_t bytes, void **out);
    bool (*free) (struct gsi_coll *coll, void *memory);

    /* (required) dst[i] = how over ranks of buf_r[i], in place; how->scale is [size] or NULL. */
    gs_status_t (*allreduce) (struct gsi_coll *coll, void *buf, size_t count,
                              const struct gsi_reduction *how, const struct gsi_call *call);

    /* (required) */
    gs_status_t (*broadcast) (struct gsi_coll *coll, void *buf, size_t bytes, int root,
                              const struct gsi_call *call);

    /* (required) [send] may be this rank's place in [recv]; bytes is of one rank. */
    gs_status_t (*allgather) (struct gsi_coll *coll, const void *send, void *recv, size_t bytes,
                              const struct gsi_call *call);

    /* (required) [recv] of x does not overlap [send], but where a rank's own piece stays. */
    gs_status_t (*alltoallv) (struct gsi_coll *coll, const struct gsi_alltoallv *x,
                              const struct gsi_call *call);

    /*
     * (required) recv[i] = how over ranks of send_r[rank * count + i], [count] on each rank; recv
     * may be this rank's part of send. how->scale is NULL.
     */
    gs_status_t (*reduce_scatter) (struct gsi_coll *coll, const void *send, void *recv,
                                   size_t count, const struct gsi_reduction *how,
                                   const struct gsi_call *call);

    /*
     * (required) The same of parts of different lengths: that of rank r is [count[r]] elements,
     * [at[r]] bytes from [send] on.
     */
    gs_status_t (*reduce_scatterv) (struct gsi_coll *coll, const void *send, const size_t *at,
                                    const size_t *count, void *recv,
                                    const struct gsi_reduction *how, const struct gsi_call *call);

    /* (required) recv[i] of [root] = how over ranks of send_r[i]; recv may be send. No scale. */
    gs_status_t (*reduce) (struct gsi_coll *coll, const void *send, void *recv, size_t count,
                           const struct gsi_reduction *how, int root,
                           const struct gsi_call *call);

    /*
     * (required for more than one rank) Carries messages between this rank and others; only the
     * two ends of each take part. Those of a pair in one direction are matched in order, whatever
     * calls they are of, but those of operations of all ranks (call->message is 0) for
     * themselves. GS_ERR_MISMATCH: [other_bytes] or [other_dtype] of some are others than
     * expected: both ends see that, these messages are not carried but all others are, and the
     * communicator goes on. A transport that queues does not see it.
     */
    gs_status_t (*messages) (struct gsi_coll *coll, struct gsi_message *list, int number,
                             const struct gsi_call *call);

    /* (required) */
    gs_status_t (*barrier) (struct gsi_coll *coll, const struct gsi_call *call);

    /* (queued) Asks, without waiting, whether something failed after its call had returned. */
    gs_status_t (*poll) (struct gsi_coll *coll);

    /*
     * (optional) After GS_ERR_TIMEOUT of [call]: tells the other ranks that this one gives up,
     * listens to them for a grace period of [listen_ns] at most, and marks in came[rank] those
     * that are waiting too; false if it cannot.
     */
    bool (*roll_call) (struct gsi_coll *coll, const struct gsi_call *call, int64_t listen_ns,
                       unsigned char *came);

    /*
     * (optional) Tells the other ranks, without waiting, that this one has given up: it did its
     * part of the calls before number how->missed, which the others can still complete, and of
     * none from there on. Called at most once, not from within another operation. A queued
     * transport also ends what is queued here.
     */
    void (*notify_abort) (struct gsi_coll *coll, const struct gsi_ending *how);

    /*
     * (required, queued) Whether a rank has given up with something under way, as far as this one
     * can know of those whose memory its GPU uses: GSI_GAVE_UP from before what that rank has
     * queued begins to wait for nobody, and to hand on whatever memory holds; [how] is all but
     * missed then. Looked at behind the end of each call.
     */
    enum gsi_gave_up (*gave_up) (struct gsi_coll *coll, struct gsi_ending *how);

    /*
     * (optional, queued) Once something has failed: asks whether ranks of other nodes are there,
     * for a second at most, and marks all ranks of nodes that do not answer.
     */
    void (*find_gone) (struct gsi_coll *coll, unsigned char *gone);

    /*
     * (optional, queued) For a rank that is none of the transport's, before its open: the word by
     * which gave_up tells on the node of the rank with [card], packed, 0 until then, in memory
     * that [shm] is then. NULL: it cannot be had.
     */
    const atomic_uint_fast64_t *(*watch) (const void *card, struct gsi_memfd *shm);

    /*
     * (optional, queued) This rank is about to give up, and its program to have its arrays again:
     * what the GPU makes of them from now on is no contribution any more. Returns when a rank
     * of each other node knows, or after a second. Any thread.
     */
    void (*silence) (struct gsi_coll *coll, const struct gsi_ending *how);

    /*
     * (optional, queued) What was queued before a notify_abort has ended, here and on the node's
     * other ranks. Called by any thread of the library, between enter and leave of the device.
     */
    void (*settled) (struct gsi_coll *coll);

    /*
     * (optional, queued) After notify_abort: whether all that was queued before it has been told
     * to end, also what has yet to run, and threads that are blocked inside. Any thread.
     */
    bool (*is_silent) (const struct gsi_coll *coll);

    /*
     * Whether a close that went well leaves the transport itself to discard, so that another
     * thread may give it up until then.
     */
    bool lasts;

    /* (required) Collective, until call->deadline_ns; frees on success, unless [lasts], else
     * discard follows. */
    gs_status_t (*close) (struct gsi_coll *coll, const struct gsi_call *call);

    /* (required) Local: frees all but what unfinished transfers still own. */
    void (*discard) (struct gsi_coll *coll);

    /* (optional) The call that [rank] gave up in, if it has told; without waiting. */
    bool (*heard) (struct gsi_coll *coll, int rank, struct gsi_told *told);
};

/* One rank. */
extern const struct gsi_coll_ops gsi_coll_self;

/* Ranks on hosts; in the module of a network, by the transport's name (src/host). */
#define GSI_COLL_HOSTS_SYMBOL "gsi_coll_%s"

/* Ranks on GPUs; NCCL is loaded first, by its name. Present with HAVE_NCCL. */
extern const struct gsi_coll_ops gsi_coll_nccl;
gs_status_t gsi_coll_nccl_load (void);

/* Ranks on GPUs of which several share one: NCCL takes one rank for each; and beside them, in one
 * communicator, ranks without a GPU. */
extern const struct gsi_coll_ops gsi_coll_shared_gpus, gsi_coll_beside_gpus;

/* One of these two. */
bool gsi_coll_is_shared (const struct gsi_coll_ops *ops);
const char *gsi_coll_hosts_name (const struct gsi_coll *shared); /* what joins their hosts */

/* What carries arrays of hosts when it is not asked for. */
static inline gs_transport_t gsi_coll_of_hosts (int size)
{
    return size > 1 ? GS_TRANSPORT_MPI : GS_TRANSPORT_SELF;
}

/*
 * Finds the transport [which], not GS_TRANSPORT_AUTO, for a communicator of [size] ranks, loading
 * a module or library if need be; local, so that a rank can put its failure on its card.
 */
gs_status_t gsi_coll_find (gs_transport_t which, int size, const struct gsi_coll_ops **ops);

#endif /* GS_COLL_COLL_H */
