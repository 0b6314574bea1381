/* SPDX-License-Identifier: BSD-3-Clause */
/* holdings.h - what this process has of the system: what leaks shows there. */
#ifndef GS_TESTS_HOLDINGS_H
#define GS_TESTS_HOLDINGS_H

#include <dirent.h>
#include <malloc.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "multi.h"

/* What a folder has; the hidden files of it, or the others. */
static inline int holdings_entries (const char *path, bool hidden)
{
    DIR *dir = opendir (path);
    struct dirent *entry;
    int count = 0;

    CHECK (dir, "cannot read %s", path);
    while (dir && (entry = readdir (dir)))
        count += (*entry->d_name == '.') == hidden;
    if (dir)
        closedir (dir);
    return count;
}

/* The port of a TCP socket that listens, or of one that does not; else 0. */
static inline int holdings_port (int fd, bool listens)
{
    union {
        struct sockaddr any;
        struct sockaddr_in ip4;
        struct sockaddr_in6 ip6;
    } at;
    socklen_t room = sizeof (at), flag_room = sizeof (int);
    int flag = 0;

    if (getsockopt (fd, SOL_SOCKET, SO_ACCEPTCONN, &flag, &flag_room) || !flag == listens ||
        getsockname (fd, &at.any, &room))
        return 0;
    return ntohs (at.any.sa_family == AF_INET    ? at.ip4.sin_port
                  : at.any.sa_family == AF_INET6 ? at.ip6.sin6_port
                                                 : 0);
}

/*
 * Descriptors, but not connections to a port that something here listens on all the time: MPI
 * accepts and keeps those of anybody who tries its port, such as a program of another job.
 */
static inline int holdings_descriptors (void)
{
    enum { MOST = 1024 };
    int count = holdings_entries ("/proc/self/fd", false);

    for (int fd = 0; fd < MOST; fd++) {
        int port = holdings_port (fd, false), listener = 0;
        while (port && listener < MOST && holdings_port (listener, true) != port)
            listener++;
        count -= port && listener < MOST;
    }
    return count;
}

static inline int holdings_threads (void)
{
    return holdings_entries ("/proc/self/task", false);
}

/* What is mapped of files, deleted or not, and with it what the simulated GPUs have: their pinned
 * memory, too. Not memory from the heap, which the sanitizers take in mappings of their own. */
static inline int holdings_mapped_files (void)
{
    FILE *file = fopen ("/proc/self/maps", "r");
    int count = 0;
    char line[512];

    while (file && fgets (line, sizeof (line), file))
        count += !!strchr (line, '/');
    if (file)
        fclose (file);
    return count;
}

/*
 * Bytes of the heap that are used.
 *
 * N.B. What glibc's caches of threads hold counts as used, and they fill for long, by chance: a
 * .layouts file has GLIBC_TUNABLES=glibc.malloc.tcache_count=0 for programs that ask for this.
 */
static inline size_t holdings_heap (void)
{
    struct mallinfo2 heap = mallinfo2 ();

    return heap.uordblks + heap.hblkhd;
}

/* Bytes of memory that are there. */
static inline long holdings_resident (void)
{
    FILE *file = fopen ("/proc/self/statm", "r");
    long pages = 0;

    CHECK (file && fscanf (file, "%*d %ld", &pages) == 1, "cannot read /proc/self/statm");
    if (file)
        fclose (file);
    return pages * sysconf (_SC_PAGESIZE);
}

#endif /* GS_TESTS_HOLDINGS_H */
