/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_sim - what the files of the simulated NCCL share: the communicator, the operations queued
 * on it, and the way from a call to bytes on a socket.
 *
 *   nccl_call    entries of the collectives      nccl_unit   what runs on a stream's thread
 *   nccl_group   groups, helper threads          nccl_ring   the algorithms
 *   nccl_comm    create, finalize, abort         nccl_num    arithmetic, rounded as NCCL does
 *   nccl_child   split, shrink, revoke           nccl_net    transfers over the mesh
 *   nccl_query   entries without work            nccl_meet   how ranks find each other
 *   nccl_memory  memory and its registration     nccl_dial   addresses, connections, the listener
 *   nccl_state   what is allowed when            nccl_end    what is looked at at the end
 */
#ifndef GS_TESTS_SIMGPU_NCCL_SIM_H
#define GS_TESTS_SIMGPU_NCCL_SIM_H

#include <nccl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine.h"

#define NSIM_RANKS     256 /* of one communicator */
#define NSIM_REDOPS    256 /* of one communicator */
#define NSIM_ADDRESSES 12
#define NSIM_TEXT      400

/* Where a process listens. Loopback leads to it from the same network of the same boot. */
struct nsim_place {
    uint64_t network;
    uint32_t address[NSIM_ADDRESSES]; /* IPv4, network order; loopback last */
    uint16_t addresses;
    uint16_t port; /* host order */
};

/* What names a communicator on all its ranks: the id's secret, and its descent by splits. */
struct nsim_tag {
    uint64_t secret;
    uint64_t descent;
};

/* What each rank tells the others when they meet. */
struct nsim_card {
    struct nsim_place place;
    uint64_t host; /* of NCCL_HOSTID, or of host name and boot */
    uint64_t ids;  /* of all ids given to ncclCommInitRankScalable */
    int32_t rank;
    int32_t ranks;
    int32_t device; /* the physical one */
    char bus[20];
};

enum nsim_what {
    NSIM_ALLREDUCE = 0,
    NSIM_BROADCAST = 1,
    NSIM_REDUCE = 2,
    NSIM_ALLGATHER = 3,
    NSIM_REDUCE_SCATTER = 4,
    NSIM_SEND = 5,
    NSIM_RECV = 6,
    NSIM_SPLIT = 7,
    NSIM_FINALIZE = 8,
    NSIM_INIT = 9
};

/* What precedes data on the wire, and is compared with what the receiver does. */
struct nsim_head {
    uint32_t magic;
    int32_t what;      /* enum nsim_what */
    uint64_t sequence; /* of the communicator's collectives; 0 for send and receive */
    uint64_t count;
    int32_t type;
    int32_t op; /* ncclNumOps: any PreMulSum */
    int32_t root;
    int32_t rank;
};

/* A dynamic reduction operator. */
struct nsim_redop {
    bool live;
    ncclDataType_t type;
    const void *on_device; /* the scalar is read when the operation runs; else it is here: */
    unsigned char scalar[8];
};

struct nsim_op {
    enum nsim_what what;
    const void *send;
    void *recv;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op; /* ncclNumOps: PreMulSum with [premul] */
    struct nsim_redop premul;
    int root; /* or the peer */
    ncclComm_t comm;
    cudaStream_t stream;
    bool stall;        /* by SIM_FAULT: never completes */
    ncclResult_t late; /* by SIM_FAULT: appears when it runs */
};

/* What one call or group launches for one communicator. */
struct nsim_unit {
    struct nsim_unit *next; /* of its communicator's */
    ncclComm_t comm;
    uint64_t ticket;
    bool captured; /* belongs to a graph: may run many times */
    size_t n;
    struct nsim_op op[];
};

enum nsim_phase {
    NSIM_STARTING = 0,
    NSIM_READY = 1,
    NSIM_FINALIZED = 2, /* from the call of ncclCommFinalize on */
    NSIM_REVOKED = 3,
    NSIM_FAILED = 4, /* never became ready */
    NSIM_DESTROYED = 5,
    NSIM_ABORTED = 6
};

#define NSIM_ALGORITHMS 2 /* a tree for short sums, a ring for all else */

