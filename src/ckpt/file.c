/* SPDX-License-Identifier: BSD-3-Clause */
/* file - bytes to a place of a file and back. */
#include "ckpt/file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/status.h"

#define MOST ((size_t) 1 << 30) /* N.B. Linux moves at most 2 GiB less a page in one call */

gs_status_t gsi_file_fail (const char *path, const char *call)
{
    return gsi_fail (GS_ERR_IO, "%s: %s: %s", path, call, strerror (errno));
}

gs_status_t gsi_file_write (int fd, const char *path, const void *data, size_t bytes,
                            uint64_t offset)
{
    const char *at = data;

    if (gsi_fault ("file.write")) {
        errno = ENOSPC;
        return gsi_file_fail (path, "pwrite");
    }
    while (bytes) {
        ssize_t n = pwrite (fd, at, bytes < MOST ? bytes : MOST, (off_t) offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return gsi_file_fail (path, "pwrite");
        at += n;
        offset += (uint64_t) n;
        bytes -= (size_t) n;
    }
    return GS_OK;
}

gs_status_t gsi_file_read (int fd, const char *path, void *data, size_t bytes, uint64_t offset)
{
    char *at = data;

    if (gsi_fault ("file.read")) {
        errno = EIO;
        return gsi_file_fail (path, "pread");
    }
    while (bytes) {
        ssize_t n = pread (fd, at, bytes < MOST ? bytes : MOST, (off_t) offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return gsi_file_fail (path, "pread");
        if (!n)
            return gsi_fail (GS_ERR_FORMAT, "%s: the file ends at byte %zu", path,
                             (size_t) offset);
        at += n;
        offset += (uint64_t) n;
        bytes -= (size_t) n;
    }
    return GS_OK;
}
