/* SPDX-License-Identifier: BSD-3-Clause */
/* op_move - what moves or combines pieces, beside the same of MPI. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/bench.h"
#include "tools/bench/measure.h"
#include "tools/bench/raw.h"

struct move_bench {
    const struct bench *bench;
    const struct bench_raw_mpi *mpi;
    const struct movement *movement;
    void *send, *recv;
    size_t *counts; /* of gs_allgatherv */
    size_t count;   /* of a piece */
};

/* What differs between the operations. The root is rank 0. */
struct movement {
    const char *name;
    enum bench_move raw;
    bool whole_send, whole_recv; /* the array has a piece for each rank */
    gs_status_t (*ours) (const struct move_bench *w, gs_comm_t *comm, gs_dtype_t dtype);
};

static gs_status_t move_allgather (const struct move_bench *w, gs_comm_t *comm, gs_dtype_t dtype)
{
    return gs_allgather (comm, w->send, w->recv, w->count, dtype, NULL);
}

static gs_status_t allgatherv (const struct move_bench *w, gs_comm_t *comm, gs_dtype_t dtype)
{
    size_t size = (size_t) gs_comm_size (comm);

    return gs_allgatherv (comm, w->send, w->count, w->recv, size * w->count, w->counts, NULL,
                          dtype, NULL);
}

static gs_status_t alltoall (const struct move_bench *w, gs_comm_t *comm, gs_dtype_t dtype)
{
    return gs_alltoall (comm, w->send, w->recv, w->count, dtype, NULL);
}

static gs_status_t move_broadcast (const struct move_bench *w, gs_comm_t *comm, gs_dtype_t dtype)
{
    return gs_broadcast (comm, w->send, w->count, dtype, 0, NULL);
}

static gs_status_t move_gather (const struct move_bench *w, gs_comm_t *comm, gs_dtype_t dtype)
{
    return gs_gather (comm, w->send, w->recv, w->count, dtype, 0, NULL);
}

static gs_status_t move_reduce (const struct move_bench *w, gs_comm_t *comm, gs_dtype_t dtype)
{
    return gs_reduce (comm, w->send, w->recv, w->count, dtype, GS_SUM, 0, NULL);
}

static gs_status_t move_reduce_scatter (const struct move_bench *w, gs_comm_t *comm,
                                        gs_dtype_t dtype)
{
    return gs_reduce_scatter (comm, w->send, w->recv, w->count, dtype, GS_SUM, NULL);
}

static gs_status_t scatter (const struct move_bench *w, gs_comm_t *comm, gs_dtype_t dtype)
{
    return gs_scatter (comm, w->send, w->recv, w->count, dtype, 0, NULL);
}

static gs_status_t sendrecv (const struct move_bench *w, gs_comm_t *comm, gs_dtype_t dtype)
{
    int rank = gs_comm_rank (comm), size = gs_comm_size (comm);
    gs_status_t st;

    if ((st = gs_group_begin (comm)) ||
        (st = gs_send (comm, w->send, w->count, dtype, (rank + 1) % size, NULL)) ||
        (st = gs_recv (comm, w->recv, w->count, dtype, (rank + size - 1) % size, NULL)))
        return st;
    return gs_group_end (comm);
}

static const struct movement movements[] = {
    {"allgather", BENCH_ALLGATHER, false, true, move_allgather},
    {"allgatherv", BENCH_ALLGATHERV, false, true, allgatherv},
    {"alltoall", BENCH_ALLTOALL, true, true, alltoall},
    {"broadcast", BENCH_BROADCAST, false, false, move_broadcast},
    {"gather", BENCH_GATHER, false, true, move_gather},
    {"reduce", BENCH_REDUCE, false, false, move_reduce},
    {"reduce_scatter", BENCH_REDUCE_SCATTER, true, false, move_reduce_scatter},
    {"scatter", BENCH_SCATTER, true, false, scatter},
    {"sendrecv", BENCH_SENDRECV, false, false, sendrecv},
};

