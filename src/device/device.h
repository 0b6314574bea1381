/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device - memory and arithmetic of what holds a rank's arrays.
 *
 * To add a device: write device_NAME.c with a const struct gsi_device_ops gsi_device_NAME,
 * declare it below, and give it a place in gsi_device_open ().
 */
#ifndef GS_DEVICE_DEVICE_H
#define GS_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/box.h"
#include "device/runs.h"
#include "gradsync.h"

#define GSI_SQUARES_PARTS 256 /* numbers that a sum of squares goes through on a GPU */

#define GSI_MAX_GPUS 16 /* of a node, that a rank can tell the others about */

struct gsi_device_ops;

struct gsi_device {
    const struct gsi_device_ops *ops;
    int ordinal; /* of the GPU, or GS_DEVICE_HOST */

    /* Threads look at these by the functions below. */
    bool stuck; /* its work does not end: what would wait for it, frees of memory, is not done */
    int64_t patience_ns; /* (GPUs) that a free waits for its work */
};

static inline bool gsi_device_is_stuck (const struct gsi_device *device)
{
    return __atomic_load_n (&device->stuck, __ATOMIC_ACQUIRE);
}

/* For good; by whoever finds out, also a transport, which has the device lent. */
static inline void gsi_device_set_stuck (const struct gsi_device *device)
{
    __atomic_store_n ((bool *) (uintptr_t) &device->stuck, true, __ATOMIC_RELEASE);
}

static inline int64_t gsi_device_patience (const struct gsi_device *device)
{
    return __atomic_load_n (&device->patience_ns, __ATOMIC_RELAXED);
}

/* The GPUs this process sees; [id] tells two GPUs of a node apart: domain, bus, device. */
struct gsi_gpus {
    int32_t count, reserved;
    uint64_t id[GSI_MAX_GPUS];
};

/* Where an array is, as seen from a device. */
enum gsi_memory {
    GSI_MEMORY_HOST = 0,   /* pageable, or pinned */
    GSI_MEMORY_DEVICE = 1, /* of this device, or managed */
    GSI_MEMORY_OTHER = 2   /* of another device */
};

/* What a device is told by from all others of its node, instances of a GPU too. */
struct gsi_device_id {
    unsigned char bytes[16];
};

/* By what a process maps memory of a GPU that another one has allocated. */
struct gsi_ipc_handle {
    unsigned char bytes[64];
};

/* A point in a stream; made by event_open. */
struct gsi_event;

/* Whether arrays of f16, bf16 and f8 are that, or sums still in fp32 on the way to it. */
enum gsi_sums {
    GSI_SUMS_NONE = 0,
    GSI_SUMS_OUT = 1, /* dst has sums */
    GSI_SUMS_IN = 2   /* the sources have */
};

/* How contributions are combined: dst[i] = round (op over r of scale_r * src_r[i] / divisor). */
struct gsi_reduction {
    gs_dtype_t dtype;
    gs_op_t op;
    double divisor;      /* 1: none; else op is GS_SUM and dtype is not an integer */
    const double *scale; /* [sources], NULL: all 1; a source with scale 0 is not read */
    enum gsi_sums sums;
    bool exact;       /* f16 and bf16 are summed in fp32, whatever GS_AVG says */
    bool own_divisor; /* that of other ranks may differ, which is found out behind the sum */
};

struct gsi_device_ops {
    const char *name;

    /* (required) Opens the device [ordinal]. */
    gs_status_t (*open) (int ordinal, struct gsi_device **out);

    /* (required) */
    void (*close) (struct gsi_device *device);

    /* (required) Memory that arrays may be in, aligned to 256 bytes. A free waits for all work of
     * a GPU, or leaves it to a thread, or to a later free or close. GS_ERR_TIMEOUT: it is kept
     * for good, for another waits so. */
    gs_status_t (*alloc) (const struct gsi_device *device, size_t bytes, void **out);
    gs_status_t (*free) (const struct gsi_device *device, void *memory);

    /*
     * (hosts) Combines [count] elements of [sources] arrays in the order given, so the same
     * inputs give the same bits. f16 and bf16 are accumulated in fp32 and rounded once; the
     * other types in themselves. dst may be one of the sources, no other overlap.
     */
    void (*reduce) (const struct gsi_reduction *how, void *dst, const void *const *src,
                    int sources, size_t count);

    /* (GPUs) Those that this process sees. */
    gs_status_t (*gpus) (struct gsi_gpus *gpus);

    /* (GPUs) The rest, NULL on hosts. */
    const struct gsi_stream_ops *streams;
};

enum gsi_work {
    GSI_WORK_CALLS = 0,  /* inside */
    GSI_WORK_QUEUES = 1, /* that are not empty */
    GSI_WORK_KINDS = 2
};

/* Who has shut a GPU, and until when. */
struct gsi_shut {
    int place;
    int64_t until_ns;
};

