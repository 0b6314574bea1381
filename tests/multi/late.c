/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * late - a rank that gives up has its arrays back: one that comes after it never takes what is in
 * them by then for what it was to get.
 */
#include "multi.h"

#define COUNT    ((size_t) 300000) /* for each rank: ranks read it where it is */
#define GIVEN    1.0f              /* what all arrays have in a call */
#define REUSED   7.0f
#define COMPARED 2 /* calls of a communicator that are always compared, and so are met */
#define LATE     1 /* the rank that is late, on the node of rank 0 */

static gs_comm_t *comm;
static int rank, size;
static float *x, *y; /* what a call takes and what it gives, [size * COUNT] */

static gs_status_t broadcast (void)
{
    return gs_broadcast (comm, rank ? y : x, COUNT, GS_F32, 0, NULL);
}

static gs_status_t message (void)
{
    return rank ? gs_recv (comm, y, COUNT, GS_F32, 0, NULL)
                : gs_send (comm, x, COUNT, GS_F32, LATE, NULL);
}

static gs_status_t scatter (void)
{
    return gs_scatter (comm, x, y, COUNT, GS_F32, 0, NULL);
}

static gs_status_t alltoall (void)
{
    return gs_alltoall (comm, x, y, COUNT, GS_F32, NULL);
}

static gs_status_t allgather (void)
{
    return gs_allgather (comm, x, y, COUNT, GS_F32, NULL);
}

static gs_status_t gather (void)
{
    return gs_gather (comm, x, y, COUNT, GS_F32, LATE, NULL);
}

static gs_status_t gatherv (void)
{
    size_t *counts = calloc ((size_t) size, sizeof (*counts));
    gs_status_t st;

    for (int r = 0; r < size; r++)
        counts[r] = COUNT - (size_t) r;
    st = gs_gatherv (comm, x, counts[rank], y, (size_t) size * COUNT, counts, NULL, GS_F32, LATE,
                     NULL);
    free (counts);
    return st;
}

static gs_status_t reduce (void)
{
    return gs_reduce (comm, x, y, COUNT, GS_F32, GS_AVG, LATE, NULL);
}

static gs_status_t reduce_scatter (void)
{
    return gs_reduce_scatter (comm, x, y, COUNT, GS_F32, GS_AVG, NULL);
}

static gs_status_t average (void)
{
    memcpy (y, x, COUNT * sizeof (*x));
    return gs_allreduce_avg (comm, y, COUNT, GS_F32, NULL);
}

static const struct {
    const char *name;
    gs_status_t (*call) (void);
    bool takes_all; /* something of every rank */
} calls[] = {{"broadcast", broadcast, false},
             {"message", message, false},
             {"scatter", scatter, false},
             {"alltoall", alltoall, true},
             {"allgather", allgather, true},
             {"gather", gather, true},
             {"gatherv", gatherv, false},
             {"reduce", reduce, false},
             {"reduce_scatter", reduce_scatter, false},
             {"average", average, false}};

static void fill (float *array, float value)
{
    for (size_t i = 0; i < (size_t) size * COUNT; i++)
        array[i] = value;
}

static float *allocate (bool shared)
{
    void *memory = NULL;

    if (shared)
        CHECK_OK (gs_device_alloc (comm, (size_t) size * COUNT * sizeof (float), &memory));
    else
        memory = malloc ((size_t) size * COUNT * sizeof (float));
    if (!memory)
        exit (1);
    return memory;
}

static void release (float *array, bool shared)
{
    if (shared)
        CHECK_OK (gs_device_free (comm, array));
    else
        free (array);
}

/* Whatever has arrived in a call that went well is what was given. */
static void check_late (int which, gs_status_t st)
{
    size_t number = calls[which].takes_all ? (size_t) size * COUNT : COUNT - (size_t) size;

    for (size_t i = 0; i < number && !st; i++)
        if (y[i] != GIVEN) {
            CHECK (false, "%s gives GS_OK, and element %zu is %g", calls[which].name, i, y[i]);
            return;
        }
}

static void run (int which, bool shared)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    char signal[64];
    gs_status_t st;
    int one = 1;

    snprintf (signal, sizeof (signal), "%s%d", calls[which].name, shared);
    opts.timeout_ms = rank == LATE ? 30000 : size > 4 ? 1500 : 300; /* they may wait for cores */
    comm = multi_create (&opts);
    for (int i = 0; i < COMPARED; i++)
        CHECK_OK (gs_allreduce (comm, &one, 1, GS_I32, GS_MAX, NULL));
    x = allocate (shared);
    y = allocate (shared);
    fill (x, GIVEN);
    fill (y, 0);
    if (rank == LATE) {
        multi_await (signal, 0);
        check_late (which, calls[which].call ());
    } else if (rank == 0 || calls[which].call != message) {
        st = calls[which].call ();
        CHECK (rank || st == GS_ERR_TIMEOUT, "%s without rank 1 gives %s", calls[which].name,
               gs_status_string (st));
        fill (x, REUSED);
        fill (y, REUSED);
        multi_signal (signal, rank);
    }
    release (x, shared);
    release (y, shared);
    gs_comm_destroy (comm);
}

int main (void)
{
    setenv ("GS_DEBUG", "warn", 0);
    if (multi_any_gpus ()) {
        puts ("skip: NCCL and GPUs carry the data, not this transport");
        return 77;
    }
    rank = multi_rank ();
    size = multi_size ();
    for (int i = 0; i < (int) (sizeof (calls) / sizeof (calls[0])); i++) {
        run (i, false);
        run (i, true);
    }
    return multi_end ("a rank that is late never gets what was not given");
}
