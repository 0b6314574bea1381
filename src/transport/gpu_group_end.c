/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu_group_end - how ranks that have one GPU part, and how one of them gives up.
 *
 * Memory that others use, and what is behind flags that streams may wait for, goes when nobody
 * has it any more, or with the process.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/status.h"
#include "device/flags.h"
#include "transport/gpu_group.h"

#define SILENT_NS (5 * GSI_NS_PER_S) /* NCCL's abort is waited for, to reach what runs */
#define PASS_NS   GSI_NS_PER_S       /* a stream may take to pass a flag that is released */

/* ---- To give up ---- */

/* Lets this rank's streams go on: no other rank waits for these flags. The mark comes first, so
 * that who takes a flag back sees it. */
static void release (struct gsi_gpu_group *g)
{
    enum gsi_group_flag kind = g->place ? GSI_GROUP_READY : GSI_GROUP_FULL;
    int begin = g->place ? g->place : 1, end = g->place ? g->place + 1 : g->size;

    __atomic_store_n (gsi_group_mark (g->released, g->place), 1, __ATOMIC_SEQ_CST);
    for (int turn = 0; turn < GSI_GROUP_TURNS; turn++)
        for (int i = begin; i < end; i++)
            __atomic_store_n (gsi_group_flag (g, kind, turn, i), GSI_FLAG_RELEASED,
                              __ATOMIC_SEQ_CST);
}