static bool move_repeat_ours (void *context, int times)
{
    const struct move_bench *w = context;

    for (int r = 0; r < gs_comm_size (w->bench->comm); r++)
        w->counts[r] = w->count; /* bench_sweep changes it */
    for (int t = 0; t < times; t++)
        if (w->movement->ours (w, w->bench->comm, w->bench->options.dtype))
            return bench_fail (w->bench, "%s", gs_last_error ());
    return true;
}

static bool move_repeat_raw (void *context, int times)
{
    const struct move_bench *w = context;
    size_t bytes = w->count * gs_dtype_size (w->bench->options.dtype);

    w->mpi->move (w->movement->raw, w->send, w->recv, (int) w->count, (int) bytes,
                  w->bench->options.dtype, times);
    return true;
}

static bool move_memory (struct move_bench *w)
{
    size_t bytes = w->bench->options.max_bytes;
    size_t size = (size_t) gs_comm_size (w->bench->comm);

    if (bytes > SIZE_MAX / size)
        return bench_fail (w->bench, "no memory for %zu times %zu bytes", size, bytes);
    w->send = bench_make_array (w->bench, w->movement->whole_send ? bytes * size : bytes);
    w->recv = bench_make_array (w->bench, w->movement->whole_recv ? bytes * size : bytes);
    w->counts = malloc (size * sizeof (*w->counts));
    return w->send && w->recv && w->counts;
}

static bool run_move (const struct bench *bench)
{
    struct move_bench work = {.bench = bench, .movement = movements};
    struct bench_side ours = {.repeat = move_repeat_ours, .context = &work};
    struct bench_side raw = {.repeat = move_repeat_raw, .context = &work};
    bool ok;

    while (strcmp (work.movement->name, bench->options.op->name) != 0)
        work.movement++;
    ok = bench_agree (bench, move_memory (&work));
    /* A count of bytes times the number of ranks fits in an int. */
    raw.max_count = BENCH_RAW_MPI_MAX_COUNT / (size_t) gs_comm_size (bench->comm);
    if (ok) {
        work.mpi = bench_raw_mpi_open (bench);
        if (work.mpi && !work.mpi->can_move (work.movement->raw, bench->options.dtype))
            work.mpi = NULL;
        ok = bench_sweep (bench, &work.count, &ours, work.mpi ? &raw : NULL);
    }
    bench_free_array (bench, work.send);
    bench_free_array (bench, work.recv);
    free (work.counts);
    return ok;
}

const struct bench_op bench_op_allgather = {
    .name = "allgather",
    .help = "collect from all ranks; raw: MPI_Allgather",
    .sized = true,
    .run = run_move,
};

const struct bench_op bench_op_allgatherv = {
    .name = "allgatherv",
    .help = "collect pieces of given lengths from all ranks; raw: MPI_Allgatherv",
    .sized = true,
    .run = run_move,
};

const struct bench_op bench_op_alltoall = {
    .name = "alltoall",
    .help = "from each rank to each; raw: MPI_Alltoall",
    .sized = true,
    .run = run_move,
};

const struct bench_op bench_op_broadcast = {
    .name = "broadcast",
    .help = "from rank 0 to all; raw: MPI_Bcast",
    .sized = true,
    .run = run_move,
};

const struct bench_op bench_op_gather = {
    .name = "gather",
    .help = "collect from all ranks on rank 0; raw: MPI_Gather",
    .sized = true,
    .run = run_move,
};

const struct bench_op bench_op_reduce = {
    .name = "reduce",
    .help = "sum on rank 0; raw: MPI_Reduce",
    .sized = true,
    .run = run_move,
};

const struct bench_op bench_op_reduce_scatter = {
    .name = "reduce_scatter",
    .help = "sum, a part for each rank; raw: MPI_Reduce_scatter_block",
    .sized = true,
    .run = run_move,
};

const struct bench_op bench_op_scatter = {
    .name = "scatter",
    .help = "parts of rank 0's array to all; raw: MPI_Scatter",
    .sized = true,
    .run = run_move,
};

const struct bench_op bench_op_sendrecv = {
    .name = "sendrecv",
    .help = "to the next rank, from the one before; raw: MPI_Sendrecv",
    .sized = true,
    .run = run_move,
};
