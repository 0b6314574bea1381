/* SPDX-License-Identifier: BSD-3-Clause */
/* gpu_group - the ranks that have one GPU: how they find each other and meet in its memory. */
#include "transport/gpu_group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/proc.h"
#include "base/status.h"
#include "transport/gpu_grouping.h"
#include "transport/nccl_versions.h"

#define ROOM_BYTES ((size_t) 64 << 20) /* of a GPU, for slots */
#define SLOT_MOST  ((size_t) 4 << 20)
#define SLOT_LEAST ((size_t) 256 << 10)
#define SLOT_STEP  ((size_t) 64 << 10)
#define TRY_NS     (2 * GSI_NS_PER_S)  /* a stream may take to pass a flag that is there, */
#define TRY_MOST   (10 * GSI_NS_PER_S) /* or a quarter of the deadline, up to that */

/* What each rank tells all behind its GPU: what its group is to meet in. */
struct offer {
    struct gsi_memfd_handle shm;
    struct gsi_ipc_handle room;
    int32_t st;
    char nccl[GSI_COLL_CARD_BYTES];
    char text[128];
};

struct gsi_group_opening {
    const struct gsi_coll_setup *setup;
    struct gsi_coll *hosts;
    struct gsi_gpu_group *g;
    struct gsi_rank_gpu *gpus;          /* [ranks] */
    struct gsi_gpu_grouping grouping;   /* what follows from them */
    struct offer *offers;               /* [ranks] */
    char (*cards)[GSI_COLL_CARD_BYTES]; /* [groups] of the leaders, for NCCL */
    int leader;                         /* of this rank's group */
    const struct gsi_coll_ops *nccl;
    void *nccl_room;
};

static const struct gsi_stream_ops *queue_of (const struct gsi_device *device)
{
    return device->ops->streams;
}

static gs_status_t gather (struct gsi_group_opening *o, const void *mine, void *all, size_t bytes)
{
    struct gsi_call call = {.staged = true, .deadline_ns = o->setup->deadline_ns};

    return o->hosts->ops->allgather (o->hosts, mine, all, bytes, &call);
}

static void keep_text (char *text, size_t room)
{
    snprintf (text, room, "%.*s", (int) room - 1, gsi_last_text ());
}

/* ---- What is needed before any rank waits ---- */

struct gsi_group_opening *gsi_gpu_group_prepare (int size)
{
    struct gsi_group_opening *o = calloc (1, sizeof (*o));
    size_t ranks = (size_t) size;

    if (!o)
        return NULL;
    if ((o->g = calloc (1, sizeof (*o->g)))) {
        o->g->shm = o->g->watch = GSI_MEMFD_NONE;
        pthread_mutex_init (&o->g->guard, NULL);
        o->g->topo.node_of = calloc (ranks, sizeof (*o->g->topo.node_of));
    }
    o->gpus = calloc (ranks, sizeof (*o->gpus));
    o->offers = calloc (ranks, sizeof (*o->offers));
    o->grouping.gpus = o->gpus;
    o->grouping.leaders = calloc (ranks, sizeof (*o->grouping.leaders));
    o->grouping.members = calloc (ranks, sizeof (*o->grouping.members));
    o->cards = calloc (ranks, sizeof (*o->cards));
    if (o->g && o->g->topo.node_of && o->gpus && o->offers && o->grouping.leaders &&
        o->grouping.members && o->cards)
        return o;
    gsi_gpu_group_unprepare (o);
    return NULL;
}

void gsi_gpu_group_unprepare (struct gsi_group_opening *o)
{
    if (!o)
        return;
    if (o->nccl_room)
        o->nccl->unprepare (o->nccl_room);
    if (o->g) { /* it was not opened */
        pthread_mutex_destroy (&o->g->guard);
        free (o->g->topo.node_of);
        free (o->g);
    }
    free (o->gpus);
    free (o->offers);
    free (o->grouping.leaders);
    free (o->grouping.members);
    free (o->cards);
    free (o);
}

/* ---- Who has which GPU ---- */

static struct gsi_rank_gpu describe_gpu (const struct gsi_device *device, gs_status_t st)
{
    struct gsi_rank_gpu own = {.st = (int32_t) st,
                               .deterministic = (int32_t) gsi_env_int (GSI_ENV_DETERMINISTIC),
                               .none = !queue_of (device)};
    struct gsi_gpus gpus = {0};

