/* SPDX-License-Identifier: BSD-3-Clause */
/* device - which ordinals there are. */
#include "device/device.h"

#include <limits.h>

#include "unit.h"

static struct gsi_device *device;

START_TEST (the_host)
{
    static const int ordinals[] = {GS_DEVICE_AUTO, GS_DEVICE_HOST};

    for (int i = 0; i < 2; i++) {
        unit_ok (gsi_device_open (ordinals[i], &device));
        ck_assert_int_eq (device->ordinal, GS_DEVICE_HOST);
        ck_assert_str_eq (device->ops->name, "host");
        ck_assert_str_eq (device->id, "");
        gsi_device_close (device);
    }
}
END_TEST

START_TEST (what_is_not_there)
{
    static const int absurd[] = {-3, INT_MIN};
    static const int gpus[] = {0, 1, INT_MAX};

    for (int i = 0; i < 2; i++) {
        unit_fails (gsi_device_open (absurd[i], &device), GS_ERR_ARG, "GS_DEVICE_AUTO",
                    "GS_DEVICE_HOST");
        ck_assert_ptr_null (device);
    }
    for (int i = 0; i < 3; i++) {
        unit_fails (gsi_device_open (gpus[i], &device), GS_ERR_UNSUPPORTED, "GPU",
                    "GS_DEVICE_AUTO");
        ck_assert_ptr_null (device);
    }
}
END_TEST

UNIT_MAIN ("device", 10, the_host, what_is_not_there)
