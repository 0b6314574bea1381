/* SPDX-License-Identifier: BSD-3-Clause */
/* lock - DIR/.gs-lock, by which jobs that write to one folder stay apart. */
#include "ckpt/folder/lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/status.h"
#include "base/thread.h"
#include "ckpt/folder/lock_owner.h"

#define BUSY_S    5    /* it is in other hands for no longer, */
#define BUSY_MS   20   /* and is looked at again after this */
#define WRITING_S 2    /* so long a lock may have no end, where links cannot be made */
#define LEFT_S    3600 /* far longer than anyone takes it */

/* One for all plans of this process in a folder, and a thread that touches it. */
struct gsi_lock {
    struct gsi_lock *next;
    dev_t device; /* the folder, however it is called */
    ino_t number;
    pid_t process; /* a child that was forked has the memory, and not the lock */
    int plans;     /* that have it */

    pthread_mutex_t guard; /* of all below, but for [lost] */
    pthread_t thread;
    pthread_cond_t bell; /* [stop] has changed */
    bool stop;
    char dir[PATH_MAX];        /* as it was given, for texts */
    char path[PATH_MAX + 16];  /* of the lock; whatever becomes of the working folder */
    char own[PATH_MAX + 48];   /* a file that becomes the lock, */
    char claim[PATH_MAX + 80]; /* and one that says who takes it from another */
    struct gsi_owner self;     /* what the lock says that is ours, */
    struct gsi_owner fresh;    /* and what the next one will */
    bool ours;                 /* the lock of [self] was made, */
    bool shared;               /* or another process of this step has made one */
    bool warned;               /* it cannot be touched */
    atomic_bool lost;          /* then another job has taken it, */
    char who[512];             /* this one */
};

static pthread_mutex_t locks_guard = PTHREAD_MUTEX_INITIALIZER;
static struct gsi_lock *locks; /* and their members [next] and [plans] */

/* What is there. */
struct seen {
    bool there;
    struct gsi_owner holder; /* without id: not readable */
    int64_t touched_s;
    ino_t number;
};

/* ---- Files; these functions return errno ---- */

/* Opens it, so that what a client of NFS remembers of it does not count; touches it if it is of
 * the job step of [keep]. */
static int look_at_lock (int folder, const char *path, const struct gsi_owner *keep,
                         struct seen *seen)
{
    char text[GSI_OWNER_TEXT_MAX] = "";
    int fd = openat (folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW), error = 0;
    struct stat facts;
    ssize_t n;

    *seen = (struct seen){.there = fd >= 0};
    if (fd < 0)
        return errno == ENOENT ? 0 : errno;
    n = TEMP_FAILURE_RETRY (read (fd, text, sizeof (text) - 1));
    if (n < 0 || fstat (fd, &facts)) {
        error = errno;
    } else {
        text[n] = 0;
        gsi_owner_read (&seen->holder, text);
        seen->touched_s = facts.st_mtim.tv_sec;
        seen->number = facts.st_ino;
        if (keep && gsi_owner_is_same_step (&seen->holder, keep) && futimens (fd, NULL))
            error = errno;
    }
    close (fd);
    return error;
}

static int write_lock_text (int fd, const struct gsi_owner *h)
{
    char text[GSI_OWNER_TEXT_MAX];
    size_t length = gsi_owner_write (h, text);
    ssize_t n = TEMP_FAILURE_RETRY (write (fd, text, length));

    return n < 0 ? errno : (size_t) n < length ? ENOSPC : 0;
}

/* A file of [h] at [path], which must not be there; tells when, by the file system's clock. It is
 * on the disk: a loss of power leaves no lock that cannot be read. */
static int make_lock (const char *path, const struct gsi_owner *h, int64_t *now_s)
{
    int fd = open (path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666), error;
    struct stat facts;

    if (fd < 0)
        return errno;
    error = write_lock_text (fd, h);
    if (!error && (futimens (fd, NULL) || fsync (fd) || fstat (fd, &facts)))
        error = errno;
    if (close (fd) && !error)
        error = errno;
    if (error)
        unlink (path);
    else if (now_s)
        *now_s = facts.st_mtim.tv_sec;
    return error;
}

/* Makes our own file the lock, if there is none: EEXIST. */
static int put_in_place (const struct gsi_lock *f)
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
static void name_claim (struct gsi_lock *f, const struct seen *seen, int turn)
{
    if (*seen->holder.id)
        snprintf (f->claim, sizeof (f->claim), "%s.%s.%d", f->path, seen->holder.id, turn);
    else
        snprintf (f->claim, sizeof (f->claim), "%s.%llu.%d", f->path,
                  (unsigned long long) seen->number, turn);
}