    if (st)
        keep_text (own.text, sizeof (own.text));
    else if (!queue_of (device))
        snprintf (own.text, sizeof (own.text), "it has no GPU");
    else if (gsi_device_gpus (&gpus) || queue_of (device)->identify (device, &own.id))
        keep_text (own.text, sizeof (own.text));
    else if (device->ordinal >= GSI_MAX_GPUS || !(own.gpu = gpus.id[device->ordinal]))
        snprintf (own.text, sizeof (own.text), "which GPU it has cannot be told");
    else
        own.known = 1;
    return own;
}

gs_status_t gsi_gpu_group_meet (struct gsi_group_opening *o, const struct gsi_coll_setup *setup,
                                struct gsi_coll *hosts, gs_status_t st, bool *mixed)
{
    struct gsi_rank_gpu mine = describe_gpu (setup->device, st);
    gs_status_t gathered;

    o->setup = setup;
    o->hosts = hosts;
    if ((gathered = gather (o, &mine, o->gpus, sizeof (mine))))
        return gathered;
    *mixed = false;
    for (int r = 0; r < setup->topo->size; r++) {
        const struct gsi_rank_gpu *own = &o->gpus[r];
        *mixed = *mixed || own->none;
        if (own->st)
            return gsi_fail ((gs_status_t) own->st, "rank %d: %.*s", r,
                             (int) sizeof (own->text) - 1, own->text);
        if (own->deterministic != o->gpus[0].deterministic)
            return gsi_fail (GS_ERR_MISMATCH,
                             "rank 0 and rank %d have different GS_DETERMINISTIC: set it alike "
                             "on all ranks",
                             r);
    }
    return GS_OK;
}

static void find_groups (struct gsi_group_opening *o)
{
    const struct gsi_topo *topo = o->setup->topo;
    struct gsi_gpu_group *g = o->g;

    gsi_gpu_grouping_find (&o->grouping, topo);
    o->leader = gsi_gpu_grouping_leader (&o->grouping, topo, topo->rank);
    g->size = o->grouping.members[o->leader];
    for (int r = o->leader; r < topo->rank; r++)
        g->place += gsi_gpu_grouping_leader (&o->grouping, topo, r) == o->leader;
}

/* ---- The memory where a group meets ---- */

static size_t bytes_of_flags (int size)
{
    size_t rows = (GSI_GROUP_FLAGS * GSI_GROUP_TURNS + 3) * (size_t) size;

    return rows * GSI_GROUP_STRIDE * sizeof (uint32_t) +
           (size_t) size * sizeof (struct gsi_group_process);
}

static size_t slot_bytes (int size)
{
    size_t bytes = ROOM_BYTES / GSI_GROUP_TURNS / (size_t) (size + 2) / SLOT_STEP * SLOT_STEP;

    return bytes > SLOT_MOST ? SLOT_MOST : bytes < SLOT_LEAST ? SLOT_LEAST : bytes;
}

static void lay_out (struct gsi_gpu_group *g)
{
    size_t line = (size_t) g->size * GSI_GROUP_STRIDE;

    g->flags = (uint32_t *) (void *) (g->shm.base + GSI_PAGE);
    g->dead = g->flags + GSI_GROUP_FLAGS * GSI_GROUP_TURNS * line;
    g->released = g->dead + line;
    g->parted = g->released + line;
    g->process = (struct gsi_group_process *) (void *) (g->parted + line);
}

/* The leader's part: the memory, with a flag for each rank to try. */
static gs_status_t make_room (struct gsi_group_opening *o, struct offer *mine)
{
    struct gsi_gpu_group *g = o->g;
    const struct gsi_device *device = o->setup->device;
    size_t slots = (size_t) GSI_GROUP_TURNS * (size_t) (g->size + 2);
    void *memory;
    gs_status_t st;

    mine->shm = gsi_memfd_make (&g->shm, GSI_PAGE + gsi_memfd_round (bytes_of_flags (g->size)));
    if (!mine->shm.ok)
        return gsi_fail (GS_ERR_NOMEM, "there is no memory to share on this node");
    lay_out (g);
    for (int i = 0; i < g->size; i++)
        *gsi_group_flag (g, GSI_GROUP_READY, 0, i) = 1;
    if ((st = device->ops->alloc (device, slots * g->slot_bytes, &memory)))
        return st;
    g->room = memory;
    return g->size > 1 ? queue_of (device)->ipc_handle (memory, &mine->room) : GS_OK;
}

