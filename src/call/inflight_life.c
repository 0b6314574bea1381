/* SPDX-License-Identifier: BSD-3-Clause */
/* inflight_life - the queue of a communicator on a GPU from its opening to its end, and its
 * thread. */
#include "call/inflight.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/thread.h"
#include "call/gpu_lock.h"
#include "call/inflight_ring.h"
#include "call/peers.h"
#include "call/staging.h"

#define FOLLOW_NS GSI_NS_PER_S
#define SETTLE_NS (3 * GSI_NS_PER_S) /* a kernel of NCCL before 2.26 sees an abort after one */

/* How much of what was queued has not ended; 0 for a GPU that failed, which does no more work. */
static int unfinished (const gs_comm_t *comm)
{
    struct gsi_inflight *q = comm->inflight;
    int number = !gsi_staging_has_ended (comm);
    const struct gsi_inflight_slot *newest;
    bool done;

    pthread_mutex_lock (&q->ring);
    newest = gsi_inflight_slot_at (q, q->next - 1);
    number += q->first != q->next && (newest->deferred || newest->open); /* it has no event */
    pthread_mutex_unlock (&q->ring);

    for (size_t i = 0; i <= GSI_INFLIGHT_SLOTS + 1; i++) {
        struct gsi_event *event = i < GSI_INFLIGHT_SLOTS    ? q->slot[i].event
                                  : i == GSI_INFLIGHT_SLOTS ? q->waiter
                                                            : q->last;
        if (!event)
            continue;
        if (gsi_streams_of (comm)->event_done (event, &done))
            return 0;
        number += !done;
    }
    return number;
}

/* Nothing runs here any more. Kernels of NCCL use memory of each other's GPUs: its transport may
 * free when those of the node have ended, too. */
static bool tell_settled (gs_comm_t *comm)
{
    pthread_mutex_lock (&comm->inflight->ring);
    gsi_inflight_count (comm, false);
    pthread_mutex_unlock (&comm->inflight->ring);
    gsi_record_settle (&comm->record);
    if (gsi_peers_work (comm))
        return false;
    if (comm->coll && comm->coll->ops->settled)
        comm->coll->ops->settled (comm->coll);
    return true;
}

/* What has no event gets one, to see when it ends, unless another thread is looking. */
static void mark_queued (gs_comm_t *comm)
{
    struct gsi_inflight *q = comm->inflight;

    if (!q->marked)
        gsi_staging_mark (comm);
    q->marked = true;
    if (pthread_mutex_trylock (&q->looking))
        return;
    gsi_slot_mark (comm, NULL);
    pthread_mutex_unlock (&q->looking);
}

/* The communicator has ended; the GPU, maybe, has not. */
static void settle_later (gs_comm_t *comm)
{
    struct gsi_inflight *q = comm->inflight;

    if (atomic_load (&comm->life) == GSI_ALIVE || q->settled || !comm->coll ||
        gsi_streams_of (comm)->is_closed (comm->device))
        return;
    mark_queued (comm);
    q->settled = !unfinished (comm) && tell_settled (comm);
}

static void *watch (void *argument)
{
    gs_comm_t *comm = argument;
    struct gsi_inflight *q = comm->inflight;
    int unused;

    if (!gsi_streams_of (comm)->enter_to_ask (comm->device,
                                              &unused)) /* for good: else it begins on GPU 0 */
        gsi_streams_of (comm)->relax_capture ();
    pthread_mutex_lock (&q->bell_guard);
    while (!q->stop) {
        gsi_condition_wait (&q->bell, &q->bell_guard,
                            gsi_now_ns () + gsi_inflight_period_ns (comm));
        pthread_mutex_unlock (&q->bell_guard);
        if (!gsi_thread_enter_gpu ())
            return NULL;
        gsi_inflight_look (comm);
        settle_later (comm);
        gsi_streams_of (comm)->tidy (comm->device);
        gsi_thread_leave_gpu ();
        pthread_mutex_lock (&q->bell_guard);
    }
    pthread_mutex_unlock (&q->bell_guard);
    return NULL;
}

bool gsi_inflight_part (gs_comm_t *comm)
{
    struct gsi_inflight *q = comm->inflight;
    struct gsi_wait wait = gsi_wait_for (FOLLOW_NS, 0);
    gs_status_t st;

    if (!q)
        return true;
    while (!gsi_gpu_lock_alive (comm, false, &st)) /* somebody is told that it has ended */
        if (!gsi_wait_on (&wait))
            return false;
    if (st) {
        gsi_gpu_release (comm);
        return false;
    }
    gsi_slot_mark (comm, NULL);
    gsi_gpu_unlock (comm);
    while (pthread_mutex_trylock (&q->looking))
        if (!gsi_wait_on (&wait))
            return false;
    pthread_mutex_unlock (&q->looking);
    return true;
}

/* ---- Life ---- */

static gs_status_t start_thread (gs_comm_t *comm)
{
    gs_status_t st;

    gsi_condition_init (&comm->inflight->bell);
    if ((st = gsi_thread_start (&comm->inflight->thread, watch, comm, comm->name)))
        comm->inflight->stop = true; /* there is nothing to join */
    return st;
}

