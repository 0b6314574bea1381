/* SPDX-License-Identifier: BSD-3-Clause */
/* device_host - arrays in host memory. */
#include <stdlib.h>

#include "base/status.h"
#include "device/device.h"

#define ALIGNMENT 256 /* as on GPUs */

static gs_status_t open_host (int ordinal, struct gsi_device **out)
{
    struct gsi_device *device = calloc (1, sizeof (*device));

    (void) ordinal;
    if (!device)
        return gsi_fail (GS_ERR_NOMEM, "device host: out of memory");
    device->ops = &gsi_device_host;
    device->ordinal = GS_DEVICE_HOST;
    *out = device;
    return GS_OK;
}

static void close_host (struct gsi_device *device)
{
    free (device);
}

static gs_status_t alloc_host (const struct gsi_device *device, size_t bytes, void **out)
{
    (void) device;
    *out = bytes > SIZE_MAX - ALIGNMENT
               ? NULL
               : aligned_alloc (ALIGNMENT, (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT);
    return *out ? GS_OK : gsi_fail (GS_ERR_NOMEM, "device host: no memory for %zu bytes", bytes);
}

static gs_status_t free_host (const struct gsi_device *device, void *memory)
{
    (void) device;
    free (memory);
    return GS_OK;
}

const struct gsi_device_ops gsi_device_host = {
    .name = "host",
    .open = open_host,
    .close = close_host,
    .alloc = alloc_host,
    .free = free_host,
    .reduce = gsi_host_reduce,
};
