/* SPDX-License-Identifier: BSD-3-Clause */
/* remover - takes files away. */
#include "ckpt/remover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "ckpt/file.h"

struct batch {
    char **path;
    size_t number, room;
};

struct gsi_remover {
    char *top;
    struct batch waiting, going; /* the second is the thread's while it runs */
    pthread_t thread;
    bool runs;
    pthread_mutex_t guard; /* of what is below */
    pthread_cond_t through;
    bool ended, left; /* the thread's work; and it has nobody else any more */
};

/* ---- Files and folders ---- */

/* A folder with the files in it, and nothing that a link in its place leads to. False: errno
 * tells why. */
static bool remove_folder (const char *path)
{
    int fd = open (path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir (fd);
    struct dirent *entry;

    if (!dir) {
        int reason = errno;
        if (fd >= 0)
            close (fd);
        errno = reason;
        return reason == ENOENT;
    }
    while ((entry = readdir (dir)))
        if (strcmp (entry->d_name, ".") != 0 && strcmp (entry->d_name, "..") != 0)
            unlinkat (dirfd (dir), entry->d_name, 0);
    closedir (dir);
    return !rmdir (path) || errno == ENOENT;
}

static void tell (const char *path, const char *reason)
{
    gsi_log (GS_LOG_WARN, "ckpt", "could not remove %s: %s", path, reason);
}

void gsi_remove (char *path)
{
    bool gone = path && (!unlink (path) || errno == ENOENT ||
                         ((errno == EISDIR || errno == EPERM) && remove_folder (path)));

    if (!gone)
        tell (path ? path : "a file", path ? strerror (errno) : "out of memory");
    free (path);
}

/* ---- What was taken ---- */

void gsi_remover_take (struct gsi_remover *r, char *path)
{
    struct batch *b = &r->waiting;
    size_t room = b->room ? 2 * b->room : 16;
    char **larger = b->path;

    if (b->number == b->room) {
        if (!(larger = realloc (b->path, room * sizeof (*larger)))) {
            tell (path, "out of memory");
            free (path);
            return;
        }
        b->path = larger;
        b->room = room;
    }
    b->path[b->number++] = path;
}

static void forget (struct batch *b)
{
    for (size_t i = 0; i < b->number; i++)
        free (b->path[i]);
    free (b->path);
    *b = (struct batch){.number = 0};
}

static void remove_all (struct gsi_remover *r)
{
    /* Half of a checkpoint never has the name of one. */
    if (gsi_file_sync_folder (r->top)) {
        tell (r->top, gs_last_error ());
    } else {
        for (size_t i = 0; i < r->going.number; i++) {
            gsi_remove (r->going.path[i]);
            r->going.path[i] = NULL;
        }
    }
    forget (&r->going);
}

static void clear (struct gsi_remover *r)
{
    forget (&r->waiting);
    pthread_mutex_destroy (&r->guard);
    pthread_cond_destroy (&r->through);
    free (r->top);
    free (r);
}

static void *work (void *remover)
{
    struct gsi_remover *r = remover;
    bool left;

    gsi_thread_stand_back ();
    remove_all (r);
    pthread_mutex_lock (&r->guard);
    r->ended = true;
    left = r->left;
    pthread_cond_signal (&r->through);
    pthread_mutex_unlock (&r->guard);
    if (left) {
        pthread_detach (pthread_self ());
        clear (r);
    }
    return NULL;
}

void gsi_remover_run (struct gsi_remover *r, bool beside)
{
    if (!gsi_remover_await (r, 0) || !r->waiting.number)
        return;
    r->going = r->waiting;
    r->waiting = (struct batch){.number = 0};
    r->ended = false;
    r->runs = beside && !gsi_thread_start (&r->thread, work, r, r->top);
    if (!r->runs)
        remove_all (r);
}

bool gsi_remover_await (struct gsi_remover *r, int64_t until_ns)
{
    bool ended;

    if (!r->runs)
        return true;
    pthread_mutex_lock (&r->guard);
    while (!(ended = r->ended) && gsi_now_ns () < until_ns)
        gsi_condition_wait (&r->through, &r->guard, until_ns);
    pthread_mutex_unlock (&r->guard);
    if (ended)
        pthread_join (r->thread, NULL);
    r->runs = !ended;
    return ended;
}

/* ---- Its life ---- */

struct gsi_remover *gsi_remover_open (const char *top)
{
    struct gsi_remover *r = calloc (1, sizeof (*r));

    if (!r || !(r->top = strdup (top))) {
        free (r);
        return NULL;
    }
    pthread_mutex_init (&r->guard, NULL);
    gsi_condition_init (&r->through);
    return r;
}

/* Leaves the remover to its thread, unless that has ended meanwhile. */
static bool leave (struct gsi_remover *r)
{
    bool left;

    pthread_mutex_lock (&r->guard);
    left = r->left = !r->ended;
    pthread_mutex_unlock (&r->guard);
    return left;
}

bool gsi_remover_close (struct gsi_remover *r, int64_t until_ns)
{
    if (!r)
        return true;
    if (!gsi_remover_await (r, until_ns) && leave (r))
        return false;
    gsi_remover_await (r, INT64_MAX);
    gsi_remover_run (r, false);
    clear (r);
    return true;
}
