/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_self - the transport of one rank: nothing changes but what a scale or divisor asks for. */
#include "transport/coll.h"

#include "unit/unit.h"

static struct gsi_coll *coll;
static struct gsi_device *device;
static const struct gsi_call call = {.seq = 1};

static void open_self (void)
{
    struct gsi_coll_setup setup = {0};
    const struct gsi_coll_ops *ops;

    unit_ok (gsi_device_open (GS_DEVICE_HOST, 0, &device));
    unit_ok (gsi_coll_find (GS_TRANSPORT_SELF, 1, &ops));
    ck_assert_ptr_eq (ops, &gsi_coll_self);
    setup.device = device;
    unit_ok (ops->open (&setup, &coll));
    ck_assert_ptr_eq (coll->ops, ops);
}

static void close_self (void)
{
    unit_ok (coll->ops->close (coll, &call));
    gsi_device_close (device);
}

START_TEST (sums_stay)
{
    float x[3] = {1, -2, 3};
    struct gsi_reduction how = {.dtype = GS_F32, .op = GS_PROD, .divisor = 1};

    open_self ();
    unit_ok (coll->ops->allreduce (coll, x, 3, &how, &call));
    ck_assert (x[0] == 1 && x[1] == -2 && x[2] == 3);
    close_self ();
}
END_TEST

START_TEST (scale_and_divisor_are_applied)
{
    double x[2] = {1, -6}, scale = 0.5;
    struct gsi_reduction how = {.dtype = GS_F64, .op = GS_SUM, .divisor = 2};

    open_self ();
    unit_ok (coll->ops->allreduce (coll, x, 2, &how, &call));
    ck_assert (x[0] == 0.5 && x[1] == -3);
    how.scale = &scale;
    how.divisor = 1;
    unit_ok (coll->ops->allreduce (coll, x, 2, &how, &call));
    ck_assert (x[0] == 0.25 && x[1] == -1.5);
    scale = 0;
    unit_ok (coll->ops->allreduce (coll, x, 2, &how, &call));
    ck_assert (x[0] == 0 && x[1] == 0);
    close_self ();
}
END_TEST

START_TEST (data_is_copied_or_stays)
{
    int32_t x[2] = {7, 8}, y[2] = {0, 0};

    open_self ();
    unit_ok (coll->ops->broadcast (coll, x, sizeof (x), 0, &call));
    unit_ok (coll->ops->allgather (coll, x, y, sizeof (x), &call));
    ck_assert (y[0] == 7 && y[1] == 8);
    unit_ok (coll->ops->allgather (coll, x, x, sizeof (x), &call));
    unit_ok (coll->ops->barrier (coll, &call));
    ck_assert (x[0] == 7 && x[1] == 8);
    close_self ();
}
END_TEST

START_TEST (discarding)
{
    open_self ();
    coll->ops->discard (coll);
    gsi_device_close (device);
    gsi_device_close (NULL);
}
END_TEST

UNIT_SUITE ("coll_self", 10, sums_stay, scale_and_divisor_are_applied, data_is_copied_or_stays,
            discarding)