static gs_status_t make_queue (struct gsi_group_opening *o)
{
    const struct gsi_stream_ops *queue = queue_of (o->setup->device);
    struct gsi_gpu_group *g = o->g;
    gs_status_t st = queue->stream_open (&g->net);

    if (!st)
        st = queue->event_open (&g->before);
    for (int i = 0; i < GSI_GROUP_TURNS && !st; i++)
        if (!(st = queue->event_open (&g->summed[i])))
            st = queue->event_open (&g->done[i]);
    return st;
}

static gs_status_t prepare_nccl (struct gsi_group_opening *o, struct offer *mine)
{
    struct gsi_boot boot = {.rank = o->g->topo.rank,
                            .size = o->grouping.groups,
                            .one_node = o->setup->topo->nodes == 1};
    int version;
    gs_status_t st;

    if (o->grouping.groups < 2)
        return GS_OK;
    if ((st = gsi_nccl_version_find (&version)) ||
        (st = gsi_gpu_grouping_check_nccl (o->grouping.groups, version)))
        return st;
    st = gsi_coll_find (GS_TRANSPORT_NCCL, o->grouping.groups, &o->nccl);
    return st ? st : o->nccl->prepare (&boot, NULL, mine->nccl, &o->nccl_room);
}

/* What this rank can do before it hears of the others. */
static gs_status_t make_offer (struct gsi_group_opening *o, struct offer *mine)
{
    gs_status_t st = make_queue (o);

    if (st || o->g->place)
        return st;
    st = make_room (o, mine);
    return st ? st : prepare_nccl (o, mine);
}

/* Maps what the leader has made; from here on it keeps it until this rank has parted. */
static gs_status_t map_room (struct gsi_group_opening *o)
{
    struct gsi_gpu_group *g = o->g;
    const struct offer *offer = &o->offers[o->leader];
    void *memory;
    gs_status_t st;
    bool ended;

    if (!gsi_memfd_join (&g->shm, &offer->shm))
        return gsi_fail (GS_ERR_DEVICE, "memory of the node cannot be shared");
    lay_out (g);
    g->process[g->place].start = gsi_process_start (getpid (), &ended);
    g->process[g->place].space = gsi_process_space ();
    __atomic_store_n (&g->process[g->place].pid, getpid (), __ATOMIC_RELEASE);
    if ((st = queue_of (o->setup->device)->ipc_open (&offer->room, &memory)))
        __atomic_store_n (gsi_group_mark (g->parted, g->place), 1, __ATOMIC_RELEASE);
    else
        g->room = memory;
    return st;
}

/* Whether streams can wait for flags at all, as old drivers' cannot, and set them. */
static gs_status_t try_flags (struct gsi_group_opening *o)
{
    struct gsi_gpu_group *g = o->g;
    const struct gsi_stream_ops *queue = queue_of (o->setup->device);
    int64_t most_ns = (o->setup->deadline_ns - gsi_now_ns ()) / 4; /* others wait for this */
    struct gsi_wait wait = gsi_wait_for (most_ns < TRY_NS     ? TRY_NS
                                         : most_ns > TRY_MOST ? TRY_MOST
                                                              : most_ns,
                                         GSI_SPIN_NS);
    uint32_t *flag = gsi_group_flag (g, GSI_GROUP_READY, 0, g->place);
    bool done = false;
    gs_status_t st = queue->stream_wait_value (g->net, flag);

    if (!st)
        st = queue->set_flags (flag, 1, 1, 0, gsi_group_mark (g->released, g->place), g->net);
    while (!st && !(st = queue->stream_done (g->net, &done)) && !done && gsi_wait_on (&wait))
        ;
    g->stuck = !st && !done;
    return g->stuck ? gsi_fail (GS_ERR_TIMEOUT, "a stream waits for a flag in vain") : st;
}

/* What leaders of this node hand on is no result once one of them has given up. */
static gs_status_t watch_leaders (struct gsi_group_opening *o)
{
    const int *node_of = o->setup->topo->node_of;
    const struct gsi_coll_ops *nccl;
    int first = 0;
    gs_status_t st;

    if (o->grouping.groups < 2)
        return GS_OK;
    if ((st = gsi_coll_find (GS_TRANSPORT_NCCL, o->grouping.groups, &nccl)))
        return st;
    while (node_of[o->grouping.leaders[first]] != o->setup->topo->node)
        first++;
    o->g->told = nccl->watch (o->cards[first], &o->g->watch);
    return o->g->told ? GS_OK : gsi_fail (GS_ERR_DEVICE, "memory of the node cannot be shared");
}