/* Handles stay for the life of the process, so that their use after the end is noticed. */
struct ncclComm {
    struct ncclComm *next;
    int number; /* in the order of creation */
    int rank;
    int ranks;
    int device; /* as the program numbers it */
    bool blocking;
    struct nsim_tag tag;
    struct nsim_card *card; /* of all ranks */
    int *fd;                /* to all ranks */
    int wake;               /* readable from a stop or a disagreement on */

    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t cond;
    _Atomic (enum nsim_phase) phase;
    _Atomic (bool) stop;   /* abort or revocation: whoever waits leaves */
    _Atomic (bool) broken; /* the ranks disagree: nothing is carried out any more */
    ncclComm_t *list;      /* of the thread of its last call, until that is joined; or NULL */
    int jobs;              /* on helper threads */
    _Atomic (int) callers; /* threads in a call that launches something of it */
    _Atomic (bool) silent; /* a peer of the same host has vanished: nobody tells */
    bool connected[NSIM_ALGORITHMS]; /* the channels of collectives are there, or begun */
    int connects[NSIM_ALGORITHMS];   /* peers that have begun to connect */
    bool closed[NSIM_RANKS]; /* peers of the host that have said that they are finalized */
    enum { NSIM_SERVES = 0, NSIM_CLOSING, NSIM_SERVED } service; /* its thread's */
    bool unpolled; /* not blocking, and the last outcome was not asked for yet */
    _Atomic (ncclResult_t) error;
    uint64_t tickets; /* given out to units; they run in this order */
    uint64_t serving;
    bool busy;            /* a unit runs */
    int running;          /* units on streams' threads, those included that wait for their turn */
    int queued;           /* units issued that have not ended; those of graphs are not counted */
    _Atomic (int) graphs; /* captured units whose graph lives */
    struct nsim_unit *units; /* queued, also on a GPU that has failed; or captured: a launch may
                                run after its graph is gone */
    int children;
    struct ncclComm *child; /* that a split or shrink is making: stops with this one */
    struct nsim_redop *redop;
    int redops;
    struct nsim_registration *registered;
    struct nsim_neighbour
        *neighbour; /* [ranks] shared by those of a host; NULL before its units */

    /* Used by the unit that runs, or by a job while none does. */
    uint64_t sequence;
    bool met[NSIM_RANKS];    /* in a send or receive */
    bool choked[NSIM_RANKS]; /* after an abort: what was to go there had no room */
    struct nsim_head *owed;  /* what the rank before sends of calls that await nothing from it */
    size_t owed_n, owed_room;
};

/* What SIM_FAULT asks of a call that may go on. */
struct nsim_fate {
    bool stall;
    ncclResult_t late;
};

/* nccl_state.c: every call begins with nsim_enter, and with nsim_check if it has a communicator.
 */
extern _Atomic (int) nsim_open_groups;
void nsim_group_may_stay (void);
void nsim_watch_exit (void); /* nccl_end.c: from now on, for what is freed between the others */
void nsim_free_begin (void);
void nsim_free_end (void);
int nsim_version (void);
void nsim_warn (const char *format, ...) __attribute__ ((format (printf, 1, 2)));
const char *nsim_last_warning (void);
ncclResult_t nsim_enter (const char *who, int since, struct nsim_fate *fate);
ncclResult_t nsim_enter_plain (const char *who, int since); /* of what has nothing to wait on */
ncclResult_t nsim_check (ncclComm_t comm, const char *who);
ncclResult_t nsim_check_end (ncclComm_t comm, const char *who); /* for abort: is it a live one */
ncclComm_t nsim_comm_new (int rank, int ranks, bool blocking);
void nsim_comm_each (void (*visit) (ncclComm_t comm, void *arg), void *arg);
void nsim_comm_close (ncclComm_t comm, enum nsim_phase phase);
void nsim_set_error (ncclComm_t comm, ncclResult_t code);
void nsim_refuse (ncclComm_t comm, ncclResult_t code);
void nsim_break (ncclComm_t comm, ncclResult_t code); /* the ranks disagree */
void nsim_stop (ncclComm_t comm);
void nsim_await_stop (ncclComm_t comm);

/* nccl_group.c: jobs end communicators or begin them; ops are queued on streams. */
struct nsim_job {
    struct nsim_job *next;
    ncclComm_t comm; /* whose state the job decides */
    ncclResult_t (*run) (struct nsim_job *job);
    void (*discard) (struct nsim_job *job); /* the group has failed before */
    bool at_once; /* even of a communicator that does not block: abort, destroy */
    ncclResult_t result;
    pthread_t thread;
};
void nsim_leave_list (ncclComm_t comm);
ncclResult_t nsim_group_check (const struct nsim_op *op); /* whether the open group takes it */
ncclResult_t nsim_group_op (const struct nsim_op *op);
ncclResult_t nsim_group_job (struct nsim_job *job, size_t bytes); /* copies it */
ncclResult_t nsim_group_fail (ncclResult_t code);

