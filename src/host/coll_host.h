/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_host - the transport between hosts, over a network (net.h).
 *
 * The network carries every byte between nodes, by messages that are polled. It only ever holds
 * memory of ours (staging, and that of a node in hier_move.c): after a deadline it still
 * owns its buffers, and the application's must be free again. Within a node shared memory does,
 * where the ranks have it.
 */
#ifndef GS_HOST_COLL_HOST_H
#define GS_HOST_COLL_HOST_H

#include "transport/coll.h"
#include "host/tuning.h"
#include "host/hier_allreduce.h"
#include "host/net.h"
#include "host/node.h"
#include "host/shm_heap.h"
#include "host/nt_copy.h"

#define GSI_SMALL_BYTES        ((size_t) 256 << 10) /* all contributions of a small operation */
#define GSI_RABENSEIFNER_BYTES ((size_t) 1 << 20)   /* of a sum by halves; staged twice */
#define GSI_STAGING_SLOTS      (GSI_LAG + 1)

/* Message tags; ranks of one pair send in one order, so a tag needs no number. */
enum gsi_tag {
    GSI_TAG_SMALL = 1,
    GSI_TAG_SCATTER = 2,
    GSI_TAG_GATHER = 3,
    GSI_TAG_BROADCAST = 4,
    GSI_TAG_NOTICE = 5,
    GSI_TAG_RABENSEIFNER = 6,
    GSI_TAG_EXCHANGE = 7,
    GSI_TAG_CONTROL = 8, /* of messages: headers, */
    GSI_TAG_MESSAGE = 9, /* what follows; */
    GSI_TAG_ALL = 2,     /* added where all ranks exchange them; */
    GSI_TAGS = 16 /* times a number for the call's fingerprint, added to those of collectives */
};

/* Buffers and requests of one block on its way. */
struct gsi_pipeline_slot {
    char *send, *recv; /* [size] pieces each */
    void *batch;       /* of [2 * size] */
    int *peer;         /* [2 * size] whom they are with: */
    bool *sends;       /* [2 * size] to it, or from it */
    int active;        /* how many of them are in use */
};

/* What a rank tells as it starts: how that went, and of which job its communicator is. */
struct gsi_start_word {
    int32_t status;
    uint32_t job;
};

struct gsi_coll_host {
    struct gsi_coll base;
    const struct gsi_device *device;
    struct gsi_net *net;            /* part of it, behind */
    struct gsi_start_word *verdict; /* [size] of the start, the own one behind; likewise */
    int rank, size;
    uint32_t fingerprint;  /* of the call under way, and */
    uint32_t fingerprints; /* how many the network's tags can tell apart */
    unsigned spins;        /* where gsi_net_pause starts */
    size_t piece_bytes;    /* of one rank in one block; a multiple of 64 */
    char *memory;          /* one allocation: all staging below points into it */
    char *small;           /* GSI_SMALL_BYTES */
    const void **source;   /* [size] contributions in rank order */
    double *scale;         /* [size] their weights */
    size_t *length;        /* [4 * size] places and lengths of an alltoallv */
    struct gsi_node node;
    struct gsi_shm_heap shm_heap;
    struct gsi_stream stream;
    char **array;         /* [size] those of the ranks of the node, where they are seen */
    struct gsi_hier hier; /* how large reductions go */
    union {               /* all, and by what they are for */
        struct gsi_pipeline_slot slot[2 * GSI_STAGING_SLOTS];
        struct {
            struct gsi_pipeline_slot scatter[GSI_STAGING_SLOTS], gather[GSI_STAGING_SLOTS];
        };
    };
    struct gsi_p2p_state *p2p; /* messages.c: what messages need; NULL: none yet */
    bool unfinished;           /* the network owns staging: it is kept */
    int64_t listened_ns;       /* when notices were looked for */
    int64_t asked_ns;          /* when others () was last asked, or the wait began */
    uint64_t asked_seq;        /* in that call */
    bool notified;             /* the other ranks were told that we gave up, */
    struct gsi_notice *own;    /* so, which the network may have yet to send; from the start on */
    bool notice;               /* another rank has given up: heard[] says which */
    struct gsi_notice *heard;  /* [size], kind GSI_NOTICE_NONE: nothing heard */
};

/* What a rank that gives up tells the others. */
enum gsi_notice_kind { GSI_NOTICE_NONE = 0, GSI_NOTICE_ABORT = 1, GSI_NOTICE_TIMEOUT = 2 };
struct gsi_notice {
    int32_t kind, in_message; /* not 0: it was no call of all ranks */
    int32_t culprit, unused;  /* the rank that it gives up because of; -1: not known */
    uint64_t missed;          /* number of the first call that it has not done its part of */
    struct gsi_told told;     /* the call that it gives up in */
};

/* What tells a block of the call under way, [bytes] of it, from one of another call. */
static inline uint64_t gsi_fingerprint_of (const struct gsi_coll_host *c, uint64_t bytes)
{
    return bytes ^ (uint64_t) c->fingerprint << 32;
}

/* net.c: posts; the request goes to the end of [slot]. */
gs_status_t gsi_net_send (struct gsi_coll_host *c, struct gsi_pipeline_slot *slot,
                          const void *data, size_t bytes, int peer, enum gsi_tag tag);
