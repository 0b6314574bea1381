/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rt_map - memory that is mapped twice, for the program and for us.
 *
 * What cudaMalloc gives lies in one file of the process, which has no name: who is told of a
 * piece opens the file through /proc. No part of it is used twice, so a piece is one allocation
 * for good. It begins with bytes that we alone reach, which say whether its owner still has it;
 * and who has it open holds a lock of its first byte, which ends with that process, however it
 * ends.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rt.h"

#define PAGE   4096
#define OFFSET 256 /* of the program's address in its pages: what CUDA promises, not more */

struct rt_shared {
    uint32_t live;   /* 0: its owner has freed it */
    uint32_t opened; /* another process has had it open */
};

static int file = -1;
static uint64_t file_end; /* of what was used of it */

/* [first] is the protection at the program's address. */
static bool map_twice (struct rt_range *range, int fd, uint64_t offset, int first)
{
    size_t bytes = (range->bytes + OFFSET + PAGE - 1) / PAGE * PAGE;
    char *map = mmap (NULL, bytes, first, MAP_SHARED, fd, (off_t) offset), *alias;

    if (map == MAP_FAILED)
        return false;
    alias = mmap (NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t) offset);
    if (alias == MAP_FAILED) {
        munmap (map, bytes);
        return false;
    }
    range->map = map;
    range->map_bytes = bytes;
    range->user = map + OFFSET;
    range->alias = alias + OFFSET;
    range->offset = offset;
    return true;
}

bool rt_map (struct rt_range *range, int first)
{
    int fd = memfd_create ("simgpu", MFD_CLOEXEC);
    bool mapped = fd >= 0 && !ftruncate (fd, (off_t) (range->bytes + OFFSET)) &&
                  map_twice (range, fd, 0, first);

    if (fd >= 0)
        close (fd);
    return mapped;
}

bool rt_map_in_file (struct rt_range *range)
{
    uint64_t end = file_end + (range->bytes + OFFSET + PAGE - 1) / PAGE * PAGE;

    if (file < 0)
        file = memfd_create ("simgpu-device", MFD_CLOEXEC);
    if (file < 0 || ftruncate (file, (off_t) end) ||
        !map_twice (range, file, file_end, PROT_NONE))
        return false;
    file_end = end;
    range->shared = (struct rt_shared *) (void *) (range->alias - OFFSET);
    __atomic_store_n (&range->shared->live, 1, __ATOMIC_SEQ_CST);
    return true;
}

bool rt_map_others (struct rt_range *range, int fd, uint64_t offset)
{
    struct stat about;

    if (fstat (fd, &about) || offset + range->bytes + OFFSET > (uint64_t) about.st_size ||
        !map_twice (range, fd, offset, PROT_NONE))
        return false;
    range->shared = (struct rt_shared *) (void *) (range->alias - OFFSET);
    return true;
}

int rt_map_file (uint64_t *inode)
{
    struct stat about;

    if (file < 0 || fstat (file, &about))
        return -1;
    *inode = about.st_ino;
    return file;
}

bool rt_map_hold (int fd, uint64_t offset, bool hold)
{
    struct flock lock = {.l_type = hold ? F_RDLCK : F_UNLCK,
                         .l_whence = SEEK_SET,
                         .l_start = (off_t) offset,
                         .l_len = 1};

    return fcntl (fd, F_SETLK, &lock) == 0;
}

void rt_map_note_open (struct rt_range *range)
{
    __atomic_store_n (&range->shared->opened, 1, __ATOMIC_SEQ_CST);
}

bool rt_map_was_opened (const struct rt_range *range)
{
    return range->shared && __atomic_load_n (&range->shared->opened, __ATOMIC_SEQ_CST);
}

bool rt_map_is_live (const struct rt_range *range)
{
    return !range->shared || __atomic_load_n (&range->shared->live, __ATOMIC_SEQ_CST);
}

pid_t rt_map_disown (struct rt_range *range)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t) range->offset, .l_len = 1};

    __atomic_store_n (&range->shared->live, 0, __ATOMIC_SEQ_CST);
    return fcntl (file, F_GETLK, &lock) || lock.l_type == F_UNLCK ? 0 : lock.l_pid;
}

void rt_map_end (struct rt_range *range, bool own)
{
    munmap (range->alias - OFFSET, range->map_bytes);
    mmap (range->map, range->map_bytes, PROT_NONE,
          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (range->shared && own)
        fallocate (file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t) range->offset,
                   (off_t) range->map_bytes);
    range->alias = NULL;
    range->shared = NULL;
}

void rt_map_undo (struct rt_range *range)
{
    munmap (range->alias - OFFSET, range->map_bytes);
    munmap (range->map, range->map_bytes);
}
