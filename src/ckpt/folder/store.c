/* SPDX-License-Identifier: BSD-3-Clause */
/* store - the folder of checkpoints: names, and what becomes of files. */
#include "ckpt/folder/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "ckpt/format/file.h"
#include "ckpt/format/skeleton.h"
#include "ckpt/folder/lock.h"
#include "ckpt/folder/remover.h"

#define GONE        ".gone%d" GSI_COMING /* what is being removed */
#define GONE_MAX    10                   /* such names of a step */
#define ABANDONED_S 3600                 /* far above the time between two writes to a file */

/* ---- What is damaged ---- */

/* A thread that the file system holds may come back while another one reads. */
static pthread_mutex_t damage_guard = PTHREAD_MUTEX_INITIALIZER;

static bool is_damaged (const gs_ckpt_t *c, int64_t step)
{
    bool found = false;

    pthread_mutex_lock (&damage_guard);
    for (size_t i = 0; i < c->damages && !found; i++)
        found = c->damaged[i] == step;
    pthread_mutex_unlock (&damage_guard);
    return found;
}

void gsi_store_note (gs_ckpt_t *c, int64_t step, bool damaged)
{
    int64_t *larger;
    size_t left = 0;

    pthread_mutex_lock (&damage_guard);
    for (size_t i = 0; i < c->damages; i++)
        if (c->damaged[i] != step)
            c->damaged[left++] = c->damaged[i];
    c->damages = left;
    if (damaged && (larger = realloc (c->damaged, (left + 1) * sizeof (*larger)))) {
        c->damaged = larger;
        c->damaged[c->damages++] = step;
    }
    pthread_mutex_unlock (&damage_guard);
}

/* ---- Removal ---- */

/* The file or folder of a step, with [end], if there is one, gets a name that is no checkpoint's,
 * and goes when the remover runs. [*moved] tells whether there was one. */
static gs_status_t set_aside (const gs_ckpt_t *c, int64_t step, const char *end, bool *moved)
{
    struct gsi_path path = gsi_store_path (c, step, end), aside;
    int folder = c->coming.folder, number = 0;
    uint64_t is = gsi_file_find (folder, path.text);
    char gone[32];
    gs_status_t st;

    *moved = is;
    if (!is)
        return errno == ENOENT ? GS_OK : gsi_file_fail (path.text, "stat");
    do {
        snprintf (gone, sizeof (gone), GONE, number);
        aside = gsi_store_path (c, step, gone);
    } while (gsi_file_find (folder, aside.text) && ++number < GONE_MAX);
    if (!(st = gsi_file_rename (folder, path.text, aside.text)))
        gsi_remover_take (c->remover, folder, aside.text, is);
    return st;
}

/* The same for what may as well stay. */
static void drop_name (const gs_ckpt_t *c, int64_t step, const char *end)
{
    bool moved;

    if (set_aside (c, step, end, &moved))
        gsi_log (GS_LOG_WARN, "ckpt", "could not remove it: %s", gsi_last_text ());
}

static void remove_step (const gs_ckpt_t *c, int64_t step)
{
    drop_name (c, step, ".h5");
    drop_name (c, step, GSI_OLD);
    drop_name (c, step, "");
}

/* When a file of the folder, or one of a folder in it, was last written to; 0: it is not there.
 */
static time_t newest_mtime (int folder, const char *name)
{
    struct stat facts;
    time_t last = fstatat (folder, name, &facts, AT_SYMLINK_NOFOLLOW) ? 0 : facts.st_mtime;
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = last && S_ISDIR (facts.st_mode) ? openat (folder, name, flags) : -1;
    DIR *dir = fd < 0 ? NULL : fdopendir (fd);
    struct dirent *entry;

    while (dir && (entry = readdir (dir)))
        if (!fstatat (fd, entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) && facts.st_mtime > last &&
            strcmp (entry->d_name, "..") != 0)
            last = facts.st_mtime;
    if (dir)
        closedir (dir);
    else if (fd >= 0)
        close (fd);
    return last;
}

