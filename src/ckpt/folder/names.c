/* SPDX-License-Identifier: BSD-3-Clause */
/* names - names in the folder of checkpoints, and its file system. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "ckpt/folder/lock.h"
#include "ckpt/folder/store.h"
#include "ckpt/format/file.h"

#define ID_LENGTH 16 /* of a lock */

struct gsi_path gsi_store_path (const gs_ckpt_t *c, int64_t step, const char *end)
{
    struct gsi_path path;

    snprintf (path.text, sizeof (path.text), "%s/ck-%012" PRId64 "%s", c->dir, step, end);
    return path;
}

const char *gsi_store_end_of (const gs_ckpt_t *c)
{
    return c->nodes ? "" : ".h5";
}

struct gsi_path gsi_store_coming (const gs_ckpt_t *c, int64_t step, enum gsi_store_what what)
{
    char end[96];
    int used =
        snprintf (end, sizeof (end), "%s.%s" GSI_COMING, gsi_store_end_of (c), c->coming.id);
    size_t room = sizeof (end) - (size_t) used;

    if (c->nodes && what == GSI_STORE_MAIN)
        snprintf (end + used, room, "/" GSI_INDEX_FILE);
    if (c->nodes && what == GSI_STORE_PART)
        snprintf (end + used, room, "/" GSI_PART_NAME, c->node);
    return gsi_store_path (c, step, end);
}

struct gsi_path gsi_store_find (const gs_ckpt_t *c, int64_t step)
{
    /* A folder may have lost its index: by its own name then. */
    static const char *const ends[][2] = {
        {".h5", ".h5"},
        {"/" GSI_INDEX_FILE, "/" GSI_INDEX_FILE},
        {GSI_OLD "/" GSI_INDEX_FILE, GSI_OLD "/" GSI_INDEX_FILE},
        {GSI_OLD, GSI_OLD "/" GSI_INDEX_FILE},
        {"", "/" GSI_INDEX_FILE}};

    for (size_t i = 0; i < sizeof (ends) / sizeof (*ends); i++)
        if (!access (gsi_store_path (c, step, ends[i][0]).text, F_OK))
            return gsi_store_path (c, step, ends[i][1]);
    return gsi_store_path (c, step, ".h5");
}

/* Whether a name has this behind the step: it is not complete, or not to stay. An id may be
 * missing, as it once was. */
static bool is_coming (const char *end)
{
    int length = 0;

    if (sscanf (end, ".gone%*1[0-9]%n", &length) == 0 && length)
        return !strcmp (end + length, GSI_COMING);
    end += strncmp (end, ".h5", 3) ? 0 : 3;
    if (*end == '.' && strspn (end + 1, "0123456789abcdef") == ID_LENGTH)
        end += 1 + ID_LENGTH;
    return !strcmp (end, GSI_COMING);
}

int64_t gsi_store_step_of (const char *name, bool *coming)
{
    char again[64];
    int64_t step;

    if (sscanf (name, "ck-%" SCNd64, &step) != 1 || step < 0)
        return -1;
    snprintf (again, sizeof (again), "ck-%012" PRId64, step);
    if (strncmp (name, again, strlen (again)) != 0)
        return -1;
    name += strlen (again);
    *coming = is_coming (name);
    return *coming || !*name || !strcmp (name, ".h5") || !strcmp (name, GSI_OLD) ? step : -1;
}

static int by_step (const void *a, const void *b)
{
    int64_t x = *(const int64_t *) a, y = *(const int64_t *) b;

    return (x > y) - (x < y);
}

/* Those that are wanted, each once. */
static size_t sort_steps (int64_t *steps, size_t number)
{
    size_t kept = 0;

    if (number)
        qsort (steps, number, sizeof (*steps), by_step);
    for (size_t i = 0; i < number; i++)
        if (!kept || steps[kept - 1] != steps[i])
            steps[kept++] = steps[i];
    return kept;
}

