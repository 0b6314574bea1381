/* SPDX-License-Identifier: BSD-3-Clause */
/* rt_copy - the use of memory: what a pointer is, copies, memset. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rt.h"

#define LANDS_NS 1000000 /* after cudaMemcpy has returned */

void *rt_reach (const void *user, size_t bytes, bool pageable, const char *who)
{
    struct rt_range *range = rt_range_find (user);
    size_t offset;

    if (!range && pageable)
        return (void *) (uintptr_t) user;
    if (!range) {
        sim_misuse ("%s: %p is not memory that a device can reach", who, user);
        return NULL;
    }
    offset = (size_t) ((const char *) user - range->user);
    if (range->freed)
        sim_misuse ("%s: %p is used after it was %s", who, user,
                    range->owner ? "closed" : "freed");
    else if (!rt_map_is_live (range))
        sim_misuse ("%s: %p is used after its owner, process %ld, freed it", who, user,
                    (long) rt_owner_pid (range->owner));
    else if (bytes > range->bytes - offset)
        sim_misuse ("%s: %zu bytes at %p end %zu bytes behind their allocation", who, bytes, user,
                    bytes - (range->bytes - offset));
    else
        return range->alias + offset;
    return NULL;
}

void *sim_alias (const void *user, size_t bytes, const char *who)
{
    void *alias;

    rt_lock ();
    alias = rt_reach (user, bytes, !bytes, who);
    if (!alias && bytes && rt_worker)
        rt_device_fail (rt_worker->device, cudaErrorIllegalAddress);
    rt_unlock ();
    return alias;
}

bool sim_is_device (const void *user, int *device)
{
    const struct rt_range *range;
    bool is;

    rt_lock ();
    range = rt_range_find (user);
    is = range && !range->freed && (range->kind == RT_DEVICE || range->kind == RT_MANAGED);
    if (is && device)
        *device = rt_devices[range->device].physical;
    rt_unlock ();
    return is;
}

static void describe (struct cudaPointerAttributes *attributes, const struct rt_range *range,
                      const void *address)
{
    memset (attributes, 0, sizeof (*attributes));
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = cudaInvalidDeviceId;
    attributes->hostPointer = (void *) (uintptr_t) address;
    if (!range || range->freed)
        return;
    attributes->device = range->device;
    attributes->devicePointer = attributes->hostPointer;
    attributes->type = range->kind == RT_DEVICE    ? cudaMemoryTypeDevice
                       : range->kind == RT_MANAGED ? cudaMemoryTypeManaged
                                                   : cudaMemoryTypeHost;
    if (range->kind == RT_DEVICE)
        attributes->hostPointer = NULL;
}

