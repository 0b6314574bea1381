/* SPDX-License-Identifier: BSD-3-Clause */
/* device_free - memory of GPUs is given back by threads, within a deadline. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/thread.h"
#include "base/timed_call.h"
#include "cuda/device_cuda.h"

#define SPIN_NS GSI_NS_PER_MS /* a free that takes longer may take its time */
#define SHUT_NS GSI_NS_PER_S  /* who shuts may hang, or wait for other ranks */
#define SHUTS   32            /* of a GPU at the same time */

/* By number of a GPU in this process, whichever communicator has opened it. */
static struct {
    atomic_int frees;                       /* under way */
    _Atomic (int64_t) until_ns;             /* the latest deadline of them */
    atomic_int shuts;                       /* gsi_stream_ops.shut: places in use, */
    _Atomic (int64_t) shut_until_ns[SHUTS]; /* each until then; 0: free */
} gpus[GSI_MAX_GPUS];

static int slot_of (int ordinal)
{
    return ordinal % GSI_MAX_GPUS;
}

void gsi_cuda_forget (cudaError_t error)
{
    if (error)
        cudaGetLastError ();
}

void gsi_cuda_relax_capture (void)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;

    gsi_cuda_forget (cudaThreadExchangeStreamCaptureMode (&mode));
}

/* Guards both lists. */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static struct gsi_cuda_device *devices;

/* What is to be freed. */
struct kept {
    struct kept *next;
    int ordinal;
    bool own; /* who frees waits for this one */
    struct gsi_cuda_deferred deferred;
};
static struct kept *all_kept;
static struct kept *lost; /* kept for good: CUDA did not free it */

void gsi_cuda_join (struct gsi_cuda_device *device)
{
    pthread_mutex_lock (&guard);
    device->next = devices;
    devices = device;
    pthread_mutex_unlock (&guard);
}

void gsi_cuda_part (struct gsi_cuda_device *device)
{
    struct gsi_cuda_device **at = &devices;

    pthread_mutex_lock (&guard);
    while (*at != device)
        at = &(*at)->next;
    *at = device->next;
    pthread_mutex_unlock (&guard);
}

static _Thread_local const struct gsi_cuda_device *in_call; /* the innermost of this thread */

void gsi_cuda_work (struct gsi_device *device, enum gsi_work kind, int more)
{
    struct gsi_cuda_device *one = (struct gsi_cuda_device *) device;

    atomic_fetch_add (&one->work[kind], more);
    if (kind == GSI_WORK_CALLS && more > 0) {
        one->outer = in_call;
        in_call = one;
    } else if (kind == GSI_WORK_CALLS) {
        in_call = one->outer;
    }
}

/* Calls of this thread do not count. */
static bool has_work (const struct gsi_cuda_device *one)
{
    int own = 0;

    for (const struct gsi_cuda_device *call = in_call; call; call = call->outer)
        own += call == one;
    return atomic_load (&one->work[GSI_WORK_CALLS]) > own ||
           atomic_load (&one->work[GSI_WORK_QUEUES]);
}

/* Whether the GPU has work, [own] left out. */
static bool is_at_work (const struct gsi_device *device, const struct gsi_device *own)
{
    bool yes = false;

    pthread_mutex_lock (&guard);
    for (const struct gsi_cuda_device *d = devices; d && !yes; d = d->next)
        yes = d->base.ordinal == device->ordinal && &d->base != own && has_work (d);
    pthread_mutex_unlock (&guard);
    return yes;
}

static void add (struct kept **list, struct kept *item)
{
    pthread_mutex_lock (&guard);
    item->next = *list;
    *list = item;
    pthread_mutex_unlock (&guard);
}

static void keep (struct kept *item)
{
    add (&all_kept, item);
}

bool gsi_cuda_is_busy (const struct gsi_device *device)
{
    return is_at_work (device, NULL);
}

bool gsi_cuda_keeps_any (int ordinal)
{
    const struct kept *item;

    pthread_mutex_lock (&guard);
    for (item = all_kept; item && item->ordinal != ordinal; item = item->next)
        ;
    pthread_mutex_unlock (&guard);
    return item;
}

static bool may_go (const struct kept *item)
{
    return !item->deferred.ready || item->deferred.ready (item->deferred.context);
}

/* All of a GPU that may go, [own] marked. */
static struct kept *take_kept (int ordinal, const struct kept *own)
{
    struct kept *taken = NULL, *item;