/* Whether nothing was written to it for long: a job that lives writes. */
static bool is_abandoned (int folder, const char *name)
{
    time_t last = newest_mtime (folder, name);

    return last && time (NULL) - last > ABANDONED_S;
}

/* Whether [name] in the folder can go, and is not what this plan is writing. */
static bool is_leftover (const gs_ckpt_t *c, int folder, const char *name, bool all)
{
    bool coming;

    return gsi_store_step_of (name, &coming) >= 0 && coming &&
           (!*c->coming.id || !strstr (name, c->coming.id)) &&
           (all || is_abandoned (folder, name));
}

/* Removes what is left there, unless it is of another user than the lock. */
static void remove_left (const gs_ckpt_t *c, int folder, const char *name)
{
    struct gsi_path path;
    struct stat lock, facts;

    snprintf (path.text, sizeof (path.text), "%s/%.100s", c->dir, name);
    if (!fstatat (folder, name, &facts, AT_SYMLINK_NOFOLLOW) &&
        !fstatat (folder, GSI_LOCK_NAME, &lock, AT_SYMLINK_NOFOLLOW) &&
        lock.st_uid != facts.st_uid)
        gsi_log (GS_LOG_WARN, "ckpt", "%s is of another user and stays: have its owner remove it",
                 path.text);
    else
        gsi_remove (folder, path.text, facts.st_ino);
}

/* [all] that is not complete, or what nothing was written to for long: another plan of this job
 * step may be writing. A job that has lost the folder cannot give a name to what is gone. */
static void sweep_files (const gs_ckpt_t *c, bool all)
{
    DIR *dir = opendir (c->dir);
    gs_status_t st =
        dir ? gsi_file_sync (dirfd (dir), c->dir) : gsi_file_fail (c->dir, "opendir");
    struct dirent *entry;

    /* What was renamed by a job that died has lost its name before for good first. */
    if (st)
        gsi_log (GS_LOG_WARN, "ckpt", "leftover files of earlier jobs are not removed: %s",
                 gsi_last_text ());
    while (!st && (entry = readdir (dir)))
        if (is_leftover (c, dirfd (dir), entry->d_name, all))
            remove_left (c, dirfd (dir), entry->d_name);
    if (dir)
        closedir (dir);
}

gs_status_t gsi_store_take (gs_ckpt_t *c, const char *caller)
{
    char text[GSI_TEXT_MAX];
    bool taken;
    gs_status_t st;

    if (c->opts.read_only)
        return GS_OK;
    if (c->remover) { /* of a commit that was given up */
        gsi_remover_close (c->remover, INT64_MAX);
        gsi_lock_drop (c->lock);
        c->lock = NULL;
    }
    if (!(c->remover = gsi_remover_open (c->dir)))
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);
    st = gsi_lock_take (caller, c->dir, &c->lock, &taken);
    if (!st) {
        snprintf (c->coming.id, sizeof (c->coming.id), "%s", gsi_lock_id (c->lock));
        sweep_files (c, taken);
    }
    if (st != GS_ERR_IO)
        return st;
    snprintf (text, sizeof (text), "%s", gsi_last_text ());
    return gsi_fail (st, "%.900s: a plan that only reads has the option read_only", text);
}

gs_status_t gsi_store_hold (const gs_ckpt_t *c)
{
    bool taken;
    gs_status_t st = gsi_lock_look (c->client.name, c->lock, &taken);

    if (!st && taken)
        sweep_files (c, true);
    return st;
}

void gsi_store_give_up (gs_ckpt_t *c, int64_t step)
{
    int folder = c->coming.folder >= 0 ? c->coming.folder : AT_FDCWD;

    gsi_remove (folder, gsi_store_coming (c, step, GSI_STORE_TOP).text, c->coming.number);
    gsi_store_end (c);
}

