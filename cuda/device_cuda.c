/* SPDX-License-Identifier: BSD-3-Clause */
/* device_cuda - the device seam on the CUDA runtime. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "cuda/device_cuda.h"
#include "cuda/kernels.h"
#include "device/device.h"

#define PATIENCE_NS GSI_NS_PER_S /* with an allocation, for memory that comes */
#define EXCLUSIVE                                                                 \
    ". In compute mode EXCLUSIVE_PROCESS ranks share a GPU by CUDA's MPS alone: " \
    "start it, or have all use hosts by GS_GPU_SHARING=never"

/* Headers alone, which find a profiler when there is one. */
#if defined(__has_include)
#if __has_include(<nvtx3/nvToolsExt.h>)
#define HAVE_NVTX 1
#include <nvtx3/nvToolsExt.h>
#endif
#endif

/* A stream or event that is none is the caller's; so is a capture that is disturbed. */
static gs_status_t status_of (cudaError_t error)
{
    if (error == cudaErrorMemoryAllocation)
        return GS_ERR_NOMEM;
    if (error == cudaErrorInvalidResourceHandle)
        return GS_ERR_ARG;
    if (error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorStreamCaptureWrongThread)
        return GS_ERR_STATE;
    return GS_ERR_DEVICE;
}

/* What the runtime says of [call], as a status; the application's own last error is not ours. */
static gs_status_t fail (const char *call, cudaError_t error)
{
    const char *cure = error == cudaErrorDevicesUnavailable ? EXCLUSIVE : "";

    cudaGetLastError ();
    return gsi_fail (status_of (error), "%s: %s (%s)%s", call, cudaGetErrorString (error),
                     cudaGetErrorName (error), cure);
}

static gs_status_t check (const char *call, cudaError_t error)
{
    return error ? fail (call, error) : GS_OK;
}

gs_status_t gsi_cuda_check (const char *call, cudaError_t error)
{
    return check (call, error);
}

/* Turns "0000:3b:00.0" into a number; 0 if it is written otherwise. */
static uint64_t id_of (const char *text)
{
    unsigned domain, bus, device;

    if (sscanf (text, "%x:%x:%x", &domain, &bus, &device) != 3)
        return 0;
    return (uint64_t) domain << 16 | (uint64_t) bus << 8 | device;
}

static gs_status_t no_gpu (cudaError_t error)
{
    int version = 0;

    cudaGetLastError ();
    cudaDriverGetVersion (&version);
    if (!version)
        return gsi_fail (GS_ERR_DEVICE, "no GPU: no NVIDIA driver on this host");
    if (error == cudaErrorInsufficientDriver)
        return gsi_fail (GS_ERR_DEVICE,
                         "no GPU: the driver is of CUDA %d.%d, too old for this libcudart",
                         version / 1000, version % 1000 / 10);
    if (!error || error == cudaErrorNoDevice)
        return gsi_fail (GS_ERR_DEVICE, "no GPU: the driver shows none to this process; look at "
                                        "CUDA_VISIBLE_DEVICES and at srun's --gpus options");
    return fail ("no GPU: cudaGetDeviceCount", error);
}

static gs_status_t gpus_of_process (struct gsi_gpus *gpus)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount (&count);

    if (error || count < 1)
        return no_gpu (error);
    gpus->count = count;
    for (int i = 0; i < count && i < GSI_MAX_GPUS; i++) {
        char text[32];
        if ((error = cudaDeviceGetPCIBusId (text, sizeof (text), i)))
            return fail ("cudaDeviceGetPCIBusId", error);
        gpus->id[i] = id_of (text);
    }
    return GS_OK;
}

/* ---- Contexts: this process has one on the GPU of its rank, and makes none elsewhere ---- */

/*
 * N.B. Since CUDA 12 cudaSetDevice makes the context of its device, some 500 MiB of it, and fails
 * where another process has that GPU to itself; most other calls make that of the current device.
 */
static bool has_context (int device)
{
    const struct gsi_cuda_driver *driver = gsi_cuda_driver ();
    unsigned flags;
    int active;

    return !driver->get_state || driver->get_state (device, &flags, &active) || active;
}

