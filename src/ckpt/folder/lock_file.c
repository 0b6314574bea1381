/* SPDX-License-Identifier: BSD-3-Clause */
/* lock_file - DIR/.gs-lock, by which jobs that write to one folder stay apart. */
#include "ckpt/folder/lock_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/status.h"

#define NAME_MORE 64   /* what names of other files are longer */
#define BUSY_S    5    /* it is in other hands for no longer, */
#define BUSY_MS   20   /* and is looked at again after this */
#define WRITING_S 2    /* so long a lock may have no end, where links cannot be made */
#define LEFT_S    3600 /* far longer than anyone takes it */

/* What is there. */
struct seen {
    bool there;
    struct gsi_holder holder; /* without id: not readable */
    int64_t touched_s;
    ino_t number;
};

/* ---- Files; these functions return errno ---- */

static int64_t seconds_of (const struct stat *facts)
{
    return facts->st_mtim.tv_sec;
}

/* Opens it, so that what a client of NFS remembers of it does not count; touches that of [own].
 */
static int look_at_lock (int folder, const char *path, const char *own, struct seen *seen)
{
    char text[GSI_HOLDER_TEXT_MAX] = "";
    int fd = openat (folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW), error = 0;
    struct stat facts;
    ssize_t n;

    *seen = (struct seen){.there = fd >= 0};
    if (fd < 0)
        return errno == ENOENT ? 0 : errno;
    while ((n = read (fd, text, sizeof (text) - 1)) < 0 && errno == EINTR)
        ;
    if (n < 0 || fstat (fd, &facts)) {
        error = errno;
    } else {
        text[n] = 0;
        gsi_holder_read (&seen->holder, text);
        seen->touched_s = seconds_of (&facts);
        seen->number = facts.st_ino;
        if (own && !strcmp (seen->holder.id, own) && futimens (fd, NULL))
            error = errno;
    }
    close (fd);
    return error;
}

static int write_text (int fd, const struct gsi_holder *h)
{
    char text[GSI_HOLDER_TEXT_MAX];
    size_t length = gsi_holder_write (h, text);
    ssize_t n;

    while ((n = write (fd, text, length)) < 0 && errno == EINTR)
        ;
    return n < 0 ? errno : (size_t) n < length ? ENOSPC : 0;
}

/* A file of [h] at [path], which must not be there; tells when, by the file system's clock. It is
 * on the disk: a loss of power leaves no lock that cannot be read. */
static int make_lock (const char *path, const struct gsi_holder *h, int64_t *now_s)
{
    int fd = open (path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666), error;
    struct stat facts;

    if (fd < 0)
        return errno;
    error = write_text (fd, h);
    if (!error && (futimens (fd, NULL) || fsync (fd) || fstat (fd, &facts)))
        error = errno;
    if (close (fd) && !error)
        error = errno;
    if (error)
        unlink (path);
    else if (now_s)
        *now_s = seconds_of (&facts);
    return error;
}

/* Makes our own file the lock, if there is none: EEXIST. */
static int put_in_place (const struct gsi_lock_file *f)
{
    struct stat facts;

    if (!gsi_fault ("lock.link")) {
        if (!link (f->own, f->path))
            return 0;
        /* N.B. NFS says so of a link that was made, too, if an answer is lost. */
        if (errno == EEXIST)
            return !lstat (f->own, &facts) && facts.st_nlink > 1 ? 0 : EEXIST;
    }
    return make_lock (f->path, &f->fresh, NULL); /* the file system has no links */
}

/* ---- Taking it from another ---- */

/* The name that who takes the lock [seen] for himself needs. */
static void name_claim (const struct gsi_lock_file *f, const struct seen *seen, int turn)
{
    size_t room = strlen (f->path) + NAME_MORE;

    if (*seen->holder.id)
        snprintf (f->claim, room, "%s.%s.%d", f->path, seen->holder.id, turn);
    else
        snprintf (f->claim, room, "%s.%llu.%d", f->path, (unsigned long long) seen->number, turn);
}

static bool is_same_lock (const struct seen *a, const struct seen *b)
{
    return a->there && b->there && a->number == b->number && !strcmp (a->holder.id, b->holder.id);
}

