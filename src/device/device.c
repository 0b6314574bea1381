/* SPDX-License-Identifier: BSD-3-Clause */
/* device - chooses what holds this rank's arrays. */
#include "device/device.h"

#include <dlfcn.h>
#include <stdatomic.h>

#include "base/log.h"
#include "base/module.h"
#include "base/status.h"

#define DRIVER "libcuda.so.1"

static _Atomic (const struct gsi_device_ops *) cuda; /* when it is loaded */
static atomic_bool gpus_seen;

static gs_status_t load_cuda (const struct gsi_device_ops **ops)
{
    const void *address;
    gs_status_t st;

    if ((*ops = atomic_load (&cuda)))
        return GS_OK;
    if ((st = gsi_module_find (GSI_MODULE_CUDA, GSI_DEVICE_CUDA_SYMBOL, &address)))
        return st;
    *ops = address;
    atomic_store (&cuda, *ops);
    return GS_OK;
}

static bool driver_is_loaded (void)
{
    void *driver = dlopen (DRIVER, RTLD_LAZY | RTLD_NOLOAD);

    if (driver)
        dlclose (driver);
    return driver;
}

gs_status_t gsi_device_gpus (struct gsi_gpus *gpus)
{
    const struct gsi_device_ops *ops;
    gs_status_t st = load_cuda (&ops);

    if (!st && !(st = ops->gpus (gpus)))
        atomic_store (&gpus_seen, true);
    return st;
}

bool gsi_device_gpus_used (void)
{
    const struct gsi_device_ops *ops;

    if (atomic_load (&gpus_seen))
        return true;
    if (!driver_is_loaded ())
        return false;
    if (!load_cuda (&ops))
        return true;
    gsi_log (GS_LOG_INFO, "device", "arrays on GPUs cannot be told from those of hosts: %s",
             gsi_last_text ());
    return false;
}

gs_status_t gsi_device_where (const struct gsi_device *device, const void *memory,
                              enum gsi_memory *where, int *owner)
{
    const struct gsi_device_ops *ops = atomic_load (&cuda);

    if (ops || (driver_is_loaded () && !load_cuda (&ops)))
        return ops->streams->classify (device, memory, where, owner);
    *where = GSI_MEMORY_HOST;
    return GS_OK;
}

gs_status_t gsi_device_open (int ordinal, int64_t patience_ns, struct gsi_device **out)
{
    const struct gsi_device_ops *ops = &gsi_device_host;
    gs_status_t st = ordinal == GS_DEVICE_HOST ? GS_OK : load_cuda (&ops);

    *out = NULL;
    if (st)
        return gsi_fail (st, "GPU %d was asked for, but %s; or use GS_DEVICE_HOST", ordinal,
                         gsi_last_text ());
    if (!(st = ops->open (ordinal, out)) && ops->streams)
        (*out)->patience_ns = patience_ns;
    return st;
}

void gsi_device_close (struct gsi_device *device)
{
    if (device)
        device->ops->close (device);
}