    pthread_mutex_lock (&guard);
    for (struct kept **at = &all_kept; (item = *at);) {
        if (item->ordinal != ordinal || !may_go (item)) {
            at = &item->next;
            continue;
        }
        *at = item->next;
        item->next = taken;
        item->own = item == own;
        taken = item;
    }
    pthread_mutex_unlock (&guard);
    return taken;
}

/* What the free of [item] gave, for who waits for it. */
static cudaError_t say (const struct kept *item, cudaError_t error)
{
    if (error && !item->own)
        gsi_log (GS_LOG_WARN, "device", "memory of GPU %d, freed later: %s", item->ordinal,
                 cudaGetErrorString (error));
    return item->own ? error : cudaSuccess;
}

static cudaError_t free_one (const struct gsi_cuda_deferred *deferred)
{
    cudaError_t error = deferred->by (deferred->memory);

    if (deferred->done && !error) /* else it is kept, for good */
        deferred->done (deferred->context);
    return error;
}

/* What else would be told stays with memory that is not freed. */
static void forget (struct kept *item, bool freed)
{
    if (freed || !item->deferred.done)
        free (item);
    else
        add (&lost, item);
}

/* In the order given, and forgets them; what that of the own one gave. */
static cudaError_t free_all (struct kept *items)
{
    int previous;
    cudaError_t entered = gsi_cuda_set_device (items->ordinal, &previous), error = cudaSuccess;

    gsi_cuda_relax_capture ();
    for (struct kept *next; items; items = next) {
        cudaError_t its = entered ? entered : free_one (&items->deferred);
        error = say (items, its) ? its : error;
        next = items->next;
        forget (items, !its);
    }
    return error;
}

/* For a thread of its own. */
static int return_memory (void *argument)
{
    struct kept *items = argument;
    int ordinal = items->ordinal;
    cudaError_t error = cudaSuccess;

    if (gsi_thread_enter_gpu ()) { /* else the process ends, and its memory with it */
        error = free_all (items);
        gsi_thread_leave_gpu ();
    }
    atomic_fetch_sub (&gpus[slot_of (ordinal)].frees, 1);
    return (int) error;
}

static bool is_shut (int slot)
{
    int64_t now_ns;

    if (!atomic_load (&gpus[slot].shuts))
        return false;
    now_ns = gsi_now_ns ();
    for (int i = 0; i < SHUTS; i++)
        if (now_ns < atomic_load (&gpus[slot].shut_until_ns[i]))
            return true;
    return false;
}

bool gsi_cuda_is_closed (int ordinal)
{
    int slot = slot_of (ordinal);

    return atomic_load (&gpus[slot].frees) || is_shut (slot);
}

static bool is_late (int ordinal)
{
    int slot = slot_of (ordinal);

    return atomic_load (&gpus[slot].frees) && gsi_now_ns () >= atomic_load (&gpus[slot].until_ns);
}

bool gsi_cuda_await_open (int ordinal, int64_t patience_ns)
{
    struct gsi_wait wait;
    bool open = !gsi_cuda_is_closed (ordinal);

    if (open)
        return true;
    wait = gsi_wait_for (patience_ns, SPIN_NS);
    while (!open && !is_late (ordinal) && gsi_wait_on (&wait))
        open = !gsi_cuda_is_closed (ordinal);
    return open || !atomic_load (&gpus[slot_of (ordinal)].frees);
}

/* From now on who enters waits; false: collectives need the GPU first. */
static bool close_gpu (const struct gsi_device *device, int64_t until_ns)
{
    int slot = slot_of (device->ordinal);

    if (is_at_work (device, NULL))
        return false;
    if (!atomic_load (&gpus[slot].frees) || atomic_load (&gpus[slot].until_ns) < until_ns)
        atomic_store (&gpus[slot].until_ns, until_ns);
    atomic_fetch_add (&gpus[slot].frees, 1);
    if (!is_at_work (device, NULL))
        return true;
    atomic_fetch_sub (&gpus[slot].frees, 1);
    return false;
}

/* False: all are in use. */
static bool take_place (int slot, struct gsi_shut *shut)
{
    int64_t now_ns = gsi_now_ns ();

    shut->until_ns = now_ns + SHUT_NS;
    atomic_fetch_add (&gpus[slot].shuts, 1);
    for (shut->place = 0; shut->place < SHUTS; shut->place++) {
        _Atomic (int64_t) *until_ns = &gpus[slot].shut_until_ns[shut->place];
        int64_t before_ns = atomic_load (until_ns);
        if (before_ns <= now_ns &&
            atomic_compare_exchange_strong (until_ns, &before_ns, shut->until_ns)) {
            if (before_ns) /* it was in use, by one whose time is over */
                atomic_fetch_sub (&gpus[slot].shuts, 1);
            return true;
        }
    }
    atomic_fetch_sub (&gpus[slot].shuts, 1);
    return false;
}