gs_status_t gsi_store_list (const gs_ckpt_t *c, int64_t **steps, size_t *number)
{
    DIR *dir = opendir (c->dir);
    size_t room = 0;
    struct dirent *entry;
    int64_t *larger;
    bool coming = false;

    *steps = NULL;
    *number = 0;
    if (!dir)
        return gsi_file_unread (c->dir);
    while ((errno = 0, entry = readdir (dir))) {
        int64_t step = gsi_store_step_of (entry->d_name, &coming);
        if (step < 0 || coming)
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
    *number = sort_steps (*steps, *number);
    return GS_OK;
}

/* ---- Its file system ---- */

#define LOOKS 20 /* for a lock that a client of NFS does not see yet */

/* The folder that [path] is in, which it must stay in if power is lost. */
static gs_status_t sync_parent (char *path)
{
    char *slash = strrchr (path, '/'), behind = slash[1];
    gs_status_t st;

    slash[slash == path] = 0;
    st = gsi_file_sync_folder (path);
    slash[slash == path] = slash == path ? behind : '/';
    return st;
}

/* Makes the folder and those on the way to it that are not there. */
static gs_status_t make_folder (const gs_ckpt_t *c, const char *caller)
{
    char *path = strdup (c->dir), *end = path;
    gs_status_t st = GS_OK;

    if (!path)
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);
    while (end && !st) {
        end = strchr (end + 1, '/');
        if (end)
            *end = 0;
        if (!mkdir (path, 0777))
            st = strchr (path, '/') ? sync_parent (path) : gsi_file_sync_folder (".");
        else if (errno != EEXIST && access (path, F_OK))
            st = gsi_fail (GS_ERR_IO, "%s: folder %s: cannot make %s: %s", caller, c->dir, path,
                           strerror (errno));
        if (end)
            *end = '/';
    }
    free (path);
    return st;
}

gs_status_t gsi_store_check_folder (const gs_ckpt_t *c, const char *caller)
{
    bool makes = c->opts.create_folder && !c->opts.read_only;
    struct stat facts;
    const char *reason = "not a folder";
    gs_status_t st = makes ? make_folder (c, caller) : GS_OK;

    if (st)
        return st;
    if (stat (c->dir, &facts))
        reason = strerror (errno);
    else if (S_ISDIR (facts.st_mode))
        return GS_OK;
    return gsi_fail (GS_ERR_IO,
                     "%s: folder %s: %s: make it first, where all ranks see it, or give the "
                     "option create_folder",
                     caller, c->dir, reason);
}

gs_status_t gsi_store_unseen (const gs_ckpt_t *c, const char *what)
{
    return gsi_fail (GS_ERR_IO,
                     "%s: host %s does not see what rank 0 has made on host %s: folder %s must "
                     "be on a file system that all nodes share, not on one that is local to each",
                     what, c->host, c->first_host, c->dir);
}

gs_status_t gsi_store_see (const gs_ckpt_t *c, const char *caller)
{
    int64_t slice_ns = gsi_ckpt_slice_ns (c), until_ns = gsi_now_ns () + slice_ns;
    bool there = c->opts.read_only;
    int folder;

    /* N.B. A client of NFS may remember that there was none, until it opens the folder again. */
    while (!there && !gsi_file_open_folder (c->dir, &folder)) {
        there = gsi_lock_is (folder, c->coming.id);
        close (folder);
        if (there || gsi_now_ns () > until_ns)
            break;
        nanosleep (&(struct timespec){.tv_nsec = slice_ns / LOOKS}, NULL);
    }
    return there ? GS_OK : gsi_store_unseen (c, caller);
}

/* Those that are known; to all others each node writes a file of its own. */
static const struct {
    uint64_t magic; /* of statfs(2) */
    const char *name, *reason;
    bool coherent;
} systems[] = {
    {0xef53, "ext4", "of one node", true},
    {0x58465342, "XFS", "of one node", true},
    {0x9123683e, "Btrfs", "of one node", true},
    {0x2fc12fc1, "ZFS", "of one node", true},
    {0x01021994, "tmpfs", "of one node", true},
    {0x794c7630, "overlayfs", "of one node", true},
    {0x47504653, "Spectrum Scale (GPFS)", "it locks ranges of bytes", true},
    {0x0bd00bd3, "Lustre", "nodes that write to one file wait for its locks", false},
    {0x6969, "NFS", "nodes do not see each other's pages", false},
    {0x19830326, "BeeGFS", "nodes may not see each other's pages", false},
    {0x00c36400, "CephFS", "with several writers all go without a cache", false},
};

/* The number of that of the folder, from 1; 0: it is not known. */
static size_t system_of (const gs_ckpt_t *c)
{
    struct statfs facts;
    size_t i = sizeof (systems) / sizeof (*systems);

    if (statfs (c->dir, &facts))
        return 0;
    while (i && systems[i - 1].magic != ((uint64_t) facts.f_type & 0xffffffffu))
        i--;
    return i;
}

bool gsi_store_is_coherent (const gs_ckpt_t *c)
{
    size_t i = system_of (c);
    bool coherent = i && systems[i - 1].coherent;

    gsi_log (GS_LOG_INFO, "ckpt", "%s: layout %s: its file system is %s: %s", c->dir,
             coherent ? "single" : "node", i ? systems[i - 1].name : "not a known one",
             i ? systems[i - 1].reason : "nodes keep apart");
    return coherent;
}

bool gsi_store_is_known (const gs_ckpt_t *c)
{
    return system_of (c) != 0;
}