void gsi_store_end (gs_ckpt_t *c)
{
    struct gsi_coming *coming = &c->coming;

    if (coming->main_file >= 0 && coming->main_file != coming->top)
        close (coming->main_file);
    if (coming->top >= 0)
        close (coming->top);
    if (coming->folder >= 0)
        close (coming->folder);
    coming->folder = coming->top = coming->main_file = -1;
    coming->number = 0;
}

/* Removes what the options do not hold of the steps up to [step]: what is older than so many that
 * are whole, as far as is known. */
static void retain (const gs_ckpt_t *c, int64_t step)
{
    size_t number, keep = (size_t) c->opts.keep_last;
    int64_t *steps;

    if (!keep)
        return;
    if (gsi_store_list (c, &steps, &number)) {
        gsi_log (GS_LOG_WARN, "ckpt", "%s", gsi_last_text ());
        return;
    }
    while (number && steps[number - 1] > step)
        number--; /* of a past that this job has gone back from */
    while (number && keep)
        keep -= !is_damaged (c, steps[--number]);
    for (size_t i = 0; i < number; i++)
        if (!c->opts.keep_every || steps[i] % c->opts.keep_every)
            remove_step (c, steps[i]);
    free (steps);
}

void gsi_store_tidy (const gs_ckpt_t *c, int64_t step, bool beside)
{
    if (gsi_store_hold (c))
        gsi_log (GS_LOG_WARN, "ckpt", "no checkpoint is removed: %s", gsi_last_text ());
    else
        retain (c, step);
    if (!beside)
        gsi_remover_await (c->remover, gsi_ckpt_until_ns (c));
    gsi_remover_run (c->remover, beside);
}

/* ---- Making ---- */

static gs_status_t check_free (const gs_ckpt_t *c, int64_t step)
{
    struct gsi_path path = gsi_store_find (c, step);

    if (is_damaged (c, step) || c->opts.overwrite)
        return GS_OK;
    if (access (path.text, F_OK))
        return errno == ENOENT ? GS_OK
                               : gsi_fail (GS_ERR_IO, "%s: cannot see whether it is there: %s",
                                           path.text, strerror (errno));
    return gsi_fail (GS_ERR_STATE,
                     "%s: there is a checkpoint of this step already: give another step, or the "
                     "option overwrite",
                     path.text);
}

/* The file, or the folder with its index, open. */
static gs_status_t create_coming (gs_ckpt_t *c, int64_t step)
{
    struct gsi_coming *coming = &c->coming;
    struct gsi_path top = gsi_store_coming (c, step, GSI_STORE_TOP);
    gs_status_t st = gsi_file_open_folder (c->dir, &coming->folder);

    if (st)
        return st;
    if (!c->nodes) {
        st = gsi_skeleton_create (&c->main_file, coming->folder, top.text, &coming->top);
        coming->main_file = coming->top;
    } else if (!(st = gsi_file_make_folder (coming->folder, top.text)) &&
               !(st = gsi_file_open (coming->folder, top.text, O_RDONLY | O_DIRECTORY, 0,
                                     &coming->top))) {
        st = gsi_skeleton_create (&c->main_file, coming->top,
                                  gsi_store_coming (c, step, GSI_STORE_MAIN).text,
                                  &coming->main_file);
    }
    if (st || (st = gsi_file_number (coming->top, top.text, &coming->number)))
        return st;
    coming->told = gsi_store_is_known (c) ? coming->number : 0;
    return GS_OK;
}

gs_status_t gsi_store_begin (gs_ckpt_t *c, int64_t step)
{
    gs_status_t st;

    if ((st = gsi_store_hold (c)) || (st = check_free (c, step)))
        return st;
    gsi_store_give_up (c, step); /* of a write before that could not remove it */
    if ((st = create_coming (c, step)))
        gsi_store_give_up (c, step);
    return st;
}

