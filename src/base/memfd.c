/* SPDX-License-Identifier: BSD-3-Clause */
/* memfd - memory without a name that one process makes and others of its node and user map. */
#include "base/memfd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

size_t gsi_memfd_round (size_t bytes)
{
    return (bytes + GSI_PAGE - 1) / GSI_PAGE * GSI_PAGE;
}

static bool map (struct gsi_memfd *shm, int fd, size_t bytes)
{
    void *base = mmap (NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    shm->base = base == MAP_FAILED ? NULL : base;
    shm->bytes = bytes;
    return shm->base != NULL;
}

struct gsi_memfd_handle gsi_memfd_make (struct gsi_memfd *shm, size_t bytes)
{
    struct gsi_memfd_handle h = {.process = getpid (), .bytes = (int64_t) bytes};

    *shm = GSI_MEMFD_NONE;
    h.fd = shm->fd = memfd_create ("gradsync", MFD_CLOEXEC);
    if (h.fd < 0)
        return h;
    h.token = (uint64_t) gsi_now_ns () ^ (uint64_t) h.process << 40 ^ (uint64_t) h.fd << 32;
    h.ok = !ftruncate (h.fd, (off_t) bytes) && map (shm, h.fd, bytes);
    if (h.ok)
        memcpy (shm->base, &h.token, sizeof (h.token));
    return h;
}

bool gsi_memfd_join (struct gsi_memfd *shm, const struct gsi_memfd_handle *h)
{
    char path[64];
    struct stat about;
    bool ok;
    int fd;

    *shm = GSI_MEMFD_NONE;
    snprintf (path, sizeof (path), "/proc/%lld/fd/%d", (long long) h->process, (int) h->fd);
    if (!h->ok || (fd = open (path, O_RDWR | O_CLOEXEC)) < 0)
        return false;
    /* Another process may have that number where containers number their own. */
    ok = !fstat (fd, &about) && about.st_size == (off_t) h->bytes &&
         map (shm, fd, (size_t) h->bytes) && !memcmp (shm->base, &h->token, sizeof (h->token));
    close (fd);
    if (!ok)
        gsi_memfd_close (shm);
    return ok;
}

void gsi_memfd_hide (struct gsi_memfd *shm)
{
    if (shm->fd >= 0)
        close (shm->fd);
    shm->fd = -1;
}

void gsi_memfd_close (struct gsi_memfd *shm)
{
    gsi_memfd_hide (shm);
    if (shm->base)
        munmap (shm->base, shm->bytes);
    shm->base = NULL;
}
