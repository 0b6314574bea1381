/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rt_ptsz - the forms of functions that programs call which are compiled with
 * --default-stream per-thread: their stream 0 is cudaStreamPerThread.
 */
#include "rt.h"

static cudaStream_t own (cudaStream_t stream)
{
    return stream ? stream : cudaStreamPerThread;
}

/* NAME_ptsz (PARAMETERS) calls NAME (ARGUMENTS). */
#define PTSZ(name, parameters, arguments) \
    cudaError_t name##_ptsz parameters;   \
    cudaError_t name##_ptsz parameters    \
    {                                     \
        return name arguments;            \
    }

cudaError_t cudaMemcpy_ptds (void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy_ptds (void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
    return rt_copy_in (dst, src, bytes, kind, cudaStreamPerThread);
}

cudaError_t cudaMemset_ptds (void *dst, int value, size_t bytes);
cudaError_t cudaMemset_ptds (void *dst, int value, size_t bytes)
{
    return rt_set_in (dst, value, bytes, cudaStreamPerThread);
}

PTSZ (cudaMemcpyAsync,
      (void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream),
      (dst, src, bytes, kind, own (stream)))
PTSZ (cudaMemsetAsync, (void *dst, int value, size_t bytes, cudaStream_t stream),
      (dst, value, bytes, own (stream)))
PTSZ (cudaMallocAsync, (void **address, size_t bytes, cudaStream_t stream),
      (address, bytes, own (stream)))
PTSZ (cudaFreeAsync, (void *address, cudaStream_t stream), (address, own (stream)))
PTSZ (cudaStreamSynchronize, (cudaStream_t stream), (own (stream)))
PTSZ (cudaStreamQuery, (cudaStream_t stream), (own (stream)))
PTSZ (cudaStreamGetPriority, (cudaStream_t stream, int *priority), (own (stream), priority))
PTSZ (cudaStreamGetFlags, (cudaStream_t stream, unsigned *flags), (own (stream), flags))
#if CUDART_VERSION >= 12000
PTSZ (cudaStreamGetId, (cudaStream_t stream, unsigned long long *id), (own (stream), id))
#endif
#if CUDART_VERSION >= 12080
PTSZ (cudaStreamGetDevice, (cudaStream_t stream, int *device), (own (stream), device))
#endif
PTSZ (cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
      (own (stream), event, flags))
PTSZ (cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), (event, own (stream)))
PTSZ (cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned flags),
      (event, own (stream), flags))
PTSZ (cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void *data),
      (own (stream), function, data))
PTSZ (cudaLaunchKernel,
      (const void *host, dim3 grid, dim3 block, void **arguments, size_t shared,
       cudaStream_t stream),
      (host, grid, block, arguments, shared, own (stream)))
PTSZ (cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode),
      (own (stream), mode))
PTSZ (cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph), (own (stream), graph))
PTSZ (cudaStreamIsCapturing, (cudaStream_t stream, enum cudaStreamCaptureStatus *status),
      (own (stream), status))
PTSZ (cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream), (exec, own (stream)))
PTSZ (cudaGraphUpload, (cudaGraphExec_t exec, cudaStream_t stream), (exec, own (stream)))
#if CUDART_VERSION >= 13000
PTSZ (cudaStreamGetCaptureInfo,
      (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
       cudaGraph_t *graph, const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges,
       size_t *count),
      (own (stream), status, id, graph, nodes, edges, count))
#endif
