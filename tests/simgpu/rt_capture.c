/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rt_capture - streams whose work goes into a graph: how others join, and what is not allowed
 * meanwhile.
 *
 * A captured stream has the set of nodes that its next node comes after. An event recorded there
 * takes a copy; a stream that waits for the event joins the capture with that set.
 */
#include <stdlib.h>
#include <string.h>

#include "rt.h"

struct rt_capture {
    struct rt_capture *next;
    unsigned long long id;
    enum cudaStreamCaptureMode mode;
    const void *thread; /* that began it */
    struct rt_stream *origin;
    struct rt_nodes *nodes;
    bool broken;
};

static struct rt_capture *captures;
static unsigned long long last_id;

static _Thread_local enum cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

/* The address of a variable of the thread names it. */
static const void *this_thread (void)
{
    return &thread_mode;
}

bool rt_set_copy (struct rt_set *to, const struct rt_set *from)
{
    size_t *at = realloc (to->at, (from->count + 1) * sizeof (*at));

    if (!at)
        return false;
    if (from->count)
        memcpy (at, from->at, from->count * sizeof (*at));
    to->at = at;
    to->count = from->count;
    return true;
}

static bool set_join (struct rt_set *to, const struct rt_set *from)
{
    size_t *at = realloc (to->at, (to->count + from->count + 1) * sizeof (*at));

    if (!at)
        return false;
    to->at = at;
    for (size_t i = 0; i < from->count; i++) {
        size_t j = 0;
        while (j < to->count && at[j] != from->at[i])
            j++;
        if (j == to->count)
            at[to->count++] = from->at[i];
    }
    return true;
}

bool rt_capture_is (const struct rt_capture *capture, unsigned long long id)
{
    return !capture->broken && (!id || capture->id == id);
}

cudaError_t rt_capture_break (struct rt_capture *capture, cudaError_t error)
{
    capture->broken = true;
    return error;
}

static bool forbids (const struct rt_capture *capture)
{
    bool own = capture->thread == this_thread ();

    if (thread_mode == cudaStreamCaptureModeRelaxed)
        return false;
    if (own)
        return capture->mode != cudaStreamCaptureModeRelaxed;
    return thread_mode == cudaStreamCaptureModeGlobal &&
           capture->mode == cudaStreamCaptureModeGlobal;
}

cudaError_t rt_capture_unsafe (void)
{
    cudaError_t error = cudaSuccess;

    for (struct rt_capture *c = captures; c; c = c->next)
        if (forbids (c))
            error = rt_capture_break (c, cudaErrorStreamCaptureUnsupported);
    return error;
}

/* Breaks the captures that streams of the device are in; [blocking]: only streams that block. */
static cudaError_t break_all (int device, bool blocking, cudaError_t what)
{
    cudaError_t error = cudaSuccess;

    for (size_t i = 0; captures && i < rt_streams.used; i++) {
        struct rt_stream *stream = rt_pool_at (&rt_streams, i);
        if (stream && stream->capture && stream->device == device &&
            !(blocking && (stream->flags & cudaStreamNonBlocking)))
            error = rt_capture_break (stream->capture, what);
    }
    return error;
}

cudaError_t rt_capture_legacy (int device)
{
    return break_all (device, true, cudaErrorStreamCaptureImplicit);
}

cudaError_t rt_capture_device (int device)
{
    return break_all (device, false, cudaErrorStreamCaptureUnsupported);
}

cudaError_t rt_capture_add (struct rt_stream *stream, void (*run) (void *), const void *arg,
                            size_t bytes)
{
    struct rt_capture *capture = stream->capture;
    struct rt_nodes *nodes = capture->nodes;
    struct rt_node *node, **at;
    size_t number = nodes->count;

    if (capture->broken)
        return cudaErrorStreamCaptureInvalidated;
    node = calloc (1, sizeof (*node));
    at = realloc (nodes->at, (number + 1) * sizeof (*at));
    if (at)
        nodes->at = at;
    if (node)
        node->work = malloc (sizeof (*node->work) + bytes);
    if (!at || !node || !node->work || !rt_set_copy (&node->after, &stream->after)) {
        if (node)
            free (node->work);
        free (node);
        return rt_capture_break (capture, cudaErrorMemoryAllocation);
    }
    *node->work = (struct rt_work){NULL, run, bytes};
    if (bytes)
        memcpy (node->work->arg, arg, bytes);
    at[nodes->count++] = node;
    return rt_set_copy (&stream->after, &(struct rt_set){1, &number})
               ? cudaSuccess
               : rt_capture_break (capture, cudaErrorMemoryAllocation);
}

bool sim_watch_graph (cudaStream_t handle, void (*gone) (void *arg), void *arg)
{
    struct rt_watch *watch = malloc (sizeof (*watch));
    struct rt_stream *stream;

    if (!watch)
        return false;
    rt_lock ();
    stream = rt_stream_find (handle, "sim_watch_graph");
    if (stream && stream->capture) {
        struct rt_nodes *nodes = stream->capture->nodes;
        *watch = (struct rt_watch){nodes->watches, gone, arg};
        nodes->watches = watch;
        watch = NULL;
    }
    rt_unlock ();
    free (watch);
    return !watch;
}