/* A thread whose device has no context yet stays on the rank's. */
cudaError_t gsi_cuda_set_device (int ordinal, int *previous)
{
    cudaError_t error = cudaGetDevice (previous);

    if (error || *previous == ordinal)
        return error;
    if (!has_context (*previous))
        *previous = ordinal;
    return cudaSetDevice (ordinal);
}

/* ---- A free that waits keeps out who calls CUDA: nobody enters then ---- */

/* What this thread has entered last. */
static _Thread_local struct {
    int ordinal;
    int64_t patience_ns;
} entered;

static gs_status_t refuse (int ordinal)
{
    return gsi_fail (GS_ERR_DEVICE,
                     "GPU %d is still busy, and a free waits for it: CUDA takes no "
                     "other call until then",
                     ordinal);
}

static bool is_open (void)
{
    return gsi_cuda_await_open (entered.ordinal, entered.patience_ns);
}

static void set_entered (const struct gsi_device *device)
{
    entered.ordinal = device->ordinal;
    entered.patience_ns = gsi_device_patience (device);
}

static gs_status_t enter_to_ask (const struct gsi_device *device, int *previous)
{
    set_entered (device);
    return check ("cudaSetDevice", gsi_cuda_set_device (device->ordinal, previous));
}

static gs_status_t enter (const struct gsi_device *device, int *previous)
{
    set_entered (device); /* also for who closes events though this fails */
    return is_open () ? enter_to_ask (device, previous) : refuse (device->ordinal);
}

static bool is_closed (const struct gsi_device *device)
{
    return gsi_cuda_is_closed (device->ordinal);
}

static void leave (const struct gsi_device *device, int previous)
{
    entered.ordinal = previous;
    if (previous != device->ordinal)
        gsi_cuda_forget (cudaSetDevice (previous));
}

/*
 * N.B. The code of a kernel is loaded at its first launch else, which waits for what runs on the
 * GPU: for a collective, say, that waits for a rank which waits for this one.
 */
static gs_status_t load_kernels (int ordinal)
{
    int major = 0, minor = 0;
    cudaError_t error = gsi_cuda_load_kernels ();

    if (error != cudaErrorNoKernelImageForDevice && error != cudaErrorInvalidDeviceFunction)
        return check ("cudaFuncGetAttributes", error);
    cudaDeviceGetAttribute (&major, cudaDevAttrComputeCapabilityMajor, ordinal);
    cudaDeviceGetAttribute (&minor, cudaDevAttrComputeCapabilityMinor, ordinal);
    fail ("cudaFuncGetAttributes", error);
    return gsi_fail (GS_ERR_DEVICE,
                     "this gradsync has no code for GPU %d, of compute capability %d.%d: build "
                     "it with GS_CUDA_ARCH=%d%d (%s)",
                     ordinal, major, minor, major, minor, gsi_last_text ());
}

static gs_status_t open_cuda (int ordinal, struct gsi_device **out)
{
    struct gsi_cuda_device *one = calloc (1, sizeof (*one));
    struct gsi_device *device = &one->base;
    cudaError_t error;
    int previous, count = 0;
    gs_status_t st;

    if (!one)
        return gsi_fail (GS_ERR_NOMEM, "device %d: out of memory", ordinal);
    device->ops = &gsi_device_cuda;
    device->ordinal = ordinal;
    if ((error = cudaGetDeviceCount (&count)) || ordinal < 0 || ordinal >= count) {
        free (one);
        return error ? no_gpu (error)
                     : gsi_fail (GS_ERR_DEVICE,
                                 "device %d was asked for, but this process sees GPUs 0 to %d",
                                 ordinal, count - 1);
    }
    device->patience_ns =
        INT64_MAX / 4; /* until a free's own deadline; the caller sets it then */
    if ((st = enter (device, &previous))) {
        free (one);
        return st;
    }
    st = check ("cudaFree", cudaFree (NULL)); /* makes the context: a GPU that is ill says so */
    if (!st)
        st = load_kernels (ordinal);
    leave (device, previous);
    if (st) {
        free (one);
        return st;
    }
    gsi_cuda_join (one);
    *out = device;
    return GS_OK;
}