/*
 * Claims the lock [seen]. EAGAIN: somebody else does. A claim that is old is of a process that
 * died while it had it, within a moment; then the next one counts.
 */
static int claim (const struct gsi_lock_file *f, const struct seen *seen, int64_t now_s,
                  int *turn)
{
    struct stat facts;
    int fd;

    for (*turn = 0;; ++*turn) {
        name_claim (f, seen, *turn);
        fd = open (f->claim, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0) {
            close (fd);
            return 0;
        }
        if (errno != EEXIST)
            return errno;
        if (lstat (f->claim, &facts) || now_s - seconds_of (&facts) <= GSI_HOLDER_SILENT_S)
            return EAGAIN;
    }
}

static void unclaim (const struct gsi_lock_file *f, const struct seen *seen, int turn)
{
    for (; turn >= 0; turn--) {
        name_claim (f, seen, turn);
        unlink (f->claim);
    }
}

/* N.B. A rename over NFS may fail and have been made, if an answer is lost. */
static bool has_become (const struct gsi_lock_file *f)
{
    struct seen now;

    return !look_at_lock (AT_FDCWD, f->path, NULL, &now) && now.there &&
           !strcmp (now.holder.id, f->fresh.id);
}

/* Puts our own file in the place of the lock [seen]. EAGAIN: look again who has it. */
static int replace (const struct gsi_lock_file *f, const struct seen *seen, int64_t now_s)
{
    struct seen again;
    int turn, error = claim (f, seen, now_s, &turn);

    if (error)
        return error;
    error = look_at_lock (AT_FDCWD, f->path, NULL, &again);
    if (!error && (!is_same_lock (seen, &again) || again.touched_s != seen->touched_s))
        error = EAGAIN; /* it has changed hands, or lives */
    else if (!error && rename (f->own, f->path)) {
        error = errno;
        error = has_become (f) ? 0 : error;
    }
    unclaim (f, seen, turn);
    return error;
}

/* ---- Texts ---- */

static gs_status_t cannot (const struct gsi_lock_file *f, const char *caller, const char *what,
                           int error)
{
    return gsi_fail (GS_ERR_IO, "%s: cannot %s %s/" GSI_LOCK_NAME ": %s", caller, what, f->dir,
                     strerror (error));
}

static gs_status_t refuse_lock (const struct gsi_lock_file *f, const char *caller,
                                const struct seen *seen, int64_t age_s)
{
    char who[sizeof (f->who)];

    if (!*seen->holder.id)
        return gsi_fail (GS_ERR_STATE,
                         "%s: %s/" GSI_LOCK_NAME
                         " is no lock that can be read: remove it if no job "
                         "writes to this folder, or use another one",
                         caller, f->dir);
    gsi_holder_describe (&seen->holder, who, sizeof (who));
    return gsi_fail (GS_ERR_STATE,
                     "%s: folder %s is written by %s, which gave a sign of life %lld s ago: use "
                     "another folder, or wait until that job has ended; if it surely has, remove "
                     "%s/" GSI_LOCK_NAME,
                     caller, f->dir, who, (long long) (age_s > 0 ? age_s : 0), f->dir);
}

static void note_lost (struct gsi_lock_file *f, const struct seen *seen)
{
    f->lost = true;
    gsi_holder_describe (&seen->holder, f->who, sizeof (f->who));
}

static gs_status_t fail_lost (const struct gsi_lock_file *f, const char *caller)
{
    return gsi_fail (GS_ERR_STATE,
                     "%s: folder %s was taken over by %s: this plan writes nothing there any "
                     "more; end this job, or that one and make another plan",
                     caller, f->dir, f->who);
}

/* ---- What is done with it ---- */

gs_status_t gsi_lock_file_open (struct gsi_lock_file *f, const char *dir)
{
    char *whole = realpath (dir, NULL);
    size_t room = whole ? strlen (whole) + sizeof (GSI_LOCK_NAME) + 1 : 0;

    *f = (struct gsi_lock_file){.dir = NULL};
    if (!whole)
        return gsi_fail (GS_ERR_IO, "%s: realpath: %s", dir, strerror (errno));
    f->dir = strdup (dir);
    f->path = malloc (room);
    f->own = malloc (room + NAME_MORE);
    f->claim = malloc (room + NAME_MORE);
    if (f->dir && f->path && f->own && f->claim) {
        snprintf (f->path, room, "%s/" GSI_LOCK_NAME, whole);
        free (whole);
        gsi_holder_self (&f->self);
        return GS_OK;
    }
    free (whole);
    gsi_lock_file_close (f);
    return gsi_fail (GS_ERR_NOMEM, "%s: no memory for its lock", dir);
}

