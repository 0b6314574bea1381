/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_shared - the transport between ranks of which several share a GPU: making and ending it.
 *
 * NCCL takes one rank for each GPU. Sums of arrays on GPUs are made within each group of ranks
 * that have one, and between these by NCCL; all else goes by way of the hosts, in the order of
 * the program's streams. So does everything where some ranks have no GPU.
 */
#include "transport/coll_shared.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "base/status.h"
#include "base/transport.h"

#define OWN_NS GSI_NS_PER_S /* a stream may take to end once those that it waits for have */

/* What open makes the transport of: that between hosts, as it was prepared, and its memory. */
struct prepared {
    const struct gsi_coll_ops *hosts;
    void *room;
    struct gsi_coll_shared *shared;
    struct gsi_group_opening *opening;
};

static void unmake_shared (struct gsi_coll_shared *c)
{
    if (!c)
        return;
    gsi_device_close (c->host);
    pthread_mutex_destroy (&c->inside);
    free (c->length);
    free (c);
}

static struct gsi_coll_shared *make_shared (int size)
{
    struct gsi_coll_shared *c = calloc (1, sizeof (*c));

    if (!c)
        return NULL;
    pthread_mutex_init (&c->inside, NULL);
    c->length = calloc (4 * (size_t) size, sizeof (*c->length));
    if (c->length && !gsi_device_open (GS_DEVICE_HOST, 0, &c->host))
        return c;
    unmake_shared (c);
    return NULL;
}

static void shared_unprepare (void *memory)
{
    struct prepared *p = memory;

    if (!p)
        return;
    if (p->hosts && p->hosts->unprepare)
        p->hosts->unprepare (p->room);
    gsi_gpu_group_unprepare (p->opening);
    unmake_shared (p->shared);
    free (p);
}

static gs_status_t prepare_network (struct prepared *p, gs_transport_t which,
                                    const struct gsi_boot *boot, void *card)
{
    gs_status_t st = gsi_coll_find (which, boot->size, &p->hosts);

    if (!st && p->hosts->prepare)
        st = p->hosts->prepare (boot, NULL, card, &p->room);
    if (st)
        p->hosts = NULL;
    return st;
}

/* MPI, or libfabric where that cannot be: the program has not started it, and we cannot any more,
 * or there is none. A group has what its parent has. */
static gs_status_t prepare_hosts (struct prepared *p, const struct gsi_boot *boot,
                                  const struct gsi_coll *parent, void *card)
{
    gs_transport_t which = gsi_coll_of_hosts (boot->size);
    char why[512];
    bool meant; /* it is as this program or build has it */
    gs_status_t st;

    if (parent && which != GS_TRANSPORT_SELF)
        which = (gs_transport_t) gsi_transport_of (gsi_coll_hosts_name (parent));
    st = prepare_network (p, which, boot, card);
    if (!st || st == GS_ERR_NOMEM || parent)
        return st;
    snprintf (why, sizeof (why), "%s", gsi_last_text ());
    if (prepare_network (p, (gs_transport_t) GSI_TRANSPORT_OFI, boot, card))
        return gsi_fail (st, "between hosts there is no libfabric (%.80s), and no MPI: %s",
                         gsi_last_text (), why);
    meant =
        st == GS_ERR_STATE || (st == GS_ERR_UNSUPPORTED && !*gsi_env_text (GSI_ENV_MPI_MODULE));
    if (!boot->rank)
        gsi_log (meant ? GS_LOG_INFO : GS_LOG_WARN, "hosts", "by libfabric, since %s", why);
    return GS_OK;
}

static gs_status_t shared_prepare (const struct gsi_boot *boot, const struct gsi_coll *parent,
                                   void *card, void **room)
{
    struct prepared *p = calloc (1, sizeof (*p));
    gs_status_t st = GS_OK;

    if (!p || !(p->shared = make_shared (boot->size)) ||
        !(p->opening = gsi_gpu_group_prepare (boot->size)))
        st = gsi_fail (GS_ERR_NOMEM, "transport between ranks that share GPUs: out of memory");
    if (!st)
        st = prepare_hosts (p, boot, parent, card);
    if (st)
        shared_unprepare (p);
    else
        *room = p;
    return st;
}

/* ---- The transport between hosts, one thread at a time ---- */

