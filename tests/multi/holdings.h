/* SPDX-License-Identifier: BSD-3-Clause */
/* holdings.h - what this process has of the system: what leaks shows there. */
#ifndef GS_TESTS_HOLDINGS_H
#define GS_TESTS_HOLDINGS_H

#include <dirent.h>
#include <malloc.h>

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

static inline int holdings_descriptors (void)
{
    return holdings_entries ("/proc/self/fd", false);
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