static bool is_same_lock (const struct seen *a, const struct seen *b)
{
    return a->there && b->there && a->number == b->number && !strcmp (a->holder.id, b->holder.id);
}

/*
 * Claims the lock [seen]. EAGAIN: somebody else does. A claim that is old is of a process that
 * died while it had it, within a moment; then the next one counts.
 */
static int claim (struct gsi_lock *f, const struct seen *seen, int64_t now_s, int *turn)
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
        if (lstat (f->claim, &facts) || now_s - facts.st_mtim.tv_sec <= GSI_OWNER_SILENT_S)
            return EAGAIN;
    }
}

static void unclaim (struct gsi_lock *f, const struct seen *seen, int turn)
{
    for (; turn >= 0; turn--) {
        name_claim (f, seen, turn);
        unlink (f->claim);
    }
}

/* N.B. A rename over NFS may fail and have been made, if an answer is lost. */
static bool has_become (const struct gsi_lock *f)
{
    struct seen now;

    return !look_at_lock (AT_FDCWD, f->path, NULL, &now) && now.there &&
           !strcmp (now.holder.id, f->fresh.id);
}

/* Puts our own file in the place of the lock [seen]. EAGAIN: look again who has it. */
static int replace_lock (struct gsi_lock *f, const struct seen *seen, int64_t now_s)
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

static gs_status_t fail_lock_call (const struct gsi_lock *f, const char *caller, const char *what,
                                   int error)
{
    return gsi_fail (GS_ERR_IO, "%s: cannot %s %s/" GSI_LOCK_NAME ": %s", caller, what, f->dir,
                     strerror (error));
}

static gs_status_t refuse_lock (const struct gsi_lock *f, const char *caller,
                                const struct seen *seen, int64_t age_s)
{
    char who[sizeof (f->who)];

    if (!*seen->holder.id)
        return gsi_fail (GS_ERR_STATE,
                         "%s: %s/" GSI_LOCK_NAME
                         " is no lock that can be read: remove it if no job "
                         "writes to this folder, or use another one",
                         caller, f->dir);
    gsi_owner_describe (&seen->holder, who, sizeof (who));
    return gsi_fail (GS_ERR_STATE,
                     "%s: folder %s is written by %s, which gave a sign of life %lld s ago: use "
                     "another folder, or wait until that job has ended; if it surely has, remove "
                     "%s/" GSI_LOCK_NAME,
                     caller, f->dir, who, (long long) (age_s > 0 ? age_s : 0), f->dir);
}

static void note_lost (struct gsi_lock *f, const struct seen *seen)
{
    f->lost = true;
    gsi_owner_describe (&seen->holder, f->who, sizeof (f->who));
}

static gs_status_t fail_lost (const struct gsi_lock *f, const char *caller)
{
    return gsi_fail (GS_ERR_STATE,
                     "%s: folder %s was taken over by %s: this plan writes nothing there any "
                     "more; end this job, or that one and make another plan",
                     caller, f->dir, f->who);
}

/* Removes what processes that died in the act have left. */
static void sweep_locks (struct gsi_lock *f, int64_t now_s)
{
    struct dirent *entry;
    struct stat facts;
    DIR *dir;

    snprintf (f->claim, sizeof (f->claim), "%s", f->path);
    *strrchr (f->claim, '/') = 0;
    dir = opendir (f->claim);
    while (dir && (entry = readdir (dir)))
        if (!strncmp (entry->d_name, GSI_LOCK_NAME ".", strlen (GSI_LOCK_NAME) + 1) &&
            !fstatat (dirfd (dir), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) &&
            now_s - facts.st_mtim.tv_sec > LEFT_S)
            unlinkat (dirfd (dir), entry->d_name, 0);
    if (dir)
        closedir (dir);
}

/* It is ours from now on. */
static void lock_taken (struct gsi_lock *f, int64_t now_s)
{
    f->self = f->fresh;
    f->ours = true;
    f->shared = false;
    f->lost = false;
    sweep_locks (f, now_s);
}

/* A clock was wrong when it was touched, so far that it would count as alive until then. Its
 * holder touches it again, or it counts from now on. */
