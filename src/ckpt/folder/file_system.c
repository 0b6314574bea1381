/* SPDX-License-Identifier: BSD-3-Clause */
/* file_system - the file system of the folder of checkpoints. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "ckpt/format/file.h"
#include "ckpt/folder/lock.h"
#include "ckpt/folder/store.h"

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
                     what, gs_comm_host_of (c->comm, c->rank), gs_comm_host_of (c->comm, 0),
                     c->dir);
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
