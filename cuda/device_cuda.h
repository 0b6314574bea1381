/* SPDX-License-Identifier: BSD-3-Clause */
/* device_cuda - what the files of the device seam on the CUDA runtime share. */
#ifndef GS_CUDA_DEVICE_CUDA_H
#define GS_CUDA_DEVICE_CUDA_H

#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "device/device.h"

/* The device of a communicator. */
struct gsi_cuda_device {
    struct gsi_device base; /* first: what it is outside */
    atomic_int work[GSI_WORK_KINDS];
    const struct gsi_cuda_device *outer; /* whose call this one's is in */
    struct gsi_cuda_device *next;
};

/* A thread whose device has no context yet stays on the rank's. */
cudaError_t gsi_cuda_set_device (int ordinal, int *previous);

/* This thread's calls disturb no capture of others. */
void gsi_cuda_relax_capture (void);

/* For calls that only give something back: their failure must not be taken for one that follows.
 */
void gsi_cuda_forget (cudaError_t error);

/* What the runtime says of [call], as a status. */
gs_status_t gsi_cuda_check (const char *call, cudaError_t error);

/* device_pin.c: gsi_stream_ops.pin and .unpin. */
gs_status_t gsi_cuda_pin (void *memory, size_t bytes);
void gsi_cuda_unpin (const struct gsi_device *device, void *memory, void (*done) (void *context),
                     void *context);

/* Functions of the driver, for what the runtime has none for; each NULL if it is not there. Types
 * of the driver's header are integers here. */
struct gsi_cuda_driver {
    int (*get_state) (int device, unsigned *flags, int *active);
    int (*wait_value) (gs_stream_t stream, uint64_t address, uint32_t value, unsigned flags);
    int (*uuid_of) (cudaUUID_t *uuid, int device);
};
const struct gsi_cuda_driver *gsi_cuda_driver (void);

/* device_share.c: gsi_stream_ops.identify to .set_flags. */
gs_status_t gsi_cuda_identify (const struct gsi_device *device, struct gsi_device_id *out);
gs_status_t gsi_cuda_ipc_handle (void *memory, struct gsi_ipc_handle *out);
gs_status_t gsi_cuda_ipc_open (const struct gsi_ipc_handle *handle, void **out);
void gsi_cuda_ipc_close (const struct gsi_device *device, void *memory,
                         void (*done) (void *context), void *context);
void gsi_cuda_free_behind (const struct gsi_device *device, void *memory,
                           bool (*ready) (void *context), void (*done) (void *context),
                           void *context);
gs_status_t gsi_cuda_reaches (void *memory);
gs_status_t gsi_cuda_stream_wait_value (gs_stream_t stream, const uint32_t *flag);
gs_status_t gsi_cuda_move (void *dst, const void *src, size_t bytes, const uint32_t *dead,
                           gs_stream_t stream);
gs_status_t gsi_cuda_set_flags (uint32_t *first, size_t stride, int number, uint32_t value,
                                const uint32_t *dead, gs_stream_t stream);

/* gsi_stream_ops.work and .is_busy. */
void gsi_cuda_work (struct gsi_device *device, enum gsi_work kind, int more);
bool gsi_cuda_is_busy (const struct gsi_device *device);

/* A device is known to the others of its GPU from when it joins them until it parts. */
void gsi_cuda_join (struct gsi_cuda_device *device);
void gsi_cuda_part (struct gsi_cuda_device *device);

/*
 * Frees [memory] [by] cudaFree or cudaFreeHost, which waits for what is queued on all streams of
 * the GPU, also those of the program that nothing of ours knows: so a thread calls it, to which
 * it is left, with a warning, if it does not end in time. While the GPU has work of
 * gsi_stream_ops.work the memory is kept for later: a collective that waits for a rank which
 * frees, too, would never end. False: it is kept for good, for the free would wait for work that
 * does not end, as the one before does.
 */
bool gsi_cuda_free (const struct gsi_device *device, void *memory,
                    cudaError_t (*by) (void *memory), cudaError_t *error);

/*
 * The same of what somebody is told of, by any thread, once it is freed; [ready], which any
 * thread asks, keeps it for later if it says no. What is kept for good, as where CUDA fails,
 * nobody is told of.
 */
struct gsi_cuda_deferred {
    void *memory;
    cudaError_t (*by) (void *memory);
    bool (*ready) (void *context); /* or NULL */
    void (*done) (void *context);
    void *context;
};
void gsi_cuda_defer_free (const struct gsi_device *device,
                          const struct gsi_cuda_deferred *deferred);

/*
 * Frees what was kept for later, if there is any and no work is under way now: within the
 * device's patience, or else [at_once], which leaves it to a thread.
 */
bool gsi_cuda_free_kept (const struct gsi_device *device, bool at_once);
bool gsi_cuda_keeps_any (int ordinal);

/* gsi_stream_ops.tidy. */
void gsi_cuda_tidy (const struct gsi_device *device);

/*
 * Whether a free is under way, or the GPU is shut. While a free waits it has a lock of the
 * context: launches, records, copies, allocations of other threads wait behind it, questions do
 * not (seen on an H100, driver 580).
 */
bool gsi_cuda_is_closed (int ordinal);

/*
 * Waits for it until its deadline, and for [patience_ns] at most; false: a free goes on, so that
 * nothing may be called.
 */
bool gsi_cuda_await_open (int ordinal, int64_t patience_ns);

/* gsi_stream_ops.shut and .reopen. */
bool gsi_cuda_shut (const struct gsi_device *device, const struct gsi_device *own,
                    struct gsi_shut *shut);
void gsi_cuda_reopen (const struct gsi_device *device, const struct gsi_shut *shut);

#endif /* GS_CUDA_DEVICE_CUDA_H */
