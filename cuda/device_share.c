/* SPDX-License-Identifier: BSD-3-Clause */
/* device_share - the part of the device seam for several processes on one GPU. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "cuda/device_cuda.h"
#include "cuda/kernels.h"

#define AT_LEAST 0u /* CU_STREAM_WAIT_VALUE_GEQ: of the difference, as a signed number */

_Static_assert(sizeof (cudaIpcMemHandle_t) == sizeof (struct gsi_ipc_handle), "it is one");

static struct gsi_cuda_driver driver;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The runtime has loaded it by now. */
static void find_driver (void)
{
    void *library = dlopen ("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

    if (!library)
        return;
    *(void **) (&driver.get_state) = dlsym (library, "cuDevicePrimaryCtxGetState");
    *(void **) (&driver.wait_value) = dlsym (library, "cuStreamWaitValue32_v2");
    *(void **) (&driver.uuid_of) = dlsym (library, "cuDeviceGetUuid_v2");
}

const struct gsi_cuda_driver *gsi_cuda_driver (void)
{
    pthread_once (&once, find_driver);
    return &driver;
}

gs_status_t gsi_cuda_ipc_handle (void *memory, struct gsi_ipc_handle *out)
{
    cudaIpcMemHandle_t handle;
    gs_status_t st =
        gsi_cuda_check ("cudaIpcGetMemHandle", cudaIpcGetMemHandle (&handle, memory));

    if (!st)
        memcpy (out, &handle, sizeof (*out));
    return st;
}

gs_status_t gsi_cuda_ipc_open (const struct gsi_ipc_handle *in, void **out)
{
    cudaIpcMemHandle_t handle;

    memcpy (&handle, in, sizeof (handle));
    *out = NULL;
    return gsi_cuda_check ("cudaIpcOpenMemHandle",
                           cudaIpcOpenMemHandle (out, handle, cudaIpcMemLazyEnablePeerAccess));
}

/* N.B. cudaIpcCloseMemHandle may wait for the work of the GPU, as cudaFree does. */
void gsi_cuda_ipc_close (const struct gsi_device *device, void *memory,
                         void (*done) (void *context), void *context)
{
    gsi_cuda_defer_free (device, &(struct gsi_cuda_deferred){.memory = memory,
                                                             .by = cudaIpcCloseMemHandle,
                                                             .done = done,
                                                             .context = context});
}

void gsi_cuda_free_behind (const struct gsi_device *device, void *memory,
                           bool (*ready) (void *context), void (*done) (void *context),
                           void *context)
{
    gsi_cuda_defer_free (
        device,
        &(struct gsi_cuda_deferred){
            .memory = memory, .by = cudaFree, .ready = ready, .done = done, .context = context});
}

gs_status_t gsi_cuda_reaches (void *memory)
{
    void *seen = NULL;
    gs_status_t st =
        gsi_cuda_check ("cudaHostGetDevicePointer", cudaHostGetDevicePointer (&seen, memory, 0));

    if (st || seen == memory)
        return st;
    return gsi_fail (GS_ERR_UNSUPPORTED, "this GPU has another address for memory of the host");
}

/*
 * N.B. Instances of a GPU (MIG) have its place on the bus. cuDeviceGetUuid_v2, which drivers from
 * 11.4 on have, tells them apart; cudaGetDeviceProperties need not.
 */
gs_status_t gsi_cuda_identify (const struct gsi_device *device, struct gsi_device_id *out)
{
    cudaUUID_t uuid;
    gs_status_t st;

    _Static_assert(sizeof (uuid) == sizeof (*out), "it is one");
    if (!gsi_cuda_driver ()->uuid_of)
        return gsi_fail (GS_ERR_UNSUPPORTED,
                         "the driver has no cuDeviceGetUuid_v2, as those from 11.4 on do");
    st =
        gsi_cuda_check ("cuDeviceGetUuid", (cudaError_t) driver.uuid_of (&uuid, device->ordinal));
    if (!st)
        memcpy (out, &uuid, sizeof (*out));
    return st;
}

/* The numbers of the driver's errors are the runtime's. */
gs_status_t gsi_cuda_stream_wait_value (gs_stream_t stream, const uint32_t *flag)
{
    if (!gsi_cuda_driver ()->wait_value)
        return gsi_fail (GS_ERR_UNSUPPORTED,
                         "the driver has no cuStreamWaitValue32_v2, as those from 11.7 on do");
    return gsi_cuda_check (
        "cuStreamWaitValue32",
        (cudaError_t) driver.wait_value (stream, (uint64_t) (uintptr_t) flag, 1, AT_LEAST));
}

gs_status_t gsi_cuda_move (void *dst, const void *src, size_t bytes, const uint32_t *dead,
                           gs_stream_t stream)
{
    return gsi_cuda_check ("the launch of a copy",
                           gsi_cuda_move_alive (dst, src, bytes, dead, stream));
}

gs_status_t gsi_cuda_set_flags (uint32_t *first, size_t stride, int number, uint32_t value,
                                const uint32_t *dead, gs_stream_t stream)
{
    return gsi_cuda_check ("the launch of a signal",
                           gsi_cuda_set_flags_alive (first, stride, number, value, dead, stream));
}
