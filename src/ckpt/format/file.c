/* SPDX-License-Identifier: BSD-3-Clause */
/* file - bytes to a place of a file and back. */
#include "ckpt/format/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/status.h"

#define MOST ((size_t) 1 << 30) /* N.B. Linux moves at most 2 GiB less a page in one call */

gs_status_t gsi_file_fail (const char *path, const char *call)
{
    return gsi_fail (GS_ERR_IO, "%s: %s: %s", path, call, strerror (errno));
}

bool gsi_file_short (int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM;
}

gs_status_t gsi_file_unread (const char *path)
{
    return gsi_fail (gsi_file_short (errno) ? GS_ERR_NOMEM : GS_ERR_IO, "%s: open: %s", path,
                     strerror (errno));
}

/* All of it, out or in. */
static gs_status_t transfer_bytes (bool out, int fd, const char *path, char *at, size_t bytes,
                                   uint64_t offset)
{
    while (bytes) {
        size_t most = bytes < MOST ? bytes : MOST;
        ssize_t n =
            out ? pwrite (fd, at, most, (off_t) offset) : pread (fd, at, most, (off_t) offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return gsi_file_fail (path, out ? "pwrite" : "pread");
        if (!n && !out)
            return gsi_fail (GS_ERR_FORMAT, "%s: the file ends at byte %zu", path,
                             (size_t) offset);
        at += n;
        offset += (uint64_t) n;
        bytes -= (size_t) n;
    }
    return GS_OK;
}

gs_status_t gsi_file_write (int fd, const char *path, const void *data, size_t bytes,
                            uint64_t offset)
{
    if (gsi_fault ("file.write")) {
        errno = ENOSPC;
        return gsi_file_fail (path, "pwrite");
    }
    return transfer_bytes (true, fd, path, (char *) (uintptr_t) data, bytes, offset);
}

gs_status_t gsi_file_read (int fd, const char *path, void *data, size_t bytes, uint64_t offset)
{
    if (gsi_fault ("file.read")) {
        errno = EIO;
        return gsi_file_fail (path, "pread");
    }
    return transfer_bytes (false, fd, path, data, bytes, offset);
}

gs_status_t gsi_file_reserve (int fd, const char *path, uint64_t offset, uint64_t bytes)
{
    /* N.B. Not posix_fallocate, which writes all of it where the file system has no such call. */
    if (TEMP_FAILURE_RETRY (fallocate (fd, 0, (off_t) offset, (off_t) bytes)) &&
        (errno == ENOSPC || errno == EDQUOT || errno == EFBIG || errno == EIO))
        return gsi_file_fail (path, "fallocate");
    return GS_OK;
}

void gsi_file_push (int fd)
{
    (void) !sync_file_range (fd, 0, 0, SYNC_FILE_RANGE_WRITE); /* all of it */
}

char *gsi_file_absolute (const char *path)
{
    char *here = *path == '/' ? NULL : getcwd (NULL, 0), *whole;
    size_t room;

    if (!here)
        return strdup (path);
    room = strlen (here) + strlen (path) + 2;
    if ((whole = malloc (room)))
        snprintf (whole, room, "%s/%s", strcmp (here, "/") ? here : "", path);
    free (here);
    return whole;
}

gs_status_t gsi_file_number (int fd, const char *path, uint64_t *number)
{
    struct stat facts;

    if (fstat (fd, &facts))
        return gsi_file_fail (path, "fstat");
    *number = facts.st_ino;
    return GS_OK;
}

/* ---- Names in a folder ---- */

static const char *name_in (int folder, const char *path)
{
    const char *slash = folder == AT_FDCWD ? NULL : strrchr (path, '/');

    return slash ? slash + 1 : path;
}

static gs_status_t check_opened (const char *path, int opened, uint64_t number, int *fd)
{
    uint64_t is = 0;
    gs_status_t st;

    *fd = opened;
    if (opened < 0)
        return gsi_file_fail (path, "open");
    st = gsi_file_number (*fd, path, &is);
    if (!st && number && is != number) {
        errno = ESTALE;
        st = gsi_fail (GS_ERR_IO,
                       "%s: this is not the one that was made for this checkpoint: another job, "
                       "or someone else, has put one in its place",
                       path);
    }
    if (st) {
        close (*fd);
        *fd = -1;
    }
    return st;
}

gs_status_t gsi_file_open (int folder, const char *path, int flags, uint64_t number, int *fd)
{
    int opened = openat (folder, name_in (folder, path), flags | O_NOFOLLOW | O_CLOEXEC, 0666);

    return check_opened (path, opened, number, fd);
}

gs_status_t gsi_file_open_folder (const char *path, int *fd)
{
    return check_opened (path, open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), 0, fd);
}

uint64_t gsi_file_find (int folder, const char *path)
{
    struct stat facts;

    return fstatat (folder, name_in (folder, path), &facts, AT_SYMLINK_NOFOLLOW) ? 0
                                                                                 : facts.st_ino;
}

gs_status_t gsi_file_rename (int folder, const char *path, const char *to)
{
    if (renameat (folder, name_in (folder, path), folder, name_in (folder, to)))
        return gsi_file_fail (path, "rename");
    return GS_OK;
}

int gsi_file_unlink (int folder, const char *path, int flags)
{
    return unlinkat (folder, name_in (folder, path), flags);
}

gs_status_t gsi_file_make_folder (int folder, const char *path)
{
    return mkdirat (folder, name_in (folder, path), 0777) ? gsi_file_fail (path, "mkdir") : GS_OK;
}

/* Whether what is open as [fd] is the same. */
static bool is_same_inode (int fd, const struct stat *there)
{
    struct stat ours;

    /* N.B. While it is open no other file gets its inode; one without a name may have a twin. */
    return fd >= 0 && !fstat (fd, &ours) && ours.st_nlink && ours.st_dev == there->st_dev &&
           ours.st_ino == there->st_ino;
}

bool gsi_file_is (int fd, int folder, const char *path)
{
    struct stat there;

    return !fstatat (folder, name_in (folder, path), &there, AT_SYMLINK_NOFOLLOW) &&
           is_same_inode (fd, &there);
}

bool gsi_file_is_folder (int fd, const char *path)
{
    struct stat there;

    return !stat (path, &there) && is_same_inode (fd, &there);
}

gs_status_t gsi_file_sync (int fd, const char *path)
{
    /* EINVAL says that the file system needs none. */
    return fsync (fd) && errno != EINVAL ? gsi_file_fail (path, "fsync") : GS_OK;
}

gs_status_t gsi_file_sync_folder (const char *path)
{
    int fd;
    gs_status_t st = gsi_file_open_folder (path, &fd);

    if (st)
        return st;
    st = gsi_file_sync (fd, path);
    close (fd);
    return st;
}
