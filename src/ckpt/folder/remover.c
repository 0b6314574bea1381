/* SPDX-License-Identifier: BSD-3-Clause */
/* remover - takes files away. */
#include "ckpt/folder/remover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/thread.h"
#include "ckpt/format/file.h"
#include "ckpt/format/trailer.h"

struct removal {
    char *path;
    uint64_t number;
};

struct batch {
    struct removal *entry;
    size_t number;
};

struct gsi_remover {
    char *top;
    int folder;                  /* the same, open; -1 until something is taken */
    struct batch waiting, going; /* the second is the thread's while it runs */
    pthread_t thread;
    bool runs;
    pthread_mutex_t guard; /* of what is below */
    pthread_cond_t through;
    bool ended, left; /* the thread's work; and it has nobody else any more */
};

/* ---- Files and folders ---- */

/* Whether that is the name of a file in a folder of ours. */
static bool is_part_name (const char *name)
{
    int end = 0;

    return !strcmp (name, GSI_INDEX_FILE) ||
           (sscanf (name, "part-%*[0-9].h5%n", &end) == 0 && end && !name[end]);
}

/* A folder with the files in it that are ours, and nothing that a link in its place leads to, nor
 * what another folder in its place has. */
static gs_status_t remove_folder (int folder, const char *path, uint64_t number)
{
    int fd;
    gs_status_t st =
        gsi_file_open (folder, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, number, &fd);
    DIR *dir = st ? NULL : fdopendir (fd);
    struct dirent *entry;

    if (!st && !dir) {
        st = gsi_file_fail (path, "fdopendir");
        close (fd);
    }
    while (dir && (entry = readdir (dir)))
        if (is_part_name (entry->d_name))
            unlinkat (dirfd (dir), entry->d_name, 0);
    if (dir)
        closedir (dir);
    if (!st && gsi_file_unlink (folder, path, AT_REMOVEDIR) && errno != ENOENT)
        st = gsi_file_fail (path, "rmdir");
    return st;
}

static gs_status_t remove_one (int folder, const char *path, uint64_t number)
{
    uint64_t is = gsi_file_find (folder, path);

    if (!is || !gsi_file_unlink (folder, path, 0) || errno == ENOENT)
        return GS_OK;
    if (errno == EISDIR || errno == EPERM)
        return remove_folder (folder, path, number);
    return gsi_file_fail (path, "unlink");
}

static void warn_reason (const char *reason)
{
    gsi_log (GS_LOG_WARN, "ckpt", "could not remove it: %s", reason);
}

void gsi_remove (int folder, const char *path, uint64_t number)
{
    if (remove_one (folder, path, number))
        warn_reason (gsi_last_text ());
}

/* ---- What was taken ---- */

void gsi_remover_take (struct gsi_remover *r, int folder, const char *path, uint64_t number)
{
    struct batch *b = &r->waiting;
    struct removal e = {strdup (path), number};
    struct removal *larger = realloc (b->entry, (b->number + 1) * sizeof (*larger));

    if (r->folder < 0)
        r->folder = fcntl (folder, F_DUPFD_CLOEXEC, 0);
    b->entry = larger ? larger : b->entry;
    if (larger && e.path) {
        b->entry[b->number++] = e;
        return;
    }
    free (e.path);
    warn_reason ("out of memory");
}

static void clear_batch (struct batch *b)
{
    for (size_t i = 0; i < b->number; i++)
        free (b->entry[i].path);
    free (b->entry);
    *b = (struct batch){.number = 0};
}

static void remove_all (struct gsi_remover *r)
{
    /* Half of a checkpoint never has the name of one. */
    if (gsi_file_sync (r->folder, r->top))
        warn_reason (gsi_last_text ());
    else
        for (size_t i = 0; i < r->going.number; i++)
            gsi_remove (r->folder, r->going.entry[i].path, r->going.entry[i].number);
    clear_batch (&r->going);
}

static void remover_clear (struct gsi_remover *r)
{
    clear_batch (&r->waiting);
    if (r->folder >= 0)
        close (r->folder);
    pthread_mutex_destroy (&r->guard);
    pthread_cond_destroy (&r->through);
    free (r->top);
    free (r);
}

static void *remover_run (void *remover)
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
        remover_clear (r);
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
    r->runs = beside && !gsi_thread_start (&r->thread, remover_run, r, r->top);
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
    r->folder = -1;
    pthread_mutex_init (&r->guard, NULL);
    gsi_condition_init (&r->through);
    return r;
}

/* Leaves the remover to its thread, unless that has ended meanwhile. */
static bool leave_to_thread (struct gsi_remover *r)
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
    if (!gsi_remover_await (r, until_ns) && leave_to_thread (r))
        return false;
    gsi_remover_await (r, INT64_MAX);
    gsi_remover_run (r, false);
    remover_clear (r);
    return true;
}