void rt_capture_record (struct rt_stream *stream, struct rt_event *event)
{
    event->stream = NULL;
    event->captured = true;
    event->capture_id = stream->capture->id;
    if (!rt_set_copy (&event->after, &stream->after))
        stream->capture->broken = true;
}

static struct rt_capture *find_capture (unsigned long long id)
{
    struct rt_capture *capture = captures;

    while (capture && capture->id != id)
        capture = capture->next;
    return capture;
}

/* One of both is captured. */
cudaError_t rt_capture_wait (struct rt_stream *stream, struct rt_event *event)
{
    struct rt_capture *from = event->captured ? find_capture (event->capture_id) : NULL;
    struct rt_capture *into = stream->capture;

    if (into && into->broken)
        return cudaErrorStreamCaptureInvalidated;
    if (!from)
        return into ? rt_capture_break (into, cudaErrorStreamCaptureIsolation)
                    : cudaErrorInvalidValue;
    if (from->broken)
        return cudaErrorStreamCaptureInvalidated;
    if (into && into != from) {
        rt_capture_break (into, cudaErrorStreamCaptureMerge);
        return rt_capture_break (from, cudaErrorStreamCaptureMerge);
    }
    if (rt_is_legacy (stream))
        return rt_capture_break (from, cudaErrorStreamCaptureImplicit);
    if (!into)
        stream->after.count = 0;
    stream->capture = from;
    return set_join (&stream->after, &event->after)
               ? cudaSuccess
               : rt_capture_break (from, cudaErrorMemoryAllocation);
}

/* Ends a capture: its streams are as before. What was captured is the caller's. */
static struct rt_nodes *close_capture (struct rt_capture *capture)
{
    struct rt_nodes *nodes = capture->nodes;
    struct rt_capture **link = &captures;

    for (size_t i = 0; i < rt_streams.used; i++) {
        struct rt_stream *stream = rt_pool_at (&rt_streams, i);
        if (stream && stream->capture == capture)
            stream->capture = NULL;
    }
    while (*link != capture)
        link = &(*link)->next;
    *link = capture->next;
    free (capture);
    return nodes;
}

void rt_capture_drop (struct rt_stream *stream)
{
    struct rt_capture *capture = stream->capture;

    sim_misuse ("cudaStreamDestroy: the stream %p is being captured", (void *) stream);
    capture->broken = true;
    if (capture->origin == stream)
        rt_nodes_drop (close_capture (capture));
    stream->capture = NULL;
}