cudaError_t cudaPointerGetAttributes (struct cudaPointerAttributes *attributes,
                                      const void *address)
{
    cudaError_t error = rt_enter ("cudaPointerGetAttributes", RT_NO_STREAM);

    if (!error && (!attributes || !address))
        error = cudaErrorInvalidValue;
    if (error)
        return rt_leave (error);
    rt_lock ();
    describe (attributes, rt_range_find (address), address);
    rt_unlock ();
    return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer (void **device, void *host, unsigned flags)
{
    cudaError_t error = rt_enter ("cudaHostGetDevicePointer", RT_NO_STREAM);
    const struct rt_range *range;

    if (!error && (!device || !host || flags))
        error = cudaErrorInvalidValue;
    if (error)
        return rt_leave (error);
    rt_lock ();
    range = rt_range_find (host);
    if (!range || range->freed || (range->kind != RT_PINNED && range->kind != RT_REGISTERED))
        error = cudaErrorInvalidValue;
    else
        *device = host;
    rt_unlock ();
    return rt_leave (error);
}

cudaError_t cudaHostGetFlags (unsigned *flags, void *host)
{
    cudaError_t error = rt_enter ("cudaHostGetFlags", RT_NO_STREAM);
    const struct rt_range *range;

    if (!error && (!flags || !host))
        error = cudaErrorInvalidValue;
    if (error)
        return rt_leave (error);
    rt_lock ();
    range = rt_range_find (host);
    if (!range || range->freed || range->kind != RT_PINNED)
        error = cudaErrorInvalidValue;
    else
        *flags = range->flags | cudaHostAllocMapped;
    rt_unlock ();
    return rt_leave (error);
}

struct job { /* a copy; with [who] cudaMemset, the value is in [src] */
    char *dst;
    const char *src;
    size_t bytes;
    const char *who;
};

static void fail (void)
{
    rt_device_fail (rt_worker->device, cudaErrorIllegalAddress);
}

static void copy_now (void *arg)
{
    const struct job *job = arg;
    const void *src;
    void *dst;

    rt_lock ();
    dst = rt_reach (job->dst, job->bytes, true, job->who);
    src = rt_reach (job->src, job->bytes, true, job->who);
    if (!dst || !src)
        fail ();
    rt_unlock ();
    if (dst && src)
        memmove (dst, src, job->bytes);
}

struct landing { /* a copy whose source was read */
    struct job job;
    char data[];
};

/* Late, so that who does not wait for the stream sees that it did not. */
static void land (void *arg)
{
    struct landing *landing = arg;

    nanosleep (&(struct timespec){.tv_nsec = LANDS_NS}, NULL);
    landing->job.src = landing->data;
    copy_now (&landing->job);
}

static void set_now (void *arg)
{
    const struct job *job = arg;
    void *dst;

    rt_lock ();
    dst = rt_reach (job->dst, job->bytes, false, job->who);
    if (!dst)
        fail ();
    rt_unlock ();
    if (dst)
        memset (dst, (int) (uintptr_t) job->src, job->bytes);
}

/* Whether one side of a copy is what its direction says. */
static bool is_side (const void *address, bool device, const char *who)
{
    const struct rt_range *range = rt_range_find (address);
    bool ok = device ? range != NULL : !range || range->kind != RT_DEVICE;

    if (!ok)
        sim_misuse ("%s: %p is %s memory, the direction says otherwise", who, address,
                    device ? "pageable host" : "device");
    return ok;
}

static cudaError_t check_copy (const struct job *job, enum cudaMemcpyKind kind)
{
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;

    if (!job->dst || !job->src)
        return cudaErrorInvalidValue;
    if (!rt_reach (job->dst, job->bytes, true, job->who) ||
        !rt_reach (job->src, job->bytes, true, job->who))
        return cudaErrorInvalidValue;
    if (kind == cudaMemcpyDefault)
        return cudaSuccess;
    return is_side (job->dst, to_device, job->who) && is_side (job->src, from_device, job->who)
               ? cudaSuccess
               : cudaErrorInvalidValue;
}

/*
 * Whether the call returns only after the work is done: copies from or to pageable memory, and
 * what is called synchronous, unless it stays on devices.
 */
static bool is_waited_for (const struct job *job, bool async)
{
    const struct rt_range *dst = rt_range_find (job->dst);
    const struct rt_range *src = job->src ? rt_range_find (job->src) : NULL;

    if (async)
        return !dst || !src;
    return !dst || !src || dst->kind != RT_DEVICE || src->kind != RT_DEVICE;
}

/*
 * cudaMemcpy from pageable memory to a device waits for its stream, reads the source and returns;
 * the bytes may land later, which the stream alone waits for.
 */
static cudaError_t push_landing (struct rt_stream *stream, const struct job *job)
{
    struct landing *landing = malloc (sizeof (*landing) + job->bytes);
    cudaError_t error = rt_await (stream, stream->queued);

    if (!landing)
        return cudaErrorMemoryAllocation;
    landing->job = *job;
    memcpy (landing->data, job->src, job->bytes);
    if (!error)
        error = rt_push (stream, land, landing, sizeof (*landing) + job->bytes);
    free (landing);
    return error;
}

static bool is_landing (const struct job *job)
{
    const struct rt_range *dst = rt_range_find (job->dst);

    return dst && dst->kind == RT_DEVICE && !rt_range_find (job->src);
}

static cudaError_t push_copy (struct rt_stream *stream, const struct job *job,
                              enum cudaMemcpyKind kind, bool async)
{
    cudaError_t error = check_copy (job, kind);

    if (error)
        return error;
    if (!async && rt_is_legacy (stream))
        error = rt_capture_legacy (stream->device);
    if (!error && !async)
        error = rt_capture_unsafe ();
    if (!error && !async && is_landing (job))
        return push_landing (stream, job);
    if (!error)
        error = rt_push (stream, copy_now, job, sizeof (*job));
    if (!error && !stream->capture && is_waited_for (job, async))
        error = rt_await (stream, stream->queued);
    return error;
}

cudaError_t cudaMemcpyAsync (void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
                             cudaStream_t handle)
{
    cudaError_t error = rt_enter ("cudaMemcpyAsync", handle);
    struct job job = {dst, src, bytes, "cudaMemcpyAsync"};
    struct rt_stream *stream;

    if (!error && (unsigned) kind > cudaMemcpyDefault)
        error = cudaErrorInvalidMemcpyDirection;
    if (error || !bytes)
        return rt_leave (error);
    rt_lock ();
    stream = rt_stream_find (handle, job.who);
    error = stream ? push_copy (stream, &job, kind, true) : cudaErrorInvalidResourceHandle;
    rt_unlock ();
    return rt_leave (error);
}

cudaError_t rt_copy_in (void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
                        cudaStream_t handle)
{
    cudaError_t error = rt_enter ("cudaMemcpy", handle);
    struct job job = {dst, src, bytes, "cudaMemcpy"};

    if (!error && (unsigned) kind > cudaMemcpyDefault)
        error = cudaErrorInvalidMemcpyDirection;
    if (error || !bytes)
        return rt_leave (error);
    rt_lock ();
    error = push_copy (rt_stream_find (handle, job.who), &job, kind, false);
    rt_unlock ();
    return rt_leave (error);
}

cudaError_t cudaMemcpy (void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
    return rt_copy_in (dst, src, bytes, kind, cudaStreamLegacy);
}

/* The devices are those of the addresses. */
cudaError_t cudaMemcpyPeerAsync (void *dst, int to, const void *src, int from, size_t bytes,
                                 cudaStream_t handle)
{
    cudaError_t error = rt_open ();

    if (!error && (to < 0 || to >= rt_device_count || from < 0 || from >= rt_device_count))
        error = cudaErrorInvalidDevice;
    if (error)
        return rt_leave (error);
    return cudaMemcpyAsync (dst, src, bytes, cudaMemcpyDeviceToDevice, handle);
}

static cudaError_t push_set (struct rt_stream *stream, const struct job *job, bool async)
{
    const struct rt_range *range;
    cudaError_t error = cudaSuccess;

    if (!rt_reach (job->dst, job->bytes, false, job->who))
        return cudaErrorInvalidValue;
    range = rt_range_find (job->dst);
    if (!async && rt_is_legacy (stream))
        error = rt_capture_legacy (stream->device);
    if (!error && !async)
        error = rt_capture_unsafe ();
    if (!error)
        error = rt_push (stream, set_now, job, sizeof (*job));
    if (!error && !async && range->kind != RT_DEVICE)
        error = rt_await (stream, stream->queued);
    return error;
}

cudaError_t cudaMemsetAsync (void *dst, int value, size_t bytes, cudaStream_t handle)
{
    cudaError_t error = rt_enter ("cudaMemsetAsync", handle);
    struct job job = {dst, (const char *) (uintptr_t) (unsigned char) value, bytes,
                      "cudaMemsetAsync"};
    struct rt_stream *stream;

    if (error || !bytes)
        return rt_leave (error);
    rt_lock ();
    stream = rt_stream_find (handle, job.who);
    error = stream ? push_set (stream, &job, true) : cudaErrorInvalidResourceHandle;
    rt_unlock ();
    return rt_leave (error);
}

/* N.B. asynchronous for memory of devices, as the real one. */
cudaError_t rt_set_in (void *dst, int value, size_t bytes, cudaStream_t handle)
{
    cudaError_t error = rt_enter ("cudaMemset", handle);
    struct job job = {dst, (const char *) (uintptr_t) (unsigned char) value, bytes, "cudaMemset"};

    if (error || !bytes)
        return rt_leave (error);
    rt_lock ();
    error = push_set (rt_stream_find (handle, job.who), &job, false);
    rt_unlock ();
    return rt_leave (error);
}

cudaError_t cudaMemset (void *dst, int value, size_t bytes)
{
    return rt_set_in (dst, value, bytes, cudaStreamLegacy);
}
