/* SPDX-License-Identifier: BSD-3-Clause */
/* call - what every collective passes: levels of checking, one thread at a time, the record. */
#include "call/call.h"

#include <pthread.h>

#include "unit/alone.h"

START_TEST (calls_are_recorded)
{
    gs_comm_t *comm = alone_create ();
    const struct gsi_record_entry *e = comm->record.file->entry;
    double x = 1, y;

    unit_ok (gs_barrier (comm, NULL));
    unit_ok (gs_allreduce_avg (comm, &x, 1, GS_F64, NULL));
    unit_ok (gs_allreduce_wavg (comm, &x, 1, GS_F64, 2, NULL));
    unit_ok (gs_allreduce (comm, &x, 1, GS_F64, GS_MIN, NULL));
    unit_ok (gs_broadcast (comm, &x, 1, GS_F64, 0, NULL));
    unit_ok (gs_allgather (comm, &x, &y, 1, GS_F64, NULL));
    ck_assert_int_eq (e[1].op, GSI_OP_BARRIER);
    ck_assert_int_eq (e[2].op, GSI_OP_ALLREDUCE_AVG);
    ck_assert_int_eq (e[3].op, GSI_OP_ALLREDUCE_WAVG);
    ck_assert (e[4].op == GSI_OP_ALLREDUCE && e[4].argument == GS_MIN && e[4].dtype == GS_F64);
    ck_assert_int_eq (e[5].op, GSI_OP_BROADCAST);
    ck_assert (e[6].op == GSI_OP_ALLGATHER && e[6].count == 1 && e[6].end_ns >= e[6].begin_ns);
    gs_allreduce (comm, NULL, 1, GS_F64, GS_MIN, NULL); /* refused before it is an operation */
    ck_assert_uint_eq (comm->record.seq, 6);
    unit_ok (gs_comm_destroy (comm));
}
END_TEST

START_TEST (checks_off)
{
    struct gsi_request r = {.caller = "caller", .dtype = GS_F32};
    struct gsi_extent extent;

    setenv ("GS_CHECK", "off", 1);
    unit_fails (gsi_call_check (&r, NULL, 5, &extent), GS_ERR_ARG, "NULL");
    r.comm = alone_create ();
    unit_ok (gsi_call_check (&r, NULL, 5, &extent)); /* at the user's risk */
    ck_assert (extent.bytes == 20 && !extent.staged);
    unit_fails (gsi_call_check (&r, NULL, SIZE_MAX, &extent), GS_ERR_ARG, "elements");
    r.dtype = (gs_dtype_t) 0;
    unit_fails (gsi_call_check (&r, NULL, 5, &extent), GS_ERR_ARG, "caller", "unknown dtype");
    unit_ok (gs_comm_destroy (r.comm));
}
END_TEST

START_TEST (checks_collective)
{
    gs_comm_t *comm;
    float x = 1;

    setenv ("GS_CHECK", "collective", 1);
    comm = alone_create ();
    for (int i = 0; i < 10; i++)
        unit_ok (gs_allreduce (comm, &x, 1, GS_F32, GS_SUM, NULL));
    unit_ok (gs_comm_destroy (comm));
}
END_TEST

/* What a second thread gets while the first is inside. */
static void *second (void *comm)
{
    unit_fails (gs_barrier (comm, NULL), GS_ERR_STATE, "barrier", "inside another call",
                "one thread at a time");
    unit_fails (gs_comm_destroy (comm), GS_ERR_STATE, "destroy", "inside another call");
    unit_ok (gs_comm_check (comm));
    return NULL;
}

START_TEST (one_thread_at_a_time)
{
    gs_comm_t *comm = alone_create ();
    struct gsi_request r = {.comm = comm, .op = GSI_OP_BARRIER};
    struct gsi_call call;
    pthread_t thread;

    unit_ok (gsi_call_begin (&r, NULL, &call));
    ck_assert_int_eq (pthread_create (&thread, NULL, second, comm), 0);
    pthread_join (thread, NULL);
    ck_assert_int_eq (comm->record.file->entry[1].end_ns, 0); /* the first is undisturbed */
    unit_ok (gsi_call_end (comm, &call, GS_OK));
    unit_ok (gs_barrier (comm, NULL));
    unit_ok (gs_comm_destroy (comm));
}
END_TEST

UNIT_SUITE ("call", 10, calls_are_recorded, checks_off, checks_collective, one_thread_at_a_time)