gs_status_t gsi_net_recv (struct gsi_coll_host *c, struct gsi_pipeline_slot *slot, void *data,
                          size_t bytes, int peer, enum gsi_tag tag);

/* Waits for all of [slot]: until the deadline, an abort here or a notice from elsewhere. */
gs_status_t gsi_net_wait (struct gsi_coll_host *c, struct gsi_pipeline_slot *slot,
                          const struct gsi_call *call);

#define GSI_YIELD_NOW (1u << 30) /* first [spins] where ranks outnumber cores */

/* One round of waiting: spins, then yields the core. [spins] starts at c->spins. */
void gsi_net_pause (const struct gsi_call *call, unsigned *spins);

/*
 * Whether to look, after [polls] polls, if a wait should end: every so many polls, or each time
 * once the core is offered to others, for then a poll may take milliseconds.
 */
bool gsi_net_should_look (unsigned polls, unsigned spins, unsigned every);

/* Why a wait should end; GS_OK to go on. */
gs_status_t gsi_net_interrupted (struct gsi_coll_host *c, const struct gsi_call *call);

/* GS_ERR_MISMATCH: rank [rank] makes another call than this one. */
gs_status_t gsi_net_differ (const struct gsi_coll_host *c, int rank);

/* failure_notice.c */
void gsi_notice_send (struct gsi_coll_host *c, enum gsi_notice_kind kind, bool in_message,
                      uint64_t missed);
void gsi_notice_hear (struct gsi_coll_host *c); /* takes in what has arrived */
bool gsi_notice_told (struct gsi_coll *coll, int rank, struct gsi_told *told);
gs_status_t gsi_transfer_fail (struct gsi_coll_host *c, const char *what, int rank, int rc);
/* Adds to the text of [st], of the start, who has died; of a group by its number in [parent]. */
gs_status_t gsi_start_fail (struct gsi_coll_host *c, gs_status_t st,
                            const struct gsi_coll_parent *parent);
bool gsi_roll_call (struct gsi_coll *coll, const struct gsi_call *call, int64_t listen_ns,
                    unsigned char *came);

/*
 * small_allgather.c: gathers [bytes] of every rank where gsi_small_place () says, until the next
 * operation: in shared memory on a single node, else in c->small by log2 (size) messages each
 * (Bruck). size * bytes is at most GSI_SMALL_BYTES. [mine] has [own] of them, which others look
 * at; it is NULL if nobody will.
 */
gs_status_t gsi_small_allgather (struct gsi_coll_host *c, const void *mine, size_t own,
                                 size_t bytes, const struct gsi_call *call);
const void *gsi_small_place (const struct gsi_coll_host *c, int rank, size_t bytes);

/* The same with the reduction, by this rank, into [dst]; NULL: others want it. */
gs_status_t gsi_small_reduce (struct gsi_coll_host *c, const void *mine, void *dst, size_t count,
                              const struct gsi_reduction *how, const struct gsi_call *call);

/* rabenseifner.c: of any size; the best for middling ones of many ranks that are apart. */
gs_status_t gsi_rabenseifner_allreduce (struct gsi_coll_host *c, char *buf, size_t count,
                                        const struct gsi_reduction *how,
                                        const struct gsi_call *call);

/* hier_move.c: the same as pipeline.c, where the ranks of each of several nodes share
 * memory. */
gs_status_t gsi_hier_allgather (struct gsi_coll_host *c, const char *send, char *recv,
                                size_t bytes, const struct gsi_call *call);
gs_status_t gsi_hier_broadcast (struct gsi_coll_host *c, char *buf, size_t bytes, int root,
                                const struct gsi_call *call);

/* messages.c: messages of struct gsi_coll_ops; what it keeps. */
gs_status_t gsi_messages (struct gsi_coll_host *c, struct gsi_message *list, int number,
                          const struct gsi_call *call);
void gsi_messages_close (struct gsi_coll_host *c);

/* What a notice of rank [rank] says, as a failure. */
gs_status_t gsi_notice_fail (struct gsi_coll_host *c, int rank);

/* Where the piece to or from [rank] is staged. */
static inline char *gsi_piece_at (const struct gsi_coll_host *c, char *staging, int rank)
{
    return staging + (size_t) rank * c->piece_bytes;
}

/* pipeline.c: large operations that only move data, in blocks, by memory or messages (tuning.h).
 */
gs_status_t gsi_pipeline_allgather (struct gsi_coll_host *c, enum gsi_algo algo, const char *send,
                                    char *recv, size_t bytes, const struct gsi_call *call);
gs_status_t gsi_pipeline_broadcast (struct gsi_coll_host *c, enum gsi_algo algo, char *buf,
                                    size_t bytes, int root, const struct gsi_call *call);

/* What is on a rank's card: its settings, and what its network says. */
struct gsi_coll_host_card {
    char network[GSI_NET_NAME_BYTES]; /* the name of the transport */
    int32_t algorithm, deterministic;
    char net[GSI_NET_CARD_BYTES];
};

#endif /* GS_HOST_COLL_HOST_H */
