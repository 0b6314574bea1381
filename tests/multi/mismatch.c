/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mismatch - ranks that disagree are told on all ranks, with both ranks and both values; nothing
 * is changed and the communicator goes on.
 */
#include "multi.h"

static gs_comm_t *comm;
static int rank, size, odd;
static double x[16], y[16 * 64];

/* The parts of the message are what rank 0 and [odd] call. */
struct quarrel {
    const char *zero, *other;
    gs_status_t (*call) (bool is_odd);
};

static gs_status_t by_count (bool is_odd)
{
    return gs_allreduce_avg (comm, x, is_odd ? 3 : 2, GS_F32, NULL);
}

static gs_status_t by_dtype (bool is_odd)
{
    return gs_allreduce_avg (comm, x, 2, is_odd ? GS_C64 : GS_F64, NULL); /* of equal size */
}

static gs_status_t by_op (bool is_odd)
{
    return gs_allreduce (comm, x, 2, GS_F64, is_odd ? GS_MAX : GS_SUM, NULL);
}

static gs_status_t by_root (bool is_odd)
{
    return gs_broadcast (comm, x, 2, GS_F64, is_odd ? 1 : 0, NULL);
}

static gs_status_t by_operation (bool is_odd)
{
    return is_odd ? gs_barrier (comm, NULL) : gs_allgather (comm, x, y, 2, GS_F64, NULL);
}

static gs_status_t by_average (bool is_odd)
{
    return is_odd ? gs_allreduce_avg (comm, x, 2, GS_F64, NULL)
                  : gs_allreduce_wavg (comm, x, 2, GS_F64, 1, NULL);
}

static gs_status_t by_emptiness (bool is_odd)
{
    return gs_allreduce_avg (comm, x, is_odd ? 0 : 2, GS_F64, NULL);
}

static gs_status_t by_reduction (bool is_odd)
{
    return gs_reduce (comm, x, y, 2, GS_F64, GS_SUM, is_odd ? 1 : 0, NULL);
}

static const struct quarrel quarrels[] = {
    {"allreduce_avg, GS_F32, count 2", "allreduce_avg, GS_F32, count 3", by_count},
    {"allreduce_avg, GS_F64, count 2", "allreduce_avg, GS_C64, count 2", by_dtype},
    {"allreduce, GS_F64, count 2, op 1", "allreduce, GS_F64, count 2, op 4", by_op},
    {"broadcast, GS_F64, count 2, root or op 0", "broadcast, GS_F64, count 2, root or op 1",
     by_root},
    {"allgather, GS_F64, count 2", "barrier, no type, count 0", by_operation},
    {"allreduce_wavg, GS_F64, count 2", "allreduce_avg, GS_F64, count 2", by_average},
    {"allreduce_avg, GS_F64, count 2", "allreduce_avg, GS_F64, count 0", by_emptiness},
    {"reduce, GS_F64, count 2, root 0, op 1", "reduce, GS_F64, count 2, root 1, op 1",
     by_reduction},
};

static void fill (double *values)
{
    for (int i = 0; i < 16; i++)
        values[i] = rank * 100 + i;
}

/* One disagreement; [odd] is never rank 0, which the others are compared with. */
static void quarrel (const struct quarrel *q)
{
    double before[16];
    char name[32], first[64], second[64];

    fill (x);
    fill (before);
    snprintf (name, sizeof (name), "rank %d (host ", odd);
    snprintf (first, sizeof (first), "calls %s", q->zero);
    snprintf (second, sizeof (second), "calls %s", q->other);
    CHECK_FAILS (q->call (rank == odd), GS_ERR_MISMATCH, "rank 0 (host ", first, name, second,
                 "communicator 'quarrel'");
    CHECK (!memcmp (x, before, sizeof (x)), "a refused call changes the buffer");
    CHECK_OK (gs_comm_check (comm));
}

