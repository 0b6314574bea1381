/* SPDX-License-Identifier: BSD-3-Clause */
/* device - chooses what holds this rank's arrays. */
#include "device/device.h"

#include "base/status.h"

gs_status_t gsi_device_open (int ordinal, struct gsi_device **out)
{
    *out = NULL;
    if (ordinal >= 0)
        return gsi_fail (GS_ERR_UNSUPPORTED,
                         "device %d was asked for, but this version has no GPU support: use "
                         "GS_DEVICE_AUTO or GS_DEVICE_HOST",
                         ordinal);
    if (ordinal != GS_DEVICE_AUTO && ordinal != GS_DEVICE_HOST)
        return gsi_fail (GS_ERR_ARG,
                         "device %d is neither an ordinal nor GS_DEVICE_AUTO (%d) "
                         "nor GS_DEVICE_HOST (%d)",
                         ordinal, GS_DEVICE_AUTO, GS_DEVICE_HOST);
    return gsi_device_host.open (ordinal, out);
}

void gsi_device_close (struct gsi_device *device)
{
    if (device)
        device->ops->close (device);
}