static void close_cuda (struct gsi_device *device)
{
    struct gsi_cuda_device *one = (struct gsi_cuda_device *) device;

    gsi_cuda_part (one);
    gsi_cuda_free_kept (device, false);
    free (one);
}

/* Where there is none left it waits for what is freed or kept, but not long. */
static cudaError_t alloc_patiently (const struct gsi_device *device, size_t bytes, void **out)
{
    int64_t begin_ns = gsi_now_ns (), until_ns = begin_ns + PATIENCE_NS;
    bool last = false;
    cudaError_t error;

    while ((error = cudaMalloc (out, bytes)) == cudaErrorMemoryAllocation && !last &&
           gsi_now_ns () < until_ns) {
        last = !gsi_cuda_keeps_any (device->ordinal);
        if (last && !is_closed (device))
            break;
        gsi_cuda_forget (error);
        if (!last)
            gsi_cuda_free_kept (device, true);
        if (!gsi_cuda_await_open (device->ordinal, until_ns - gsi_now_ns ()))
            break; /* it would wait behind that free */
        if (!last)
            gsi_pause (gsi_now_ns () - begin_ns, GSI_SPIN_NS);
    }
    return error;
}

static gs_status_t alloc_cuda (const struct gsi_device *device, size_t bytes, void **out)
{
    gs_status_t st;
    int previous;

    *out = NULL;
    if ((st = enter (device, &previous)))
        return st;
    st = check ("cudaMalloc", alloc_patiently (device, bytes, out));
    leave (device, previous);
    return st;
}

static gs_status_t free_cuda (const struct gsi_device *device, void *memory)
{
    cudaError_t error = cudaSuccess;

    if (memory && !gsi_cuda_free (device, memory, cudaFree, &error))
        return gsi_fail (GS_ERR_TIMEOUT,
                         "memory of GPU %d is kept: it would be freed behind work that does "
                         "not end",
                         device->ordinal);
    return check ("cudaFree", error);
}

/*
 * Brings this thread to a device with a context, that of [device] first, if there is one:
 * cudaPointerGetAttributes would make one else. False: there is no memory of GPUs either.
 */
static bool stand_on_context (const struct gsi_device *device)
{
    static _Thread_local int good = -1; /* a device that has one */
    int current = -1, count = 0, next = device->ordinal;

    gsi_cuda_forget (cudaGetDevice (&current));
    if (current < 0) /* there is none: it was hidden from this process, or is no more */
        return next >= 0;
    if (current == good)
        return true;
    if (!has_context (current)) {
        if (next < 0 && !cudaGetDeviceCount (&count))
            for (next = 0; next < count && !has_context (next); next++)
                ;
        if (next >= count && device->ordinal < 0)
            return false;
        if (cudaSetDevice (next))
            return true; /* the next call says why */
        current = next;
    }
    good = current;
    return true;
}

static gs_status_t classify (const struct gsi_device *device, const void *memory,
                             enum gsi_memory *where, int *owner)
{
    struct cudaPointerAttributes a;
    cudaError_t error;

    *where = GSI_MEMORY_HOST;
    if (!stand_on_context (device))
        return GS_OK;
    error = cudaPointerGetAttributes (&a, memory);
    if (error)
        return fail ("cudaPointerGetAttributes", error);
    *owner = a.device;
    if (a.type == cudaMemoryTypeManaged)
        *where = GSI_MEMORY_DEVICE;
    else if (a.type == cudaMemoryTypeDevice)
        *where = a.device == device->ordinal ? GSI_MEMORY_DEVICE : GSI_MEMORY_OTHER;
    else
        *where = GSI_MEMORY_HOST;
    return GS_OK;
}

static gs_status_t alloc_pinned (size_t bytes, void **out)
{
    *out = NULL;
    return check ("cudaHostAlloc", cudaHostAlloc (out, bytes, cudaHostAllocPortable));
}

