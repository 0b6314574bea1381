/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rt_event - events: a place in a stream, taken at the last record, that others wait for; in a
 * capture, a set of nodes.
 */
#include <time.h>

#include "rt.h"

/* Locks and finds the event; the error if it is none, and then nothing is locked. */
static cudaError_t enter (const char *name, cudaEvent_t handle, cudaStream_t faults,
                          struct rt_event **event)
{
    cudaError_t error = rt_enter (name, faults);

    if (error)
        return error;
    rt_lock ();
    *event = rt_pool_find (&rt_events, handle, name);
    error = *event ? rt_devices[(*event)->device].failed : cudaErrorInvalidResourceHandle;
    if (error)
        rt_unlock ();
    return error;
}

static cudaError_t leave (cudaError_t error)
{
    rt_unlock ();
    return rt_leave (error);
}

static cudaError_t create (const char *name, cudaEvent_t *handle, unsigned flags)
{
    const unsigned known = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
    cudaError_t error = rt_enter (name, RT_NO_STREAM);
    struct rt_event *event;

    if (!error && (!handle || (flags & ~known)))
        error = cudaErrorInvalidValue;
    if (!error && (flags & cudaEventInterprocess))
        error = flags & cudaEventDisableTiming ? cudaErrorNotSupported : cudaErrorInvalidValue;
    if (error)
        return rt_leave (error);
    rt_lock ();
    event = rt_pool_take (&rt_events);
    if (event) {
        event->device = rt_current;
        event->flags = flags;
        event->record++;
        event->stream = NULL;
        event->captured = false;
        *handle = (cudaEvent_t) event;
    }
    return leave (event ? cudaSuccess : cudaErrorMemoryAllocation);
}

