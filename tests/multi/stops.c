/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stops - a rank that stops calling: the others are told who and where, in time, again and again;
 * the record says in which operation; and the rank that comes too late is told as well.
 */
#include "multi.h"

#define COUNT 100000 /* floats: more than a small message */

static gs_comm_t *comm;
static int rank, size, lazy;
static float x[COUNT], y[64];

struct operation {
    const char *name;
    gs_status_t (*call) (void);
};

static gs_status_t call_small (void)
{
    return gs_allreduce_avg (comm, y, 1, GS_F32, NULL);
}

static gs_status_t call_large (void)
{
    return gs_allreduce_avg (comm, x, COUNT, GS_F32, NULL);
}

static gs_status_t call_barrier (void)
{
    return gs_barrier (comm, NULL);
}

static gs_status_t call_gather (void)
{
    float mine = 1;

    return gs_allgather (comm, &mine, y, 1, GS_F32, NULL);
}

static gs_status_t call_broadcast (void)
{
    return gs_broadcast (comm, x, COUNT, GS_F32, lazy, NULL);
}

static gs_status_t call_destroy (void)
{
    gs_comm_t *ended = comm;

    comm = NULL;
    return gs_comm_destroy (ended);
}

static const struct operation operations[] = {
    {"allreduce_avg", call_small}, {"allreduce_avg", call_large}, {"broadcast", call_broadcast},
    {"destroy", call_destroy},     {"barrier", call_barrier},     {"allgather", call_gather},
};

/* The text of the flight record, whose path is in the last error, names the operation. */
static void check_record (const char *operation)
{
    const char *path = strstr (gs_last_error (), "Flight record: ");
    char text[8192] = "";
    FILE *file;

    CHECK (path, "no flight record in '%s'", gs_last_error ());
    if (!path)
        return;
    file = fopen (path + strlen ("Flight record: "), "r");
    CHECK (file, "no file %s", path);
    if (!file)
        return;
    text[fread (text, 1, sizeof (text) - 1, file)] = 0;
    fclose (file);
    CHECK (strstr (text, operation) && strstr (text, "NOT ENDED"),
           "the record does not show an unfinished %s:\n%s", operation, text);
}

/* What a rank gets that calls while [lazy] does not. */
static void wait_in_vain (const struct operation *op, const char *host)
{
    char name[160];
    double begin = multi_seconds ();

    snprintf (name, sizeof (name), "rank %d (host %s)", lazy, host);
    CHECK_FAILS (op->call (), GS_ERR_TIMEOUT, op->name, "1 of", "did not come", name);
    CHECK (multi_seconds () - begin < 20, "%s was told after %g s", op->name,
           multi_seconds () - begin);
    check_record (op->name);
    if (!comm)
        return; /* destroyed all the same */
    for (int again = 0; again < 2; again++) {
        CHECK_FAILS (op->call (), GS_ERR_TIMEOUT, "dead", name);
        CHECK_FAILS (gs_comm_check (comm), GS_ERR_TIMEOUT, name);
    }
}

/* One communicator of which [lazy] misses the operation, and comes when the others gave up. */
static void run (const struct operation *op, int number)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    char signal[32], host[128];
    double begin;

    snprintf (signal, sizeof (signal), "stops%d", number);
    if (rank == lazy)
        opts.timeout_ms = 60000;
    comm = multi_create (&opts);
    snprintf (host, sizeof (host), "%s", gs_comm_host_of (comm, lazy));
    for (int i = 0; i < 3; i++)
        CHECK_OK (call_large ());
    if (rank != lazy) {
        wait_in_vain (op, host);
        multi_signal (signal, rank);
    } else {
        multi_await_others (signal, lazy);
        begin = multi_seconds ();
        /* what the others had sent before they gave up may complete this call, but no other */
        if (op->call () == GS_OK && comm && gs_barrier (comm, NULL) == GS_OK)
            gs_comm_wait (comm, NULL); /* GPUs have queued them only */
        CHECK (!comm || strstr (gs_last_error (), "the deadline passed on rank"),
               "the late rank is told '%s'", gs_last_error ());
        CHECK (!comm || gs_comm_check (comm) == GS_ERR_TIMEOUT, "the late rank goes on");
        CHECK (multi_seconds () - begin < 20, "the late rank was told after %g s",
               multi_seconds () - begin);
    }
    begin = multi_seconds ();
    gs_comm_destroy (comm);
    CHECK (multi_seconds () - begin < 5, "the destroy took %g s", multi_seconds () - begin);
}

int main (void)
{
    setenv ("GS_TIMEOUT_MS", "1500", 1);
    setenv ("GS_DEBUG", "error", 1);
    rank = multi_rank ();
    size = multi_size ();
    for (int o = 0; o < (getenv ("GS_TEST_LONG") ? 6 : 4); o++) {
        lazy = (size - 1 + o) % size;
        run (&operations[o], o);
    }
    return multi_end_together ("a rank that stops, in several operations");
}
