/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rt_ipc - memory of devices that processes of a host share: handles of what cudaMalloc gave, and
 * what other processes make of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rt.h"

#define MAGIC UINT64_C (0x73696d6970633031)

struct handle { /* what a cudaIpcMemHandle_t holds */
    uint64_t magic;
    uint64_t host;   /* on which the numbers of processes mean something */
    uint64_t inode;  /* of the owner's file */
    uint64_t offset; /* there, which no other allocation ever has */
    uint64_t bytes;
    int32_t pid; /* the owner, which has the file as this descriptor */
    int32_t fd;
    int32_t physical; /* the device */
};
_Static_assert(sizeof (struct handle) <= sizeof (cudaIpcMemHandle_t), "it has to fit");

/*
 * The file of another process, open here once: a process that closes a descriptor of a file loses
 * all its locks there.
 */
struct rt_owner {
    struct rt_owner *next;
    uint64_t inode;
    pid_t pid;
    int fd;
    int uses; /* ranges that are open */
};

static struct rt_owner *owners;

/* Host names tell nodes apart, as they do devices. */
static uint64_t hash_host (void)
{
    uint64_t hash = UINT64_C (14695981039346656037);
    char name[256] = "";

    gethostname (name, sizeof (name) - 1);
    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char) *c) * UINT64_C (1099511628211);
    return hash;
}

pid_t rt_owner_pid (const struct rt_owner *owner)
{
    return owner->pid;
}

/* The handle of the allocation that [address] lies in; what is not cudaMalloc's has none. */
static cudaError_t make_handle (const void *address, struct handle *handle)
{
    const struct rt_range *range = rt_range_find (address);

    if (range && range->freed)
        sim_misuse ("cudaIpcGetMemHandle: %p is used after it was freed", address);
    if (!range || range->freed || !range->shared || range->owner)
        return cudaErrorInvalidValue;
    *handle = (struct handle){.magic = MAGIC,
                              .host = hash_host (),
                              .offset = range->offset,
                              .bytes = range->bytes,
                              .pid = getpid (),
                              .physical = rt_devices[range->device].physical};
    handle->fd = rt_map_file (&handle->inode);
    return handle->fd < 0 ? cudaErrorMapBufferObjectFailed : cudaSuccess;
}

cudaError_t cudaIpcGetMemHandle (cudaIpcMemHandle_t *handle, void *address)
{
    cudaError_t error = rt_enter ("cudaIpcGetMemHandle", RT_NO_STREAM);
    struct handle made;

    if (!error && (!handle || !address))
        error = cudaErrorInvalidValue;
    if (error)
        return rt_leave (error);
    rt_lock ();
    error = make_handle (address, &made);
    rt_unlock ();
    if (error)
        return rt_leave (error);
    memset (handle, 0, sizeof (*handle));
    memcpy (handle, &made, sizeof (made));
    return cudaSuccess;
}

/* A file that is another one by now is not taken: the owner has ended, or closed it. */
static cudaError_t open_file (const struct handle *handle, int *fd)
{
    struct stat about;
    char path[64];

    snprintf (path, sizeof (path), "/proc/%d/fd/%d", handle->pid, handle->fd);
    *fd = open (path, O_RDWR | O_CLOEXEC);
    if (*fd < 0)
        return errno == ENOENT ? cudaErrorInvalidResourceHandle : cudaErrorMapBufferObjectFailed;
    if (!fstat (*fd, &about) && about.st_ino == handle->inode)
        return cudaSuccess;
    close (*fd);
    return cudaErrorInvalidResourceHandle;
}

static cudaError_t find_owner (const struct handle *handle, struct rt_owner **found)
{
    struct rt_owner *owner = owners;
    cudaError_t error;

    while (owner && owner->inode != handle->inode)
        owner = owner->next;
    *found = owner;
    if (owner)
        return cudaSuccess;
    owner = malloc (sizeof (*owner));
    if (!owner)
        return cudaErrorMemoryAllocation;
    *owner = (struct rt_owner){.next = owners, .inode = handle->inode, .pid = handle->pid};
    error = open_file (handle, &owner->fd);
    if (error) {
        free (owner);
        return error;
    }
    *found = owners = owner;
    return cudaSuccess;
}