static void free_pinned (const struct gsi_device *device, void *memory)
{
    cudaError_t error;

    if (memory && gsi_cuda_free (device, memory, cudaFreeHost, &error))
        gsi_cuda_forget (error);
}

static gs_status_t stream_open (gs_stream_t *out)
{
    int least, greatest;
    cudaError_t error = cudaDeviceGetStreamPriorityRange (&least, &greatest);

    *out = NULL;
    if (!error)
        error = cudaStreamCreateWithPriority (out, cudaStreamNonBlocking, greatest);
    return check ("cudaStreamCreateWithPriority", error);
}

static void stream_close (gs_stream_t stream)
{
    if (stream && is_open ()) /* else it is kept, as memory is */
        gsi_cuda_forget (cudaStreamDestroy (stream));
}

static gs_status_t is_capturing (gs_stream_t stream, bool *yes)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaError_t error = cudaStreamIsCapturing (stream, &status);

    *yes = status == cudaStreamCaptureStatusActive;
    return check ("cudaStreamIsCapturing", error);
}

static bool is_per_thread (gs_stream_t stream)
{
    return stream == cudaStreamPerThread;
}

static gs_status_t create_event (unsigned flags, struct gsi_event **out)
{
    cudaEvent_t event = NULL;
    cudaError_t error = cudaEventCreateWithFlags (&event, flags);

    *out = (struct gsi_event *) event;
    return check ("cudaEventCreate", error);
}

static gs_status_t event_open (struct gsi_event **out)
{
    return create_event (cudaEventDisableTiming, out);
}

static gs_status_t timer_open (struct gsi_event **out)
{
    return create_event (cudaEventDefault, out);
}

static gs_status_t elapsed (struct gsi_event *from, struct gsi_event *to, int64_t *ns)
{
    float ms = 0;
    cudaError_t error = cudaEventElapsedTime (&ms, (cudaEvent_t) from, (cudaEvent_t) to);

    *ns = (int64_t) ((double) ms * 1e6);
    return check ("cudaEventElapsedTime", error);
}

static void event_close (struct gsi_event *event)
{
    if (event && is_open ())
        gsi_cuda_forget (cudaEventDestroy ((cudaEvent_t) event));
}

static gs_status_t event_record (struct gsi_event *event, gs_stream_t stream)
{
    return check ("cudaEventRecord", cudaEventRecord ((cudaEvent_t) event, stream));
}

static gs_status_t is_done (const char *name, cudaError_t error, bool *yes)
{
    *yes = error != cudaErrorNotReady;
    if (!*yes)
        cudaGetLastError ();
    return *yes ? check (name, error) : GS_OK;
}

static gs_status_t event_done (struct gsi_event *event, bool *yes)
{
    return is_done ("cudaEventQuery", cudaEventQuery ((cudaEvent_t) event), yes);
}

static gs_status_t stream_done (gs_stream_t stream, bool *yes)
{
    return is_done ("cudaStreamQuery", cudaStreamQuery (stream), yes);
}

static gs_status_t stream_wait (gs_stream_t stream, struct gsi_event *event)
{
    return check ("cudaStreamWaitEvent", cudaStreamWaitEvent (stream, (cudaEvent_t) event, 0));
}

static gs_status_t copy (void *dst, const void *src, size_t bytes, gs_stream_t stream)
{
    return check ("cudaMemcpyAsync",
                  cudaMemcpyAsync (dst, src, bytes, cudaMemcpyDefault, stream));
}

static gs_status_t zero (void *dst, size_t bytes, gs_stream_t stream)
{
    return check ("cudaMemsetAsync", cudaMemsetAsync (dst, 0, bytes, stream));
}

static gs_status_t convert (const struct gsi_conversion *how, const struct gsi_run *runs,
                            size_t number, gs_stream_t stream)
{
    return check ("the launch of a conversion", gsi_cuda_convert (how, runs, number, stream));
}

static gs_status_t reduce (const struct gsi_reduction *how, void *dst, const void *src,
                           size_t stride, int sources, size_t count, const double *scale,
                           gs_stream_t stream)
{
    return check ("the launch of a reduction",
                  gsi_cuda_reduce (how, dst, src, stride, sources, count, scale, stream));
}

