/* SPDX-License-Identifier: BSD-3-Clause */
/* op_move - what moves or combines pieces, beside the same of MPI. */
#include <stdint.h>
#include <stdlib.h>

#include "tools/bench/bench.h"
#include "tools/bench/measure.h"
#include "tools/bench/raw.h"

struct move_bench {
    const struct bench *bench;
    const struct bench_raw_mpi *mpi;
    enum bench_move what;
    void *send, *recv;
    size_t *counts; /* of gs_allgatherv */
    size_t count;   /* of a piece */
};

/* Whose array has a piece for each rank; bits by enum bench_move. */
#define WHOLE_SEND (1U << BENCH_ALLTOALL | 1U << BENCH_REDUCE_SCATTER | 1U << BENCH_SCATTER)
#define WHOLE_RECV \
    (1U << BENCH_ALLGATHER | 1U << BENCH_ALLGATHERV | 1U << BENCH_ALLTOALL | 1U << BENCH_GATHER)

static gs_status_t send_around (const struct move_bench *w, gs_comm_t *comm, gs_dtype_t dtype)
{
    int rank = gs_comm_rank (comm), size = gs_comm_size (comm);
    gs_status_t st;

    if ((st = gs_group_begin (comm)) ||
        (st = gs_send (comm, w->send, w->count, dtype, (rank + 1) % size, NULL)) ||
        (st = gs_recv (comm, w->recv, w->count, dtype, (rank + size - 1) % size, NULL)))
        return st;
    return gs_group_end (comm);
}

/* The root is rank 0. */
static gs_status_t move (const struct move_bench *w, gs_comm_t *comm, gs_dtype_t dtype)
{
    size_t n = w->count, all = n * (size_t) gs_comm_size (comm);

    switch (w->what) {
    case BENCH_ALLGATHER: return gs_allgather (comm, w->send, w->recv, n, dtype, NULL);
    case BENCH_ALLGATHERV:
        return gs_allgatherv (comm, w->send, n, w->recv, all, w->counts, NULL, dtype, NULL);
    case BENCH_ALLTOALL: return gs_alltoall (comm, w->send, w->recv, n, dtype, NULL);
    case BENCH_BROADCAST: return gs_broadcast (comm, w->send, n, dtype, 0, NULL);
    case BENCH_GATHER: return gs_gather (comm, w->send, w->recv, n, dtype, 0, NULL);
    case BENCH_REDUCE: return gs_reduce (comm, w->send, w->recv, n, dtype, GS_SUM, 0, NULL);
    case BENCH_REDUCE_SCATTER:
        return gs_reduce_scatter (comm, w->send, w->recv, n, dtype, GS_SUM, NULL);
    case BENCH_SCATTER: return gs_scatter (comm, w->send, w->recv, n, dtype, 0, NULL);
    case BENCH_SENDRECV: break;
    }
    return send_around (w, comm, dtype);
}

static bool move_repeat_ours (void *context, int times)
{
    const struct move_bench *w = context;
    gs_status_t st = GS_OK;

    for (int r = 0; r < gs_comm_size (w->bench->comm); r++)
        w->counts[r] = w->count; /* bench_sweep changes it */
    for (int t = 0; t < times && !st; t++)
        st = move (w, w->bench->comm, w->bench->options.dtype);
    return bench_good (w->bench, st);
}

static bool move_repeat_raw (void *context, int times)
{
    const struct move_bench *w = context;
    size_t bytes = w->count * gs_dtype_size (w->bench->options.dtype);

    w->mpi->move (w->what, w->send, w->recv, (int) w->count, (int) bytes, w->bench->options.dtype,
                  times);
    return true;
}

static bool move_memory (struct move_bench *w)
{
    size_t bytes = w->bench->options.max_bytes;
    size_t size = (size_t) gs_comm_size (w->bench->comm);

    if (bytes > SIZE_MAX / size)
        return bench_fail (w->bench, "no memory for %zu times %zu bytes", size, bytes);
    w->send = bench_make_array (w->bench, WHOLE_SEND >> w->what & 1 ? bytes * size : bytes);
    w->recv = bench_make_array (w->bench, WHOLE_RECV >> w->what & 1 ? bytes * size : bytes);
    w->counts = malloc (size * sizeof (*w->counts));
    return w->send && w->recv && w->counts;
}

bool bench_run_move (const struct bench *bench)
{
    struct move_bench work = {.bench = bench, .what = (enum bench_move) bench->options.op->what};
    struct bench_side ours = {.repeat = move_repeat_ours, .context = &work};
    struct bench_side raw = {.repeat = move_repeat_raw, .context = &work};
    bool ok = bench_agree (bench, move_memory (&work));

    /* A count of bytes times the number of ranks fits in an int. */
    raw.max_count = BENCH_RAW_MPI_MAX_COUNT / (size_t) gs_comm_size (bench->comm);
    if (ok) {
        work.mpi = bench_raw_mpi_open (bench);
        if (work.mpi && !work.mpi->can_move (work.what, bench->options.dtype))
            work.mpi = NULL;
        ok = bench_sweep (bench, &work.count, &ours, work.mpi ? &raw : NULL);
    }
    bench_free_array (bench, work.send);
    bench_free_array (bench, work.recv);
    free (work.counts);
    return ok;
}