static void bring_to_now (const struct gsi_lock *f, int64_t age_s)
{
    if (age_s >= -GSI_OWNER_SILENT_S)
        return;
    gsi_log (GS_LOG_WARN, "ckpt",
             "%s has a time %lld s in the future: its age counts from now on", f->path,
             (long long) -age_s);
    if (utimensat (AT_FDCWD, f->path, NULL, AT_SYMLINK_NOFOLLOW))
        gsi_log (GS_LOG_WARN, "ckpt", "cannot touch %s: %s", f->path, strerror (errno));
}

/* There is a lock already. */
static int contend (struct gsi_lock *f, const struct seen *seen, int64_t now_s, bool *taken)
{
    int64_t age_s = now_s - seen->touched_s;
    enum gsi_right right = gsi_owner_judge (&seen->holder, &f->fresh, age_s);
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
        f->shared = !f->ours;
        f->lost = false;
        return 0;
    }
    if ((error = replace_lock (f, seen, now_s)))
        return error;
    lock_taken (f, now_s);
    *taken = !gsi_owner_is_same_step (&seen->holder, &f->self);
    gsi_owner_describe (&seen->holder, who, sizeof (who));
    gsi_log (right == GSI_RIGHT_SILENT ? GS_LOG_WARN : GS_LOG_INFO, "ckpt",
             "folder %s is taken over from %s: %s", f->dir, who,
             right == GSI_RIGHT_OLDER  ? "this is the same job, requeued"
             : right == GSI_RIGHT_GONE ? "that process has ended"
                                       : "no sign of life for more than a minute");
    return 0;
}

/* EBUSY: [seen] has it, and gave a sign of life [*age_s] ago. */
static int attempt (struct gsi_lock *f, struct seen *seen, int64_t *age_s, bool *taken)
{
    int64_t now_s = 0;
    int error;

    gsi_owner_self (&f->fresh);
    snprintf (f->own, sizeof (f->own), "%s.%s", f->path, f->fresh.id);
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

static gs_status_t take_lock_file (struct gsi_lock *f, const char *caller, bool *taken)
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
    return error ? fail_lock_call (f, caller, "make the lock", error) : GS_OK;
}

static gs_status_t check_lock_file (struct gsi_lock *f, const char *caller, bool *taken)
{
    struct seen seen;
    int error;

    *taken = false;
    if (f->lost)
        return fail_lost (f, caller);
    if ((error = look_at_lock (AT_FDCWD, f->path, NULL, &seen)))
        return fail_lock_call (f, caller, "read", error);
    if (seen.there && f->ours && !strcmp (seen.holder.id, f->self.id))
        return GS_OK;
    if (!seen.there || gsi_owner_is_same_step (&seen.holder, &f->self) ||
        gsi_owner_judge (&seen.holder, &f->self, 0) == GSI_RIGHT_OLDER)
        return take_lock_file (f, caller, taken);
    note_lost (f, &seen);
    return fail_lost (f, caller);
}

static void touch_lock_file (struct gsi_lock *f)
{
    struct seen seen;
    int error;

    if ((!f->ours && !f->shared) || f->lost)
        return;
    error = look_at_lock (AT_FDCWD, f->path, &f->self, &seen);
    if (error && !f->warned)
        gsi_log (GS_LOG_WARN, "ckpt", "cannot touch %s: %s; after a minute other jobs take it",
                 f->path, strerror (error));
    f->warned = error;
    if (!error && seen.there && strcmp (seen.holder.id, f->self.id)) {
        f->ours = false;
        f->shared = gsi_owner_is_same_step (&seen.holder, &f->self);
        if (f->shared)
            return;
        note_lost (f, &seen);
        gsi_log (GS_LOG_WARN, "ckpt", "folder %s was taken over by %s", f->dir, f->who);
    }
}

static void remove_lock_file (struct gsi_lock *f)
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

/* ---- What plans do ---- */

bool gsi_lock_is (int folder, const char *id)
{
    struct gsi_owner self;
    struct seen seen;

    if (look_at_lock (folder, GSI_LOCK_NAME, NULL, &seen) || !*seen.holder.id)
        return false;
    if (!strcmp (seen.holder.id, id))
        return true;
    gsi_owner_self (&self); /* another process of this step may have made it */
    return gsi_owner_is_same_step (&seen.holder, &self);
}

void gsi_lock_beat (struct gsi_lock *lock)
{
    pthread_mutex_lock (&lock->guard);
    touch_lock_file (lock);
    pthread_mutex_unlock (&lock->guard);
}

