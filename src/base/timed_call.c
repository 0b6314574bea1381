/* SPDX-License-Identifier: BSD-3-Clause */
/* timed_call - calls of other libraries that may wait for ever, each made by a thread of its own.
 */
#include "base/timed_call.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/thread.h"

struct gsi_timed_call {
    int (*work) (void *argument);
    void *argument;
    pthread_t thread;
    pthread_mutex_t mutex; /* all below */
    pthread_cond_t changed;
    bool ended, detached;
    int rc, holders; /* the caller and the thread: whoever is last frees it */
};

static void timed_call_release (struct gsi_timed_call *e)
{
    bool last;

    pthread_mutex_lock (&e->mutex);
    last = --e->holders == 0;
    pthread_mutex_unlock (&e->mutex);
    if (!last)
        return;
    pthread_cond_destroy (&e->changed);
    pthread_mutex_destroy (&e->mutex);
    free (e);
}

static void *timed_call_run (void *context)
{
    struct gsi_timed_call *e = context;
    int rc = e->work (e->argument);

    pthread_mutex_lock (&e->mutex);
    e->rc = rc;
    e->ended = true;
    pthread_cond_signal (&e->changed);
    pthread_mutex_unlock (&e->mutex);
    timed_call_release (e);
    return NULL;
}

static gs_status_t timed_call_begin (const char *what, int (*work) (void *), void *argument,
                                     struct gsi_timed_call **out)
{
    struct gsi_timed_call *e = calloc (1, sizeof (*e));
    gs_status_t st;

    if (!e)
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", what);
    *e = (struct gsi_timed_call){.work = work, .argument = argument, .holders = 2};
    pthread_mutex_init (&e->mutex, NULL);
    gsi_condition_init (&e->changed);
    if ((st = gsi_thread_start (&e->thread, timed_call_run, e, what))) {
        e->holders = 1;
        timed_call_release (e);
        return st;
    }
    *out = e;
    return GS_OK;
}

static bool timed_call_has_ended (struct gsi_timed_call *e, int64_t deadline_ns, int *rc)
{
    bool ended;

    pthread_mutex_lock (&e->mutex);
    while (!e->ended && gsi_now_ns () < deadline_ns)
        gsi_condition_wait (&e->changed, &e->mutex, deadline_ns);
    ended = e->ended;
    *rc = e->rc;
    pthread_mutex_unlock (&e->mutex);
    return ended;
}

/* The thread may never end: nobody waits for it. */
static void let_go (struct gsi_timed_call *e)
{
    if (!e->detached)
        pthread_detach (e->thread);
    e->detached = true;
}

gs_status_t gsi_timed_call_run (struct gsi_timed_call **e, const char *what, int (*work) (void *),
                                void *argument, int64_t deadline_ns, int *rc)
{
    gs_status_t st;

    if (!*e && (st = timed_call_begin (what, work, argument, e)))
        return st;
    if (!timed_call_has_ended (*e, deadline_ns, rc)) {
        let_go (*e);
        return GS_ERR_TIMEOUT;
    }
    if (!(*e)->detached)
        pthread_join ((*e)->thread, NULL);
    timed_call_release (*e);
    *e = NULL;
    return GS_OK;
}

void gsi_timed_call_leave (struct gsi_timed_call *e)
{
    let_go (e);
    timed_call_release (e);
}
