/* SPDX-License-Identifier: BSD-3-Clause */
/* comm - a communicator: a job, a device and a transport joined. Private to the rooms of the
 * core. */
#ifndef GS_CORE_COMM_H
#define GS_CORE_COMM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/env.h"
#include "base/record.h"
#include "base/status.h"
#include "boot/boot.h"
#include "boot/topo.h"
#include "transport/coll.h"
#include "device/device.h"
#include "gradsync.h"

struct gsi_client;
struct gsi_inflight;
struct gsi_staging;

#define GSI_COMM_MAGIC UINT64_C (0x6772616473796e63)

/* What calls of one operation sent; the last two: how many of them sent more than is known. */
struct gsi_traffic {
    atomic_uint_fast64_t calls, bytes, within, between, unknown_within, unknown_between;
};

struct gs_comm {
    uint64_t magic;
    atomic_int life;   /* enum gsi_life */
    atomic_flag busy;  /* a thread is inside a call */
    gs_status_t death; /* why life is GSI_DEAD; written before life, once */
    char death_text[GSI_TEXT_MAX];
    atomic_flag failing; /* a thread reports the failure */
    atomic_bool told;    /* it has written the two above */

    char name[GSI_RECORD_NAME];
    int64_t timeout_ns, boot_timeout_ns;
    int serial; /* that tells it from others of the same job and name */
    enum gsi_check check;

    struct gsi_boot *boot;
    struct gsi_device *device;
    struct gsi_coll *coll;                 /* NULL while half built */
    struct gsi_inflight *_Atomic inflight; /* of a transport that queues, else NULL; as a create
                                            * makes it the watchdog looks */
    struct gsi_staging *staging;           /* the same */
    struct {
        pthread_mutex_t guard;       /* gpu_lock.h */
        int previous;                /* the device that the running call goes back to */
        bool working;                /* it is counted as work of the device */
        atomic_uint_fast64_t oldest; /* first call in flight, 0: none; for all to read */
    } gpu;
    atomic_int users;    /* threads that look at what is here outside of a call, such as that of
                          * gs_comm_abort, which looks at all, */
    atomic_bool closing; /* but, from then on, not at coll */
    bool weightless;     /* it was said that all weights are 0 */
    bool sees_gpus;      /* arrays given to a call may be in memory of a GPU */
    struct gsi_topo topo;
    char (*hosts)[GSI_HOST_BYTES]; /* [size] */
    void *scratch;                 /* [size] of GSI_SCRATCH_BYTES: what small agreements gather */
    size_t *lengths;               /* [GSI_LENGTHS * size]: places and lengths of an alltoallv */
    struct gsi_record record;
    uint64_t number; /* of the last call of all ranks; of pools each node has its own */
    struct {
        uint64_t seq, theirs;
        int rank;
        int64_t since_ns;
    } crossed; /* calls that wait for each other, as they were seen last: gsi_peers_crossed */
    struct {
        struct gs_comm *next;
        bool open;
        _Atomic int64_t until_ns; /* when the call under way should have ended; 0: none is */
        int64_t seen_ns;          /* that, as it was seen last, */
        int ticks;                /* and how often since it has passed */
    } watchdog;
    atomic_int culprit; /* rank that failed first, once this one has given up */
    atomic_bool vague;  /* it has told no more than that something had ended */
    struct gs_comm_times times;
    struct gsi_traffic traffic[GSI_OP_COUNT];
    uint64_t handed;      /* bytes, by this rank to the call that it is in */
    atomic_flag p2p_busy; /* a thread is noting messages */
    struct gsi_p2p *p2p;  /* messages noted, and those that went; NULL before the first */
    void (*name_ends) (const struct gs_comm *comm, const struct gsi_call *call,
                       const unsigned char *came, char *text, size_t room); /* of messages */

    atomic_int features;       /* that use it */
    atomic_bool let;           /* to [client]: only its calls are taken */
    struct gsi_client *client; /* the last one; gsi_lease_guard */
};

#define GSI_SCRATCH_BYTES 40 /* per rank */

/* Words per rank in comm->lengths: the alltoallv, a part of it that is staged, counts heard. */
#define GSI_LENGTHS_STAGED 4
#define GSI_LENGTHS_COUNTS 8
#define GSI_LENGTHS        9

/* GS_OK if [comm] is a communicator; else GS_ERR_ARG or GS_ERR_STATE, naming [caller]. */
gs_status_t gsi_comm_valid (const gs_comm_t *comm, const char *caller);

/* GS_OK unless it has been given up, which is told as gs_comm_check does. */
gs_status_t gsi_comm_alive (const gs_comm_t *comm);

/* Between these a destroy by another thread frees nothing: for what looks at a communicator where
 * it is in no call. */
static inline void gsi_comm_hold (gs_comm_t *comm)
{
    atomic_fetch_add (&comm->users, 1);
}
static inline void gsi_comm_release (gs_comm_t *comm)
{
    atomic_fetch_sub (&comm->users, 1);
}

/* GS_OK if [rank], the argument [what], is a rank of [comm], which is one. */
gs_status_t gsi_comm_no_rank (const gs_comm_t *comm, const char *caller, const char *what,
                              int rank);
static inline gs_status_t gsi_comm_has_rank (const gs_comm_t *comm, const char *caller,
                                             const char *what, int rank)
{
    return rank >= 0 && rank < comm->topo.size ? GS_OK
                                               : gsi_comm_no_rank (comm, caller, what, rank);
}

#endif /* GS_CORE_COMM_H */
