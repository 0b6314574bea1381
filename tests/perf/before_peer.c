/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * before_peer - stands in for gs-bench-mpi.so: the "raw" calls are those of another build of
 * gradsync, whose libraries are in GS_BEFORE, in the same processes. Made by the script before.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "gradsync.h"
#include "tools/bench/raw.h"

extern const struct bench_raw_mpi bench_raw_mpi;

/* The function of the other build. */
#define OLD(NAME)                                       \
    ({                                                  \
        static __typeof__ (NAME) *found;                \
        if (!found)                                     \
            found = (__typeof__ (NAME) *) find (#NAME); \
        found;                                          \
    })

static gs_comm_t *comm;
static void *library;

static void die (const char *what, const char *why)
{
    fprintf (stderr, "before: %s: %s\n", what, why);
    exit (1);
}

static void *find (const char *name)
{
    void *found = dlsym (library, name);

    if (!found)
        die (name, dlerror ());
    return found;
}

static void check (gs_status_t st)
{
    if (st)
        die ("the other build", OLD (gs_last_error) ());
}

/* The first call: MPI is up by then, and our own module loaded. */
static int world_size (void)
{
    const char *folder = getenv ("GS_BEFORE");
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    char path[1024];

    if (comm)
        return OLD (gs_comm_size) (comm);
    if (!folder)
        die ("GS_BEFORE", "is not set");
    snprintf (path, sizeof (path), "%s/gradsync-mpi.so", folder);
    setenv ("GS_MPI_MODULE", path, 1);
    snprintf (path, sizeof (path), "%s/libgradsync.so", folder);
    if (!(library = dlopen (path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)))
        die (path, dlerror ());
    opts.name = "before";
    check (OLD (gs_comm_from_mpi_fint) ((int) MPI_Comm_c2f (MPI_COMM_WORLD), &opts, &comm));
    return OLD (gs_comm_size) (comm);
}

static bool has_type (gs_dtype_t dtype)
{
    return dtype > 0;
}

static void allreduce_avg (void *buf, int count, gs_dtype_t dtype, int times)
{
    for (int t = 0; t < times; t++)
        check (OLD (gs_allreduce_avg) (comm, buf, (size_t) count, dtype, NULL));
}

static bool can_move (enum bench_move what, gs_dtype_t dtype)
{
    return (int) what >= 0 && dtype > 0;
}

/* To the next rank, from the one before. */
static void send_around (const void *send, void *recv, size_t n, gs_dtype_t dtype)
{
    int rank = OLD (gs_comm_rank) (comm), size = OLD (gs_comm_size) (comm);

    check (OLD (gs_group_begin) (comm));
    check (OLD (gs_send) (comm, send, n, dtype, (rank + 1) % size, NULL));
    check (OLD (gs_recv) (comm, recv, n, dtype, (rank + size - 1) % size, NULL));
    check (OLD (gs_group_end) (comm));
}

static gs_status_t transfer (enum bench_move what, void *send, void *recv, size_t n,
                             gs_dtype_t dtype)
{
    size_t counts[64], size = (size_t) OLD (gs_comm_size) (comm);

    for (size_t r = 0; r < size && r < 64; r++)
        counts[r] = n;
    switch (what) {
    case BENCH_ALLGATHER: return OLD (gs_allgather) (comm, send, recv, n, dtype, NULL);
    case BENCH_ALLGATHERV:
        return OLD (gs_allgatherv) (comm, send, n, recv, size * n, counts, NULL, dtype, NULL);
    case BENCH_ALLTOALL: return OLD (gs_alltoall) (comm, send, recv, n, dtype, NULL);
    case BENCH_BROADCAST: return OLD (gs_broadcast) (comm, send, n, dtype, 0, NULL);
    case BENCH_GATHER: return OLD (gs_gather) (comm, send, recv, n, dtype, 0, NULL);
    case BENCH_REDUCE: return OLD (gs_reduce) (comm, send, recv, n, dtype, GS_SUM, 0, NULL);
    case BENCH_REDUCE_SCATTER:
        return OLD (gs_reduce_scatter) (comm, send, recv, n, dtype, GS_SUM, NULL);
    case BENCH_SCATTER: return OLD (gs_scatter) (comm, send, recv, n, dtype, 0, NULL);
    default: send_around (send, recv, n, dtype); return GS_OK;
    }
}

static void move (enum bench_move what, void *send, void *recv, int count, int bytes,
                  gs_dtype_t dtype, int times)
{
    (void) bytes;
    for (int t = 0; t < times; t++)
        check (transfer (what, send, recv, (size_t) count, dtype));
}

/* As a group, also beside a halo. */
static void neighbours (void *field, int bytes, int times)
{
    size_t n = (size_t) bytes;
    int rank = OLD (gs_comm_rank) (comm), size = OLD (gs_comm_size) (comm);
    int before = (rank + size - 1) % size, next = (rank + 1) % size;
    char *row = field;

    for (int t = 0; t < times; t++) {
        check (OLD (gs_group_begin) (comm));
        check (OLD (gs_send) (comm, row + n, n, GS_I8, before, NULL));
        check (OLD (gs_send) (comm, row + 2 * n, n, GS_I8, next, NULL));
        check (OLD (gs_recv) (comm, row + 3 * n, n, GS_I8, next, NULL));
        check (OLD (gs_recv) (comm, row, n, GS_I8, before, NULL));
        check (OLD (gs_group_end) (comm));
    }
}

const struct bench_raw_mpi bench_raw_mpi = {
    .world_size = world_size,
    .has_type = has_type,
    .allreduce_avg = allreduce_avg,
    .can_move = can_move,
    .move = move,
    .neighbours = neighbours,
};
