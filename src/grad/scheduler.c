/* SPDX-License-Identifier: BSD-3-Clause */
/* scheduler - who sees to the buckets, and when. */
#include "grad/scheduler.h"

#include <stdlib.h>
#include <sys/prctl.h>

#include "base/thread.h"
#include "grad/timing.h"

struct gsi_scheduler {
    bool threaded;
    pthread_t thread;
    pthread_mutex_t guard; /* of all below */
    pthread_cond_t bell;   /* something is to be done, or was done */
    int ordered, done;     /* buckets that may travel, that have travelled */
    bool running, stop;    /* a bucket is under way; the thread ends */
    struct gsi_failure failed, callback;
    struct gsi_event *ahead; /* (GPUs) */
    gs_stream_t admitted;    /* (GPUs) the last that was asked whether it is captured */
};

/* ---- One bucket ---- */

/* Sees to the next bucket, without the guard; only one thread at a time does. */
static gs_status_t reduce_next (gs_reducer_t *r)
{
    struct gsi_scheduler *c = r->scheduler;
    const gs_comm_t *outer = gsi_lease_enter (r->comm);
    gs_status_t callback = c->callback.st, st = gsi_bucket_reduce (r, c->done, &callback);

    gsi_lease_enter (outer);
    pthread_mutex_lock (&c->guard);
    if (callback && !c->callback.st)
        gsi_failure_note (&c->callback, callback);
    if (st)
        gsi_failure_note (&c->failed, st);
    pthread_mutex_unlock (&c->guard);
    return st;
}

/* The same with the guard held, which is let go of meanwhile. */
static void carry_guarded (gs_reducer_t *r)
{
    struct gsi_scheduler *c = r->scheduler;

    c->running = true;
    pthread_mutex_unlock (&c->guard);
    reduce_next (r);
    pthread_mutex_lock (&c->guard);
    c->running = false;
    c->done++;
    if (c->done == c->ordered || c->failed.st) /* else this thread goes on with the next */
        pthread_cond_broadcast (&c->bell);
}

static bool has_work (const struct gsi_scheduler *c)
{
    return !c->running && c->done < c->ordered && !c->failed.st;
}

/* ---- The thread ---- */

static void *run_thread (void *argument)
{
    gs_reducer_t *r = argument;
    struct gsi_scheduler *c = r->scheduler;

    prctl (PR_SET_TIMERSLACK, 1); /* it sleeps for 20 us at a time, not for 70 */
    pthread_mutex_lock (&c->guard);
    while (!c->stop)
        if (has_work (c))
            carry_guarded (r);
        else
            pthread_cond_wait (&c->bell, &c->guard);
    pthread_mutex_unlock (&c->guard);
    return NULL;
}

static gs_status_t start_thread (gs_reducer_t *r)
{
    gs_status_t st = gsi_thread_start (&r->scheduler->thread, run_thread, r, r->client.name);

    r->scheduler->threaded = !st;
    return st;
}

/* ---- Life ---- */

gs_status_t gsi_scheduler_open (gs_reducer_t *r)
{
    struct gsi_scheduler *c = calloc (1, sizeof (*c));

    if (!c)
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", r->client.name);
    pthread_mutex_init (&c->guard, NULL);
    pthread_cond_init (&c->bell, NULL);
    r->scheduler = c;
    if (r->queue)
        return r->queue->event_open (&c->ahead);
    return r->overlaps ? start_thread (r) : GS_OK;
}

void gsi_scheduler_close (gs_reducer_t *r)
{
    struct gsi_scheduler *c = r->scheduler;

    if (!c)
        return;
    if (c->threaded) {
        pthread_mutex_lock (&c->guard);
        c->stop = true;
        pthread_cond_broadcast (&c->bell);
        pthread_mutex_unlock (&c->guard);
        pthread_join (c->thread, NULL);
    }
    if (r->queue)
        r->queue->event_close (c->ahead);
    pthread_cond_destroy (&c->bell);
    pthread_mutex_destroy (&c->guard);
    free (c);
    r->scheduler = NULL;
}

/* ---- GPUs ---- */

gs_status_t gsi_scheduler_admit (gs_reducer_t *r, gs_stream_t stream)
{
    bool capturing = false;
    gs_status_t st = r->queue ? r->queue->is_capturing (stream, &capturing) : GS_OK;

    if (!st && capturing)
        st = gsi_fail (GS_ERR_UNSUPPORTED,
                       "%s: the stream is captured into a CUDA graph, in which a reducer's "
                       "buckets cannot be: use gs_allreduce_avg there",
                       r->client.name);
    r->scheduler->admitted = stream;
    return st;
}