/* Tells the others what there is to tell; has the lock. */
static void tell (struct gsi_coll_shared *c)
{
    struct gsi_ending how;

    if (!atomic_load (&c->must_tell) || c->ended || !gsi_coll_is_allowed (c->hosts) ||
        atomic_exchange (&c->gave_up, true) || !c->hosts->ops->notify_abort)
        return;
    how = c->ending;
    if (c->broken && c->broken < how.missed) /* the thread that gave up took it for queued */
        how.missed = c->broken;
    c->hosts->ops->notify_abort (c->hosts, &how);
}

/* The same without the lock: who is inside sees to it, or behind a look that was too early. */
static void try_tell (struct gsi_coll_shared *c)
{
    for (int i = 0; i < 2 && atomic_load (&c->must_tell) && !atomic_load (&c->gave_up); i++) {
        if (pthread_mutex_trylock (&c->inside))
            return;
        tell (c);
        pthread_mutex_unlock (&c->inside);
    }
}

gs_status_t gsi_shared_enter (struct gsi_coll_shared *c, const struct gsi_call *call)
{
    struct gsi_wait wait = gsi_wait_until (call->deadline_ns);

    while (pthread_mutex_trylock (&c->inside)) {
        if (atomic_load (c->base.life) != GSI_ALIVE)
            return gsi_fail (GS_ERR_STATE, "the communicator was aborted");
        if (!gsi_wait_on (&wait))
            return gsi_fail (GS_ERR_TIMEOUT, "another thread is inside the transport between "
                                             "hosts since before the deadline");
    }
    c->hosts->owner = pthread_self ();
    c->seq = call->seq;
    c->message = call->message;
    c->hosts->sent = (struct gsi_sent){.within = 0};
    if (!atomic_load (&c->must_tell))
        return GS_OK;
    tell (c); /* which the thread that gave up may not have been allowed to */
    pthread_mutex_unlock (&c->inside);
    return gsi_fail (GS_ERR_STATE, "the communicator was aborted");
}

gs_status_t gsi_shared_leave (struct gsi_coll_shared *c, gs_status_t st)
{
    const struct gsi_sent *sent = &c->hosts->sent;

    c->base.sent.within += sent->within;
    c->base.sent.between += sent->between;
    c->base.sent.unknown_within |= sent->unknown_within;
    c->base.sent.unknown_between |= sent->unknown_between;
    c->base.culprit = c->hosts->culprit;
    c->base.told = c->hosts->told;
    if (st && st != GS_ERR_UNSUPPORTED && !c->message)
        c->broken = c->seq;
    tell (c);
    pthread_mutex_unlock (&c->inside);
    try_tell (c); /* what was to be told behind that look */
    return st;
}

void gsi_shared_queued (struct gsi_coll_shared *c)
{
    if (pthread_mutex_trylock (&c->inside))
        return; /* the thread that watches is at it, for a call before */
    c->seq = c->message = 0;
    pthread_mutex_unlock (&c->inside);
}

/*
 * First nothing more leaves this rank's arrays, which are the program's again as soon as it
 * knows. The hosts next: other ranks are to know it before NCCL's end tells them.
 */
static void shared_notify_abort (struct gsi_coll *coll, const struct gsi_ending *how)
{
    struct gsi_coll_shared *c = (struct gsi_coll_shared *) coll;

    if (c->group)
        gsi_gpu_group_die (c->group);
    if (!atomic_flag_test_and_set (&c->said)) {
        c->ending = *how;
        atomic_store (&c->must_tell, true);
    }
    try_tell (c);
    if (c->group)
        gsi_gpu_group_abort (c->group, how);
}

static void shared_silence (struct gsi_coll *coll, const struct gsi_ending *how)
{
    const struct gsi_coll_shared *c = (const struct gsi_coll_shared *) coll;

    if (c->group)
        gsi_gpu_group_silence (c->group, how);
}

/* Of a call that is queued nobody would answer: its ranks do not wait in the transport of hosts.
 */
static bool shared_roll_call (struct gsi_coll *coll, const struct gsi_call *call,
                              int64_t listen_ns, unsigned char *came)
{
    struct gsi_coll_shared *c = (struct gsi_coll_shared *) coll;
    bool called = false;

    if (pthread_mutex_trylock (&c->inside))
        return false;
    if (!c->ended && c->seq && c->seq == call->seq && c->message == call->message &&
        gsi_coll_is_allowed (c->hosts) && c->hosts->ops->roll_call)
        called = c->hosts->ops->roll_call (c->hosts, call, listen_ns, came);
    if (called)
        atomic_store (&c->gave_up, true); /* it has told the others */
    pthread_mutex_unlock (&c->inside);
    return called;
}

