/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rt_graph - graphs that were captured, and their launches: the nodes run one after the other, in
 * the order of their capture, which is one of those that the graph allows.
 */
#include <stdlib.h>

#include "rt.h"

void rt_nodes_drop (struct rt_nodes *nodes)
{
    if (--nodes->owners)
        return;
    for (size_t i = 0; i < nodes->count; i++) {
        free (nodes->at[i]->work);
        free (nodes->at[i]->after.at);
        free (nodes->at[i]);
    }
    while (nodes->watches) {
        struct rt_watch *watch = nodes->watches;
        nodes->watches = watch->next;
        watch->gone (watch->arg);
        free (watch);
    }
    free (nodes->at);
    free (nodes);
}

/* Locks and finds a handle; the error if it is none, and then nothing is locked. */
static cudaError_t enter (const char *name, struct rt_pool *pool, const void *handle,
                          cudaStream_t faults, struct rt_graph **graph)
{
    cudaError_t error = rt_enter (name, faults);

    if (error)
        return error;
    rt_lock ();
    *graph = rt_pool_find (pool, handle, name);
    if (*graph)
        return cudaSuccess;
    rt_unlock ();
    return cudaErrorInvalidValue;
}

static cudaError_t leave (cudaError_t error)
{
    rt_unlock ();
    return rt_leave (error);
}

static cudaError_t instantiate (cudaGraphExec_t *handle, cudaGraph_t graph_handle,
                                unsigned long long flags)
{
    struct rt_graph *graph, *exec;
    cudaError_t error =
        enter ("cudaGraphInstantiate", &rt_graphs, graph_handle, RT_NO_STREAM, &graph);

    if (error)
        return rt_leave (error);
    if (!handle || flags)
        return leave (flags ? cudaErrorNotSupported : cudaErrorInvalidValue);
    exec = rt_pool_take (&rt_execs);
    if (!exec)
        return leave (cudaErrorMemoryAllocation);
    exec->nodes = graph->nodes;
    exec->nodes->owners++;
    exec->stream = NULL;
    *handle = (cudaGraphExec_t) exec;
    return leave (cudaSuccess);
}

#if CUDART_VERSION >= 12000
cudaError_t cudaGraphInstantiate (cudaGraphExec_t *exec, cudaGraph_t graph,
                                  unsigned long long flags)
{
    return instantiate (exec, graph, flags);
}
#else
cudaError_t cudaGraphInstantiate (cudaGraphExec_t *exec, cudaGraph_t graph,
                                  cudaGraphNode_t *error_node, char *text, size_t bytes)
{
    (void) error_node, (void) text, (void) bytes;
    return instantiate (exec, graph, 0);
}
#endif

cudaError_t cudaGraphInstantiateWithFlags (cudaGraphExec_t *exec, cudaGraph_t graph,
                                           unsigned long long flags)
{
    return instantiate (exec, graph, flags);
}

static void no_work (void *unused)
{
    (void) unused;
}

/* Behind its own last launch: two of the same executable graph do not run at once. */
static cudaError_t launch (struct rt_graph *exec, struct rt_stream *stream)
{
    cudaError_t error;

    if (stream->capture)
        return rt_capture_break (stream->capture, cudaErrorStreamCaptureUnsupported);
    error = rt_queue (stream, no_work, NULL, 0);
    if (!error && exec->stream)
        error = rt_queue_wait (stream, exec->stream, exec->place);
    for (size_t i = 0; !error && i < exec->nodes->count; i++) {
        const struct rt_work *work = exec->nodes->at[i]->work;
        error = rt_queue (stream, work->run, work->arg, work->bytes);
    }
    exec->stream = stream;
    exec->place = stream->queued;
    return error;
}

cudaError_t cudaGraphLaunch (cudaGraphExec_t handle, cudaStream_t stream_handle)
{
    struct rt_graph *exec;
    struct rt_stream *stream;
    cudaError_t error = enter ("cudaGraphLaunch", &rt_execs, handle, stream_handle, &exec);

    if (error)
        return rt_leave (error);
    stream = rt_stream_find (stream_handle, "cudaGraphLaunch");
    return leave (stream ? launch (exec, stream) : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaGraphUpload (cudaGraphExec_t handle, cudaStream_t stream)
{
    struct rt_graph *exec;
    cudaError_t error = enter ("cudaGraphUpload", &rt_execs, handle, stream, &exec);

    return error ? rt_leave (error) : leave (cudaSuccess);
}

static cudaError_t destroy (const char *name, struct rt_pool *pool, const void *handle)
{
    struct rt_graph *graph;
    cudaError_t error = enter (name, pool, handle, RT_NO_STREAM, &graph);

    if (error)
        return rt_leave (error);
    rt_nodes_drop (graph->nodes);
    graph->nodes = NULL;
    graph->slot.alive = false;
    return leave (cudaSuccess);
}

cudaError_t cudaGraphDestroy (cudaGraph_t handle)
{
    return destroy ("cudaGraphDestroy", &rt_graphs, handle);
}

cudaError_t cudaGraphExecDestroy (cudaGraphExec_t handle)
{
    return destroy ("cudaGraphExecDestroy", &rt_execs, handle);
}

cudaError_t cudaGraphGetNodes (cudaGraph_t handle, cudaGraphNode_t *nodes, size_t *count)
{
    struct rt_graph *graph;
    cudaError_t error = enter ("cudaGraphGetNodes", &rt_graphs, handle, RT_NO_STREAM, &graph);

    if (error)
        return rt_leave (error);
    if (!count)
        return leave (cudaErrorInvalidValue);
    for (size_t i = 0; nodes && i < *count; i++)
        nodes[i] = i < graph->nodes->count ? (cudaGraphNode_t) graph->nodes->at[i] : NULL;
    if (!nodes || *count > graph->nodes->count)
        *count = graph->nodes->count;
    return leave (cudaSuccess);
}