static void leave_owner (struct rt_owner *owner)
{
    struct rt_owner **link = &owners;

    if (owner->uses)
        return;
    while (*link != owner)
        link = &(*link)->next;
    *link = owner->next;
    close (owner->fd);
    free (owner);
}

/* Who frees marks the memory and then looks for locks; who opens takes the lock and then looks.
 */
static cudaError_t map (const struct handle *handle, struct rt_owner *owner,
                        struct rt_range *range)
{
    cudaError_t error = cudaErrorMapBufferObjectFailed;

    *range = (struct rt_range){.bytes = handle->bytes,
                               .kind = RT_DEVICE,
                               .device = rt_device_of (handle->physical),
                               .owner = owner,
                               .opener = rt_current,
                               .opened = 1};
    if (!rt_map_hold (owner->fd, handle->offset, true))
        return error;
    if (rt_map_others (range, owner->fd, handle->offset)) {
        if (!rt_map_is_live (range))
            error = cudaErrorInvalidResourceHandle;
        else if (rt_range_add (range)) {
            rt_map_note_open (range);
            return cudaSuccess;
        }
        rt_map_undo (range);
    }
    rt_map_hold (owner->fd, handle->offset, false);
    return error;
}

static cudaError_t open_handle (const struct handle *handle, void **address)
{
    struct rt_range *known, range;
    struct rt_owner *owner;
    cudaError_t error;

    if (handle->magic != MAGIC || handle->host != hash_host ())
        return cudaErrorInvalidValue;
    if (handle->pid == getpid ()) {
        sim_misuse ("cudaIpcOpenMemHandle: the handle is of memory of this process");
        return cudaErrorDeviceUninitialized;
    }
    if (rt_is_instance () && handle->physical != rt_devices[rt_current].physical)
        return cudaErrorPeerAccessUnsupported;
    error = find_owner (handle, &owner);
    if (error)
        return error;
    known = rt_range_opened (owner, handle->offset);
    if (known) {
        known->opened++;
        *address = known->user;
        return cudaSuccess;
    }
    error = map (handle, owner, &range);
    owner->uses += !error;
    if (!error)
        *address = range.user;
    leave_owner (owner);
    return error;
}

cudaError_t cudaIpcOpenMemHandle (void **address, cudaIpcMemHandle_t handle, unsigned flags)
{
    cudaError_t error = rt_enter ("cudaIpcOpenMemHandle", RT_NO_STREAM);
    struct handle inside;

    if (!error && (!address || flags != cudaIpcMemLazyEnablePeerAccess))
        error = cudaErrorInvalidValue;
    if (error)
        return rt_leave (error);
    memcpy (&inside, &handle, sizeof (inside));
    rt_lock ();
    error = rt_capture_unsafe ();
    if (!error)
        error = open_handle (&inside, address);
    rt_unlock ();
    return rt_leave (error);
}

static struct rt_range *find_open (const void *address)
{
    static const char who[] = "cudaIpcCloseMemHandle";
    struct rt_range *range = rt_range_find (address);

    if (!range || !range->owner)
        sim_misuse ("%s: %p was not opened", who, address);
    else if (range->freed)
        sim_misuse ("%s: %p was closed before", who, address);
    else if (range->user != address)
        sim_misuse ("%s: %p is %zu bytes into what was opened", who, address,
                    (size_t) ((const char *) address - range->user));
    else
        return range;
    return NULL;
}

static void close_once (struct rt_range *range)
{
    struct rt_owner *owner = range->owner;

    if (--range->opened)
        return;
    rt_map_hold (owner->fd, range->offset, false);
    rt_range_release (range, "cudaIpcCloseMemHandle");
    owner->uses--;
    leave_owner (owner);
}

/* The last one waits as cudaFree does, for the device that opened it. */
cudaError_t cudaIpcCloseMemHandle (void *address)
{
    cudaError_t error = rt_enter ("cudaIpcCloseMemHandle", RT_NO_STREAM);
    struct rt_range *range;

    if (!error && !address)
        error = cudaErrorInvalidValue;
    if (error)
        return rt_leave (error);
    rt_lock ();
    error = rt_capture_unsafe ();
    range = error ? NULL : find_open (address);
    if (!error && !range)
        error = cudaErrorInvalidValue;
    if (range && range->opened == 1)
        error = rt_await_to_free (range->opener);
    if (range && (range = find_open (address)))
        close_once (range);
    rt_unlock ();
    return rt_leave (error);
}