static void *keep_lock (void *lock)
{
    struct gsi_lock *l = lock;
    int64_t next_ns = gsi_now_ns ();

    pthread_mutex_lock (&l->guard);
    while (!l->stop) {
        next_ns += GSI_OWNER_BEAT_S * GSI_NS_PER_S;
        while (!l->stop && gsi_now_ns () < next_ns)
            gsi_condition_wait (&l->bell, &l->guard, next_ns);
        if (!l->stop)
            touch_lock_file (l);
    }
    pthread_mutex_unlock (&l->guard);
    return NULL;
}

static void free_lock (struct gsi_lock *l)
{
    pthread_mutex_destroy (&l->guard);
    pthread_cond_destroy (&l->bell);
    free (l);
}

/* Knows the folder, and makes no file. */
static gs_status_t open_lock (const char *caller, const char *dir, const struct stat *folder,
                              struct gsi_lock **out)
{
    struct gsi_lock *l = gsi_fault ("ckpt.memory") ? NULL : calloc (1, sizeof (*l));
    gs_status_t st;

    if (!l)
        return gsi_fail (GS_ERR_NOMEM, "%s: no memory for the lock of %s", caller, dir);
    pthread_mutex_init (&l->guard, NULL);
    gsi_condition_init (&l->bell);
    snprintf (l->dir, sizeof (l->dir), "%s", dir);
    l->device = folder->st_dev;
    l->number = folder->st_ino;
    l->process = getpid ();
    gsi_owner_self (&l->self);
    if (!realpath (dir, l->path))
        st = gsi_fail (GS_ERR_IO, "%s: realpath: %s", dir, strerror (errno));
    else
        st = gsi_thread_start (&l->thread, keep_lock, l, caller);
    if (st) {
        free_lock (l);
        return st;
    }
    strcat (l->path, "/" GSI_LOCK_NAME);
    l->next = locks;
    locks = *out = l;
    return GS_OK;
}

static struct gsi_lock *find_lock (const struct stat *folder)
{
    struct gsi_lock *l = locks;

    while (l && (l->device != folder->st_dev || l->number != folder->st_ino ||
                 l->process != getpid ()))
        l = l->next;
    return l;
}

gs_status_t gsi_lock_take (const char *caller, const char *dir, struct gsi_lock **lock,
                           bool *taken)
{
    struct gsi_lock *l;
    struct stat folder;
    gs_status_t st = GS_OK;

    if (stat (dir, &folder))
        return gsi_fail (GS_ERR_IO, "%s: folder %s: %s", caller, dir, strerror (errno));
    pthread_mutex_lock (&locks_guard);
    if (!(l = find_lock (&folder)))
        st = open_lock (caller, dir, &folder, &l);
    if (!st)
        l->plans++;
    pthread_mutex_unlock (&locks_guard);
    if (st)
        return st;
    pthread_mutex_lock (&l->guard);
    st = l->ours && !l->lost ? check_lock_file (l, caller, taken)
                             : take_lock_file (l, caller, taken);
    pthread_mutex_unlock (&l->guard);
    if (st)
        gsi_lock_drop (l);
    else
        *lock = l;
    return st;
}

gs_status_t gsi_lock_look (const char *caller, struct gsi_lock *lock, bool *taken)
{
    gs_status_t st;

    pthread_mutex_lock (&lock->guard);
    st = check_lock_file (lock, caller, taken);
    pthread_mutex_unlock (&lock->guard);
    return st;
}

const char *gsi_lock_id (const struct gsi_lock *lock)
{
    return lock->self.id;
}

bool gsi_lock_is_lost (struct gsi_lock *lock)
{
    return lock->lost; /* without the guard, which a beat on a file system that hangs has */
}

void gsi_lock_drop (struct gsi_lock *lock)
{
    struct gsi_lock **at = &locks;
    bool last;

    if (!lock || lock->process != getpid ())
        return;
    pthread_mutex_lock (&locks_guard);
    if ((last = !--lock->plans)) {
        while (*at != lock)
            at = &(*at)->next;
        *at = lock->next;
    }
    pthread_mutex_unlock (&locks_guard);
    if (!last)
        return;
    pthread_mutex_lock (&lock->guard);
    remove_lock_file (lock);
    lock->stop = true;
    pthread_cond_signal (&lock->bell);
    pthread_mutex_unlock (&lock->guard);
    pthread_join (lock->thread, NULL);
    free_lock (lock);
}