void gsi_gpu_group_die (struct gsi_gpu_group *g)
{
    pthread_mutex_lock (&g->guard);
    if (g->flags)
        __atomic_store_n (gsi_group_mark (g->dead, g->place), 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock (&g->guard);
}

/* Gets the leaders if they are to be told: not while they are being closed, which is given up if
 * this rank [gives_up], nor once all has been said. They are there until tell_no_more. */
static struct gsi_coll *take_leaders (struct gsi_gpu_group *g, bool gives_up)
{
    struct gsi_coll *leaders = NULL;

    pthread_mutex_lock (&g->guard);
    if (!g->ending && !g->waited)
        leaders = g->leaders;
    g->gave_up = g->gave_up || gives_up;
    g->tellers++;
    pthread_mutex_unlock (&g->guard);
    return leaders;
}

static void tell_no_more (struct gsi_gpu_group *g)
{
    pthread_mutex_lock (&g->guard);
    g->tellers--;
    pthread_mutex_unlock (&g->guard);
}

static struct gsi_ending ending_among (const struct gsi_gpu_group *g,
                                       const struct gsi_ending *how)
{
    struct gsi_ending among_leaders = *how;

    among_leaders.by = g->topo.rank;
    return among_leaders;
}

void gsi_gpu_group_silence (struct gsi_gpu_group *g, const struct gsi_ending *how)
{
    const struct gsi_ending among_leaders = ending_among (g, how);
    struct gsi_coll *leaders = take_leaders (g, false);

    if (leaders)
        leaders->ops->silence (leaders, &among_leaders);
    gsi_gpu_group_die (g);
    tell_no_more (g);
}

static void end_abort (struct gsi_gpu_group *g, bool waited)
{
    pthread_mutex_lock (&g->guard);
    if (g->flags)
        release (g);
    g->waited = g->waited || waited;
    pthread_mutex_unlock (&g->guard);
    tell_no_more (g);
}

/*
 * What the flags hold up goes on once NCCL sends none of it, or where its abort takes long: by
 * then whom it would reach has been told that it is no result.
 */
void gsi_gpu_group_abort (struct gsi_gpu_group *g, const struct gsi_ending *how)
{
    const struct gsi_ending among_leaders = ending_among (g, how);
    struct gsi_coll *leaders = take_leaders (g, true);
    struct gsi_wait wait = gsi_wait_for (SILENT_NS, 0);

    gsi_gpu_group_die (g);
    if (leaders) {
        leaders->ops->notify_abort (leaders, &among_leaders);
        while (!leaders->ops->is_silent (leaders) && gsi_wait_on (&wait))
            ;
    }
    end_abort (g, leaders != NULL);
}

enum gsi_gave_up gsi_gpu_group_gave_up (const struct gsi_gpu_group *g, struct gsi_ending *how)
{
    enum gsi_gave_up gave_up = GSI_NONE_GAVE_UP;
    uint64_t word = g->told ? atomic_load (g->told) : 0;

    if (g->leaders)
        gave_up = g->leaders->ops->gave_up (g->leaders, how);
    else if (word)
        gave_up = GSI_GAVE_UP;
    if (word)
        gsi_ending_unpack (word, how);
    if (gave_up == GSI_GAVE_UP && how->by >= 0 && how->by < g->topo.size)
        how->by = g->leader[how->by];
    return gave_up;
}

void gsi_gpu_group_find_gone (const struct gsi_gpu_group *g, unsigned char *gone)
{
    unsigned char *leaders = g->leaders ? calloc ((size_t) g->topo.size, 1) : NULL;

    if (leaders)
        g->leaders->ops->find_gone (g->leaders, leaders);
    for (int i = 0; leaders && i < g->topo.size; i++)
        gone[g->leader[i]] |= leaders[i];
    free (leaders);
}

/* ---- The memory ---- */

/* What the last of those that hold it unmaps. */
struct parting {
    struct gsi_memfd shm;
    struct gsi_group_process *process;
    uint32_t *parted; /* [size] */
    int size, place;
    atomic_int holders;
};

static void end_parting (void *context)
{
    struct parting *p = context;

    if (atomic_fetch_sub (&p->holders, 1) > 1)
        return;
    gsi_memfd_close (&p->shm);
    free (p);
}

static void tell_parted (void *context)
{
    struct parting *p = context;

    __atomic_store_n (gsi_group_mark (p->parted, p->place), 1, __ATOMIC_RELEASE);
    end_parting (p);
}

/* Whether no rank has the room mapped any more. */
static bool have_parted (void *context)
{
    const struct parting *p = context;

    for (int i = 1; i < p->size; i++) {
        const struct gsi_group_process *process = &p->process[i];
        int64_t pid = __atomic_load_n (&process->pid, __ATOMIC_ACQUIRE);
        if (pid && !__atomic_load_n (gsi_group_mark (p->parted, i), __ATOMIC_ACQUIRE) &&
            !gsi_process_has_ended (pid, process->start, process->space))
            return false;
    }
    return true;
}

/* Nobody has the flags from here on; the last who holds [p] unmaps them. */
static void take_flags (struct gsi_gpu_group *g, struct parting *p)
{
    pthread_mutex_lock (&g->guard);
    if (p) {
        p->shm = g->shm;
        p->process = g->process;
        p->parted = g->parted;
        p->size = g->size;
        p->place = g->place;
        atomic_init (&p->holders, 1);
    }
    g->flags = g->dead = g->released = g->parted = NULL;
    g->process = NULL;
    g->shm = GSI_MEMFD_NONE;
    pthread_mutex_unlock (&g->guard);
}

/* Lets go of flags and room, or keeps both, which a GPU may use still, until the process ends. */
static void part (struct gsi_gpu_group *g, const struct gsi_device *device, bool keep)
{
    const struct gsi_stream_ops *queue = device->ops->streams;
    struct parting *p = keep || gsi_device_is_stuck (device) ? NULL : malloc (sizeof (*p));
    uint32_t *flags = g->flags;

    if (!flags) /* they have parted, or never met; a room comes with flags */
        free (p);
    else
        take_flags (g, p);
    if (flags && !p)
        gsi_log (GS_LOG_INFO, "nccl", "memory of GPU %d is kept until the process ends: %s",
                 device->ordinal,
                 keep && !g->stuck ? "CUDA graphs may use it" : "the GPU may use it");
    if (flags && p) {
        if (g->pinned)
            atomic_fetch_add (&p->holders, 1);
        if (g->room)
            atomic_fetch_add (&p->holders, 1);
        if (g->room && g->place)
            queue->ipc_close (device, g->room, tell_parted, p);
        else if (g->room)
            queue->free_behind (device, g->room, have_parted, end_parting, p);
        if (g->pinned)
            queue->unpin (device, flags, end_parting, p);
        end_parting (p);
    }
    g->room = NULL;
    g->pinned = false;
}

/* ---- The end ---- */

/* Whoever gives up meanwhile has done it; false: too late, this rank has given up. */
static gs_status_t begin_end (struct gsi_gpu_group *g, const struct gsi_call *call)
{
    struct gsi_wait wait = gsi_wait_until (call->deadline_ns);
    bool gave_up;
    int tellers;

    do {
        pthread_mutex_lock (&g->guard);
        g->ending = true;
        tellers = g->tellers;
        gave_up = g->gave_up;
        pthread_mutex_unlock (&g->guard);
    } while (tellers && gsi_wait_on (&wait));
    return tellers || gave_up ? gsi_fail (GS_ERR_STATE, "the communicator was aborted") : GS_OK;
}

static void end_failed (struct gsi_gpu_group *g)
{
    pthread_mutex_lock (&g->guard);
    g->ending = false;
    pthread_mutex_unlock (&g->guard);
}

gs_status_t gsi_gpu_group_close (struct gsi_gpu_group *g, const struct gsi_device *device,
                                 struct gsi_coll *hosts, const struct gsi_call *call)
{
    gs_status_t st = begin_end (g, call);

    if (!st && g->leaders && !(st = g->leaders->ops->close (g->leaders, call)))
        g->leaders = NULL;
    if (st) {
        end_failed (g);
        return st;
    }
    part (g, device, false);
    return hosts->ops->barrier (hosts, call);
}

/* The stream that tried the flags may go on now that they are released; else nothing is freed. */
static void await_stuck (struct gsi_gpu_group *g, const struct gsi_device *device)
{
    struct gsi_wait wait = gsi_wait_for (PASS_NS, 0);
    bool done = false;

    while (!device->ops->streams->stream_done (g->net, &done) && !done && gsi_wait_on (&wait))
        ;
    g->stuck = !done;
    if (g->stuck)
        gsi_device_set_stuck (device);
}

void gsi_gpu_group_discard (struct gsi_gpu_group *g, const struct gsi_device *device,
                            bool captured)
{
    const struct gsi_stream_ops *queue = device->ops->streams;
    const struct gsi_ending how = {.status = GS_ERR_STATE, .culprit = -1};

    if (!g)
        return;
    if (g->flags || g->leaders)
        gsi_gpu_group_abort (g, &how);
    if (g->leaders)
        g->leaders->ops->discard (g->leaders);
    if (g->stuck)
        await_stuck (g, device);
    part (g, device, captured || g->stuck);
    for (int i = 0; i < GSI_GROUP_TURNS; i++) {
        queue->event_close (g->summed[i]);
        queue->event_close (g->done[i]);
    }
    queue->event_close (g->before);
    queue->stream_close (g->net);
    gsi_memfd_close (&g->shm);
    gsi_memfd_close (&g->watch);
    pthread_mutex_destroy (&g->guard);
    free (g->topo.node_of);
    free (g->leader);
    free (g);
}