bool gsi_lock_file_is (int folder, const char *id)
{
    struct gsi_holder self;
    struct seen seen;

    if (look_at_lock (folder, GSI_LOCK_NAME, NULL, &seen) || !*seen.holder.id)
        return false;
    if (!strcmp (seen.holder.id, id))
        return true;
    gsi_holder_self (&self); /* another process of this step may have made it */
    return gsi_holder_is_same_step (&seen.holder, &self);
}

void gsi_lock_file_close (struct gsi_lock_file *f)
{
    free (f->dir);
    free (f->path);
    free (f->own);
    free (f->claim);
    *f = (struct gsi_lock_file){.dir = NULL};
}

/* Removes what processes that died in the act have left. */
static void sweep_locks (const struct gsi_lock_file *f, int64_t now_s)
{
    size_t length = strlen (f->path) - strlen (GSI_LOCK_NAME) - 1;
    struct dirent *entry;
    struct stat facts;
    DIR *dir;

    snprintf (f->claim, length + 1, "%s", f->path);
    dir = opendir (f->claim);
    while (dir && (entry = readdir (dir)))
        if (!strncmp (entry->d_name, GSI_LOCK_NAME ".", strlen (GSI_LOCK_NAME) + 1) &&
            !fstatat (dirfd (dir), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) &&
            now_s - seconds_of (&facts) > LEFT_S)
            unlinkat (dirfd (dir), entry->d_name, 0);
    if (dir)
        closedir (dir);
}

/* It is ours from now on. */
static void lock_taken (struct gsi_lock_file *f, int64_t now_s)
{
    f->self = f->fresh;
    f->ours = true;
    f->lost = false;
    sweep_locks (f, now_s);
}

/* A clock was wrong when it was touched, so far that it would count as alive until then. Its
 * holder touches it again, or it counts from now on. */
static void bring_to_now (const struct gsi_lock_file *f, int64_t age_s)
{
    if (age_s >= -GSI_HOLDER_SILENT_S)
        return;
    gsi_log (GS_LOG_WARN, "ckpt", "%s is of the future, by %lld s: its age counts from now on",
             f->path, (long long) -age_s);
    if (utimensat (AT_FDCWD, f->path, NULL, AT_SYMLINK_NOFOLLOW))
        gsi_log (GS_LOG_WARN, "ckpt", "cannot touch %s: %s", f->path, strerror (errno));
}

/* There is a lock already. */
static int contend (struct gsi_lock_file *f, const struct seen *seen, int64_t now_s, bool *taken)
{
    int64_t age_s = now_s - seen->touched_s;
    enum gsi_right right = gsi_holder_judge (&seen->holder, &f->fresh, age_s);
    char who[sizeof (f->who)];
    int error;

    if (!seen->there || (!*seen->holder.id && age_s <= WRITING_S))
        return EAGAIN;
    if (right == GSI_RIGHT_NONE) {
        bring_to_now (f, age_s);
        return EBUSY;
    }
    if (right == GSI_RIGHT_SHARED) {
        f->ours = f->ours && !strcmp (seen->holder.id, f->self.id);
        f->lost = false;
        return 0;
    }
    if ((error = replace (f, seen, now_s)))
        return error;
    lock_taken (f, now_s);
    *taken = !gsi_holder_is_same_step (&seen->holder, &f->self);
    gsi_holder_describe (&seen->holder, who, sizeof (who));
    gsi_log (right == GSI_RIGHT_SILENT ? GS_LOG_WARN : GS_LOG_INFO, "ckpt",
             "folder %s is taken over from %s: %s", f->dir, who,
             right == GSI_RIGHT_OLDER  ? "this is the same job, requeued"
             : right == GSI_RIGHT_GONE ? "that process has ended"
                                       : "no sign of life for more than a minute");
    return 0;
}

