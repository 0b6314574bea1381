/* SPDX-License-Identifier: BSD-3-Clause */
/* flow - how far a save has come. */
#include "ckpt/save/flow.h"

#include "base/clock.h"
#include "base/thread.h"

#define LOOK_NS (GSI_NS_PER_S / 10) /* how often a wait looks at the clock */

void gsi_flow_open (struct gsi_flow *f, const char *path, void *ring, size_t room, uint64_t total)
{
    *f = (struct gsi_flow){
        .path = path, .ring = ring, .room = room, .total = total, .moved_ns = gsi_now_ns ()};
    pthread_mutex_init (&f->guard, NULL);
    gsi_condition_init (&f->moved);
    if (!ring)
        f->staged = total;
}

void gsi_flow_clear (struct gsi_flow *f)
{
    pthread_mutex_destroy (&f->guard);
    pthread_cond_destroy (&f->moved);
}

char *gsi_flow_place (const struct gsi_flow *f, uint64_t at)
{
    return f->ring + at % f->room;
}

/* With the guard. */
static void fail_guarded (struct gsi_flow *f, gs_status_t st)
{
    if (!f->failure.st)
        gsi_failure_note (&f->failure, st);
    f->closed = true;
    pthread_cond_broadcast (&f->moved);
}

/* With the guard: fails if nothing has moved for long. */
static void look_guarded (struct gsi_flow *f, int64_t patience_ns)
{
    if (gsi_now_ns () - f->moved_ns <= patience_ns || f->closed)
        return;
    fail_guarded (f, gsi_fail (GS_ERR_TIMEOUT,
                               "%s: the file system has taken nothing for %lld ms, after %llu of "
                               "%llu bytes of this rank",
                               f->path, (long long) (patience_ns / GSI_NS_PER_MS),
                               (unsigned long long) f->taken, (unsigned long long) f->total));
}

/* The same: waits a little. */
static void wait_guarded (struct gsi_flow *f, int64_t until_ns)
{
    int64_t look_ns = gsi_now_ns () + LOOK_NS;

    gsi_condition_wait (&f->moved, &f->guard, look_ns < until_ns ? look_ns : until_ns);
}

bool gsi_flow_await_room (struct gsi_flow *f, uint64_t end, int64_t patience_ns)
{
    bool fits;

    pthread_mutex_lock (&f->guard);
    while (end - f->taken > f->room && !f->closed) {
        wait_guarded (f, INT64_MAX);
        look_guarded (f, patience_ns);
    }
    fits = !f->closed;
    pthread_mutex_unlock (&f->guard);
    return fits;
}

void gsi_flow_stage (struct gsi_flow *f, uint64_t end)
{
    pthread_mutex_lock (&f->guard);
    f->staged = end;
    f->moved_ns = gsi_now_ns ();
    pthread_cond_broadcast (&f->moved);
    pthread_mutex_unlock (&f->guard);
}

bool gsi_flow_await_data (struct gsi_flow *f, uint64_t end)
{
    bool there;

    pthread_mutex_lock (&f->guard);
    while (end > f->staged && !f->closed)
        pthread_cond_wait (&f->moved, &f->guard);
    there = !f->closed;
    pthread_mutex_unlock (&f->guard);
    return there;
}

void gsi_flow_take (struct gsi_flow *f, uint64_t end)
{
    pthread_mutex_lock (&f->guard);
    f->taken = end;
    f->moved_ns = gsi_now_ns ();
    if (f->ring || end == f->total)
        pthread_cond_broadcast (&f->moved);
    pthread_mutex_unlock (&f->guard);
}

void gsi_flow_move (struct gsi_flow *f)
{
    pthread_mutex_lock (&f->guard);
    f->moved_ns = gsi_now_ns ();
    pthread_mutex_unlock (&f->guard);
}

void gsi_flow_again (struct gsi_flow *f, const char *path)
{
    pthread_mutex_lock (&f->guard);
    f->path = path;
    f->ended = false;
    f->moved_ns = gsi_now_ns ();
    pthread_mutex_unlock (&f->guard);
}

bool gsi_flow_closed (struct gsi_flow *f)
{
    bool closed;

    pthread_mutex_lock (&f->guard);
    closed = f->closed;
    pthread_mutex_unlock (&f->guard);
    return closed;
}

void gsi_flow_end (struct gsi_flow *f)
{
    pthread_mutex_lock (&f->guard);
    f->ended = true;
    pthread_cond_broadcast (&f->moved);
    pthread_mutex_unlock (&f->guard);
}

void gsi_flow_fail (struct gsi_flow *f, gs_status_t st)
{
    pthread_mutex_lock (&f->guard);
    fail_guarded (f, st);
    pthread_mutex_unlock (&f->guard);
}

/* With the guard. Without a ring arrays are free when the writer is done with them. */
static bool has_reached (const struct gsi_flow *f, enum gsi_flow_goal goal)
{
    if (goal == GSI_FLOW_ENDED || f->ended)
        return f->ended;
    return f->closed || (f->ring ? f->staged : f->taken) == f->total;
}

bool gsi_flow_await (struct gsi_flow *f, enum gsi_flow_goal goal, int64_t until_ns,
                     int64_t patience_ns)
{
    bool reached;

    pthread_mutex_lock (&f->guard);
    while (!(reached = has_reached (f, goal)) && gsi_now_ns () < until_ns) {
        wait_guarded (f, until_ns);
        if (!has_reached (f, goal)) /* else it came while this thread had no core */
            look_guarded (f, patience_ns);
    }
    if (!reached)
        look_guarded (f, patience_ns);
    pthread_mutex_unlock (&f->guard);
    return reached;
}
