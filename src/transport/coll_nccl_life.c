/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_nccl_life - NCCL's communicator from its start to its end, by threads of ours: what waits
 * for other ranks has a deadline here, though NCCL's calls have none.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/timed_call.h"
#include "base/log.h"
#include "base/status.h"
#include "base/thread.h"
#include "transport/coll_nccl.h"

#define SPIN_NS       200000                  /* what takes longer may take its time */
#define SLICE_NS      (20 * GSI_NS_PER_MS)    /* a wait for a thread looks up that often */
#define GRACE_NS      (2 * GSI_NS_PER_S)      /* a close waits so long for an abort */
#define IMPATIENT     NCCL_VERSION (2, 22, 0) /* before, an abort frees without a second step */
#define RELUCTANCE_NS GSI_NS_PER_S            /* one waits so long for others */

static void nap (void)
{
    nanosleep (&(struct timespec){.tv_nsec = GSI_NS_PER_MS}, NULL);
}

/* ---- Calls and waits ---- */

gs_status_t gsi_nccl_fail (const char *what, ncclResult_t rc)
{
    const char *more = gsi_nccl.GetLastError (NULL); /* of which communicator is not looked at */

    return gsi_fail (rc == ncclUnhandledCudaError ? GS_ERR_DEVICE : GS_ERR_TRANSPORT,
                     "%s: %s%s%s", what, gsi_nccl.GetErrorString (rc), more && *more ? "; " : "",
                     more ? more : "");
}

gs_status_t gsi_nccl_wait_on (const struct gsi_coll_nccl *c, const char *what, int64_t begin_ns,
                              int64_t deadline_ns)
{
    int64_t now_ns = gsi_now_ns ();

    if (atomic_load (c->base.life) != GSI_ALIVE)
        return gsi_fail (GS_ERR_STATE, "%s: the communicator was aborted", what);
    if (now_ns >= deadline_ns)
        return gsi_fail (GS_ERR_TIMEOUT, "%s did not end within the deadline", what);
    gsi_pause (now_ns - begin_ns, SPIN_NS);
    if (now_ns - begin_ns < SPIN_NS)
        return GS_OK;
    gsi_nccl_notices_hear (c->handle);
    return c->base.others (c->base.context);
}

ncclComm_t gsi_nccl_enter (const struct gsi_coll_nccl *c)
{
    atomic_fetch_add (&c->handle->inside, 1);
    return atomic_load (&c->handle->ended) ? NULL
                                           : __atomic_load_n (&c->handle->comm, __ATOMIC_ACQUIRE);
}

gs_status_t gsi_nccl_leave (const struct gsi_coll_nccl *c, const char *what, ncclResult_t rc)
{
    gs_status_t st = GS_OK;

    if (rc && atomic_load (&c->handle->ended))
        st = gsi_fail (GS_ERR_STATE, "%s: the communicator was aborted", what);
    else if (rc)
        st = gsi_nccl_fail (what, rc);
    atomic_fetch_sub (&c->handle->inside, 1);
    return st;
}

gs_status_t gsi_nccl_await (const struct gsi_coll_nccl *c, struct gsi_event *event,
                            int64_t deadline_ns)
{
    int64_t begin_ns = gsi_now_ns ();
    bool done;
    gs_status_t st = c->queue->event_done (event, &done);

    while (!st && !done &&
           !(st = gsi_nccl_wait_on (c, "the work queued before", begin_ns, deadline_ns)))
        st = c->queue->event_done (event, &done);
    return st;
}

/* ---- The handle ---- */

struct gsi_nccl_handle *gsi_nccl_handle_make (const struct gsi_device *device)
{
    struct gsi_nccl_handle *h = calloc (1, sizeof (*h));

    if (!h)
        return NULL;
    h->device = *device;
    h->node.shared = GSI_MEMFD_NONE;
    h->node.gave_up = &h->node.alone;
    atomic_init (&h->own, device);
    atomic_init (&h->holders, 1);
    return h;
}

void gsi_nccl_handle_release (struct gsi_nccl_handle *h)
{
    if (atomic_fetch_sub (&h->holders, 1) > 1)
        return;
    gsi_nccl_notices_close (h);
    gsi_memfd_close (&h->node.shared);
    free (h);
}

void gsi_nccl_stop_here (void)
{
    for (;;)
        pause ();
}

void gsi_nccl_enter_device (const struct gsi_nccl_handle *h)
{
    int unused;

    h->device.ops->streams->enter_to_ask (&h->device, &unused);
    h->device.ops->streams->relax_capture ();
}

/* ---- Calls that wait for other ranks ---- */

enum { RUNS = 0, DONE = 1, LEFT = 2 };

struct run {
    struct gsi_nccl_handle *handle;
    struct gsi_nccl_job how;
    void *job;
    atomic_int state; /* whoever comes second frees it */
};

