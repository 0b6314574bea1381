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

/* By number of a GPU in this process, whichever communicator has opened it. */
static struct {
    atomic_int frees;           /* under way */
    _Atomic (int64_t) until_ns; /* the latest deadline of them */
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

/* Guards both lists. */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static struct gsi_cuda_device *devices;

/* What is to be freed. */
static struct kept {
    struct kept *next;
    int ordinal;
    void *memory;
    cudaError_t (*by) (void *memory);
} * all_kept;

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

static bool others_work (const struct gsi_device *device)
{
    bool yes = false;

    pthread_mutex_lock (&guard);
    for (struct gsi_cuda_device *d = devices; d && !yes; d = d->next)
        yes = &d->base != device && d->base.ordinal == device->ordinal && atomic_load (&d->work);
    pthread_mutex_unlock (&guard);
    return yes;
}

static void keep (struct kept *item)
{
    pthread_mutex_lock (&guard);
    item->next = all_kept;
    all_kept = item;
    pthread_mutex_unlock (&guard);
}

static struct kept *take_kept (int ordinal)
{
    struct kept *taken = NULL, *item;

    pthread_mutex_lock (&guard);
    for (struct kept **at = &all_kept; (item = *at);) {
        if (item->ordinal != ordinal) {
            at = &item->next;
            continue;
        }
        *at = item->next;
        item->next = taken;
        taken = item;
    }
    pthread_mutex_unlock (&guard);
    return taken;
}

static void forget_all (struct kept *items)
{
    for (struct kept *next; items; items = next) {
        next = items->next;
        free (items);
    }
}

/* The thread is on their device then; the first error. */
static cudaError_t give_back (const struct kept *items, int *previous)
{
    cudaError_t error = gsi_cuda_set_device (items->ordinal, previous), first = error;

    if (error)
        return error;
    gsi_cuda_stand_apart ();
    for (; items; items = items->next)
        if ((error = items->by (items->memory)) && !first)
            first = error;
    return first;
}

/* For a thread of its own. */
static int return_memory (void *argument)
{
    struct kept *items = argument;
    int ordinal = items->ordinal, previous;
    cudaError_t error = cudaSuccess;

    if (gsi_thread_enter_gpu ()) { /* else the process ends, and its memory with it */
        error = give_back (items, &previous);
        gsi_thread_leave_gpu ();
    }
    forget_all (items);
    atomic_fetch_sub (&gpus[slot_of (ordinal)].frees, 1);
    return (int) error;
}

bool gsi_cuda_is_freeing (int ordinal)
{
    return atomic_load_explicit (&gpus[slot_of (ordinal)].frees, memory_order_acquire) > 0;
}

bool gsi_cuda_await_free (int ordinal, int64_t patience_ns)
{
    int64_t begin_ns, until_ns;

    if (!gsi_cuda_is_freeing (ordinal))
        return true;
    begin_ns = gsi_now_ns ();
    until_ns = atomic_load (&gpus[slot_of (ordinal)].until_ns);
    if (until_ns > begin_ns + patience_ns)
        until_ns = begin_ns + patience_ns;
    while (gsi_cuda_is_freeing (ordinal) && gsi_now_ns () < until_ns)
        gsi_pause (gsi_now_ns () - begin_ns, SPIN_NS);
    return !gsi_cuda_is_freeing (ordinal);
}

static bool is_late (const struct gsi_device *device)
{
    return gsi_cuda_is_freeing (device->ordinal) &&
           gsi_now_ns () >= atomic_load (&gpus[slot_of (device->ordinal)].until_ns);
}

/* From now on nobody enters; false: the collectives of others need the GPU first. */
static bool close_gpu (const struct gsi_device *device, int64_t until_ns)
{
    int slot = slot_of (device->ordinal);
    bool alone = !gsi_cuda_is_freeing (device->ordinal);

    if (alone || atomic_load (&gpus[slot].until_ns) < until_ns)
        atomic_store (&gpus[slot].until_ns, until_ns);
    atomic_fetch_add (&gpus[slot].frees, 1);
    if (!others_work (device))
        return true;
    atomic_fetch_sub (&gpus[slot].frees, 1);
    return false;
}

/* Frees them, or leaves that to a thread: GS_ERR_TIMEOUT. */
static gs_status_t free_in_time (struct kept *items, int64_t until_ns, int *rc)
{
    struct gsi_timed_call *call = NULL;
    int ordinal = items->ordinal;
    gs_status_t st = gsi_timed_call_run (&call, "cudaFree", return_memory, items, until_ns, rc);

    if (call)
        gsi_timed_call_leave (call);
    else if (st) { /* no thread: the list is whole */
        while (items) {
            struct kept *next = items->next;
            keep (items);
            items = next;
        }
        atomic_fetch_sub (&gpus[slot_of (ordinal)].frees, 1);
    }
    return st;
}

bool gsi_cuda_free_kept (const struct gsi_device *device, cudaError_t *error)
{
    int64_t until_ns = gsi_now_ns () + device->patience_ns;
    struct kept *items;
    bool any;
    int rc = 0;

    *error = cudaSuccess;
    if (device->stuck || is_late (device) || !close_gpu (device, until_ns))
        return false;
    items = take_kept (device->ordinal);
    any = items;
    if (!any)
        atomic_fetch_sub (&gpus[slot_of (device->ordinal)].frees, 1);
    else if (free_in_time (items, until_ns, &rc) == GS_ERR_TIMEOUT)
        gsi_log (GS_LOG_WARN, "device",
                 "GPU %d has not ended its work: memory is freed when it has; more is kept, and "
                 "CUDA keeps all calls of this process waiting till then",
                 device->ordinal);
    *error = (cudaError_t) rc;
    return any;
}

bool gsi_cuda_free (const struct gsi_device *device, void *memory,
                    cudaError_t (*by) (void *memory), cudaError_t *error)
{
    struct kept *item;

    *error = cudaSuccess;
    if (device->stuck || is_late (device) || !(item = malloc (sizeof (*item))))
        return false;
    *item = (struct kept){NULL, device->ordinal, memory, by};
    keep (item);
    gsi_cuda_free_kept (device, error);
    return true;
}
