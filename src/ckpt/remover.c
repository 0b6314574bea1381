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

#define HELD_MAX 16 /* more go on the spot: descriptors are the program's, too */

struct gsi_remover {
    char *top;
    int file[HELD_MAX]; /* without names, perhaps */
    char *folder[HELD_MAX];
    int files, folders;
    pthread_t thread;
    bool runs;             /* there is a thread, which has all above */
    pthread_mutex_t guard; /* of what is below */
    pthread_cond_t through;
    bool ended, left; /* its work; and it has nobody else any more */
};

/* ---- Now ---- */

/* A folder with the files in it. False: errno tells why. */
static bool remove_folder (const char *path)
{
    DIR *dir = opendir (path);
    struct dirent *entry;

    if (!dir)
        return errno == ENOENT;
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

/* ---- What is taken ---- */

void gsi_remover_hold (struct gsi_remover *r, const char *path)
{
    int fd = r->runs || r->files == HELD_MAX ? -1 : open (path, O_RDONLY | O_CLOEXEC);

    if (fd >= 0)
        r->file[r->files++] = fd;
}

void gsi_remover_take (struct gsi_remover *r, char *path)
{
    if (path)
        gsi_remover_hold (r, path);
    gsi_remove (path);
}

void gsi_remover_take_folder (struct gsi_remover *r, char *path)
{
    if (r->folders == HELD_MAX)
        gsi_remover_run (r, false);
    r->folder[r->folders++] = path;
}

/* ---- What becomes of it ---- */

static void free_folders (struct gsi_remover *r)
{
    /* Half of a checkpoint never has the name of one. */
    bool safe = !r->folders || !gsi_file_sync_folder (r->top);

    for (int i = 0; i < r->folders; i++) {
        if (!safe)
            tell (r->folder[i], gs_last_error ());
        else if (!remove_folder (r->folder[i]))
            tell (r->folder[i], strerror (errno));
        free (r->folder[i]);
    }
    r->folders = 0;
}

static void free_all (struct gsi_remover *r)
{
    for (int i = 0; i < r->files; i++)
        close (r->file[i]);
    r->files = 0;
    free_folders (r);
}

static void clear (struct gsi_remover *r)
{
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
    free_all (r);
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
    if (r->runs || (!r->files && !r->folders))
        return;
    r->ended = false;
    r->runs = beside && !gsi_thread_start (&r->thread, work, r, r->top);
    if (!r->runs)
        free_all (r);
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

    gsi_log (GS_LOG_INFO, "ckpt", "%s: a thread goes on removing files", r->top);
    pthread_mutex_lock (&r->guard);
    left = r->left = !r->ended;
    pthread_mutex_unlock (&r->guard);
    return left;
}

void gsi_remover_close (struct gsi_remover *r, int64_t until_ns)
{
    if (!r || (!gsi_remover_await (r, until_ns) && leave (r)))
        return;
    gsi_remover_await (r, INT64_MAX);
    gsi_remover_run (r, false);
    clear (r);
}