static bool shared_heard (struct gsi_coll *coll, int rank, struct gsi_told *told)
{
    struct gsi_coll_shared *c = (struct gsi_coll_shared *) coll;
    bool heard = false;

    if (pthread_mutex_trylock (&c->inside))
        return false;
    if (!c->ended && gsi_coll_is_allowed (c->hosts) && c->hosts->ops->heard)
        heard = c->hosts->ops->heard (c->hosts, rank, told);
    pthread_mutex_unlock (&c->inside);
    return heard;
}

/* ---- Life ---- */

static gs_status_t make_queue (struct gsi_coll_shared *c)
{
    gs_status_t st = c->queue->stream_open (&c->stream);

    if (!st)
        st = c->queue->event_open (&c->before);
    for (int i = 0; i < GSI_BOUNCES && !st; i++)
        if (!(st = c->queue->event_open (&c->bounce[i].fetched)))
            st = c->queue->event_open (&c->bounce[i].returned);
    return st;
}

/* Frees what is here but the transport between hosts; the device has been entered. */
static void shared_dissolve (struct gsi_coll_shared *c)
{
    gsi_gpu_group_discard (c->group, c->device, c->base.captured);
    gsi_bounce_close (c);
    unmake_shared (c);
}

/* The transport between hosts, of [room]; of a group, from that of its parent. */
static gs_status_t open_hosts (struct gsi_coll_shared *c, const struct gsi_coll_setup *setup,
                               const struct prepared *room)
{
    struct gsi_call call = {.deadline_ns = setup->deadline_ns};
    struct gsi_coll_setup of_hosts = *setup;
    struct gsi_coll_shared *parent;
    struct gsi_coll_parent of_parent;
    gs_status_t st;

    of_hosts.device = c->host;
    of_hosts.room = room->room;
    if (!setup->parent)
        return room->hosts->open (&of_hosts, &c->hosts);
    parent = (struct gsi_coll_shared *) setup->parent->coll;
    of_parent = *setup->parent;
    of_parent.coll = parent->hosts;
    of_hosts.parent = &of_parent;
    if ((st = gsi_shared_enter (parent, &call))) {
        if (room->hosts->unprepare)
            room->hosts->unprepare (room->room);
        return st;
    }
    return gsi_shared_leave (parent, room->hosts->open (&of_hosts, &c->hosts));
}

/* Sums by groups, if that can be. */
static gs_status_t open_sums (struct gsi_coll_shared *c, struct gsi_group_opening *opening)
{
    bool ordered = gsi_env_int (GSI_ENV_DETERMINISTIC); /* then it is meant */
    char why[256];
    gs_status_t st = gsi_gpu_group_open (opening, &c->group, why, sizeof (why));

    if (st || c->rank)
        return st;
    if (c->group)
        gsi_log (GS_LOG_INFO, "nccl", "sums: on each GPU, then by NCCL between %d GPUs",
                 c->group->topo.size);
    else
        gsi_log (ordered || c->base.mixed ? GS_LOG_INFO : GS_LOG_WARN, "nccl",
                 "sums go by way of the hosts: %s", why);
    return GS_OK;
}

static void set_up (struct gsi_coll_shared *c, const struct gsi_coll_setup *setup)
{
    c->device = setup->device;
    c->queue = setup->device->ops->streams;
    gsi_coll_set_up (&c->base, c->queue ? &gsi_coll_shared_gpus : &gsi_coll_beside_gpus, setup);
    c->rank = setup->topo->rank;
    c->size = setup->topo->size;
}

static gs_status_t open_shared (const struct gsi_coll_setup *setup, struct gsi_coll **out)
{
    struct prepared *p = setup->room;
    struct gsi_coll_shared *c = p->shared;
    gs_status_t st;

    set_up (c, setup);
    p->shared = NULL;
    if (!(st = open_hosts (c, setup, p))) {
        c->base.any_thread = c->hosts->any_thread;
        st = gsi_gpu_group_meet (p->opening, setup, c->hosts, c->queue ? make_queue (c) : GS_OK,
                                 &c->base.mixed);
        if (st || (st = open_sums (c, p->opening)))
            c->hosts->ops->discard (c->hosts);
    }
    p->hosts = NULL; /* its open has taken the room over */
    shared_unprepare (p);
    if (st)
        shared_dissolve (c);
    else
        *out = &c->base;
    return st;
}

/* NCCL's communicator waits for graphs that have operations of it. */
static void mark_captured (struct gsi_coll_shared *c)
{
    if (c->group && c->group->leaders)
        c->group->leaders->captured = c->base.captured;
}