/* EBUSY: [seen] has it, and gave a sign of life [*age_s] ago. */
static int attempt (struct gsi_lock_file *f, struct seen *seen, int64_t *age_s, bool *taken)
{
    int64_t now_s = 0;
    int error;

    gsi_holder_self (&f->fresh);
    snprintf (f->own, strlen (f->path) + NAME_MORE, "%s.%s", f->path, f->fresh.id);
    if ((error = make_lock (f->own, &f->fresh, &now_s)))
        return error;
    error = put_in_place (f);
    if (!error)
        lock_taken (f, now_s);
    else if (error == EEXIST && !(error = look_at_lock (AT_FDCWD, f->path, NULL, seen)))
        error = contend (f, seen, now_s, taken);
    unlink (f->own);
    *age_s = now_s - seen->touched_s;
    return error;
}

gs_status_t gsi_lock_file_take (struct gsi_lock_file *f, const char *caller, bool *taken)
{
    int64_t until_ns = gsi_now_ns () + BUSY_S * GSI_NS_PER_S, age_s = 0;
    struct seen seen = {.there = false};
    int error;

    *taken = false;
    while ((error = attempt (f, &seen, &age_s, taken)) == EAGAIN && gsi_now_ns () < until_ns)
        nanosleep (&(struct timespec){.tv_nsec = BUSY_MS * GSI_NS_PER_MS}, NULL);
    if (error == EBUSY)
        return refuse_lock (f, caller, &seen, age_s);
    if (error == EAGAIN)
        return gsi_fail (GS_ERR_STATE,
                         "%s: %s/" GSI_LOCK_NAME
                         " is being taken over by others all the time: try again",
                         caller, f->dir);
    return error ? cannot (f, caller, "make the lock", error) : GS_OK;
}

gs_status_t gsi_lock_file_look (struct gsi_lock_file *f, const char *caller)
{
    struct seen seen;
    bool taken;
    int error;

    if (f->lost)
        return fail_lost (f, caller);
    if ((error = look_at_lock (AT_FDCWD, f->path, NULL, &seen)))
        return cannot (f, caller, "read", error);
    if (seen.there && f->ours && !strcmp (seen.holder.id, f->self.id))
        return GS_OK;
    if (!seen.there || gsi_holder_is_same_step (&seen.holder, &f->self) ||
        gsi_holder_judge (&seen.holder, &f->self, 0) == GSI_RIGHT_OLDER) {
        gs_status_t st = gsi_lock_file_take (f, caller, &taken);
        f->took = f->took || (!st && taken);
        return st;
    }
    note_lost (f, &seen);
    return fail_lost (f, caller);
}

void gsi_lock_file_beat (struct gsi_lock_file *f)
{
    struct seen seen;
    int error;

    if (!f->ours || f->lost)
        return;
    error = look_at_lock (AT_FDCWD, f->path, f->self.id, &seen);
    if (error && !f->warned)
        gsi_log (GS_LOG_WARN, "ckpt", "cannot touch %s: %s; after a minute other jobs take it",
                 f->path, strerror (error));
    f->warned = error;
    if (!error && seen.there && strcmp (seen.holder.id, f->self.id)) {
        f->ours = false;
        if (gsi_holder_is_same_step (&seen.holder, &f->self))
            return;
        note_lost (f, &seen);
        gsi_log (GS_LOG_WARN, "ckpt", "folder %s was taken over by %s", f->dir, f->who);
    }
}

void gsi_lock_file_leave (struct gsi_lock_file *f)
{
    struct seen ours = {.there = true, .holder = f->self}, seen;
    int turn, error;

    if (!f->ours || f->lost)
        return;
    f->ours = false;
    if ((error = claim (f, &ours, 0, &turn)) == EAGAIN)
        return; /* somebody takes it from us */
    if (!look_at_lock (AT_FDCWD, f->path, NULL, &seen) && seen.there &&
        !strcmp (seen.holder.id, f->self.id) && unlink (f->path))
        gsi_log (GS_LOG_WARN, "ckpt", "could not remove %s: %s", f->path, strerror (errno));
    if (!error)
        unlink (f->claim);
}
