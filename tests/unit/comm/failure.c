/* SPDX-License-Identifier: BSD-3-Clause */
/* watch - a communicator that was aborted or whose transport failed stays so and says why. */
#include "call/failure.h"

#include <sys/stat.h>

#include "unit/alone.h"
#include "base/log.h"

static gs_comm_t *comm;
static float x = 5;

/* Every collective of the dead communicator gives [st] and a text with [part]. */
static void check_dead (gs_status_t st, const char *part)
{
    float y = 0;

    for (int again = 0; again < 2; again++) {
        unit_fails (gs_allreduce_avg (comm, &x, 1, GS_F32, NULL), st, "allreduce_avg", part);
        unit_fails (gs_allreduce_wavg (comm, &x, 1, GS_F32, 1, NULL), st, "allreduce_wavg", part);
        unit_fails (gs_allreduce (comm, &x, 1, GS_F32, GS_MAX, NULL), st, "allreduce", part);
        unit_fails (gs_broadcast (comm, &x, 1, GS_F32, 0, NULL), st, "broadcast", part);
        unit_fails (gs_allgather (comm, &x, &y, 1, GS_F32, NULL), st, "allgather", part);
        unit_fails (gs_barrier (comm, NULL), st, "barrier", part);
        unit_fails (gs_comm_check (comm), st, part);
        unit_fails (gs_comm_wait (comm, NULL), st, part);
    }
    ck_assert (x == 5 && y == 0);
    ck_assert_int_eq (gs_comm_rank (comm), 0); /* what it is, it still says */
}

START_TEST (alive)
{
    comm = alone_create ();
    unit_ok (gs_comm_check (comm));
    unit_ok (gs_comm_wait (comm, NULL));
    unit_ok (gs_comm_destroy (comm));
}
END_TEST

START_TEST (aborted)
{
    comm = alone_create ();
    unit_ok (gs_comm_abort (comm));
    unit_ok (gs_comm_abort (comm));
    check_dead (GS_ERR_STATE, "communicator 'world' was aborted");
    unit_ok (gs_comm_destroy (comm));
}
END_TEST

START_TEST (no_communicator)
{
    gs_comm_t *stale = alone_stale ();

    unit_fails (gs_comm_abort (NULL), GS_ERR_ARG, "gs_comm_abort", "NULL");
    unit_fails (gs_comm_check (NULL), GS_ERR_ARG, "gs_comm_check", "NULL");
    unit_fails (gs_comm_wait (NULL, NULL), GS_ERR_ARG, "NULL");
    unit_fails (gs_comm_abort (stale), GS_ERR_STATE, "gs_comm_abort", "destroyed");
    unit_fails (gs_comm_check (stale), GS_ERR_STATE, "gs_comm_check", "destroyed");
    unit_fails (gs_comm_wait (stale, NULL), GS_ERR_STATE, "destroyed");
}
END_TEST

/* A transport whose allreduce fails as told. */
static gs_status_t failure;

static gs_status_t failing_allreduce (struct gsi_coll *coll, void *buf, size_t count,
                                      const struct gsi_reduction *how,
                                      const struct gsi_call *call)
{
    (void) coll, (void) buf, (void) count, (void) how, (void) call;
    return gsi_fail (failure, "the wire broke");
}

static void note (gs_log_level_t level, const char *line, void *context)
{
    if (level == GS_LOG_ERROR)
        snprintf (context, 2000, "%s", line);
}

/* Lets a call fail with [st] and checks what is said then, later and in the record's text. */
static void check_failure (gs_status_t st, const char *room)
{
    struct gsi_coll_ops ops;
    char line[2000] = "", path[1100];

    setenv ("GS_RECORD_DIR", room, 1);
    setenv ("GS_BOOT", "single", 1);
    unit_ok (gs_comm_create (NULL, &comm));
    ops = *comm->coll->ops;
    ops.allreduce = failing_allreduce;
    comm->coll->ops = &ops;
    failure = st;
    gs_log_set_sink (note, line);
    unit_fails (gs_allreduce (comm, &x, 1, GS_F32, GS_SUM, NULL), st, "allreduce #1",
                "communicator 'world'", "rank 0 (host ", "the wire broke",
                "Flight record: ", room);
    gs_log_set_sink (NULL, NULL);
    ck_assert_ptr_nonnull (strstr (line, "the wire broke"));
    check_dead (st, "the wire broke");
    snprintf (path, sizeof (path), "%s", strstr (gs_last_error (), "Flight record: ") + 15);
    ck_assert_int_eq (access (path, R_OK), 0);
    unlink (path);
    unit_ok (gs_comm_abort (comm)); /* changes nothing any more */
    check_dead (st, "the wire broke");
    snprintf (path, sizeof (path), "%s", comm->record.path);
    unit_ok (gs_comm_destroy (comm));
    ck_assert_int_eq (unlink (path), 0); /* the record of a death is kept */
}

START_TEST (transport_failures)
{
    char room[] = "/tmp/gs-watch-XXXXXX";

    ck_assert_ptr_nonnull (mkdtemp (room));
    check_failure (GS_ERR_TRANSPORT, room);
    check_failure (GS_ERR_TIMEOUT, room);
    ck_assert_int_eq (rmdir (room), 0);
}
END_TEST

UNIT_SUITE ("watch", 10, alive, aborted, no_communicator, transport_failures)
