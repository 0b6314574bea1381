/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memfd - memory without a name that one process makes and others of its node and user map.
 *
 * It goes with the last process that has it, and takes up room where it was written only. The
 * others find it through /proc, which shows a process's open files to its user.
 */
#ifndef GS_BASE_MEMFD_H
#define GS_BASE_MEMFD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GSI_PAGE ((size_t) 64 << 10) /* no smaller than the system's */

struct gsi_memfd {
    char *base; /* NULL: none; the first page is for what names it */
    size_t bytes;
    int fd; /* of the process that has made it, until gsi_memfd_hide; else -1 */
};

/* Where a process has made memory, to be told to others; [ok] is 0 if it could not. */
struct gsi_memfd_handle {
    int64_t process, bytes;
    uint64_t token; /* also the first word of the memory */
    int32_t fd, ok;
};

#define GSI_MEMFD_NONE ((struct gsi_memfd){.fd = -1})

/* [bytes] in whole pages. */
size_t gsi_memfd_round (size_t bytes);

/* Makes memory of [bytes], whole pages. */
struct gsi_memfd_handle gsi_memfd_make (struct gsi_memfd *shm, size_t bytes);

/* Maps what another process has made; false, and none, if it cannot be had. */
bool gsi_memfd_join (struct gsi_memfd *shm, const struct gsi_memfd_handle *handle);

/* Nobody joins any more. */
void gsi_memfd_hide (struct gsi_memfd *shm);

/* None is allowed. */
void gsi_memfd_close (struct gsi_memfd *shm);

#endif /* GS_BASE_MEMFD_H */
