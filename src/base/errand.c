/* SPDX-License-Identifier: BSD-3-Clause */
/* errand - calls of other libraries that may wait for ever, each made by a thread of its own. */
#include "base/errand.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/thread.h"

struct gsi_errand {
    int (*work) (void *argument);
    void *argument;
    pthread_t thread;
    pthread_mutex_t mutex; /* all below */
    pthread_cond_t changed;
    bool ended;
    int rc, holders; /* the caller and the thread: whoever is last frees it */
};

static void errand_release (struct gsi_errand *e)
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

static void *errand_run (void *context)
{
    struct gsi_errand *e = context;
    int rc = e->work (e->argument);

    pthread_mutex_lock (&e->mutex);
    e->rc = rc;
    e->ended = true;
    pthread_cond_signal (&e->changed);
    pthread_mutex_unlock (&e->mutex);
    errand_release (e);
    return NULL;
}

static gs_status_t errand_begin (const char *what, int (*work) (void *), void *argument,
                                 struct gsi_errand **out)
{
    struct gsi_errand *e = calloc (1, sizeof (*e));
    gs_status_t st;

    if (!e)
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", what);
    *e = (struct gsi_errand){.work = work, .argument = argument, .holders = 2};
    pthread_mutex_init (&e->mutex, NULL);
    gsi_condition_init (&e->changed);
    if ((st = gsi_thread_start (&e->thread, errand_run, e, what))) {
        e->holders = 1;
        errand_release (e);
        return st;
    }
    *out = e;
    return GS_OK;
}

static bool errand_has_ended (struct gsi_errand *e, int64_t deadline_ns, int *rc)
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

gs_status_t gsi_errand_run (struct gsi_errand **e, const char *what, int (*work) (void *),
                            void *argument, int64_t deadline_ns, int *rc)
{
    gs_status_t st;

    if (!*e && (st = errand_begin (what, work, argument, e)))
        return st;
    if (!errand_has_ended (*e, deadline_ns, rc))
        return GS_ERR_TIMEOUT;
    pthread_join ((*e)->thread, NULL);
    errand_release (*e);
    *e = NULL;
    return GS_OK;
}

void gsi_errand_leave (struct gsi_errand *e)
{
    pthread_detach (e->thread);
    errand_release (e);
}