/* [after] comes after what [before] has now, by [event] if there is one. A stream that completed
 * a bucket's first gradients may be captured since. */
static gs_status_t chain (gs_reducer_t *r, gs_stream_t before, struct gsi_event *event,
                          gs_stream_t after)
{
    struct gsi_event *between = event ? event : r->scheduler->ahead;
    gs_status_t st = before == r->scheduler->admitted ? GS_OK : gsi_scheduler_admit (r, before);

    if (!st)
        st = r->queue->event_record (between, before);
    return st ? st : r->queue->stream_wait (after, between);
}

gs_status_t gsi_scheduler_follow (gs_reducer_t *r, gs_stream_t stream)
{
    return chain (r, stream, NULL, r->stream);
}

gs_status_t gsi_scheduler_release (gs_reducer_t *r, gs_stream_t stream)
{
    gs_status_t st = r->queue ? chain (r, r->stream, gsi_timing_release (r), stream) : GS_OK;

    if (!st)
        gsi_timing_released (r);
    return st;
}

/* Queues the next bucket, whose gradients are awaited. */
static gs_status_t queue_bucket (gs_reducer_t *r)
{
    int b = r->scheduler->done;
    struct gsi_event *end = gsi_timing_end (r, b);
    gs_status_t st;

    r->queue->range_begin (r->bucket[b].label);
    st = reduce_next (r);
    r->queue->range_end ();
    return st || !end ? st : r->queue->event_record (end, r->stream);
}

/* ---- In a step ---- */

gs_status_t gsi_scheduler_begin (gs_reducer_t *r)
{
    struct gsi_scheduler *c = r->scheduler;
    gs_status_t st = gsi_lease_begin (r->comm, &r->client, r->step + 1);

    if (st)
        return st;
    pthread_mutex_lock (&c->guard);
    c->ordered = c->done = 0;
    c->callback.st = GS_OK;
    atomic_store (&r->client.yielding, c->threaded);
    pthread_mutex_unlock (&c->guard);
    return GS_OK;
}

/* What is done in the calling thread. A bucket whose gradients cannot be awaited is for the next
 * call to try again; the [last] one tells. */
static gs_status_t carry_here (gs_reducer_t *r, bool last)
{
    struct gsi_scheduler *c = r->scheduler;
    gs_status_t st = gsi_failure_repeat (&c->failed);

    while (c->done < c->ordered && !st) {
        if (r->queue &&
            (st = chain (r, r->bucket[c->done].stream, gsi_timing_ready (r, c->done), r->stream)))
            return last ? st : GS_OK;
        st = r->queue ? queue_bucket (r) : reduce_next (r);
        c->done++;
    }
    return st;
}

gs_status_t gsi_scheduler_launch (gs_reducer_t *r)
{
    struct gsi_scheduler *c = r->scheduler;
    gs_status_t st;

    if (r->opts.overlap == GS_OVERLAP_OFF)
        return GS_OK;
    if (!c->threaded) {
        c->ordered = r->launched;
        return carry_here (r, false);
    }
    pthread_mutex_lock (&c->guard);
    c->ordered = r->launched;
    if (r->marked < r->gradients && has_work (c))
        pthread_cond_broadcast (&c->bell); /* what is last, finish sees to */
    st = gsi_failure_repeat (&c->failed);
    pthread_mutex_unlock (&c->guard);
    return st;
}

gs_status_t gsi_scheduler_drain (gs_reducer_t *r)
{
    struct gsi_scheduler *c = r->scheduler;
    gs_status_t st;

    if (!c->threaded) {
        c->ordered = r->launched;
        return carry_here (r, true);
    }
    atomic_store (&r->client.yielding, false);
    pthread_mutex_lock (&c->guard);
    while (c->done < c->ordered && (c->running || !c->failed.st))
        if (has_work (c))
            carry_guarded (r);
        else
            pthread_cond_wait (&c->bell, &c->guard);
    st = gsi_failure_repeat (&c->failed);
    pthread_mutex_unlock (&c->guard);
    return st;
}

gs_status_t gsi_scheduler_callback (gs_reducer_t *r)
{
    return gsi_failure_repeat (&r->scheduler->callback);
}
