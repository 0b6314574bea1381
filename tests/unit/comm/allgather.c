/* SPDX-License-Identifier: BSD-3-Clause */
/* gather - moving data on one rank: what arrives, and every argument that is refused. */
#include "unit/alone.h"

static gs_comm_t *comm;
static int32_t x[4], y[4];

static void fill (void)
{
    for (int i = 0; i < 4; i++) {
        x[i] = i + 1;
        y[i] = 0;
    }
}

START_TEST (broadcast)
{
    comm = alone_create ();
    fill ();
    unit_ok (gs_broadcast (comm, x, 4, GS_I32, 0, NULL));
    ck_assert (x[0] == 1 && x[3] == 4);
    unit_ok (gs_broadcast (comm, NULL, 0, GS_I32, 0, NULL));
    unit_fails (gs_broadcast (comm, x, 4, GS_I32, 1, NULL), GS_ERR_ARG, "gs_broadcast", "root 1",
                "0 to 0");
    unit_fails (gs_broadcast (comm, x, 4, GS_I32, -1, NULL), GS_ERR_ARG, "root -1");
    unit_fails (gs_broadcast (NULL, x, 4, GS_I32, 0, NULL), GS_ERR_ARG, "comm is NULL");
    unit_fails (gs_broadcast (alone_stale (), x, 4, GS_I32, 0, NULL), GS_ERR_STATE, "destroyed");
    unit_fails (gs_broadcast (comm, NULL, 4, GS_I32, 0, NULL), GS_ERR_ARG, "NULL", "count is 4");
    unit_fails (gs_broadcast (comm, x, 4, (gs_dtype_t) 0, 0, NULL), GS_ERR_ARG,
                "unknown dtype 0");
    unit_fails (gs_broadcast (comm, x, SIZE_MAX, GS_I32, 0, NULL), GS_ERR_ARG, "elements");
    unit_fails (gs_broadcast (comm, x, SIZE_MAX / 4 + 1, GS_I32, 0, NULL), GS_ERR_ARG,
                "elements");
    unit_ok (gs_comm_destroy (comm));
}
END_TEST

START_TEST (allgather)
{
    comm = alone_create ();
    fill ();
    unit_ok (gs_allgather (comm, x, y, 4, GS_I32, NULL));
    ck_assert_int_eq (memcmp (x, y, sizeof (x)), 0);
    unit_ok (gs_allgather (comm, x, x, 4, GS_I32, NULL)); /* in place */
    unit_ok (gs_allgather (comm, NULL, NULL, 0, GS_I32, NULL));
    unit_ok (gs_allgather (comm, x, x + 2, 2, GS_I32, NULL)); /* neighbours do not overlap */
    ck_assert (x[2] == 1 && x[3] == 2);
    unit_fails (gs_allgather (NULL, x, y, 4, GS_I32, NULL), GS_ERR_ARG, "gs_allgather",
                "comm is NULL");
    unit_fails (gs_allgather (alone_stale (), x, y, 4, GS_I32, NULL), GS_ERR_STATE, "destroyed");
    unit_fails (gs_allgather (comm, NULL, y, 4, GS_I32, NULL), GS_ERR_ARG, "NULL");
    unit_fails (gs_allgather (comm, x, NULL, 4, GS_I32, NULL), GS_ERR_ARG, "NULL");
    unit_fails (gs_allgather (comm, x, y, 4, (gs_dtype_t) 99, NULL), GS_ERR_ARG,
                "unknown dtype 99");
    unit_fails (gs_allgather (comm, x, y, SIZE_MAX, GS_I32, NULL), GS_ERR_ARG, "elements");
    unit_ok (gs_comm_destroy (comm));
}
END_TEST

START_TEST (overlaps_are_refused)
{
    comm = alone_create ();
    fill ();
    unit_fails (gs_allgather (comm, x, x + 1, 2, GS_I32, NULL), GS_ERR_ARG, "overlap",
                "own place");
    unit_fails (gs_allgather (comm, x + 1, x, 2, GS_I32, NULL), GS_ERR_ARG, "overlap");
    unit_fails (gs_allgather (comm, x + 2, x, 3, GS_I32, NULL), GS_ERR_ARG, "overlap");
    ck_assert (x[0] == 1 && x[1] == 2 && x[2] == 3 && x[3] == 4);
    unit_ok (gs_comm_destroy (comm));
}
END_TEST

START_TEST (barrier)
{
    comm = alone_create ();
    for (int i = 0; i < 5; i++)
        unit_ok (gs_barrier (comm, NULL));
    unit_fails (gs_barrier (NULL, NULL), GS_ERR_ARG, "gs_barrier", "comm is NULL");
    unit_fails (gs_barrier (alone_stale (), NULL), GS_ERR_STATE, "gs_barrier", "destroyed");
    unit_ok (gs_comm_destroy (comm));
}
END_TEST

UNIT_SUITE ("gather", 10, broadcast, allgather, overlaps_are_refused, barrier)