/*
 * What is queued on the streams of a GPU. Every function but the enters and those for any
 * thread expects the calling thread to be between an enter and leave. Those that take a stream
 * return when the work is queued.
 */
struct gsi_stream_ops {
    /*
     * Makes [device] the current one of this thread; leave goes back to [*previous]. It is closed
     * while memory of it is freed, for the driver then takes nothing else: enter waits for that
     * free until its deadline, and fails with GS_ERR_DEVICE if it goes on; streams and events
     * that are closed then are kept. Who enters to ask does not wait, and may ask whether events
     * and streams are done.
     */
    gs_status_t (*enter) (const struct gsi_device *device, int *previous);
    gs_status_t (*enter_to_ask) (const struct gsi_device *device, int *previous);
    void (*leave) (const struct gsi_device *device, int previous);

    /* (Any thread, at any time) Whether it is closed now. */
    bool (*is_closed) (const struct gsi_device *device);

    /*
     * (Any thread, at any time) Counts what [device] has under way that may wait for other ranks;
     * a call is ended by the thread that began it. What is freed meanwhile is kept, for the free
     * would wait for it: but for what a thread frees in its own call. Who counts a call and then
     * waits until the device is open is not in a free's way. N.B. Graphs that run are not known.
     */
    void (*work) (struct gsi_device *device, enum gsi_work kind, int more);

    /* (Any thread, at any time) Whether a free would be kept. */
    bool (*is_busy) (const struct gsi_device *device);

    /* (Any thread, at any time) Has a thread free what was kept, if that is possible now. */
    void (*tidy) (const struct gsi_device *device);

    /*
     * (Any thread, at any time) Closes it for a free that another library makes, until all that
     * shut it have opened it again, each for a second at most; false: devices of the GPU have
     * work, other than [own], which is of [device], a copy, or NULL.
     */
    bool (*shut) (const struct gsi_device *device, const struct gsi_device *own,
                  struct gsi_shut *shut);
    void (*reopen) (const struct gsi_device *device, const struct gsi_shut *shut);

    /* Tells the runtime that what this thread asks for disturbs no capture of another one. */
    void (*relax_capture) (void);

    /* Where [memory] is; [owner] is the device of GSI_MEMORY_OTHER. */
    gs_status_t (*classify) (const struct gsi_device *device, const void *memory,
                             enum gsi_memory *where, int *owner);

    /* Pinned host memory. */
    gs_status_t (*alloc_pinned) (size_t bytes, void **out);
    void (*free_pinned) (const struct gsi_device *device, void *memory);

    /*
     * Pins memory that is there, whole pages, and ends that, which, as a free, may be left for
     * later: then or now [done] is called with [context], by any thread; never if it is kept
     * pinned for good.
     */
    gs_status_t (*pin) (void *memory, size_t bytes);
    void (*unpin) (const struct gsi_device *device, void *memory, void (*done) (void *context),
                   void *context);

    /* A stream of its own, of the highest priority, that no other stream waits for. */
    gs_status_t (*stream_open) (gs_stream_t *out);
    void (*stream_close) (gs_stream_t stream);
    gs_status_t (*is_capturing) (gs_stream_t stream, bool *yes);
    gs_status_t (*stream_done) (gs_stream_t stream, bool *yes); /* all that is queued there */
    bool (*is_per_thread) (gs_stream_t stream);                 /* another one in each thread */

    gs_status_t (*event_open) (struct gsi_event **out);
    void (*event_close) (struct gsi_event *event);
    gs_status_t (*event_record) (struct gsi_event *event, gs_stream_t stream);
    gs_status_t (*event_done) (struct gsi_event *event, bool *yes); /* one never recorded is */
    gs_status_t (*stream_wait) (gs_stream_t stream, struct gsi_event *event);

    /* An event that knows when it was reached; and the time between two of them that are done. */
    gs_status_t (*timer_open) (struct gsi_event **out);
    gs_status_t (*elapsed) (struct gsi_event *from, struct gsi_event *to, int64_t *ns);

    /* Between any two kinds of memory; pageable memory may be waited for. */
    gs_status_t (*copy) (void *dst, const void *src, size_t bytes, gs_stream_t stream);
    gs_status_t (*zero) (void *dst, size_t bytes, gs_stream_t stream);

    /* gsi_host_convert and the reduction of [sources] contributions that lie [stride] elements
     * apart from [src] on, on the GPU; scale is NULL or in device memory, how->scale not used. */
    gs_status_t (*convert) (const struct gsi_conversion *how, const struct gsi_run *runs,
                            size_t number, gs_stream_t stream);
    gs_status_t (*reduce) (const struct gsi_reduction *how, void *dst, const void *src,
                           size_t stride, int sources, size_t count, const double *scale,
                           gs_stream_t stream);

    /* What a profiler shows as a range of this thread, with what it queues in between. */
    void (*range_begin) (const char *name);
    void (*range_end) (void);

