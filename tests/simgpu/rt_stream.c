/* SPDX-License-Identifier: BSD-3-Clause */
/* rt_stream - CUDA's functions about streams, and functions of the host in them. */
#include "rt.h"

/* Locks and finds the stream; the error if it is none, and then nothing is locked. */
static cudaError_t enter (const char *name, cudaStream_t handle, struct rt_stream **stream)
{
    cudaError_t error = rt_enter (name, RT_NO_STREAM);

    if (error)
        return error;
    rt_lock ();
    *stream = rt_stream_find (handle, name);
    error = *stream ? rt_devices[(*stream)->device].failed : cudaErrorInvalidResourceHandle;
    if (error)
        rt_unlock ();
    return error;
}

static cudaError_t leave (cudaError_t error)
{
    rt_unlock ();
    return rt_leave (error);
}

static cudaError_t create (const char *name, cudaStream_t *handle, unsigned flags, int priority)
{
    cudaError_t error = rt_enter (name, RT_NO_STREAM);
    struct rt_stream *stream;

    if (!error && (!handle || (flags & ~(unsigned) cudaStreamNonBlocking)))
        error = cudaErrorInvalidValue;
    if (error)
        return rt_leave (error);
    rt_lock ();
    stream = rt_stream_make (rt_current, flags, priority > 0 ? 0 : priority < -5 ? -5 : priority);
    if (stream) {
        stream->owned = true;
        *handle = (cudaStream_t) stream;
    }
    return leave (stream ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaStreamCreate (cudaStream_t *handle)
{
    return create ("cudaStreamCreate", handle, cudaStreamDefault, 0);
}

cudaError_t cudaStreamCreateWithFlags (cudaStream_t *handle, unsigned flags)
{
    return create ("cudaStreamCreateWithFlags", handle, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority (cudaStream_t *handle, unsigned flags, int priority)
{
    return create ("cudaStreamCreateWithPriority", handle, flags, priority);
}

/* Returns at once; what is queued is done all the same. */
cudaError_t cudaStreamDestroy (cudaStream_t handle)
{
    struct rt_stream *stream;
    cudaError_t error = enter ("cudaStreamDestroy", handle, &stream);

    if (error)
        return rt_leave (error);
    if (!stream->owned)
        return leave (cudaErrorInvalidResourceHandle);
    if (stream->capture)
        rt_capture_drop (stream);
    rt_stream_retire (stream);
    return leave (cudaSuccess);
}

/* The legacy stream has done its work when all blocking streams have, for which it waits. */
static void no_work (void *unused)
{
    (void) unused;
}

cudaError_t cudaStreamSynchronize (cudaStream_t handle)
{
    struct rt_stream *stream;
    cudaError_t error = enter ("cudaStreamSynchronize", handle, &stream);

    if (error)
        return rt_leave (error);
    if (stream->capture)
        return leave (rt_capture_break (stream->capture, cudaErrorStreamCaptureUnsupported));
    if (rt_is_legacy (stream))
        error = rt_capture_legacy (stream->device);
    if (!error)
        error = rt_capture_unsafe ();
    if (!error && rt_is_legacy (stream))
        error = rt_queue (stream, no_work, NULL, 0);
    return leave (error ? error : rt_await (stream, stream->queued));
}

cudaError_t cudaStreamQuery (cudaStream_t handle)
{
    struct rt_stream *stream;
    cudaError_t error = enter ("cudaStreamQuery", handle, &stream);
    bool done;

    if (error)
        return rt_leave (error);
    if (stream->capture)
        return leave (rt_capture_break (stream->capture, cudaErrorStreamCaptureUnsupported));
    if (rt_is_legacy (stream))
        error = rt_capture_legacy (stream->device);
    if (!error)
        error = rt_capture_unsafe ();
    if (error)
        return leave (error);
    done = stream->done >= stream->queued;
    if (rt_is_legacy (stream))
        for (size_t i = 0; i < rt_streams.used; i++) {
            struct rt_stream *other = rt_pool_at (&rt_streams, i);
            if (other && other->device == stream->device &&
                !(other->flags & cudaStreamNonBlocking))
                done = done && other->done >= other->queued;
        }
    return leave (done ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaStreamGetPriority (cudaStream_t handle, int *priority)
{
    struct rt_stream *stream;
    cudaError_t error = enter ("cudaStreamGetPriority", handle, &stream);

    if (error)
        return rt_leave (error);
    if (!priority)
        return leave (cudaErrorInvalidValue);
    *priority = stream->priority;
    return leave (cudaSuccess);
}

cudaError_t cudaStreamGetFlags (cudaStream_t handle, unsigned *flags)
{
    struct rt_stream *stream;
    cudaError_t error = enter ("cudaStreamGetFlags", handle, &stream);

    if (error)
        return rt_leave (error);
    if (!flags)
        return leave (cudaErrorInvalidValue);
    *flags = stream->flags;
    return leave (cudaSuccess);
}

#if CUDART_VERSION >= 12000
cudaError_t cudaStreamGetId (cudaStream_t handle, unsigned long long *id)
{
    struct rt_stream *stream;
    cudaError_t error = enter ("cudaStreamGetId", handle, &stream);

    if (error)
        return rt_leave (error);
    if (!id)
        return leave (cudaErrorInvalidValue);
    *id = stream->id;
    return leave (cudaSuccess);
}
#endif

#if CUDART_VERSION >= 12080
cudaError_t cudaStreamGetDevice (cudaStream_t handle, int *device)
{
    struct rt_stream *stream;
    cudaError_t error = enter ("cudaStreamGetDevice", handle, &stream);

    if (error)
        return rt_leave (error);
    if (!device)
        return leave (cudaErrorInvalidValue);
    *device = stream->device;
    return leave (cudaSuccess);
}
#endif

struct host_call {
    cudaHostFn_t function;
    void *data;
};

/* One at a time on a device, whatever its streams. */
static void call_host (void *arg)
{
    static pthread_mutex_t turn[RT_DEVICES] = {[0 ... RT_DEVICES - 1] =
                                                   PTHREAD_MUTEX_INITIALIZER};
    struct host_call *call = arg;

    pthread_mutex_lock (&turn[rt_current]);
    rt_in_host_function = true;
    call->function (call->data);
    rt_in_host_function = false;
    pthread_mutex_unlock (&turn[rt_current]);
}

cudaError_t cudaLaunchHostFunc (cudaStream_t handle, cudaHostFn_t function, void *data)
{
    cudaError_t error = rt_enter ("cudaLaunchHostFunc", handle);
    struct host_call call = {function, data};
    struct rt_stream *stream;

    if (!error && !function)
        error = cudaErrorInvalidValue;
    if (error)
        return rt_leave (error);
    rt_lock ();
    stream = rt_stream_find (handle, "cudaLaunchHostFunc");
    error = stream ? rt_push (stream, call_host, &call, sizeof (call))
                   : cudaErrorInvalidResourceHandle;
    return leave (error);
}
