/* SPDX-License-Identifier: BSD-3-Clause */
/* device - chooses what holds this rank's arrays. */
#include "device/device.h"

#include <dlfcn.h>
#include <stdatomic.h>

#include "base/status.h"
#include "config.h"

#ifdef HAVE_CUDA
#define DRIVER "libcuda.so.1"
static atomic_bool gpus_seen;
#endif

gs_status_t gsi_device_gpus (struct gsi_gpus *gpus)
{
#ifdef HAVE_CUDA
    gs_status_t st = gsi_device_cuda_gpus (gpus);

    if (!st)
        atomic_store (&gpus_seen, true);
    return st;
#else
    (void) gpus;
    return gsi_fail (GS_ERR_UNSUPPORTED,
                     "this gradsync was built without GPU support: configure it --with-cuda");
#endif
}

bool gsi_device_gpus_used (void)
{
#ifdef HAVE_CUDA
    void *driver = atomic_load (&gpus_seen) ? NULL : dlopen (DRIVER, RTLD_LAZY | RTLD_NOLOAD);

    if (driver)
        dlclose (driver);
    return driver || atomic_load (&gpus_seen);
#else
    return false;
#endif
}

gs_status_t gsi_device_where (const struct gsi_device *device, const void *memory,
                              enum gsi_memory *where, int *owner)
{
#ifdef HAVE_CUDA
    return gsi_device_cuda.queue->classify (device, memory, where, owner);
#else
    (void) device, (void) memory, (void) owner;
    *where = GSI_MEMORY_HOST;
    return GS_OK;
#endif
}

gs_status_t gsi_device_open (int ordinal, struct gsi_device **out)
{
    *out = NULL;
    if (ordinal == GS_DEVICE_HOST)
        return gsi_device_host.open (ordinal, out);
#ifdef HAVE_CUDA
    return gsi_device_cuda.open (ordinal, out);
#else
    return gsi_fail (GS_ERR_UNSUPPORTED,
                     "device %d was asked for, but this gradsync was built without GPU support: "
                     "configure it --with-cuda, or use GS_DEVICE_AUTO or GS_DEVICE_HOST",
                     ordinal);
#endif
}

void gsi_device_close (struct gsi_device *device)
{
    if (device)
        device->ops->close (device);
}