    /* gsi_host_find_nonfinite, which adds [base]; *first, in device memory, becomes the smaller
     * of that and what was there. */
    gs_status_t (*find_nonfinite) (gs_dtype_t dtype, const struct gsi_run *runs, size_t number,
                                   uint32_t base, uint32_t *first, gs_stream_t stream);

    /* gsi_host_quantize; gsi_host_squares, added to *sum in device memory, where [parts] has
     * room for GSI_SQUARES_PARTS: in another order than on hosts, but always the same. */
    gs_status_t (*quantize) (const struct gsi_conversion *how, const struct gsi_run *run,
                             void *residual, gs_stream_t stream);
    gs_status_t (*squares) (gs_dtype_t dtype, const void *data, size_t count, double *parts,
                            double *sum, gs_stream_t stream);

    /* gsi_host_digest, added to *sum in device memory. */
    gs_status_t (*digest) (const void *data, size_t bytes, uint64_t begin, uint64_t *sum,
                           gs_stream_t stream);

    /* gsi_host_box. */
    gs_status_t (*box) (enum gsi_box_way way, gs_dtype_t dtype, const struct gsi_box *box,
                        void *array, void *packed, gs_stream_t stream);

    /* *factor = [most] / norm if the norm is larger, else 1: the square root of the sum of
     * [ranks] numbers that lie [stride] bytes apart. All are in device memory. */
    gs_status_t (*norm_factor) (const double *squares, size_t stride, int ranks, double most,
                                double *factor, gs_stream_t stream);

    /* Two processes have the same device, an instance of a GPU maybe, if this is the same. */
    gs_status_t (*identify) (const struct gsi_device *device, struct gsi_device_id *out);

    /*
     * Memory from alloc, for other processes that have the same device: the handle by which they
     * open it (CUDA IPC). Its close, as a free, may be left for later: then or now [done] is
     * called with [context], by any thread; never for what is kept for good. The memory is freed
     * by free_behind, which keeps it for later until [ready], asked by any thread, finds that all
     * have closed it.
     */
    gs_status_t (*ipc_handle) (void *memory, struct gsi_ipc_handle *out);
    gs_status_t (*ipc_open) (const struct gsi_ipc_handle *handle, void **out);
    void (*ipc_close) (const struct gsi_device *device, void *memory,
                       void (*done) (void *context), void *context);

    void (*free_behind) (const struct gsi_device *device, void *memory,
                         bool (*ready) (void *context), void (*done) (void *context),
                         void *context);

    /* Whether the GPU has memory that was pinned at the address of the host. */
    gs_status_t (*reaches) (void *memory);

    /*
     * What comes next in [stream] waits until [*flag] is 1 or more, as a signed number. All flags
     * are in pinned memory; processes may share it, and GSI_FLAG_RELEASED is such a value.
     */
    gs_status_t (*stream_wait_value) (gs_stream_t stream, const uint32_t *flag);

    /*
     * Unless [*dead] is not 0 by then: copies [bytes] of memory of the device; puts [value] into
     * [number] flags, 1024 at most, which lie [stride] words apart. A flag that is put to 0 has
     * GSI_FLAG_RELEASED in the end if that is stored there behind [*dead].
     */
    gs_status_t (*move) (void *dst, const void *src, size_t bytes, const uint32_t *dead,
                         gs_stream_t stream);
    gs_status_t (*set_flags) (uint32_t *first, size_t stride, int number, uint32_t value,
                              const uint32_t *dead, gs_stream_t stream);
};

/* Host memory, plain loops. */
extern const struct gsi_device_ops gsi_device_host;

/*
 * A GPU, by the CUDA runtime: in cuda/, and in the module gradsync-cuda.so, which is loaded when
 * GPUs are first asked for.
 */
extern const struct gsi_device_ops gsi_device_cuda;
#define GSI_DEVICE_CUDA_SYMBOL "gsi_device_cuda"

/*
 * The GPUs that this process sees, at least one: GS_ERR_DEVICE, with the reason, if there is
 * none; what gsi_module_find says if there is no module for them or no CUDA runtime.
 */
gs_status_t gsi_device_gpus (struct gsi_gpus *gpus);

/* Whether this process may have arrays on a GPU that we can tell: it was asked for GPUs, or has a
 * driver loaded. */
bool gsi_device_gpus_used (void);

/* Where [memory] is, as [device] sees it; always GSI_MEMORY_HOST without CUDA. */
gs_status_t gsi_device_where (const struct gsi_device *device, const void *memory,
                              enum gsi_memory *where, int *owner);

/* Opens the GPU [ordinal], whose frees wait for [patience_ns], or the host for GS_DEVICE_HOST. */
gs_status_t gsi_device_open (int ordinal, int64_t patience_ns, struct gsi_device **out);

/* NULL is allowed. */
void gsi_device_close (struct gsi_device *device);

/* The reduction of host memory, shared by every transport between hosts. */
void gsi_host_reduce (const struct gsi_reduction *how, void *dst, const void *const *src,
                      int sources, size_t count);

#endif /* GS_DEVICE_DEVICE_H */
