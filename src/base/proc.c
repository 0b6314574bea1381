/* SPDX-License-Identifier: BSD-3-Clause */
/* proc - what /proc tells of a process, whose number another one may have had. */
#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"

void gsi_system_text (const char *path, char *text, size_t room)
{
    int fd = open (path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read (fd, text, room - 1);

    if (fd >= 0)
        close (fd);
    text[n < 0 ? 0 : n] = 0;
    text[strcspn (text, "\n")] = 0;
}

/* When process [pid] started, 0 if that cannot be told; the letter of its state, its threads. */
static uint64_t look (long long pid, char *state, long *threads)
{
    char path[64], text[1024];
    const char *at;
    uint64_t start;

    snprintf (path, sizeof (path), "/proc/%lld/stat", pid);
    gsi_system_text (path, text, sizeof (text));
    at = strrchr (text, ')'); /* of its name, which may have anything in it */
    if (!at || sscanf (at,
                       ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                       "%ld %*d %" SCNu64,
                       state, threads, &start) != 3)
        return 0;
    return start;
}

/* A process of this state is there only until its parent asks for it. */
static bool has_ended (char state, long threads)
{
    return (state == 'Z' || state == 'X') && threads <= 1;
}

uint64_t gsi_process_start (long long pid, bool *ended)
{
    char state = 0;
    long threads = 0;
    uint64_t start = look (pid, &state, &threads);

    *ended = start && has_ended (state, threads);
    return start;
}

bool gsi_process_runs (long long pid, uint64_t start)
{
    char state = 0;
    long threads = 0;

    return start && look (pid, &state, &threads) == start && state != 'T' && state != 't' &&
           !has_ended (state, threads);
}

/* A namespace's number, 4026531836 of the first, is the same on all hosts. */
static uint64_t find_space (void)
{
    struct {
        char host[64];
        uint64_t number;
    } whole = {.number = 0};
    struct stat space;

    gsi_system_text ("/proc/sys/kernel/random/boot_id", whole.host, sizeof (whole.host));
    if (stat ("/proc/self/ns/pid", &space) ||
        (!*whole.host && gethostname (whole.host, sizeof (whole.host) - 1)))
        return 0;
    whole.number = space.st_ino;
    return gsi_hash (&whole, sizeof (whole)) | 1;
}

uint64_t gsi_process_space (void)
{
    static _Atomic (uint64_t) known;
    uint64_t space = atomic_load_explicit (&known, memory_order_relaxed);

    if (!space && (space = find_space ()))
        atomic_store_explicit (&known, space, memory_order_relaxed);
    return space;
}

bool gsi_process_has_ended (long long pid, uint64_t start, uint64_t space)
{
    uint64_t now;
    bool ended;

    if (!start || !space || space != gsi_process_space ())
        return false;
    now = gsi_process_start (pid, &ended);
    if (!now) /* it is not there, or this process has too many files open */
        return kill ((pid_t) pid, 0) && errno == ESRCH;
    return ended || now != start;
}
