/* SPDX-License-Identifier: BSD-3-Clause */
/* device_free - memory of GPUs is given back by threads, within a deadline. */
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

/* What a thread gives back. */
struct returned {
    int ordinal;
    void *memory;
    cudaError_t (*give_back) (void *memory);
};

static cudaError_t give_back (const struct returned *work)
{
    int previous;
    cudaError_t error = gsi_cuda_set_device (work->ordinal, &previous);

    if (error)
        return error;
    gsi_cuda_stand_apart ();
    return work->give_back (work->memory);
}

static int return_memory (void *argument)
{
    struct returned work = *(struct returned *) argument;
    cudaError_t error = cudaSuccess;

    free (argument);
    if (gsi_thread_enter_gpu ()) { /* else the process ends, and its memory with it */
        error = give_back (&work);
        gsi_thread_leave_gpu ();
    }
    atomic_fetch_sub (&gpus[slot_of (work.ordinal)].frees, 1);
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

/* GS_ERR_NOMEM: there is no thread, and nothing was done. */
static gs_status_t free_in_time (struct returned *work, int64_t until_ns, int *rc)
{
    struct gsi_timed_call *call = NULL;
    int slot = slot_of (work->ordinal);
    bool alone = !gsi_cuda_is_freeing (work->ordinal);
    gs_status_t st;

    if (alone || atomic_load (&gpus[slot].until_ns) < until_ns)
        atomic_store (&gpus[slot].until_ns, until_ns);
    atomic_fetch_add (&gpus[slot].frees, 1);
    st = gsi_timed_call_run (&call, "cudaFree", return_memory, work, until_ns, rc);
    if (call)
        gsi_timed_call_leave (call);
    else if (st)
        atomic_fetch_sub (&gpus[slot].frees, 1);
    return st;
}

bool gsi_cuda_free (const struct gsi_device *device, void *memory,
                    cudaError_t (*by) (void *memory), cudaError_t *error)
{
    struct returned *work;
    gs_status_t st = GS_ERR_NOMEM;
    int rc = 0;

    *error = cudaSuccess;
    if (device->stuck || is_late (device))
        return false;
    if ((work = malloc (sizeof (*work)))) {
        *work = (struct returned){device->ordinal, memory, by};
        st = free_in_time (work, gsi_now_ns () + device->patience_ns, &rc);
    }
    if (st == GS_ERR_NOMEM) {
        free (work);
        rc = (int) by (memory);
    } else if (st) {
        gsi_log (GS_LOG_WARN, "device",
                 "GPU %d has not ended its work: memory is freed when it has; more is kept, and "
                 "CUDA keeps all calls of this process waiting till then",
                 device->ordinal);
    }
    *error = (cudaError_t) rc;
    return true;
}