static void free_run (struct run *run)
{
    gsi_nccl_handle_release (run->handle);
    free (run->job);
    free (run);
}

static int run_job (void *argument)
{
    struct run *run = argument;
    struct gsi_nccl_handle *h = run->handle;
    ncclResult_t rc;
    bool left;

    atomic_fetch_add (&h->holders, 1); /* who comes second frees the run, with its own */
    gsi_nccl_enter_device (h);
    rc = run->how.work (run->job);
    left = atomic_exchange (&run->state, DONE) == LEFT;
    if (left && !rc && run->how.late)
        run->how.late (run->job);
    atomic_fetch_sub (&h->inside, 1);
    if (left)
        free_run (run);
    gsi_nccl_handle_release (h);
    return (int) rc;
}

gs_status_t gsi_nccl_run (const struct gsi_nccl_job *how, void *job, ncclResult_t *rc)
{
    struct run *run = calloc (1, sizeof (*run));
    int64_t begin_ns = gsi_now_ns ();
    struct gsi_timed_call *timed_call = NULL;
    int result = 0;
    bool done;
    gs_status_t st;

    if (!run) {
        free (job);
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", how->what);
    }
    *run = (struct run){.handle = how->c->handle, .how = *how, .job = job};
    atomic_fetch_add (&run->handle->holders, 1);
    atomic_fetch_add (&run->handle->inside, 1);
    for (;;) {
        st = gsi_timed_call_run (&timed_call, how->what, run_job, run, gsi_now_ns () + SLICE_NS,
                                 &result);
        if (!timed_call || (st != GS_ERR_TIMEOUT))
            break;
        if ((st = gsi_nccl_wait_on (how->c, how->what, begin_ns, how->deadline_ns)))
            break;
    }
    *rc = (ncclResult_t) result;
    if (st && !timed_call) /* no thread could be started */
        atomic_fetch_sub (&run->handle->inside, 1);
    if (st && timed_call) {
        done = atomic_exchange (&run->state, LEFT) == DONE; /* it came while we gave up */
        gsi_timed_call_leave (timed_call);
        if (!done)
            return st;
        if (how->late)
            how->late (job);
    } else if (!st && !*rc && how->kept) {
        how->kept (job);
    }
    free_run (run);
    return st;
}

bool gsi_nccl_leave_to_thread (struct gsi_nccl_handle *h, void *(*work) (void *),
                               const char *owner)
{
    pthread_t thread;

    gsi_thread_outlast_gpu ();
    atomic_fetch_add (&h->holders, 1);
    if (!gsi_thread_start (&thread, work, h, owner)) {
        pthread_detach (thread);
        return true;
    }
    gsi_nccl_handle_release (h);
    return false;
}

/* ---- The end by force ---- */

/* Waits until nobody is inside, or, if [bounded], a moment. */
static void await_quiet (const struct gsi_nccl_handle *h, bool bounded)
{
    int64_t until_ns = gsi_now_ns () + RELUCTANCE_NS;

    while (atomic_load (&h->inside) && !(bounded && gsi_now_ns () > until_ns))
        nap ();
}

enum { OPEN = 0, FREED = 1, KEPT = 2 };

/*
 * Within a group ncclCommAbort sets the flags that all who wait look at, at once, and leaves it
 * to the group's end to free the communicator (2.22 to 2.30, init.cc): so a call that is blocked
 * inside, by a full queue of launches for instance, returns before. That end waits for CUDA
 * graphs with operations of it, and frees what kernels that are queued still read; it also closes
 * the connections by which other nodes learn of the abort. So it comes as soon as the owner has
 * seen that the GPU has ended what was queued, or never.
 */
static void abort_in_group (struct gsi_nccl_handle *h, ncclComm_t comm)
{
    bool kept, shut;

    gsi_nccl.GroupStart ();
    gsi_nccl.CommAbort (comm);
    atomic_store (&h->stopped, true);
    gsi_nccl_enter_device (h);
    gsi_thread_leave_gpu ();
    await_quiet (h, false);
    atomic_store (&h->quiet, true);
    while (atomic_load (&h->fate) == OPEN) {
        gsi_nccl_notices_hear (h); /* who gives up next waits for an answer, too */
        nap ();
    }
    kept = atomic_load (&h->fate) == KEPT; /* once it is sealed it stays so */
    atomic_store (&h->kept, kept);
    atomic_store (&h->gone, kept);
    if (kept)
        gsi_nccl_stop_here (); /* the group, which is this thread's, stays open */
    /* It waits no longer, for other nodes learn of the abort when the connections close. */
    shut = gsi_nccl_shut_in_turn (h, RELUCTANCE_NS);
    gsi_nccl.GroupEnd ();
    if (shut)
        gsi_nccl_reopen (h);
    gsi_thread_leave_gpu ();
}