static gs_status_t close_shared (struct gsi_coll *coll, const struct gsi_call *call)
{
    struct gsi_coll_shared *c = (struct gsi_coll_shared *) coll;
    gs_status_t st = gsi_shared_enter (c, call);

    if (st)
        return st;
    if (c->group) {
        mark_captured (c);
        st = gsi_gpu_group_close (c->group, c->device, c->hosts, call);
    }
    if (st || (st = c->hosts->ops->close (c->hosts, call)))
        return gsi_shared_leave (c, st);
    c->ended = true;
    pthread_mutex_unlock (&c->inside);
    return GS_OK;
}

static void discard_shared (struct gsi_coll *coll)
{
    struct gsi_coll_shared *c = (struct gsi_coll_shared *) coll;
    const struct gsi_stream_ops *queue = c->queue;
    const struct gsi_device *device = c->device;
    int previous;
    bool entered = queue && !queue->enter_to_ask (device, &previous);

    mark_captured (c);
    if (!c->ended) {
        tell (c); /* what no other thread could */
        c->hosts->ops->discard (c->hosts);
    }
    shared_dissolve (c);
    if (entered)
        queue->leave (device, previous);
}

static gs_status_t poll_shared (struct gsi_coll *coll)
{
    struct gsi_coll_shared *c = (struct gsi_coll_shared *) coll;
    struct gsi_coll *leaders = c->group ? c->group->leaders : NULL;

    return leaders ? leaders->ops->poll (leaders) : GS_OK;
}

static enum gsi_gave_up shared_gave_up (struct gsi_coll *coll, struct gsi_ending *how)
{
    const struct gsi_coll_shared *c = (struct gsi_coll_shared *) coll;

    return c->group ? gsi_gpu_group_gave_up (c->group, how) : GSI_NONE_GAVE_UP;
}

static void shared_find_gone (struct gsi_coll *coll, unsigned char *gone)
{
    const struct gsi_coll_shared *c = (struct gsi_coll_shared *) coll;

    if (c->group)
        gsi_gpu_group_find_gone (c->group, gone);
}

/* One of our own: nobody else sees that it has not ended, and NCCL's free would wait. */
static void await_stream (struct gsi_coll_shared *c, gs_stream_t stream)
{
    struct gsi_wait wait = gsi_wait_for (OWN_NS, 0);
    bool done = false;

    while (!c->queue->stream_done (stream, &done) && !done)
        if (!gsi_wait_on (&wait)) {
            gsi_device_set_stuck (c->device);
            return;
        }
}

static void shared_settled (struct gsi_coll *coll)
{
    struct gsi_coll_shared *c = (struct gsi_coll_shared *) coll;

    if (!c->group || !c->group->leaders)
        return;
    mark_captured (c);
    await_stream (c, c->stream);
    await_stream (c, c->group->net);
    c->group->leaders->ops->settled (c->group->leaders);
}

const char *gsi_coll_hosts_name (const struct gsi_coll *coll)
{
    return ((const struct gsi_coll_shared *) coll)->hosts->ops->name;
}

bool gsi_coll_is_shared (const struct gsi_coll_ops *ops)
{
    return ops == &gsi_coll_shared_gpus || ops == &gsi_coll_beside_gpus;
}

/* What is the same with a GPU and without. */
#define SHARED_OPS                                                                             \
    .takes_hosts = true, .prepare = shared_prepare, .unprepare = shared_unprepare,             \
    .open = open_shared, .allreduce = gsi_shared_allreduce, .broadcast = gsi_shared_broadcast, \
    .allgather = gsi_shared_allgather, .alltoallv = gsi_shared_alltoallv,                      \
    .messages = gsi_shared_messages, .reduce_scatter = gsi_shared_reduce_scatter,              \
    .reduce_scatterv = gsi_shared_reduce_scatterv, .reduce = gsi_shared_reduce,                \
    .barrier = gsi_shared_barrier, .roll_call = shared_roll_call,                              \
    .notify_abort = shared_notify_abort, .heard = shared_heard, .lasts = true,                 \
    .close = close_shared, .discard = discard_shared

const struct gsi_coll_ops gsi_coll_shared_gpus = {
    .name = "nccl",
    .queued = true,
    .poll = poll_shared,
    .gave_up = shared_gave_up,
    .silence = shared_silence,
    .find_gone = shared_find_gone,
    .settled = shared_settled,
    SHARED_OPS,
};

const struct gsi_coll_ops gsi_coll_beside_gpus = {.name = "hosts", SHARED_OPS};
