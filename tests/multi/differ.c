/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * differ - ranks that make different calls of as many bytes: later than the calls that are always
 * compared, and without GS_CHECK=collective, no rank takes the one's data for the other's.
 */
#include "multi.h"

#define COMPARED   2     /* calls of a communicator that are always compared */
#define HASTY_MS   400   /* less than it takes to be sure of another node's rank, */
#define PATIENT_MS 60000 /* and more */

static gs_comm_t *comm;
static int rank, size;
static double *x, *y;
static size_t bytes;

static gs_status_t average (void)
{
    return gs_allreduce_avg (comm, x, bytes / 8, GS_F64, NULL);
}

static gs_status_t average_f32 (void)
{
    return gs_allreduce_avg (comm, x, bytes / 4, GS_F32, NULL);
}

static gs_status_t average_f16 (void)
{
    return gs_allreduce_avg (comm, x, bytes / 2, GS_F16, NULL);
}

static gs_status_t largest (void)
{
    return gs_allreduce (comm, x, bytes / 8, GS_F64, GS_MAX, NULL);
}

static gs_status_t shorter (void)
{
    return gs_allreduce_avg (comm, x, bytes / 16, GS_F64, NULL);
}

static gs_status_t broadcast (void)
{
    return gs_broadcast (comm, x, bytes / 8, GS_F64, 0, NULL);
}

static gs_status_t allgather (void)
{
    return gs_allgather (comm, x, y, bytes / 8, GS_F64, NULL);
}

static gs_status_t alltoall (void)
{
    return gs_alltoall (comm, x, y, bytes / 8 / (size_t) size, GS_F64, NULL);
}

static gs_status_t reduce_scatter (void)
{
    return gs_reduce_scatter (comm, x, y, bytes / 8 / (size_t) size, GS_F64, GS_SUM, NULL);
}

/* In each, every rank needs something of each. */
static const struct {
    const char *name;
    gs_status_t (*most) (void), (*other) (void);
} pairs[] = {{"average of F64 and F32", average, average_f32},
             {"average of F64 and F16", average, average_f16},
             {"average and maximum", average, largest},
             {"average and one of half as many", average, shorter},
             {"average and broadcast", average, broadcast},
             {"average and allgather", average, allgather},
             {"alltoall and reduce_scatter", alltoall, reduce_scatter}};

/* The last rank makes another call. GS_ERR_STATE is what ranks elsewhere are told. */
static void run (int which, size_t length, int timeout_ms)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    int odd = size - 1, one = 1;
    gs_status_t st;

    opts.timeout_ms = timeout_ms;
    comm = multi_create (&opts);
    for (int i = 0; i < COMPARED; i++)
        CHECK_OK (multi_wait (comm, gs_allreduce (comm, &one, 1, GS_I32, GS_MAX, NULL)));
    bytes = length;
    x = calloc (1, bytes);
    y = calloc ((size_t) size, bytes);
    st = multi_wait (comm, rank == odd ? pairs[which].other () : pairs[which].most ());
    CHECK (st == GS_ERR_MISMATCH || st == GS_ERR_STATE ||
               (st == GS_ERR_TIMEOUT && timeout_ms == HASTY_MS),
           "%s, %zu bytes, gives %s: %s", pairs[which].name, bytes, gs_status_string (st),
           gs_last_error ());
    free (x);
    free (y);
    gs_comm_destroy (comm);
}

int main (void)
{
    const size_t lengths[] = {960, 96000, 4800000};

    setenv ("GS_DEBUG", "warn", 0);
    if (multi_any_gpus ()) {
        puts ("skip: NCCL and GPUs carry the data, not this transport");
        return 77;
    }
    rank = multi_rank ();
    size = multi_size ();
    for (int i = 0; i < (int) (sizeof (pairs) / sizeof (pairs[0])); i++)
        for (int l = 0; l < (int) (sizeof (lengths) / sizeof (lengths[0])); l++)
            run (i, lengths[l], HASTY_MS);
    run (0, lengths[0], PATIENT_MS);
    return multi_end ("calls of as many bytes that differ");
}
