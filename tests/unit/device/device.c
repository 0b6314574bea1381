/* SPDX-License-Identifier: BSD-3-Clause */
/* device - the host's, and what is said where there is no GPU. */
#include "device/device.h"

#include <limits.h>

#include "unit/unit.h"

static struct gsi_device *device;

START_TEST (the_host)
{
    char *memory;

    unit_ok (gsi_device_open (GS_DEVICE_HOST, 0, &device));
    ck_assert_int_eq (device->ordinal, GS_DEVICE_HOST);
    ck_assert_str_eq (device->ops->name, "host");
    ck_assert_ptr_null (device->ops->streams);
    unit_ok (device->ops->alloc (device, 1000, (void **) &memory));
    ck_assert_uint_eq ((uintptr_t) memory % 256, 0);
    memset (memory, 1, 1000);
    unit_ok (device->ops->free (device, memory));
    unit_ok (device->ops->alloc (device, 0, (void **) &memory));
    unit_ok (device->ops->free (device, memory));
    unit_fails (device->ops->alloc (device, SIZE_MAX, (void **) &memory), GS_ERR_NOMEM,
                "no memory for 18446744073709551615 bytes");
    gsi_device_close (device);
    gsi_device_close (NULL);
}
END_TEST

START_TEST (gpus_that_are_not_there)
{
    static const int ordinals[] = {-3, INT_MIN, INT_MAX};

    for (int i = 0; i < 3; i++) {
        gs_status_t st = gsi_device_open (ordinals[i], 0, &device);
        ck_assert (st == GS_ERR_UNSUPPORTED || st == GS_ERR_DEVICE);
        ck_assert_ptr_nonnull (strstr (gs_last_error (), "GPU"));
        ck_assert_ptr_null (device);
    }
}
END_TEST

START_TEST (host_memory_is_host_memory)
{
    enum gsi_memory where = GSI_MEMORY_OTHER;
    int owner, x;

    unit_ok (gsi_device_open (GS_DEVICE_HOST, 0, &device));
    if (gsi_device_gpus_used ())
        unit_ok (gsi_device_where (device, &x, &where, &owner));
    else
        where = GSI_MEMORY_HOST;
    ck_assert_int_eq (where, GSI_MEMORY_HOST);
    gsi_device_close (device);
}
END_TEST

UNIT_SUITE ("device", 10, the_host, gpus_that_are_not_there, host_memory_is_host_memory)
