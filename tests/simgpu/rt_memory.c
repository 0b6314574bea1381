/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rt_memory - what was allocated: memory of devices, which the host cannot touch at the program's
 * address, managed, pinned and registered memory.
 *
 * Freed memory stays reserved and inaccessible, for as long as it is remembered: the host traps
 * there, and its use by CUDA is seen.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rt.h"

#define REMEMBERED 8192               /* freed ranges */
#define FILLED     (1 << 16)          /* first bytes of new memory that are NaN in every type */
#define SHAREABLE  (1u << 31)         /* a flag of ours, of a range */
#define OF_PROCESS (1u << 30)         /* another: in the file that others may open */
#define GRAIN      ((size_t) 2 << 20) /* what that is made of */

static struct rt_range *ranges; /* by address */
static size_t count, room, freed_count;
static uint64_t last_freed;

/* How many ranges begin at or below [address]. */
static size_t ranges_up_to (const void *address)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if ((uintptr_t) ranges[middle].user <= (uintptr_t) address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct rt_range *rt_range_find (const void *address)
{
    size_t i = ranges_up_to (address);

    if (!i || (size_t) ((const char *) address - ranges[i - 1].user) >= ranges[i - 1].bytes)
        return NULL;
    return &ranges[i - 1];
}

bool rt_range_add (const struct rt_range *range)
{
    size_t at = ranges_up_to (range->user);

    if (count == room) {
        size_t more = room ? 2 * room : 64;
        struct rt_range *grown = realloc (ranges, more * sizeof (*grown));
        if (!grown)
            return false;
        ranges = grown;
        room = more;
    }
    memmove (ranges + at + 1, ranges + at, (count - at) * sizeof (*ranges));
    ranges[at] = *range;
    count++;
    return true;
}

struct rt_range *rt_range_opened (const struct rt_owner *owner, uint64_t offset)
{
    for (size_t i = 0; i < count; i++)
        if (ranges[i].owner == owner && !ranges[i].freed && ranges[i].offset == offset)
            return &ranges[i];
    return NULL;
}

static void remove_range (struct rt_range *range)
{
    size_t at = (size_t) (range - ranges);

    memmove (range, range + 1, (count - at - 1) * sizeof (*ranges));
    count--;
}

static void forget_oldest (void)
{
    struct rt_range *oldest = NULL;

    for (size_t i = 0; i < count; i++)
        if (ranges[i].freed && (!oldest || ranges[i].freed < oldest->freed))
            oldest = &ranges[i];
    munmap (oldest->map, oldest->map_bytes);
    remove_range (oldest);
    freed_count--;
}

/* The limit counts in pieces. */
static size_t charged (const struct rt_range *range)
{
    size_t piece = range->flags & SHAREABLE ? GRAIN : 512;

    return range->kind == RT_DEVICE && !range->owner ? (range->bytes + piece - 1) / piece * piece
                                                     : 0;
}

/* Takes or gives back memory of a device; false: it has not so much. */
static bool charge (int device, ptrdiff_t bytes)
{
    size_t used = rt_devices[device].used_bytes + (size_t) bytes;

    if (!bytes)
        return true;
    if (!rt_share_memory (device, used) && bytes > 0)
        return false;
    rt_devices[device].used_bytes = used;
    return true;
}

void rt_range_release (struct rt_range *range, const char *who)
{
    bool own = !range->owner;
    pid_t user = own && range->shared ? rt_map_disown (range) : 0;

    if (user)
        sim_misuse ("%s: %p is still open in process %ld", who, (void *) range->user,
                    (long) user);
    charge (range->device, -(ptrdiff_t) charged (range));
    rt_map_end (range, own);
    range->freed = ++last_freed;
    if (++freed_count > REMEMBERED)
        forget_oldest ();
}

/* Memory for a range, in the list of them. */
static bool make_range (struct rt_range *range)
{
    int first = range->kind == RT_DEVICE ? PROT_NONE : PROT_READ | PROT_WRITE;

    if (range->flags & OF_PROCESS ? !rt_map_in_file (range) : !rt_map (range, first))
        return false;
    if (rt_range_add (range))
        return true;
    rt_map_undo (range);
    return false;
}

static cudaError_t allocate (void **address, size_t bytes, enum rt_kind kind, unsigned flags)
{
    struct rt_range range = {.bytes = bytes, .kind = kind, .device = rt_current, .flags = flags};
    ptrdiff_t price = (ptrdiff_t) charged (&range);

    *address = NULL;
    if (!bytes)
        return kind == RT_MANAGED ? cudaErrorInvalidValue : cudaSuccess;
    if (bytes > (size_t) 1 << 46 || !charge (rt_current, price))
        return cudaErrorMemoryAllocation;
    if (!make_range (&range)) {
        charge (rt_current, -price);
        return cudaErrorMemoryAllocation;
    }
    memset (range.alias, 0xff, bytes < FILLED ? bytes : FILLED);
    *address = range.user;
    return cudaSuccess;
}

/* [flags] may be of the [known] ones. */
static cudaError_t take (const char *name, void **address, size_t bytes, enum rt_kind kind,
                         unsigned flags, unsigned known)
{
    cudaError_t error = rt_enter (name, RT_NO_STREAM);

    if (!error && (!address || (flags & ~known)))
        error = cudaErrorInvalidValue;
    if (error)
        return rt_leave (error);
    rt_lock ();
    error = rt_capture_unsafe ();
    if (!error)
        error = allocate (address, bytes, kind, flags);
    rt_unlock ();
    return rt_leave (error);
}

cudaError_t cudaMalloc (void **address, size_t bytes)
{
    return take ("cudaMalloc", address, bytes, RT_DEVICE, OF_PROCESS, OF_PROCESS);
}

cudaError_t sim_memory_alloc (void **address, size_t bytes)
{
    return take ("cuMemCreate", address, bytes, RT_DEVICE, SHAREABLE, SHAREABLE);
}

cudaError_t cudaMallocManaged (void **address, size_t bytes, unsigned flags)
{
    bool one = flags == cudaMemAttachGlobal || flags == cudaMemAttachHost;

    return take ("cudaMallocManaged", address, bytes, RT_MANAGED, one ? flags : ~0u,
                 cudaMemAttachGlobal | cudaMemAttachHost);
}

cudaError_t cudaMallocHost (void **address, size_t bytes)
{
    return take ("cudaMallocHost", address, bytes, RT_PINNED, 0, 0);
}

cudaError_t cudaHostAlloc (void **address, size_t bytes, unsigned flags)
{
    return take ("cudaHostAlloc", address, bytes, RT_PINNED, flags,
                 cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined);
}

/* The range that begins at [address] and is of one of two kinds; NULL after misuse. */
static struct rt_range *find_whole (const char *name, const void *address, enum rt_kind one,
                                    enum rt_kind other)
{
    struct rt_range *range = rt_range_find (address);

    if (!range)
        sim_misuse ("%s: %p was not allocated", name, address);
    else if (range->freed)
        sim_misuse ("%s: %p was freed before (double free)", name, address);
    else if (range->user != address)
        sim_misuse ("%s: %p is %zu bytes into an allocation", name, address,
                    (size_t) ((const char *) address - range->user));
    else if (range->owner)
        sim_misuse ("%s: %p was opened: cudaIpcCloseMemHandle gives it back", name, address);
    else if ((range->kind != one && range->kind != other) || range->flags & SHAREABLE)
        sim_misuse ("%s: %p is memory of another kind", name, address);
    else
        return range;
    return NULL;
}

/* N.B. waits for all work of the device, and keeps others out meanwhile, as the real one does. */
static cudaError_t give_back (const char *name, void *address, enum rt_kind one,
                              enum rt_kind other)
{
    cudaError_t error = rt_enter (name, RT_NO_STREAM);
    struct rt_range *range;

    if (error || !address)
        return rt_leave (error);
    rt_lock ();
    error = rt_capture_unsafe ();
    range = error ? NULL : find_whole (name, address, one, other);
    if (!error && !range)
        error = cudaErrorInvalidValue;
    if (range)
        error = rt_await_to_free (range->device);
    if (range && (range = find_whole (name, address, one, other)))
        rt_range_release (range, name);
    rt_unlock ();
    return rt_leave (error);
}

cudaError_t cudaFree (void *address)
{
    return give_back ("cudaFree", address, RT_DEVICE, RT_MANAGED);
}

cudaError_t cudaFreeHost (void *address)
{
    return give_back ("cudaFreeHost", address, RT_PINNED, RT_PINNED);
}

cudaError_t sim_memory_free (void *address)
{
    cudaError_t error = rt_enter ("cuMemUnmap", RT_NO_STREAM);
    struct rt_range *range;

    if (error)
        return rt_leave (error);
    rt_lock ();
    range = rt_range_find (address);
    if (range && !range->freed && range->user == address && range->flags & SHAREABLE)
        rt_range_release (range, "cuMemUnmap");
    else
        error = cudaErrorInvalidValue;
    rt_unlock ();
    return rt_leave (error);
}

bool sim_is_shareable (const void *user)
{
    struct rt_range *range;
    bool is;

    rt_lock ();
    range = rt_range_find (user);
    is = range && !range->freed && range->flags & SHAREABLE;
    rt_unlock ();
    return is;
}

static void free_now (void *arg)
{
    struct rt_range *range;

    rt_lock ();
    range = find_whole ("cudaFreeAsync", *(void **) arg, RT_DEVICE, RT_DEVICE);
    if (range)
        rt_range_release (range, "cudaFreeAsync");
    rt_unlock ();
}

/* The memory is there at once; only its end is ordered by the stream. */
cudaError_t cudaMallocAsync (void **address, size_t bytes, cudaStream_t handle)
{
    cudaError_t error = rt_enter ("cudaMallocAsync", handle);
    struct rt_stream *stream;

    if (!error && !address)
        error = cudaErrorInvalidValue;
    if (error)
        return rt_leave (error);
    rt_lock ();
    stream = rt_stream_find (handle, "cudaMallocAsync");
    if (!stream)
        error = cudaErrorInvalidResourceHandle;
    else if (stream->capture)
        error = rt_capture_break (stream->capture, cudaErrorNotSupported);
    else
        error = allocate (address, bytes, RT_DEVICE, 0);
    rt_unlock ();
    return rt_leave (error);
}

cudaError_t cudaFreeAsync (void *address, cudaStream_t handle)
{
    cudaError_t error = rt_enter ("cudaFreeAsync", handle);
    struct rt_stream *stream;

    if (error || !address)
        return rt_leave (error);
    rt_lock ();
    stream = rt_stream_find (handle, "cudaFreeAsync");
    if (!stream)
        error = cudaErrorInvalidResourceHandle;
    else if (stream->capture)
        error = rt_capture_break (stream->capture, cudaErrorNotSupported);
    else if (!find_whole ("cudaFreeAsync", address, RT_DEVICE, RT_DEVICE))
        error = cudaErrorInvalidValue;
    else
        error = rt_queue (stream, free_now, &address, sizeof (address));
    rt_unlock ();
    return rt_leave (error);
}

static bool overlaps (const char *address, size_t bytes)
{
    size_t i = ranges_up_to (address + bytes - 1);

    return i && !ranges[i - 1].freed && ranges[i - 1].user + ranges[i - 1].bytes > address;
}

cudaError_t cudaHostRegister (void *address, size_t bytes, unsigned flags)
{
    cudaError_t error = rt_enter ("cudaHostRegister", RT_NO_STREAM);
    struct rt_range range = {.user = address,
                             .alias = address,
                             .bytes = bytes,
                             .kind = RT_REGISTERED,
                             .device = rt_current,
                             .flags = flags};

    if (!error && (!address || !bytes || flags > 15))
        error = cudaErrorInvalidValue;
    if (error)
        return rt_leave (error);
    rt_lock ();
    error = rt_capture_unsafe ();
    if (!error && overlaps (address, bytes))
        error = cudaErrorHostMemoryAlreadyRegistered;
    if (!error && !rt_range_add (&range))
        error = cudaErrorMemoryAllocation;
    rt_unlock ();
    return rt_leave (error);
}

/* Waits as cudaFreeHost does. The memory stays the program's. */
cudaError_t cudaHostUnregister (void *address)
{
    cudaError_t error = rt_enter ("cudaHostUnregister", RT_NO_STREAM);
    struct rt_range *range;
    bool known;

    if (!error && !address)
        error = cudaErrorInvalidValue;
    if (error)
        return rt_leave (error);
    rt_lock ();
    error = rt_capture_unsafe ();
    range = rt_range_find (address);
    if (!error && (!range || range->kind != RT_REGISTERED))
        error = cudaErrorHostMemoryNotRegistered;
    else if (!error && range->user != address)
        error = cudaErrorInvalidValue;
    known = !error;
    if (known)
        error = rt_await_to_free (range->device);
    range = rt_range_find (address);
    if (known && range && range->kind == RT_REGISTERED)
        remove_range (range);
    rt_unlock ();
    return rt_leave (error);
}

static const char *kind_name (const struct rt_range *range)
{
    switch (range->kind) {
    case RT_DEVICE: return range->owner ? "opened" : "device";
    case RT_MANAGED: return "managed";
    case RT_PINNED: return "pinned";
    default: return "registered";
    }
}

/* What others had open an owner that ends cannot wait for. */
void rt_memory_end (void)
{
    for (size_t i = 0; i < count; i++)
        if (!ranges[i].freed && !rt_devices[ranges[i].device].failed &&
            (ranges[i].owner || !rt_map_was_opened (&ranges[i])))
            sim_misuse ("leak: %zu bytes of %s memory at %p were not %s", ranges[i].bytes,
                        kind_name (&ranges[i]), (void *) ranges[i].user,
                        ranges[i].owner                   ? "closed"
                        : ranges[i].kind == RT_REGISTERED ? "unregistered"
                                                          : "freed");
}