gs_status_t gsi_store_begin_part (gs_ckpt_t *c, int64_t step, uint64_t number)
{
    struct gsi_path top = gsi_store_coming (c, step, GSI_STORE_TOP);
    struct gsi_path path = gsi_store_coming (c, step, GSI_STORE_PART);
    int fd, part;
    gs_status_t st;

    if ((st = gsi_file_open (AT_FDCWD, top.text, O_RDONLY | O_DIRECTORY, number, &fd)))
        return errno == ENOENT && c->rank ? gsi_store_unseen (c, top.text) : st;
    if (!(st = gsi_skeleton_create (&c->mine, fd, path.text, &part))) {
        st = gsi_file_number (part, path.text, &c->coming.part);
        if (close (part) && !st)
            st = gsi_file_fail (path.text, "close");
    }
    close (fd);
    return st;
}

/* ---- Publishing ---- */

/* Of a step: what is coming, what it is to be, and where a folder waits whose place it takes. */
struct names {
    struct gsi_path top, path, old;
};

/* N.B. A server may have renamed it and its answer be lost; then the client asks again, and there
 * is nothing of the first name: so by what is there. */
static gs_status_t publish_name (const gs_ckpt_t *c, const struct names *n)
{
    int folder = c->coming.folder;
    gs_status_t st;

    if (!gsi_file_is (c->coming.top, folder, n->top.text))
        return gsi_fail (
            GS_ERR_STATE,
            "%s: this is gone, or not the one that was written: another job has taken "
            "the folder over, or someone has removed it",
            n->top.text);
    st = gsi_file_rename (folder, n->top.text, n->path.text);
    return st && !gsi_file_is (c->coming.top, folder, n->path.text)
               ? st
               : gsi_file_sync (folder, c->dir);
}

/* That which has the name now is ours, and still was when the folder was. */
static gs_status_t confirm (const gs_ckpt_t *c, const struct names *n)
{
    gs_status_t st;

    if (!gsi_file_is_folder (c->coming.folder, c->dir))
        return gsi_fail (
            GS_ERR_STATE,
            "%s: someone has put another folder in its place; what was just saved is "
            "in the one before",
            c->dir);
    st = gsi_store_hold (c);
    if (st || gsi_file_is (c->coming.top, c->coming.folder, n->path.text))
        return st;
    return gsi_fail (GS_ERR_STATE,
                     "%s: another job has put its own in the place of what was just saved",
                     n->path.text);
}

/* A folder cannot take the place of another one: that waits beside, where it is found. */
static gs_status_t make_way (const gs_ckpt_t *c, int64_t step, const struct names *n)
{
    bool moved;
    gs_status_t st = gsi_file_sync (c->coming.top, n->top.text);

    if (st || !gsi_file_find (c->coming.folder, n->path.text))
        return st;
    if ((st = set_aside (c, step, GSI_OLD, &moved)) ||
        (moved && (st = gsi_file_sync (c->coming.folder, c->dir))))
        return st;
    return gsi_file_rename (c->coming.folder, n->path.text, n->old.text);
}

/* What there was of the other layout goes when the new one is there: a folder of the step may
 * stay, a file would be read in place of the folder. */
static gs_status_t take_place (const gs_ckpt_t *c, int64_t step, const struct names *n)
{
    bool moved = false;
    gs_status_t st = c->nodes ? make_way (c, step, n) : GS_OK;

    if (st || (st = publish_name (c, n)) || (st = confirm (c, n)) ||
        (c->nodes && (st = set_aside (c, step, ".h5", &moved))))
        return st;
    drop_name (c, step, GSI_OLD);
    if (!c->nodes)
        drop_name (c, step, "");
    return moved ? gsi_file_sync (c->coming.folder, c->dir) : GS_OK;
}

gs_status_t gsi_store_publish (gs_ckpt_t *c, int64_t step)
{
    struct names n = {gsi_store_coming (c, step, GSI_STORE_TOP),
                      gsi_store_path (c, step, gsi_store_end_of (c)),
                      gsi_store_path (c, step, GSI_OLD)};
    gs_status_t st;

    if (!(st = gsi_store_hold (c)) && !(st = check_free (c, step)))
        st = take_place (c, step, &n);
    if (!st)
        gsi_store_note (c, step, false);
    return st;
}
