/* SPDX-License-Identifier: BSD-3-Clause */
/* timing - when buckets are reduced on a GPU. */
#include "grad/timing.h"

#define STEPS 2  /* whose events there are: one is read while the next is recorded */
#define FIRST 16 /* steps that are timed, and then one in EVERY: events cost the host time */
#define EVERY 8

/* The events of a step. */
struct events {
    struct gsi_event *begin, *finish, *release;
    struct gsi_event **ready, **end; /* [gradients], of which the first [buckets] are made */
    int buckets;
    uint64_t digest; /* of the buckets that they are of */
    bool unread;
};

struct gsi_timing {
    struct events step[STEPS];
    int now; /* the last one that began */
    bool on; /* the step under way is timed */
};

/* ---- Life ---- */

static gs_status_t open_events (gs_reducer_t *r, struct events *e)
{
    size_t n = (size_t) r->gradients;
    gs_status_t st;

    if (!gsi_reducer_own (r, &e->ready, n, sizeof (*e->ready)) ||
        !gsi_reducer_own (r, &e->end, n, sizeof (*e->end)))
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", r->client.name);
    if ((st = r->queue->timer_open (&e->begin)) || (st = r->queue->timer_open (&e->finish)))
        return st;
    return r->queue->timer_open (&e->release);
}

/* Events for all the buckets that there are now. */
static gs_status_t make_more (const gs_reducer_t *r, struct events *e)
{
    gs_status_t st = GS_OK;

    for (; e->buckets < r->buckets && !st; e->buckets++) {
        st = r->queue->timer_open (&e->ready[e->buckets]);
        if (!st && (st = r->queue->timer_open (&e->end[e->buckets])))
            r->queue->event_close (e->ready[e->buckets]);
        if (st)
            break;
    }
    return st;
}

gs_status_t gsi_timing_open (gs_reducer_t *r)
{
    gs_status_t st = GS_OK;

    if (!r->queue)
        return GS_OK;
    if (!gsi_reducer_own (r, &r->timing, 1, sizeof (*r->timing)))
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", r->client.name);
    for (int i = 0; i < STEPS && !st; i++)
        if (!(st = open_events (r, &r->timing->step[i])))
            st = make_more (r, &r->timing->step[i]);
    return st;
}

static void close_events (const gs_reducer_t *r, struct events *e)
{
    r->queue->event_close (e->begin);
    r->queue->event_close (e->finish);
    r->queue->event_close (e->release);
    for (int b = 0; b < e->buckets; b++) {
        r->queue->event_close (e->ready[b]);
        r->queue->event_close (e->end[b]);
    }
}

void gsi_timing_close (gs_reducer_t *r)
{
    for (int i = 0; i < STEPS && r->timing; i++)
        close_events (r, &r->timing->step[i]);
}

/* ---- In a step ---- */

static struct events *current (const gs_reducer_t *r)
{
    return &r->timing->step[r->timing->now];
}

gs_status_t gsi_timing_begin (gs_reducer_t *r, gs_stream_t stream)
{
    struct events *e;
    gs_status_t st;

    if (!r->timing)
        return GS_OK;
    r->timing->on = r->step < FIRST || r->step % EVERY == 0;
    if ((st = gsi_timing_read (r)) || !r->timing->on)
        return st;
    r->timing->now = (r->timing->now + 1) % STEPS;
    e = current (r);
    e->digest = r->digest;
    e->unread = false;
    st = make_more (r, e);
    return st ? st : r->queue->event_record (e->begin, stream);
}

gs_status_t gsi_timing_finish (gs_reducer_t *r, gs_stream_t stream)
{
    if (!r->timing || !r->timing->on)
        return GS_OK;
    return r->queue->event_record (current (r)->finish, stream);
}

void gsi_timing_released (gs_reducer_t *r)
{
    if (r->timing && r->timing->on)
        current (r)->unread = true;
}

struct gsi_event *gsi_timing_ready (const gs_reducer_t *r, int b)
{
    return r->timing->on ? current (r)->ready[b] : NULL;
}

struct gsi_event *gsi_timing_end (const gs_reducer_t *r, int b)
{
    return r->timing->on ? current (r)->end[b] : NULL;
}

struct gsi_event *gsi_timing_release (const gs_reducer_t *r)
{
    return r->timing->on ? current (r)->release : NULL;
}

/* ---- After it ---- */

/* A bucket begins to travel when it is ready and the one before it, which [free_ns] is the end
 * of, has arrived. */
static gs_status_t read_bucket (const gs_reducer_t *r, const struct events *e, int b,
                                int64_t free_ns)
{
    struct gsi_bucket *bucket = &r->bucket[b];
    gs_status_t st = r->queue->elapsed (e->begin, e->ready[b], &bucket->ready_ns);

    if (!st)
        st = r->queue->elapsed (e->begin, e->end[b], &bucket->end_ns);
    bucket->begin_ns = bucket->ready_ns > free_ns ? bucket->ready_ns : free_ns;
    return st;
}

static gs_status_t read_times (gs_reducer_t *r, const struct events *e)
{
    struct gsi_seen *seen = &r->totals.seen;
    gs_status_t st = r->queue->elapsed (e->begin, e->finish, &seen->finish_ns);

    if (!st)
        st = r->queue->elapsed (e->begin, e->release, &seen->end_ns);
    for (int b = 0; b < r->buckets && !st; b++)
        st = read_bucket (r, e, b, b ? r->bucket[b - 1].end_ns : 0);
    if (st)
        return st;
    seen->begin_ns = 0;
    if (seen->end_ns < seen->finish_ns)
        seen->end_ns = seen->finish_ns; /* all had arrived before */
    gsi_totals_seen (r);
    return GS_OK;
}

static gs_status_t read_step (gs_reducer_t *r, struct events *e)
{
    bool finished = false, released = false;
    gs_status_t st;

    if (!e->unread)
        return GS_OK;
    if ((st = r->queue->event_done (e->finish, &finished)) ||
        (st = r->queue->event_done (e->release, &released)))
        return st;
    if (!finished || !released)
        return GS_OK;
    e->unread = false;
    return e->digest == r->digest ? read_times (r, e) : GS_OK; /* the buckets are others now */
}

gs_status_t gsi_timing_read (gs_reducer_t *r)
{
    gs_status_t st = GS_OK;

    for (int i = 1; r->timing && i <= STEPS && !st; i++) /* the older one first */
        st = read_step (r, &r->timing->step[(r->timing->now + i) % STEPS]);
    return st;
}
