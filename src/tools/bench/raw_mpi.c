/* SPDX-License-Identifier: BSD-3-Clause */
/* raw_mpi - the plain MPI calls, in the module gs-bench-mpi.so. */
#include <mpi.h>
#include <stdlib.h>

#include "tools/bench/raw.h"

#define MAX_RANKS 65536 /* in lists of MPI_Allgatherv */

extern const struct bench_raw_mpi bench_raw_mpi;

static int world_size (void)
{
    int up, down, size = 0;

    MPI_Initialized (&up);
    MPI_Finalized (&down);
    if (up && !down)
        MPI_Comm_size (MPI_COMM_WORLD, &size);
    return size;
}

static void finalize (void)
{
    if (world_size ())
        MPI_Finalize ();
}

static void start (void)
{
    int up;

    MPI_Initialized (&up);
    if (!up && !MPI_Init (NULL, NULL))
        atexit (finalize);
}

static bool has_type (gs_dtype_t dtype)
{
    return dtype == GS_F32 || dtype == GS_F64 || dtype == GS_C64 || dtype == GS_C128;
}

/* A complex number is combined and divided as its two parts. */
static MPI_Datatype part_type (gs_dtype_t dtype)
{
    return dtype == GS_F32 || dtype == GS_C64 ? MPI_FLOAT : MPI_DOUBLE;
}

static int parts_of (int count, gs_dtype_t dtype)
{
    return dtype == GS_C64 || dtype == GS_C128 ? 2 * count : count;
}

static void allreduce_avg (void *buf, int count, gs_dtype_t dtype, int times)
{
    MPI_Datatype type = part_type (dtype);
    int parts = parts_of (count, dtype), size = world_size ();

    for (int t = 0; t < times; t++) {
        MPI_Allreduce (MPI_IN_PLACE, buf, parts, type, MPI_SUM, MPI_COMM_WORLD);
        if (type == MPI_FLOAT)
            for (int i = 0; i < parts; i++)
                ((float *) buf)[i] /= (float) size;
        else
            for (int i = 0; i < parts; i++)
                ((double *) buf)[i] /= size;
    }
}

static bool combines (enum bench_move what)
{
    return what == BENCH_REDUCE || what == BENCH_REDUCE_SCATTER;
}

static bool can_move (enum bench_move what, gs_dtype_t dtype)
{
    if (what == BENCH_ALLGATHERV && world_size () > MAX_RANKS)
        return false;
    return !combines (what) || has_type (dtype);
}

static void combine (enum bench_move what, const void *send, void *recv, int count,
                     gs_dtype_t dtype)
{
    MPI_Datatype type = part_type (dtype);
    int parts = parts_of (count, dtype);

    if (what == BENCH_REDUCE)
        MPI_Reduce (send, recv, parts, type, MPI_SUM, 0, MPI_COMM_WORLD);
    else
        MPI_Reduce_scatter_block (send, recv, parts, type, MPI_SUM, MPI_COMM_WORLD);
}

/* To the next rank, from the one before. */
static void send_around (const void *send, void *recv, int n)
{
    int rank, size = world_size ();

    MPI_Comm_rank (MPI_COMM_WORLD, &rank);
    MPI_Sendrecv (send, n, MPI_BYTE, (rank + 1) % size, 0, recv, n, MPI_BYTE,
                  (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void transfer (enum bench_move what, void *send, void *recv, int n, const int *counts,
                      const int *displs)
{
    MPI_Comm all = MPI_COMM_WORLD;

    switch (what) {
    case BENCH_ALLGATHER: MPI_Allgather (send, n, MPI_BYTE, recv, n, MPI_BYTE, all); break;
    case BENCH_ALLGATHERV:
        MPI_Allgatherv (send, n, MPI_BYTE, recv, counts, displs, MPI_BYTE, all);
        break;
    case BENCH_ALLTOALL: MPI_Alltoall (send, n, MPI_BYTE, recv, n, MPI_BYTE, all); break;
    case BENCH_BROADCAST: MPI_Bcast (send, n, MPI_BYTE, 0, all); break;
    case BENCH_GATHER: MPI_Gather (send, n, MPI_BYTE, recv, n, MPI_BYTE, 0, all); break;
    case BENCH_SENDRECV: send_around (send, recv, n); break;
    default: MPI_Scatter (send, n, MPI_BYTE, recv, n, MPI_BYTE, 0, all); break;
    }
}

static void mpi_move (enum bench_move what, void *send, void *recv, int count, int bytes,
                      gs_dtype_t dtype, int times)
{
    static int counts[MAX_RANKS], displs[MAX_RANKS];
    int size = world_size ();

    for (int r = 0; r < size && r < MAX_RANKS; r++) {
        counts[r] = bytes;
        displs[r] = r * bytes;
    }
    for (int t = 0; t < times; t++)
        if (combines (what))
            combine (what, send, recv, count, dtype);
        else
            transfer (what, send, recv, bytes, counts, displs);
}

/* What goes to the rank before has tag 0, what goes to the next one tag 1. */
static void neighbours (void *field, int bytes, int times)
{
    char *row[] = {field, (char *) field + bytes, (char *) field + 2 * (size_t) bytes,
                   (char *) field + 3 * (size_t) bytes};
    int rank, size = world_size (), before, next;
    MPI_Request requests[4];

    MPI_Comm_rank (MPI_COMM_WORLD, &rank);
    before = (rank + size - 1) % size;
    next = (rank + 1) % size;
    for (int t = 0; t < times; t++) {
        MPI_Irecv (row[0], bytes, MPI_BYTE, before, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv (row[3], bytes, MPI_BYTE, next, 0, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend (row[1], bytes, MPI_BYTE, before, 0, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend (row[2], bytes, MPI_BYTE, next, 1, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall (4, requests, MPI_STATUSES_IGNORE);
    }
}

static void pool_step (const struct bench_raw_pool *p, MPI_Comm node, MPI_Datatype row,
                       MPI_Datatype result)
{
    static int counts[MAX_RANKS], displs[MAX_RANKS];
    int size, all = 0;

    MPI_Comm_size (node, &size);
    MPI_Gather (&p->rows, 1, MPI_INT, counts, 1, MPI_INT, 0, node);
    for (int r = 0; r < size && r < MAX_RANKS && p->all_in; r++) {
        displs[r] = all;
        all += counts[r];
    }
    MPI_Gatherv (p->in, p->rows, row, p->all_in, counts, displs, row, 0, node);
    MPI_Scatterv (p->all_out, counts, displs, result, p->out, p->rows, result, 0, node);
}

static void pool (const struct bench_raw_pool *p, int times)
{
    static MPI_Comm node = MPI_COMM_NULL; /* until MPI ends */
    MPI_Datatype row, result;

    if (node == MPI_COMM_NULL)
        MPI_Comm_split (MPI_COMM_WORLD, p->node, 0, &node);
    MPI_Type_contiguous (p->in_bytes, MPI_BYTE, &row);
    MPI_Type_contiguous (p->out_bytes, MPI_BYTE, &result);
    MPI_Type_commit (&row);
    MPI_Type_commit (&result);
    for (int t = 0; t < times; t++)
        pool_step (p, node, row, result);
    MPI_Type_free (&row);
    MPI_Type_free (&result);
}

const struct bench_raw_mpi bench_raw_mpi = {
    .world_size = world_size,
    .start = start,
    .has_type = has_type,
    .allreduce_avg = allreduce_avg,
    .can_move = can_move,
    .move = mpi_move,
    .neighbours = neighbours,
    .pool = pool,
};