bool gsi_cuda_shut (const struct gsi_device *device, const struct gsi_device *own,
                    struct gsi_shut *shut)
{
    if (is_at_work (device, own) || !take_place (slot_of (device->ordinal), shut))
        return false;
    if (!is_at_work (device, own))
        return true;
    gsi_cuda_reopen (device, shut);
    return false;
}

/* Not what another one has since. */
void gsi_cuda_reopen (const struct gsi_device *device, const struct gsi_shut *shut)
{
    int slot = slot_of (device->ordinal);
    int64_t until_ns = shut->until_ns;

    if (atomic_compare_exchange_strong (&gpus[slot].shut_until_ns[shut->place], &until_ns, 0))
        atomic_fetch_sub (&gpus[slot].shuts, 1);
}

/* Frees them, or leaves that to a thread: GS_ERR_TIMEOUT. */
static gs_status_t free_in_time (struct kept *items, int64_t until_ns, int *rc)
{
    struct gsi_timed_call *call = NULL;
    int ordinal = items->ordinal;
    gs_status_t st = gsi_timed_call_run (&call, "cudaFree", return_memory, items, until_ns, rc);

    if (call) {
        gsi_timed_call_leave (call);
    } else if (st) { /* there is no thread */
        for (struct kept *next; items; items = next) {
            next = items->next;
            keep (items);
        }
        atomic_fetch_sub (&gpus[slot_of (ordinal)].frees, 1);
    }
    return st;
}

/* What the free of [own], if it is there, gave; [*any]: something was freed, or is. */
static cudaError_t free_kept (const struct gsi_device *device, const struct kept *own,
                              bool at_once, bool *any)
{
    int64_t now_ns = gsi_now_ns (), until_ns = now_ns + gsi_device_patience (device);
    struct kept *items = NULL;
    gs_status_t st;
    int rc = 0;

    *any = false;
    if (!gsi_cuda_keeps_any (device->ordinal) || gsi_device_is_stuck (device) ||
        is_late (device->ordinal) || !close_gpu (device, until_ns))
        return cudaSuccess;
    if (!(items = take_kept (device->ordinal, own))) {
        atomic_fetch_sub (&gpus[slot_of (device->ordinal)].frees, 1);
        return cudaSuccess;
    }
    st = free_in_time (items, at_once ? now_ns : until_ns, &rc);
    if (st == GS_ERR_TIMEOUT && !at_once)
        gsi_log (GS_LOG_WARN, "device",
                 "GPU %d has not ended its work: memory is freed when it has; more is kept, and "
                 "CUDA keeps all calls of this process waiting till then",
                 device->ordinal);
    *any = st != GS_ERR_NOMEM;
    return (cudaError_t) rc;
}

bool gsi_cuda_free_kept (const struct gsi_device *device, bool at_once)
{
    bool any;

    free_kept (device, NULL, at_once, &any);
    return any;
}

void gsi_cuda_tidy (const struct gsi_device *device)
{
    gsi_cuda_free_kept (device, true);
}

static bool defer_free (const struct gsi_device *device, const struct gsi_cuda_deferred *deferred,
                        cudaError_t *error)
{
    struct kept *item;
    bool any;

    *error = cudaSuccess;
    if (!(item = malloc (sizeof (*item))))
        return false;
    *item = (struct kept){.ordinal = device->ordinal, .deferred = *deferred};
    if (gsi_device_is_stuck (device) || is_late (device->ordinal)) {
        forget (item, false);
        return false;
    }
    keep (item);
    *error = free_kept (device, item, false, &any);
    return true;
}

bool gsi_cuda_free (const struct gsi_device *device, void *memory,
                    cudaError_t (*by) (void *memory), cudaError_t *error)
{
    return defer_free (device, &(struct gsi_cuda_deferred){.memory = memory, .by = by}, error);
}

void gsi_cuda_defer_free (const struct gsi_device *device,
                          const struct gsi_cuda_deferred *deferred)
{
    cudaError_t error;

    if (defer_free (device, deferred, &error))
        gsi_cuda_forget (error);
}
