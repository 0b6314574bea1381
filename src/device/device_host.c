/* SPDX-License-Identifier: BSD-3-Clause */
/* device_host - arrays in host memory. */
#include <stdlib.h>

#include "base/status.h"
#include "device/device.h"

#define ALIGNMENT 256 /* as on GPUs */

/* Nothing of it changes, so there is one for all: to open it cannot fail. */
static gs_status_t open_host (int ordinal, struct gsi_device **out)
{
    static struct gsi_device host = {.ops = &gsi_device_host, .ordinal = GS_DEVICE_HOST};

    (void) ordinal;
    *out = &host;
    return GS_OK;
}

static void close_host (struct gsi_device *device)
{
    (void) device;
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