static cudaError_t begin (struct rt_stream *stream, enum cudaStreamCaptureMode mode)
{
    struct rt_capture *capture;

    if (rt_is_legacy (stream))
        return cudaErrorStreamCaptureUnsupported;
    if (stream->capture)
        return cudaErrorIllegalState;
    capture = calloc (1, sizeof (*capture));
    if (capture)
        capture->nodes = calloc (1, sizeof (*capture->nodes));
    if (!capture || !capture->nodes) {
        free (capture);
        return cudaErrorMemoryAllocation;
    }
    capture->nodes->owners = 1;
    capture->next = captures;
    capture->id = ++last_id;
    capture->mode = mode;
    capture->thread = this_thread ();
    capture->origin = stream;
    captures = capture;
    stream->capture = capture;
    stream->after.count = 0;
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture (cudaStream_t handle, enum cudaStreamCaptureMode mode)
{
    cudaError_t error = rt_enter ("cudaStreamBeginCapture", RT_NO_STREAM);
    struct rt_stream *stream;

    if (!error && mode != cudaStreamCaptureModeGlobal &&
        mode != cudaStreamCaptureModeThreadLocal && mode != cudaStreamCaptureModeRelaxed)
        error = cudaErrorInvalidValue;
    if (error)
        return rt_leave (error);
    rt_lock ();
    stream = rt_stream_find (handle, "cudaStreamBeginCapture");
    error = stream ? begin (stream, mode) : cudaErrorInvalidResourceHandle;
    rt_unlock ();
    return rt_leave (error);
}

/* Whether every node leads to the nodes of [last]: nodes come after ones of lower numbers only.
 */
static bool is_joined (const struct rt_nodes *nodes, const struct rt_set *last)
{
    bool *reached = calloc (nodes->count + 1, sizeof (*reached)), all = reached != NULL;

    for (size_t i = 0; all && i < last->count; i++)
        reached[last->at[i]] = true;
    for (size_t n = nodes->count; all && n-- > 0;) {
        all = reached[n];
        for (size_t i = 0; i < nodes->at[n]->after.count; i++)
            reached[nodes->at[n]->after.at[i]] = true;
    }
    free (reached);
    return all;
}

static cudaError_t end (struct rt_stream *stream, cudaGraph_t *handle)
{
    struct rt_capture *capture = stream->capture;
    cudaError_t error = cudaSuccess;
    struct rt_graph *graph = NULL;
    struct rt_nodes *nodes;

    if (!capture)
        return cudaErrorIllegalState;
    if (capture->origin != stream)
        return rt_capture_break (capture, cudaErrorStreamCaptureUnmatched);
    if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != this_thread ())
        error = cudaErrorStreamCaptureWrongThread; /* it ends all the same */
    else if (capture->broken)
        error = cudaErrorStreamCaptureInvalidated;
    else if (!is_joined (capture->nodes, &stream->after))
        error = cudaErrorStreamCaptureUnjoined;
    nodes = close_capture (capture);
    if (!error && !(graph = rt_pool_take (&rt_graphs)))
        error = cudaErrorMemoryAllocation;
    if (error) {
        rt_nodes_drop (nodes);
        return error;
    }
    graph->nodes = nodes;
    *handle = (cudaGraph_t) graph;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture (cudaStream_t handle, cudaGraph_t *graph)
{
    cudaError_t error = rt_enter ("cudaStreamEndCapture", RT_NO_STREAM);
    struct rt_stream *stream;

    if (graph)
        *graph = NULL;
    else if (!error)
        error = cudaErrorInvalidValue;
    if (error)
        return rt_leave (error);
    rt_lock ();
    stream = rt_stream_find (handle, "cudaStreamEndCapture");
    error = stream ? end (stream, graph) : cudaErrorInvalidResourceHandle;
    rt_unlock ();
    return rt_leave (error);
}

/* The status of a stream. Asking about the legacy stream is an error that breaks nothing. */
static cudaError_t capture_status (const struct rt_stream *stream,
                                   enum cudaStreamCaptureStatus *status)
{
    *status = cudaStreamCaptureStatusNone;
    if (stream->capture)
        *status = stream->capture->broken ? cudaStreamCaptureStatusInvalidated
                                          : cudaStreamCaptureStatusActive;
    if (rt_is_legacy (stream))
        for (size_t i = 0; captures && i < rt_streams.used; i++) {
            const struct rt_stream *other = rt_pool_at (&rt_streams, i);
            if (other && other->capture && other->device == stream->device &&
                !(other->flags & cudaStreamNonBlocking))
                return cudaErrorStreamCaptureImplicit;
        }
    return cudaSuccess;
}

static cudaError_t ask (const char *name, cudaStream_t handle,
                        enum cudaStreamCaptureStatus *status, unsigned long long *id)
{
    cudaError_t error = rt_enter (name, RT_NO_STREAM);
    struct rt_stream *stream;

    if (!error && !status)
        error = cudaErrorInvalidValue;
    if (error)
        return rt_leave (error);
    rt_lock ();
    stream = rt_stream_find (handle, name);
    error = stream ? capture_status (stream, status) : cudaErrorInvalidResourceHandle;
    if (!error && id && *status == cudaStreamCaptureStatusActive)
        *id = stream->capture->id;
    rt_unlock ();
    return rt_leave (error);
}

cudaError_t cudaStreamIsCapturing (cudaStream_t handle, enum cudaStreamCaptureStatus *status)
{
    return ask ("cudaStreamIsCapturing", handle, status, NULL);
}

/* Only status and id: graphs under construction are not shown. */
static cudaError_t capture_info (cudaStream_t handle, enum cudaStreamCaptureStatus *status,
                                 unsigned long long *id, bool more)
{
    if (more) {
        rt_enter ("cudaStreamGetCaptureInfo", RT_NO_STREAM);
        return rt_leave (cudaErrorNotSupported);
    }
    return ask ("cudaStreamGetCaptureInfo", handle, status, id);
}

#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo (cudaStream_t handle, enum cudaStreamCaptureStatus *status,
                                      unsigned long long *id, cudaGraph_t *graph,
                                      const cudaGraphNode_t **nodes,
                                      const cudaGraphEdgeData **edges, size_t *count)
{
    return capture_info (handle, status, id, graph || nodes || edges || count);
}
#else
cudaError_t cudaStreamGetCaptureInfo_v2 (cudaStream_t handle,
                                         enum cudaStreamCaptureStatus *status,
                                         unsigned long long *id, cudaGraph_t *graph,
                                         const cudaGraphNode_t **nodes, size_t *count)
{
    return capture_info (handle, status, id, graph || nodes || count);
}
#endif

cudaError_t cudaThreadExchangeStreamCaptureMode (enum cudaStreamCaptureMode *mode)
{
    cudaError_t error = rt_enter ("cudaThreadExchangeStreamCaptureMode", RT_NO_STREAM);
    enum cudaStreamCaptureMode before = thread_mode;

    if (!error && (!mode || (*mode != cudaStreamCaptureModeGlobal &&
                             *mode != cudaStreamCaptureModeThreadLocal &&
                             *mode != cudaStreamCaptureModeRelaxed)))
        error = cudaErrorInvalidValue;
    if (error)
        return rt_leave (error);
    thread_mode = *mode;
    *mode = before;
    return cudaSuccess;
}