static void range_begin (const char *name)
{
#ifdef HAVE_NVTX
    nvtxRangePushA (name);
#else
    (void) name;
#endif
}

static void range_end (void)
{
#ifdef HAVE_NVTX
    nvtxRangePop ();
#endif
}

static gs_status_t find_nonfinite (gs_dtype_t dtype, const struct gsi_run *runs, size_t number,
                                   uint32_t base, uint32_t *first, gs_stream_t stream)
{
    return check ("the launch of a search",
                  gsi_cuda_find_nonfinite (dtype, runs, number, base, first, stream));
}

static gs_status_t quantize (const struct gsi_conversion *how, const struct gsi_run *run,
                             void *residual, gs_stream_t stream)
{
    return check ("the launch of a rounding", gsi_cuda_quantize (how, run, residual, stream));
}

static gs_status_t squares (gs_dtype_t dtype, const void *data, size_t count, double *parts,
                            double *sum, gs_stream_t stream)
{
    return check ("the launch of a sum of squares",
                  gsi_cuda_squares (dtype, data, count, parts, sum, stream));
}

static gs_status_t digest (const void *data, size_t bytes, uint64_t begin, uint64_t *sum,
                           gs_stream_t stream)
{
    return check ("the launch of a digest", gsi_cuda_digest (data, bytes, begin, sum, stream));
}

static gs_status_t box (enum gsi_box_way way, gs_dtype_t dtype, const struct gsi_box *part,
                        void *array, void *packed, gs_stream_t stream)
{
    return check ("the launch of a move of ghosts",
                  gsi_cuda_box (way, dtype, part, array, packed, stream));
}

static gs_status_t norm_factor (const double *sums, size_t stride, int ranks, double most,
                                double *factor, gs_stream_t stream)
{
    return check ("the launch of a norm",
                  gsi_cuda_norm_factor (sums, stride, ranks, most, factor, stream));
}

static const struct gsi_stream_ops streams = {
    .enter = enter,
    .enter_to_ask = enter_to_ask,
    .leave = leave,
    .is_closed = is_closed,
    .work = gsi_cuda_work,
    .is_busy = gsi_cuda_is_busy,
    .tidy = gsi_cuda_tidy,
    .shut = gsi_cuda_shut,
    .reopen = gsi_cuda_reopen,
    .relax_capture = gsi_cuda_relax_capture,
    .classify = classify,
    .alloc_pinned = alloc_pinned,
    .free_pinned = free_pinned,
    .pin = gsi_cuda_pin,
    .unpin = gsi_cuda_unpin,
    .stream_open = stream_open,
    .stream_close = stream_close,
    .is_capturing = is_capturing,
    .is_per_thread = is_per_thread,
    .stream_done = stream_done,
    .event_open = event_open,
    .event_close = event_close,
    .event_record = event_record,
    .event_done = event_done,
    .timer_open = timer_open,
    .elapsed = elapsed,
    .stream_wait = stream_wait,
    .copy = copy,
    .zero = zero,
    .convert = convert,
    .reduce = reduce,
    .range_begin = range_begin,
    .range_end = range_end,
    .find_nonfinite = find_nonfinite,
    .quantize = quantize,
    .squares = squares,
    .digest = digest,
    .box = box,
    .norm_factor = norm_factor,
    .identify = gsi_cuda_identify,
    .ipc_handle = gsi_cuda_ipc_handle,
    .ipc_open = gsi_cuda_ipc_open,
    .ipc_close = gsi_cuda_ipc_close,
    .free_behind = gsi_cuda_free_behind,
    .reaches = gsi_cuda_reaches,
    .stream_wait_value = gsi_cuda_stream_wait_value,
    .move = gsi_cuda_move,
    .set_flags = gsi_cuda_set_flags,
};

const struct gsi_device_ops gsi_device_cuda = {
    .name = "cuda",
    .open = open_cuda,
    .close = close_cuda,
    .alloc = alloc_cuda,
    .free = free_cuda,
    .gpus = gpus_of_process,
    .streams = &streams,
};