/* What the group meets in, which its leader has made. */
static gs_status_t join_room (struct gsi_group_opening *o)
{
    struct gsi_gpu_group *g = o->g;
    const struct gsi_stream_ops *queue = queue_of (o->setup->device);
    gs_status_t st = g->place ? watch_leaders (o) : GS_OK;

    if (!st && g->place)
        st = map_room (o);

    if (st || (st = queue->pin (g->flags, g->shm.bytes - GSI_PAGE)))
        return st;
    g->pinned = true;
    st = queue->reaches (g->flags);
    return st ? st : try_flags (o);
}

/* ---- One step after the other, each on all ranks ---- */

/* The leaders' own communicator. Who waits for them meanwhile does so until the deadline. */
static gs_status_t open_leaders (struct gsi_group_opening *o)
{
    struct gsi_coll_setup setup = *o->setup;
    int64_t now_ns = gsi_now_ns ();

    if (o->grouping.groups < 2 || o->g->place)
        return GS_OK;
    setup.topo = &o->g->topo;
    setup.cards = o->cards;
    setup.parent = NULL;
    setup.room = o->nccl_room;
    setup.watched = true;
    setup.deadline_ns = now_ns + (setup.deadline_ns - now_ns) / 2;
    o->nccl_room = NULL;
    return o->nccl->open (&setup, &o->g->leaders);
}

/* The rank because of which not all can go on, or -1: others may have waited for it in vain. */
static int find_unable (const struct gsi_group_opening *o)
{
    int found = -1;

    for (int r = 0; r < o->setup->topo->size; r++)
        if (o->offers[r].st && (found < 0 || (o->offers[found].st == GS_ERR_TIMEOUT &&
                                              o->offers[r].st != GS_ERR_TIMEOUT)))
            found = r;
    return found;
}

/* Tells all ranks how it went here, [st]. [all]: all can go on, else [why] says why not. */
static gs_status_t agree (struct gsi_group_opening *o, struct offer *mine, gs_status_t st,
                          bool *all, char *why, size_t room)
{
    gs_status_t gathered;
    int unable;

    mine->st = (int32_t) st;
    if (st)
        keep_text (mine->text, sizeof (mine->text));
    *all = false;
    if ((gathered = gather (o, mine, o->offers, sizeof (*mine))))
        return gathered;
    unable = find_unable (o);
    *all = unable < 0;
    if (!*all)
        snprintf (why, room, "rank %d: %.*s", unable, (int) sizeof (o->offers[unable].text) - 1,
                  o->offers[unable].text);
    return GS_OK;
}

static gs_status_t open_group (struct gsi_group_opening *o, bool *all, char *why, size_t room)
{
    struct offer mine = {.st = GS_OK};
    gs_status_t st;

    if ((st = agree (o, &mine, make_offer (o, &mine), all, why, room)) || !*all)
        return st;
    for (int i = 0; i < o->grouping.groups; i++)
        memcpy (o->cards[i], o->offers[o->grouping.leaders[i]].nccl, sizeof (o->cards[i]));
    /* Not yet NCCL, where leaders would wait for one that cannot. */
    mine = (struct offer){.st = GS_OK};
    if ((st = agree (o, &mine, join_room (o), all, why, room)) || !*all)
        return st;
    return agree (o, &mine, open_leaders (o), all, why, room);
}

gs_status_t gsi_gpu_group_open (struct gsi_group_opening *o, struct gsi_gpu_group **out,
                                char *why, size_t room)
{
    struct gsi_gpu_group *g = o->g;
    bool all = false;
    gs_status_t st;

    *out = NULL;
    find_groups (o);
    if (!gsi_gpu_grouping_may_sum (&o->grouping, o->setup->topo, why, room))
        return GS_OK;
    gsi_gpu_grouping_topo (&o->grouping, o->setup->topo, &g->topo);
    g->slot_bytes = slot_bytes (o->grouping.largest);
    st = open_group (o, &all, why, room);
    o->g = NULL;
    g->leader = o->grouping.leaders;
    o->grouping.leaders = NULL;
    gsi_memfd_hide (&g->shm);
    if (all)
        *out = g;
    else
        gsi_gpu_group_discard (g, o->setup->device, false);
    return st;
}
