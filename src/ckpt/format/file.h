/* SPDX-License-Identifier: BSD-3-Clause */
/* file - bytes to a place of a file and back, whatever the system makes of one call; and names.
 */
#ifndef GS_CKPT_FORMAT_FILE_H
#define GS_CKPT_FORMAT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gradsync.h"

/* Text of a call that failed: "ck-000000000001.h5.tmp: pwrite: No space left on device". */
gs_status_t gsi_file_fail (const char *path, const char *call);

/* Whether [error], an errno, is of this process and not of the file: another file fails alike. */
bool gsi_file_short (int error);

/* An open to read that failed: GS_ERR_NOMEM where that is so, else GS_ERR_IO. */
gs_status_t gsi_file_unread (const char *path);

/* All of [bytes] at [offset]; GS_ERR_IO. */
gs_status_t gsi_file_write (int fd, const char *path, const void *data, size_t bytes,
                            uint64_t offset);

/* Asks for the room that [bytes] at [offset] take; a file system that cannot say finds out in a
 * write. GS_ERR_IO. */
gs_status_t gsi_file_reserve (int fd, const char *path, uint64_t offset, uint64_t bytes);

/* Has the system begin to bring to disk what was written; a hint. */
void gsi_file_push (int fd);

/* The same back; GS_ERR_IO, or GS_ERR_FORMAT if the file ends before. */
gs_status_t gsi_file_read (int fd, const char *path, void *data, size_t bytes, uint64_t offset);

/* [path] from the root, so that it stays the same whatever becomes of the working folder; as it
 * is if that has no name. To be freed. NULL: no memory. */
char *gsi_file_absolute (const char *path);

/* The inode of what is open. */
gs_status_t gsi_file_number (int fd, const char *path, uint64_t *number);

/*
 * What follows takes a folder that is open, of which it uses the name that [path] ends in: so the
 * folder stays the same, whoever swaps those on the way to it. Or AT_FDCWD: all of [path]. Where
 * a link is, it is not gone through.
 */

/* Opens it, with [flags] of open(2). It must have the inode [number], which the process has told
 * that made it; 0: any has. GS_ERR_IO. */
gs_status_t gsi_file_open (int folder, const char *path, int flags, uint64_t number, int *fd);

uint64_t gsi_file_find (int folder, const char *path); /* its inode; 0: it is not there */
gs_status_t gsi_file_rename (int folder, const char *path, const char *to);
gs_status_t gsi_file_make_folder (int folder, const char *path);
int gsi_file_unlink (int folder, const char *path, int flags); /* of unlinkat(2); errno */

/* Whether it is what is open as [fd], and not another one of that name. */
bool gsi_file_is (int fd, int folder, const char *path);

/* The folder that the user has named, which may be a link; and whether it still is the same. */
gs_status_t gsi_file_open_folder (const char *path, int *fd);
bool gsi_file_is_folder (int fd, const char *path);

/* Names are on disk when their folder is. */
gs_status_t gsi_file_sync (int fd, const char *path);
gs_status_t gsi_file_sync_folder (const char *path);

#endif /* GS_CKPT_FORMAT_FILE_H */
