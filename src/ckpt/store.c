/* SPDX-License-Identifier: BSD-3-Clause */
/* store - the folder of checkpoints: names, and what becomes of files. */
#include "ckpt/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "ckpt/file.h"

#define COMING      ".tmp"
#define ABANDONED_S 3600 /* far above the time between two writes to a file */

char *gsi_store_path (const gs_ckpt_t *c, int64_t step, bool coming)
{
    size_t room = strlen (c->dir) + 64;
    char *path = malloc (room);

    if (path)
        snprintf (path, room, "%s/ck-%012" PRId64 ".h5%s", c->dir, step, coming ? COMING : "");
    return path;
}

/* The step of a file of ours; -1 of another one. [*coming] tells whether it is complete. */
static int64_t step_of (const char *name, bool *coming)
{
    char again[64];
    int64_t step;

    if (sscanf (name, "ck-%" SCNd64, &step) != 1 || step < 0)
        return -1;
    for (int i = 0; i < 2; i++) {
        snprintf (again, sizeof (again), "ck-%012" PRId64 ".h5%s", step, i ? COMING : "");
        *coming = i;
        if (!strcmp (name, again))
            return step;
    }
    return -1;
}

static int by_step (const void *a, const void *b)
{
    int64_t x = *(const int64_t *) a, y = *(const int64_t *) b;

    return (x > y) - (x < y);
}

/* The steps of files that are complete, or of those that are not. */
static gs_status_t list (const gs_ckpt_t *c, bool wanted, int64_t **steps, size_t *number)
{
    DIR *dir = opendir (c->dir);
    size_t room = 0;
    struct dirent *entry;
    int64_t *larger;
    bool coming = false;

    *steps = NULL;
    *number = 0;
    if (!dir)
        return gsi_file_fail (c->dir, "opendir");
    while ((errno = 0, entry = readdir (dir))) {
        int64_t step = step_of (entry->d_name, &coming);
        if (step < 0 || coming != wanted)
            continue;
        if (*number == room) {
            room = room ? 2 * room : 64;
            if (!(larger = realloc (*steps, room * sizeof (**steps))))
                break;
            *steps = larger;
        }
        (*steps)[(*number)++] = step;
    }
    if (entry || errno) {
        gs_status_t st = entry ? gsi_fail (GS_ERR_NOMEM, "%s: no memory for its list", c->dir)
                               : gsi_file_fail (c->dir, "readdir");
        closedir (dir);
        free (*steps);
        *steps = NULL;
        return st;
    }
    closedir (dir);
    if (*number)
        qsort (*steps, *number, sizeof (**steps), by_step);
    return GS_OK;
}

gs_status_t gsi_store_list (const gs_ckpt_t *c, int64_t **steps, size_t *number)
{
    return list (c, false, steps, number);
}

static void remove_step (const gs_ckpt_t *c, int64_t step, bool coming)
{
    char *path = gsi_store_path (c, step, coming);

    if (!path || (unlink (path) && errno != ENOENT))
        gsi_log (GS_LOG_WARN, "ckpt", "could not remove %s: %s", path ? path : "a file",
                 path ? strerror (errno) : "out of memory");
    free (path);
}

/* Whether nothing was written to it for long: a job that lives writes. */
static bool is_abandoned (const char *path)
{
    struct stat facts;

    return !stat (path, &facts) && time (NULL) - facts.st_mtime > ABANDONED_S;
}

void gsi_store_sweep (const gs_ckpt_t *c)
{
    int64_t *steps;
    size_t number;

    if (list (c, true, &steps, &number)) {
        gsi_log (GS_LOG_WARN, "ckpt", "%s", gs_last_error ());
        return;
    }
    for (size_t i = 0; i < number; i++) {
        char *path = gsi_store_path (c, steps[i], true);
        if (path && is_abandoned (path))
            remove_step (c, steps[i], true);
        free (path);
    }
    free (steps);
}

void gsi_store_retain (const gs_ckpt_t *c, int64_t step)
{
    size_t number, keep = (size_t) c->opts.keep_last;
    int64_t *steps;

    if (!keep)
        return;
    if (list (c, false, &steps, &number)) {
        gsi_log (GS_LOG_WARN, "ckpt", "%s", gs_last_error ());
        return;
    }
    while (number && steps[number - 1] > step)
        number--; /* of a past that this job has gone back from */
    for (size_t i = 0; i + keep < number; i++)
        if (!c->opts.keep_every || steps[i] % c->opts.keep_every)
            remove_step (c, steps[i], false);
    free (steps);
}

/* Asks for the room that the file takes; a file system that cannot say finds out in a write. */
static gs_status_t reserve (int fd, const gs_ckpt_t *c, const char *path)
{
    int rc;

    if (ftruncate (fd, (off_t) c->file_bytes))
        return gsi_file_fail (path, "ftruncate");
    /* N.B. Not posix_fallocate, which writes all of it where the file system has no such call. */
    while ((rc = fallocate (fd, 0, 0, (off_t) c->file_bytes)) && errno == EINTR)
        ;
    if (rc && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG || errno == EIO))
        return gsi_file_fail (path, "fallocate");
    return GS_OK;
}

gs_status_t gsi_store_begin (const gs_ckpt_t *c, int64_t step, const char *coming)
{
    char *path = gsi_store_path (c, step, false);
    bool exists = path && !access (path, F_OK);
    bool damaged = step >= c->damaged[0] && step <= c->damaged[1];
    gs_status_t st = GS_OK;
    int fd;

    if (!path)
        st = gsi_fail (GS_ERR_NOMEM, "%s: no memory for a name", c->dir);
    else if (exists && !damaged && !c->opts.overwrite)
        st =
            gsi_fail (GS_ERR_STATE,
                      "%s: there is a checkpoint of this step already: give another step, or the "
                      "option overwrite",
                      path);
    free (path);
    if (st)
        return st;
    unlink (coming); /* of a job that has died */
    if ((fd = open (coming, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) < 0)
        return gsi_file_fail (coming, "open");
    if (!(st = gsi_file_write (fd, coming, c->image, c->image_bytes, 0)))
        st = reserve (fd, c, coming);
    if (close (fd) && !st)
        st = gsi_file_fail (coming, "close");
    if (st)
        unlink (coming);
    return st;
}

/* A name is on disk when its folder is. */
static gs_status_t sync_folder (const gs_ckpt_t *c)
{
    int fd = open (c->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    gs_status_t st = GS_OK;

    if (fd < 0)
        return gsi_file_fail (c->dir, "open");
    if (fsync (fd) && errno != EINVAL) /* which says that the file system needs none */
        st = gsi_file_fail (c->dir, "fsync");
    close (fd);
    return st;
}

gs_status_t gsi_store_publish (const gs_ckpt_t *c, int64_t step, const char *coming)
{
    char *path = gsi_store_path (c, step, false);
    gs_status_t st;

    if (!path)
        return gsi_fail (GS_ERR_NOMEM, "%s: no memory for a name", c->dir);
    st = rename (coming, path) ? gsi_file_fail (coming, "rename") : sync_folder (c);
    free (path);
    return st;
}
