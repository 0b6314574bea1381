/* SPDX-License-Identifier: BSD-3-Clause */
/* query - what a communicator of one rank says it is, and what NULL and stale handles get. */
#include <limits.h>

#include "base/process.h"
#include "unit/alone.h"

START_TEST (one_rank)
{
    gs_comm_t *comm = alone_create ();
    char host[GSI_HOST_BYTES];

    gsi_process_host (host, sizeof (host));
    ck_assert_int_eq (gs_comm_rank (comm), 0);
    ck_assert_int_eq (gs_comm_size (comm), 1);
    ck_assert_int_eq (gs_comm_local_rank (comm), 0);
    ck_assert_int_eq (gs_comm_local_size (comm), 1);
    ck_assert_int_eq (gs_comm_node (comm), 0);
    ck_assert_int_eq (gs_comm_nodes (comm), 1);
    ck_assert_int_eq (gs_comm_device (comm), GS_DEVICE_HOST);
    ck_assert_str_eq (gs_comm_transport (comm), "self");
    ck_assert_str_eq (gs_comm_name (comm), "world");
    ck_assert_str_eq (gs_comm_host_of (comm, 0), host);
    unit_ok (gs_comm_destroy (comm));
}
END_TEST

START_TEST (hosts_out_of_range)
{
    static const int ranks[] = {-1, 1, INT_MAX, INT_MIN};
    gs_comm_t *comm = alone_create ();

    for (int i = 0; i < 4; i++) {
        ck_assert_ptr_null (gs_comm_host_of (comm, ranks[i]));
        ck_assert_ptr_nonnull (strstr (gs_last_error (), "gs_comm_host_of: rank"));
        ck_assert_ptr_nonnull (strstr (gs_last_error (), "0 to 0"));
    }
    unit_ok (gs_comm_destroy (comm));
}
END_TEST

/* The numbers and strings of a handle that is no communicator, and the text that says so. */
static void check_no_comm (const gs_comm_t *comm, const char *part)
{
    static const struct {
        int (*get) (const gs_comm_t *comm);
        const char *name;
    } numbers[] = {{gs_comm_rank, "gs_comm_rank"},
                   {gs_comm_size, "gs_comm_size"},
                   {gs_comm_local_rank, "gs_comm_local_rank"},
                   {gs_comm_local_size, "gs_comm_local_size"},
                   {gs_comm_node, "gs_comm_node"},
                   {gs_comm_nodes, "gs_comm_nodes"},
                   {gs_comm_device, "gs_comm_device"}};
    gs_comm_times_t times = {.size = sizeof (times)};

    for (size_t i = 0; i < sizeof (numbers) / sizeof (numbers[0]); i++) {
        ck_assert_int_eq (numbers[i].get (comm), -1);
        ck_assert_ptr_eq (strstr (gs_last_error (), numbers[i].name), gs_last_error ());
        ck_assert_ptr_nonnull (strstr (gs_last_error (), part));
    }
    ck_assert_ptr_null (gs_comm_transport (comm));
    ck_assert_ptr_nonnull (strstr (gs_last_error (), "gs_comm_transport"));
    ck_assert_ptr_null (gs_comm_host_of (comm, 0));
    ck_assert_ptr_nonnull (strstr (gs_last_error (), "gs_comm_host_of"));
    ck_assert_ptr_null (gs_comm_name (comm));
    ck_assert_ptr_nonnull (strstr (gs_last_error (), "gs_comm_name"));
    ck_assert_int_ne (gs_comm_get_times (comm, &times), GS_OK);
    ck_assert_ptr_nonnull (strstr (gs_last_error (), "gs_comm_get_times"));
}

START_TEST (no_communicator)
{
    check_no_comm (NULL, "comm is NULL");
    check_no_comm (alone_stale (), "destroyed");
}
END_TEST

START_TEST (phases_are_timed)
{
    gs_comm_t *comm = alone_create ();
    gs_comm_times_t times = {.size = sizeof (times), .open_us = -1};

    unit_ok (gs_comm_get_times (comm, &times));
    ck_assert_uint_eq (times.size, sizeof (times));
    ck_assert (times.open_us >= 0 && times.exchange_us >= 0 && times.transport_us > 0);
    ck_assert (times.open_us < 60e6 && times.exchange_us < 60e6 && times.transport_us < 60e6);
    unit_fails (gs_comm_get_times (comm, NULL), GS_ERR_ARG, "gs_comm_get_times", "times is NULL");
    times.size = 0;
    times.open_us = 77;
    unit_fails (gs_comm_get_times (comm, &times), GS_ERR_ARG, "times->size");
    times.size = SIZE_MAX;
    unit_fails (gs_comm_get_times (comm, &times), GS_ERR_ARG, "times->size");
    ck_assert (times.open_us == 77);
    unit_ok (gs_comm_destroy (comm));
}
END_TEST

UNIT_SUITE ("query", 10, one_rank, hosts_out_of_range, no_communicator, phases_are_timed)