/* nccl_unit.c */
ncclResult_t nsim_launch (struct nsim_unit *unit); /* owns it from here on */

/* nccl_dial.c; -1: lost, -2: the communicator was stopped. */
enum nsim_hello_kind {
    NSIM_ROOT = 1,
    NSIM_PEER = 2,
    NSIM_NOTICE = 3,
    NSIM_CONNECT = 4,
    NSIM_CLOSE = 5
};
struct nsim_hello {
    uint32_t magic;
    uint32_t kind;
    struct nsim_tag tag;
    int32_t from;
    int32_t to;
    int32_t code;
    struct nsim_card card;
    char text[NSIM_TEXT];
};
uint64_t nsim_hash (const void *data, size_t bytes);
uint64_t nsim_host_hash (void);
bool nsim_listen (struct nsim_place *place); /* from the first call on */
int nsim_dial (const struct nsim_place *place, const struct nsim_hello *hello, int wake);
int nsim_receive (int fd, void *data, size_t bytes, int wake);
int nsim_await_fd (int fd, short events, int wake, int timeout_ms);

/* nccl_meet.c */
void nsim_hello_came (const struct nsim_hello *hello, int fd); /* on the listener's thread */
bool nsim_hello_known (const struct nsim_hello *hello);
void nsim_meet_wake (void);
ncclResult_t nsim_id_make (ncclUniqueId *id);
ncclResult_t nsim_meet (ncclComm_t comm, const ncclUniqueId *ids, int n);
ncclResult_t nsim_mesh (ncclComm_t comm);
void nsim_connect_begin (const struct nsim_op *op);
void nsim_say_closed (ncclComm_t comm);
bool nsim_has_left (ncclComm_t comm, int peer); /* likewise, or is gone; the mutex is held */
ncclResult_t nsim_connect (const struct nsim_op *op); /* waits until all ranks are at it */
void nsim_tell_all (ncclComm_t comm, ncclResult_t code, const char *text);

/* nccl_net.c */
enum nsim_end { NSIM_OK = 0, NSIM_STOPPED = 1, NSIM_LOST = 2 };
struct nsim_xfer {
    int peer;
    bool out;
    bool headed; /* [head] is sent first, or awaited */
    struct nsim_head head;
    struct nsim_head got;
    void *data;
    size_t bytes;
    size_t done;
    struct nsim_xfer *next;
};
enum nsim_end nsim_transfer (ncclComm_t comm, struct nsim_xfer *xfer, size_t n); /* of kernels */
void nsim_owe (ncclComm_t comm, const struct nsim_head *head);
/* Waits until all ranks do the same; [what] is not a collective. */
enum nsim_end nsim_barrier (ncclComm_t comm, enum nsim_what what);
void nsim_tell (ncclComm_t comm, enum nsim_what what);

/* nccl_ring.c */
enum nsim_end nsim_collective (const struct nsim_op *op);
enum nsim_end nsim_point_to_point (const struct nsim_op *op, size_t n);
struct nsim_head nsim_head_of (const struct nsim_op *op);

/* nccl_num.c */
size_t nsim_type_bytes (ncclDataType_t type); /* 0: no such type */
const char *nsim_type_name (ncclDataType_t type);
/* What each contribution goes through first: the average's 1/N, PreMulSum's scalar. */
void nsim_before (const struct nsim_op *op, const void *scalar, void *data, size_t count);
/* into = from (op) into */
void nsim_reduce (const struct nsim_op *op, const void *from, void *into, size_t count);
/* What the sum goes through last: the division of integers. */
void nsim_after (const struct nsim_op *op, void *data, size_t count);
bool nsim_can_reduce (ncclDataType_t type);

/* nccl_memory.c */
void nsim_forget_registered (ncclComm_t comm);

/* nccl_comm.c */
ncclResult_t nsim_config (const ncclConfig_t *config, bool *blocking, const char *who);

/* nccl_end.c: what the process has sent. */
struct nsim_sent {
    _Atomic (uint64_t) bytes, far; /* all, and to other hosts */
};
/* What the ranks of a host see of each other: how many units run on the GPU of each. */
void nsim_runs (ncclComm_t comm, int more);
void nsim_check_neighbours (ncclComm_t comm, const char *who);
void nsim_part (ncclComm_t comm);
extern struct nsim_sent nsim_sent_collective, nsim_sent_direct;
extern _Atomic (int) nsim_partners; /* ranks that sends and receives were with, each once */
void nsim_count_sent (struct nsim_sent *sent, ncclComm_t comm, int peer, size_t bytes);

#endif /* GS_TESTS_SIMGPU_NCCL_SIM_H */