#undef cudaEventCreate
cudaError_t cudaEventCreate (cudaEvent_t *handle)
{
    return create ("cudaEventCreate", handle, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags (cudaEvent_t *handle, unsigned flags)
{
    return create ("cudaEventCreateWithFlags", handle, flags);
}

/* Returns at once, also if the event was not reached yet. */
cudaError_t cudaEventDestroy (cudaEvent_t handle)
{
    struct rt_event *event;
    cudaError_t error = enter ("cudaEventDestroy", handle, RT_NO_STREAM, &event);

    if (error)
        return rt_leave (error);
    event->slot.alive = false;
    return leave (cudaSuccess);
}

struct recording {
    struct rt_event *event;
    uint64_t record;
};

static void take_time (void *arg)
{
    struct recording *r = arg;
    struct timespec now;

    clock_gettime (CLOCK_MONOTONIC, &now);
    rt_lock ();
    if (r->event->record == r->record)
        r->event->time_ms = (double) now.tv_sec * 1e3 + (double) now.tv_nsec * 1e-6;
    rt_unlock ();
}

static cudaError_t record (struct rt_event *event, struct rt_stream *stream, unsigned flags)
{
    struct recording r = {event, event->record + 1};
    cudaError_t error;

    if (event->device != stream->device) {
        sim_misuse ("cudaEventRecord: the event is of device %d, the stream of device %d",
                    event->device, stream->device);
        return cudaErrorInvalidResourceHandle;
    }
    if (stream->capture) {
        if (flags)
            return rt_capture_break (stream->capture, cudaErrorNotSupported);
        if (!rt_capture_is (stream->capture, 0))
            return cudaErrorStreamCaptureInvalidated;
        event->record++;
        rt_capture_record (stream, event);
        return cudaSuccess;
    }
    error = rt_queue (stream, take_time, &r, sizeof (r));
    if (error)
        return error;
    event->record = r.record;
    event->stream = stream;
    event->place = stream->queued;
    event->captured = false;
    return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags (cudaEvent_t handle, cudaStream_t stream_handle,
                                      unsigned flags)
{
    struct rt_event *event;
    struct rt_stream *stream;
    cudaError_t error = enter ("cudaEventRecord", handle, stream_handle, &event);

    if (error)
        return rt_leave (error);
    if (flags & ~(unsigned) cudaEventRecordExternal)
        return leave (cudaErrorInvalidValue);
    stream = rt_stream_find (stream_handle, "cudaEventRecord");
    return leave (stream ? record (event, stream, flags) : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventRecord (cudaEvent_t handle, cudaStream_t stream_handle)
{
    return cudaEventRecordWithFlags (handle, stream_handle, cudaEventRecordDefault);
}

/* For calls that ask for the state of an event: not of captured ones, not beside captures. */
static cudaError_t check_state (const struct rt_event *event)
{
    if (!event->captured)
        return rt_capture_unsafe ();
    for (size_t i = 0; i < rt_streams.used; i++) {
        struct rt_stream *stream = rt_pool_at (&rt_streams, i);
        if (stream && stream->capture && rt_capture_is (stream->capture, event->capture_id))
            return rt_capture_break (stream->capture, cudaErrorCapturedEvent);
    }
    return cudaErrorCapturedEvent;
}

static bool is_done (const struct rt_event *event)
{
    return !event->stream || event->stream->done >= event->place;
}

cudaError_t cudaEventQuery (cudaEvent_t handle)
{
    struct rt_event *event;
    cudaError_t error = enter ("cudaEventQuery", handle, RT_NO_STREAM, &event);

    if (error)
        return rt_leave (error);
    error = check_state (event);
    if (!error && !is_done (event))
        error = cudaErrorNotReady;
    return leave (error);
}

cudaError_t cudaEventSynchronize (cudaEvent_t handle)
{
    struct rt_event *event;
    cudaError_t error = enter ("cudaEventSynchronize", handle, RT_NO_STREAM, &event);

    if (error)
        return rt_leave (error);
    error = check_state (event);
    if (!error && event->stream)
        error = rt_await (event->stream, event->place);
    return leave (error);
}

static cudaError_t elapsed (float *ms, const struct rt_event *from, const struct rt_event *to)
{
    if (!ms)
        return cudaErrorInvalidValue;
    if (from->captured || to->captured)
        return cudaErrorCapturedEvent;
    if (!from->stream || !to->stream || ((from->flags | to->flags) & cudaEventDisableTiming) ||
        from->device != to->device)
        return cudaErrorInvalidResourceHandle;
    if (!is_done (from) || !is_done (to))
        return cudaErrorNotReady;
    *ms = (float) (to->time_ms - from->time_ms);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime (float *ms, cudaEvent_t start, cudaEvent_t stop)
{
    struct rt_event *from, *to;
    cudaError_t error = enter ("cudaEventElapsedTime", start, RT_NO_STREAM, &from);

    if (error)
        return rt_leave (error);
    to = rt_pool_find (&rt_events, stop, "cudaEventElapsedTime");
    return leave (to ? elapsed (ms, from, to) : cudaErrorInvalidResourceHandle);
}

static cudaError_t wait_event (struct rt_stream *stream, struct rt_event *event, unsigned flags)
{
    if (flags & ~(unsigned) cudaEventWaitExternal)
        return cudaErrorInvalidValue;
    if (stream->capture && flags)
        return rt_capture_break (stream->capture, cudaErrorNotSupported);
    if (stream->capture || event->captured)
        return rt_capture_wait (stream, event);
    if (!event->stream)
        return cudaSuccess;
    if (rt_is_legacy (stream)) {
        cudaError_t error = rt_capture_legacy (stream->device);
        if (error)
            return error;
    }
    return rt_queue_wait (stream, event->stream, event->place);
}

cudaError_t cudaStreamWaitEvent (cudaStream_t stream_handle, cudaEvent_t handle, unsigned flags)
{
    struct rt_event *event;
    struct rt_stream *stream;
    cudaError_t error = enter ("cudaStreamWaitEvent", handle, stream_handle, &event);

    if (error)
        return rt_leave (error);
    stream = rt_stream_find (stream_handle, "cudaStreamWaitEvent");
    return leave (stream ? wait_event (stream, event, flags) : cudaErrorInvalidResourceHandle);
}