gs_status_t gsi_inflight_open (gs_comm_t *comm)
{
    struct gsi_inflight *q;
    int previous;
    gs_status_t st;

    if (!gsi_streams_of (comm))
        return GS_OK;
    if (!(q = calloc (1, sizeof (*q))))
        return gsi_fail (GS_ERR_NOMEM, "out of memory");
    pthread_mutex_init (&comm->gpu.guard, NULL);
    pthread_mutex_init (&q->bell_guard, NULL);
    pthread_mutex_init (&q->ring, NULL);
    pthread_mutex_init (&q->looking, NULL);
    q->stop = q->resting = true;
    q->slow_ns = comm->timeout_ns; /* it is not known */
    comm->inflight = q;
    if ((st = gsi_streams_of (comm)->enter (comm->device, &previous)))
        return st;
    st = gsi_streams_of (comm)->event_open (&q->waiter);
    if (!st)
        st = gsi_streams_of (comm)->event_open (&q->last);
    for (int i = 0; i < GSI_INFLIGHT_SLOTS && !st; i++)
        st = gsi_streams_of (comm)->event_open (&q->slot[i].event);
    gsi_streams_of (comm)->leave (comm->device, previous);
    if (st)
        return st;
    q->stop = false;
    return start_thread (comm);
}

static void stop_thread (struct gsi_inflight *q)
{
    bool runs;

    pthread_mutex_lock (&q->bell_guard);
    runs = !q->stop;
    q->stop = true;
    pthread_cond_signal (&q->bell);
    pthread_mutex_unlock (&q->bell_guard);
    if (runs) {
        pthread_join (q->thread, NULL);
        pthread_cond_destroy (&q->bell);
    }
}

void gsi_inflight_close (gs_comm_t *comm)
{
    struct gsi_inflight *q = comm->inflight;
    int previous;

    if (!q)
        return;
    stop_thread (q);
    if (!gsi_streams_of (comm)->enter (comm->device, &previous)) {
        for (int i = 0; i < GSI_INFLIGHT_SLOTS; i++)
            gsi_streams_of (comm)->event_close (q->slot[i].event);
        gsi_streams_of (comm)->event_close (q->waiter);
        gsi_streams_of (comm)->event_close (q->last);
        gsi_streams_of (comm)->leave (comm->device, previous);
    }
    pthread_mutex_destroy (&comm->gpu.guard);
    pthread_mutex_destroy (&q->bell_guard);
    pthread_mutex_destroy (&q->ring);
    pthread_mutex_destroy (&q->looking);
    comm->inflight = NULL;
    free (q);
}

/* False: nothing has ended for a while. */
static bool await_gpu (const gs_comm_t *comm)
{
    struct gsi_wait wait = gsi_wait_for (SETTLE_NS, 0);
    int before = unfinished (comm), now = before;

    while (now && gsi_wait_on (&wait)) {
        if ((now = unfinished (comm)) < before)
            wait = gsi_wait_for (SETTLE_NS, 0);
        before = now;
    }
    return !now;
}

static void await_neighbours (gs_comm_t *comm)
{
    struct gsi_wait wait = gsi_wait_for (FOLLOW_NS, 0);

    while (!tell_settled (comm) && gsi_wait_on (&wait))
        ;
}

/* Waits until the calls that are watched have ended, or the communicator has. */
static void await_calls (gs_comm_t *comm)
{
    struct gsi_wait wait = gsi_wait_until (INT64_MAX);

    while (atomic_load (&comm->life) == GSI_ALIVE && atomic_load (&comm->gpu.oldest)) {
        gsi_inflight_look (comm);
        if (atomic_load (&comm->gpu.oldest))
            gsi_wait_on (&wait);
    }
}

/* What the program has queued: a free would wait for it, too. */
static void mark_legacy (const gs_comm_t *comm)
{
    bool capturing;

    if (!gsi_streams_of (comm)->is_capturing (NULL, &capturing) && !capturing)
        gsi_streams_of (comm)->event_record (comm->inflight->last, NULL);
}

void gsi_inflight_settle (gs_comm_t *comm)
{
    struct gsi_inflight *q = comm->inflight;
    gs_status_t st;
    bool ended;

    if (!q)
        return;
    await_calls (comm);
    if (atomic_load (&comm->life) == GSI_ALIVE)
        return;
    st = gsi_gpu_lock (comm);
    if (gsi_device_patience (comm->device) > SETTLE_NS)
        __atomic_store_n (&comm->device->patience_ns, SETTLE_NS, __ATOMIC_RELAXED);
    if (!gsi_device_is_stuck (comm->device) && !st && gsi_gpu_await_open (comm, SETTLE_NS)) {
        gsi_staging_mark (comm);
        gsi_slot_mark (comm, NULL);
        if (q->last)
            mark_legacy (comm);
        ended = await_gpu (comm);
        __atomic_store_n (&comm->device->stuck, !ended, __ATOMIC_RELEASE);
        if (ended)
            await_neighbours (comm);
        else
            gsi_log (GS_LOG_WARN, "comm",
                     "GPU %d has not ended what was queued by '%s' or before it: memory of the "
                     "communicator is kept until the process ends",
                     comm->device->ordinal, comm->name);
    }
    if (st)
        gsi_gpu_release (comm);
    else
        gsi_gpu_unlock (comm);
}

/* Blocking streams are part of the legacy one. */
gs_status_t gsi_inflight_finish (gs_comm_t *comm)
{
    gs_status_t st;

    gsi_inflight_settle (comm);
    if (!comm->inflight || atomic_load (&comm->life) != GSI_ALIVE)
        return GS_OK;
    if (gsi_streams_of (comm)->is_busy (comm->device))
        return GS_OK; /* the memory is freed later, and nothing waits now */
    st = gsi_inflight_wait (comm, NULL, true);
    if (atomic_load (&comm->life) != GSI_ALIVE) /* it has ended meanwhile */
        gsi_inflight_settle (comm);
    else if (st == GS_ERR_STATE) /* a capture, which the free would disturb */
        return st;
    else if (st == GS_ERR_TIMEOUT)
        return gsi_fail (st,
                         "GPU %d did not end its work within %lld ms: the memory is not freed",
                         comm->device->ordinal, (long long) (comm->timeout_ns / GSI_NS_PER_MS));
    return GS_OK; /* whatever else is wrong the free tells */
}
