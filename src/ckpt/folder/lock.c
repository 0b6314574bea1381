/* SPDX-License-Identifier: BSD-3-Clause */
/* lock - the locks of folders of checkpoints that this process has. */
#include "ckpt/folder/lock.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/status.h"
#include "base/thread.h"
#include "ckpt/folder/lock_file.h"

struct gsi_lock {
    struct gsi_lock *next;
    dev_t device; /* the folder, however it is called */
    ino_t number;
    pid_t process;         /* a child that was forked has the memory, and not the lock */
    int plans;             /* that have it; 0: it is on its way out */
    int users;             /* they, and the thread while it is at it */
    pthread_mutex_t guard; /* of the file */
    struct gsi_lock_file file;
};

struct keeper {
    pid_t process; /* that has the thread */
    pthread_t thread;
    pthread_cond_t bell; /* stop has changed */
    bool stop;
};

static pthread_mutex_t guard =
    PTHREAD_MUTEX_INITIALIZER; /* all below; not held in calls on files */
static struct gsi_lock *locks;
static struct keeper *keeper; /* NULL while there is no lock */

/* ---- The list; with the guard ---- */

static struct gsi_lock *find_lock (const struct stat *folder)
{
    struct gsi_lock *l = locks;

    while (l && (!l->plans || l->device != folder->st_dev || l->number != folder->st_ino ||
                 l->process != getpid ()))
        l = l->next;
    return l;
}

static gs_status_t add_lock (const char *caller, const char *dir, const struct stat *folder,
                             struct gsi_lock **out)
{
    struct gsi_lock *l = gsi_fault ("ckpt.memory") ? NULL : calloc (1, sizeof (*l));
    gs_status_t st;

    if (!l)
        return gsi_fail (GS_ERR_NOMEM, "%s: no memory for the lock of %s", caller, dir);
    if ((st = gsi_lock_file_open (&l->file, dir))) {
        free (l);
        return st;
    }
    l->device = folder->st_dev;
    l->number = folder->st_ino;
    l->process = getpid ();
    pthread_mutex_init (&l->guard, NULL);
    l->next = locks;
    locks = *out = l;
    return GS_OK;
}

static void release_lock (struct gsi_lock *l)
{
    struct gsi_lock **at = &locks;

    if (--l->users)
        return;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    pthread_mutex_destroy (&l->guard);
    gsi_lock_file_close (&l->file);
    free (l);
}

/* ---- The thread ---- */

/* With the guard, which it gives back while it works. */
static void beat_all (void)
{
    struct gsi_lock *l = locks, *next;

    while (l) {
        l->users++;
        pthread_mutex_unlock (&guard);
        pthread_mutex_lock (&l->guard);
        gsi_lock_file_beat (&l->file);
        pthread_mutex_unlock (&l->guard);
        pthread_mutex_lock (&guard);
        next = l->next;
        release_lock (l);
        l = next;
    }
}

static void *keep (void *context)
{
    struct keeper *k = context;
    int64_t next_ns = gsi_now_ns ();

    pthread_mutex_lock (&guard);
    while (!k->stop) {
        next_ns += GSI_HOLDER_BEAT_S * GSI_NS_PER_S;
        while (!k->stop && gsi_now_ns () < next_ns)
            gsi_condition_wait (&k->bell, &guard, next_ns);
        if (!k->stop)
            beat_all ();
    }
    pthread_mutex_unlock (&guard);
    return NULL;
}

/* With the guard. */
static gs_status_t start_keeper (const char *caller)
{
    struct keeper *k;
    gs_status_t st;

    if (keeper && keeper->process == getpid ())
        return GS_OK;
    if (!(k = calloc (1, sizeof (*k))))
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);
    k->process = getpid ();
    gsi_condition_init (&k->bell);
    if (!(st = gsi_thread_start (&k->thread, keep, k, caller))) {
        keeper = k;
        return GS_OK;
    }
    pthread_cond_destroy (&k->bell);
    free (k);
    return st;
}

/* Tells the thread to end if there is nothing to keep, with the guard; it is to be joined. */
static struct keeper *stop_keeper (void)
{
    const struct gsi_lock *l = locks;
    struct keeper *k = keeper;

    while (l && !l->plans)
        l = l->next;
    if (l || !k)
        return NULL;
    k->stop = true;
    pthread_cond_signal (&k->bell);
    keeper = NULL;
    return k;
}

static void join_keeper (struct keeper *k)
{
    if (!k)
        return;
    pthread_join (k->thread, NULL);
    pthread_cond_destroy (&k->bell);
    free (k);
}

/* ---- What plans do ---- */

gs_status_t gsi_lock_take (const char *caller, const char *dir, struct gsi_lock **lock,
                           bool *taken)
{
    struct gsi_lock *l;
    struct stat folder;
    gs_status_t st = GS_OK;

    *taken = false;
    if (stat (dir, &folder))
        return gsi_fail (GS_ERR_IO, "%s: folder %s: %s", caller, dir, strerror (errno));
    pthread_mutex_lock (&guard);
    if (!(l = find_lock (&folder)))
        st = add_lock (caller, dir, &folder, &l);
    if (!st) {
        l->plans++;
        l->users++;
        st = start_keeper (caller);
    }
    pthread_mutex_unlock (&guard);
    if (!l)
        return st;
    pthread_mutex_lock (&l->guard);
    if (!st)
        st = l->file.ours && !l->file.lost ? gsi_lock_file_look (&l->file, caller)
                                           : gsi_lock_file_take (&l->file, caller, taken);
    pthread_mutex_unlock (&l->guard);
    if (st)
        gsi_lock_drop (l);
    else
        *lock = l;
    return st;
}

gs_status_t gsi_lock_look (const char *caller, struct gsi_lock *lock)
{
    gs_status_t st;

    pthread_mutex_lock (&lock->guard);
    st = gsi_lock_file_look (&lock->file, caller);
    pthread_mutex_unlock (&lock->guard);
    return st;
}

const char *gsi_lock_id (const struct gsi_lock *lock)
{
    return lock->file.self.id;
}

bool gsi_lock_took (struct gsi_lock *lock)
{
    bool took;

    pthread_mutex_lock (&lock->guard);
    took = lock->file.took;
    lock->file.took = false;
    pthread_mutex_unlock (&lock->guard);
    return took;
}

bool gsi_lock_is_lost (struct gsi_lock *lock)
{
    return lock->file.lost; /* without the guard, which a beat on a file system that hangs has */
}

void gsi_lock_drop (struct gsi_lock *lock)
{
    struct keeper *k = NULL;
    bool last;

    if (!lock || lock->process != getpid ())
        return;
    pthread_mutex_lock (&guard);
    last = !--lock->plans;
    if (last)
        k = stop_keeper ();
    pthread_mutex_unlock (&guard);
    if (last) {
        pthread_mutex_lock (&lock->guard);
        gsi_lock_file_leave (&lock->file);
        pthread_mutex_unlock (&lock->guard);
    }
    join_keeper (k);
    pthread_mutex_lock (&guard);
    release_lock (lock);
    pthread_mutex_unlock (&guard);
}

void gsi_lock_beat (void)
{
    pthread_mutex_lock (&guard);
    beat_all ();
    pthread_mutex_unlock (&guard);
}
