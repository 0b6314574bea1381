/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * messages_late - a message whose other end does not come: the rank that waits is told both ends,
 * in time; and so are ranks that wait for what is behind it.
 */
#include "multi.h"

static gs_comm_t *comm;
static int rank, size;
static float x[50000], y[50000];

static void open_comm (int patient)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;

    if (rank == patient)
        opts.timeout_ms = 60000;
    comm = multi_create (&opts);
    x[0] = 1;
    CHECK_OK (multi_wait (comm, gs_allreduce (comm, x, 1, GS_F32, GS_SUM, NULL)));
}

/* The communicator is dead on this rank: every call says so. */
static void close_comm (gs_status_t st)
{
    double begin = multi_seconds ();

    CHECK (gs_comm_check (comm) == st, "the communicator is not dead: %s", gs_last_error ());
    CHECK_FAILS (gs_send (comm, x, 1, GS_F32, !rank, NULL), st, "dead");
    gs_comm_destroy (comm);
    CHECK (multi_seconds () - begin < 10, "the end took %g s", multi_seconds () - begin);
}

/* "rank 1 (host a) waits to send 40 bytes to rank 0 (host b)" */
static void name_ends (char *text, size_t room, bool send, int bytes, int peer)
{
    snprintf (text, room, "rank %d (host %s) waits to %s %d bytes %s rank %d (host %s)", rank,
              gs_comm_host_of (comm, rank), send ? "send" : "receive", bytes,
              send ? "to" : "from", peer, gs_comm_host_of (comm, peer));
}

static void check_text (const char *text)
{
    CHECK (strstr (gs_last_error (), text), "no '%s' in '%s'", text, gs_last_error ());
}

/* Rank 0 sends or receives, rank 1 is nowhere near until rank 0 has given up. */
static void check_absent (bool send, int count, int number)
{
    char text[512], signal[32];
    double begin;

    snprintf (signal, sizeof (signal), "absent%d", number);
    open_comm (1);
    if (rank == 0) {
        begin = multi_seconds ();
        name_ends (text, sizeof (text), send, 4 * count, 1);
        CHECK_FAILS (multi_wait (comm, send ? gs_send (comm, x, (size_t) count, GS_F32, 1, NULL)
                                            : gs_recv (comm, y, (size_t) count, GS_F32, 1, NULL)),
                     GS_ERR_TIMEOUT,
                     send ? "send of communicator 'world'" : "recv of communicator 'world'");
        check_text (text);
        if (!multi_on_gpus ())
            check_text (send ? "did not come to receive them" : "did not come to send them");
        CHECK (multi_seconds () - begin < 20, "told after %g s", multi_seconds () - begin);
        multi_signal (signal, rank);
    } else if (rank == 1) {
        multi_await (signal, 0);
        begin = multi_seconds ();
        CHECK (multi_wait (comm, gs_recv (comm, y, send ? (size_t) count : 1, GS_F32, 0, NULL)) !=
                   GS_OK,
               "a message from a rank that gave up");
        CHECK (multi_seconds () - begin < 20, "told after %g s", multi_seconds () - begin);
    } else { /* in a collective that ranks 0 and 1 will not come to */
        CHECK (multi_barrier (comm) != GS_OK, "a barrier without rank 0");
    }
    gs_comm_destroy (comm);
}

/* Both send to each other before they receive: each is told that the other one waits elsewhere.
 */
static void check_crossed (void)
{
    char text[512];

    open_comm (-1);
    if (rank < 2) {
        name_ends (text, sizeof (text), true, 40, !rank);
        CHECK_FAILS (multi_wait (comm, gs_send (comm, x, 10, GS_F32, !rank, NULL)),
                     GS_ERR_TIMEOUT, "send of communicator");
        if (strstr (gs_last_error (), "waits to send")) /* else the other rank told first */
            check_text (text);
        close_comm (GS_ERR_TIMEOUT);
    } else {
        gs_comm_destroy (comm);
    }
}

/* Of a group only what did not come is named. */
static void check_group (void)
{
    char text[512];

    if (size < 3)
        return;
    open_comm (2);
    if (rank == 0) {
        CHECK_OK (gs_group_begin (comm));
        CHECK_OK (gs_send (comm, x, 30000, GS_F32, 1, NULL));
        CHECK_OK (gs_send (comm, x, 50000, GS_F32, 2, NULL));
        name_ends (text, sizeof (text), true, 200000, 2);
        CHECK_FAILS (multi_wait (comm, gs_group_end (comm)), GS_ERR_TIMEOUT,
                     "group of communicator 'world'");
        check_text (text);
        if (!multi_on_gpus ())
            CHECK (!strstr (gs_last_error (), "120000 bytes"), "rank 1 came: %s",
                   gs_last_error ());
        multi_signal ("group", rank);
    } else if (rank == 1) {
        CHECK_OK (gs_recv (comm, y, 30000, GS_F32, 0, NULL));
        if (!multi_on_gpus ())
            CHECK (y[0] == (float) size, "what came is wrong");
    }
    if (rank)
        multi_await ("group", 0);
    gs_comm_abort (comm);
    gs_comm_destroy (comm);
}

int main (void)
{
    setenv ("GS_TIMEOUT_MS", "1500", 1);
    setenv ("GS_DEBUG", "error", 1);
    rank = multi_rank ();
    size = multi_size ();
    check_absent (false, 10, 0);
    check_absent (false, 50000, 1);
    if (!multi_on_gpus ()) { /* there what is sent may leave before it is awaited */
        check_absent (true, 10, 2);
        check_absent (true, 50000, 3);
        check_crossed ();
        check_group ();
    }
    return multi_end ("messages whose other end does not come");
}