/*
 * Before 2.22 the abort frees by itself. A thread inside, which it ends, may then touch what is
 * freed; to leave it there would hang for ever. While a communicator is made it is left to itself
 * there.
 */
static void abort_at_once (struct gsi_nccl_handle *h, ncclComm_t comm)
{
    int unused;

    h->device.ops->streams->enter_to_ask (&h->device, &unused); /* no more: it might block */
    await_quiet (h, !atomic_load (&h->starting));
    atomic_store (&h->quiet, true);
    gsi_nccl.CommAbort (comm);
    gsi_thread_leave_gpu ();
}

static void *abort_comm (void *argument)
{
    struct gsi_nccl_handle *h = argument;
    ncclComm_t comm;

    while (!(comm = __atomic_load_n (&h->comm, __ATOMIC_ACQUIRE)) && atomic_load (&h->inside))
        nap (); /* it is about to be made */
    if (comm && h->spoils)
        gsi_nccl_notices_tell (h, &h->ending);
    if (comm && gsi_thread_enter_gpu ())
        (gsi_nccl.version >= IMPATIENT ? abort_in_group : abort_at_once) (h, comm);
    atomic_store (&h->quiet, true);
    atomic_store (&h->gone, true);
    gsi_nccl_handle_release (h);
    return NULL;
}

void gsi_nccl_silence (struct gsi_coll *coll, const struct gsi_ending *how)
{
    struct gsi_nccl_handle *h = ((struct gsi_coll_nccl *) coll)->handle;

    if (!h || !coll->busy (coll->context))
        return;
    gsi_nccl_node_give_up (&h->node, how);
    gsi_nccl_notices_tell (h, how);
}

void gsi_nccl_abort (struct gsi_coll_nccl *c, const struct gsi_ending *how)
{
    struct gsi_nccl_handle *h = c->handle;

    if (!h || atomic_exchange (&h->ended, true))
        return;
    h->ending = *how;
    h->spoils = c->base.busy (c->base.context);
    if (h->spoils)
        gsi_nccl_node_give_up (&h->node, how); /* before the flags, which kernels see at once */
    gsi_nccl_node_part (&h->node);
    if (gsi_nccl_leave_to_thread (h, abort_comm, "NCCL's abort"))
        return;
    gsi_log (GS_LOG_WARN, "nccl", "%s: what is queued may never end", gsi_last_text ());
    atomic_store (&h->quiet, true);
}

static void seal_fate (struct gsi_nccl_handle *h, int fate)
{
    int open = OPEN;

    atomic_compare_exchange_strong (&h->fate, &open, fate);
}

void gsi_nccl_settled (struct gsi_coll *coll)
{
    struct gsi_coll_nccl *c = (struct gsi_coll_nccl *) coll;

    if (c->handle)
        seal_fate (c->handle, coll->captured || gsi_device_is_stuck (c->device) ? KEPT : FREED);
}

bool gsi_nccl_is_silent (const struct gsi_coll *coll)
{
    const struct gsi_nccl_handle *h = ((const struct gsi_coll_nccl *) coll)->handle;

    return !h || atomic_load (&h->stopped) || atomic_load (&h->gone);
}

static const char *why_kept (const struct gsi_coll_nccl *c)
{
    return gsi_device_is_stuck (c->device) ? "the GPU does not end what it has queued"
           : c->base.captured              ? "CUDA graphs may have operations of it"
                                           : "GPUs of other ranks may still use it";
}

void gsi_nccl_handle_close (struct gsi_coll_nccl *c)
{
    struct gsi_nccl_handle *h = c->handle;
    int64_t until_ns = gsi_now_ns () + GRACE_NS;
    const struct gsi_ending how = {.status = GS_ERR_STATE, .culprit = -1, .by = c->rank};

    if (!h)
        return;
    if (atomic_load (&h->ended))
        seal_fate (h, KEPT); /* nobody has said that all has ended */
    gsi_nccl_abort (c, &how);
    gsi_nccl_settled (&c->base);
    while (!atomic_load (&h->gone) && !atomic_load (&h->later) && gsi_now_ns () < until_ns)
        nap ();
    if (!atomic_load (&h->gone) && atomic_load (&h->later))
        gsi_log (GS_LOG_INFO, "nccl", "NCCL frees its communicator when others have no work");
    else if (!atomic_load (&h->gone))
        gsi_log (GS_LOG_INFO, "nccl", "NCCL frees its communicator later: a thread is inside");
    else if (atomic_load (&h->kept))
        gsi_log (GS_LOG_INFO, "nccl", "NCCL's communicator is kept until the process ends: %s",
                 why_kept (c));
    c->handle = NULL;
    atomic_store (&h->own, NULL);
    gsi_nccl_handle_release (h);
}