static void check_alive (void)
{
    int32_t n = 1;

    CHECK_OK (gs_allreduce (comm, &n, 1, GS_I32, GS_SUM, NULL));
    CHECK (n == size, "the sum over %d ranks is %d", size, n);
}

/* All quarrels as call [place] of a communicator, or all in one with GS_CHECK=collective. */
static void run (int place)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;

    opts.name = "quarrel";
    for (size_t q = 0; q < sizeof (quarrels) / sizeof (quarrels[0]); q++) {
        odd = 1 + (int) q % (size - 1);
        comm = multi_create (&opts);
        for (int i = 1; i < place; i++)
            check_alive ();
        quarrel (&quarrels[q]);
        check_alive ();
        CHECK_OK (gs_comm_destroy (comm));
    }
}

/* Hosts see that a rank has left a call out: its next one is not taken for it. */
static void left_out (void)
{
    gs_status_t st;

    comm = multi_create (NULL);
    odd = size - 1;
    for (int i = 0; i < 3; i++)
        check_alive ();
    fill (x);
    if (rank == odd)
        CHECK_OK (gs_allreduce (comm, x, 0, GS_F64, GS_SUM, NULL));
    st = gs_allreduce (comm, x, 4, GS_F64, GS_SUM, NULL);
    CHECK (st != GS_OK, "a call is taken for the one before it");
    gs_comm_destroy (comm);
}

/* Nor is what comes of another halo. */
static void crossed_halos (void)
{
    const int grid = size, periodic = 1;
    const size_t extents = 4, width = 1;
    double field[6] = {0};
    gs_halo_t *first, *second;
    gs_status_t st;

    comm = multi_create (NULL);
    odd = size - 1;
    CHECK_OK (gs_halo_create (comm, 1, &grid, &extents, &width, &periodic, GS_F64, &first));
    CHECK_OK (gs_halo_create (comm, 1, &grid, &extents, &width, &periodic, GS_F64, &second));
    CHECK_OK (gs_halo_exchange (first, field, NULL));
    st = gs_halo_exchange (rank == odd ? second : first, field, NULL);
    CHECK (st != GS_OK || (rank != odd && rank && rank != odd - 1), "ghosts of another halo");
    CHECK (size > 2 || st != GS_ERR_MISMATCH || strstr (gs_last_error (), "halo"),
           "the text is of something else: %s", gs_last_error ());
    gs_halo_destroy (first);
    gs_halo_destroy (second);
    gs_comm_destroy (comm);
}

/* A rank that destroys while the others call tells them, so that they need not wait for it. */
static void early_destroy (void)
{
    double begin;

    comm = multi_create (NULL);
    odd = size - 1;
    begin = multi_seconds ();
    if (rank == odd) {
        CHECK_FAILS (gs_comm_destroy (comm), GS_ERR_MISMATCH, "calls gs_comm_destroy, which ends",
                     "calls barrier");
        multi_await_others ("told", rank); /* MPI may lose what a process says as it ends */
        return;
    }
    CHECK_FAILS (gs_barrier (comm, NULL), GS_ERR_MISMATCH, "calls gs_comm_destroy, which ends",
                 "calls barrier");
    CHECK_FAILS (multi_barrier (comm), GS_ERR_STATE, "rank");
    CHECK (multi_seconds () - begin < 20, "told after %g s", multi_seconds () - begin);
    multi_signal ("told", rank);
    gs_comm_destroy (comm);
}

int main (void)
{
    setenv ("GS_TIMEOUT_MS", "60000", 1);
    setenv ("GS_DEBUG", "error", 1);
    rank = multi_rank ();
    size = multi_size ();
    run (1);
    run (2);
    setenv ("GS_CHECK", "collective", 1);
    run (10);
    unsetenv ("GS_CHECK");
    if (!multi_any_gpus ()) {
        left_out ();
        crossed_halos ();
    }
    early_destroy ();
    return multi_end ("eight disagreements, as call 1, 2 and 10");
}
