/* SPDX-License-Identifier: BSD-3-Clause */
/* op_allreduce_avg - gs_allreduce_avg beside MPI_Allreduce and a division, or ncclAllReduce. */
#include <stdint.h>

#include "tools/bench/bench.h"
#include "tools/bench/measure.h"
#include "tools/bench/raw.h"

struct average_bench {
    const struct bench *bench;
    const struct bench_raw_mpi *mpi;
    const struct bench_raw_nccl *nccl;
    void *buf;
    size_t count;
};

static bool average_repeat_ours (void *context, int times)
{
    const struct average_bench *w = context;
    gs_comm_t *comm = w->bench->comm;

    for (int t = 0; t < times; t++)
        if (gs_allreduce_avg (comm, w->buf, w->count, w->bench->options.dtype, NULL))
            return bench_fail (w->bench, "%s", gs_last_error ());
    return bench_good (w->bench, gs_comm_wait (comm, NULL));
}

static bool repeat_mpi (void *context, int times)
{
    const struct average_bench *w = context;

    w->mpi->allreduce_avg (w->buf, (int) w->count, w->bench->options.dtype, times);
    return true;
}

static bool repeat_nccl (void *context, int times)
{
    const struct average_bench *w = context;
    const char *why = w->nccl->allreduce_avg (w->count, w->bench->options.dtype, times);

    if (!why)
        why = w->nccl->wait ();
    return !why || bench_fail (w->bench, "ncclAllReduce: %s", why);
}

/* The plain call for where the arrays are; false if there is none. */
static bool find_raw (struct average_bench *w, struct bench_side *raw)
{
    raw->context = w;
    if (w->bench->options.memory == BENCH_DEVICE) {
        w->nccl = bench_raw_nccl_open (w->bench);
        raw->repeat = repeat_nccl;
        raw->max_count = SIZE_MAX;
        return w->nccl != NULL;
    }
    w->mpi = bench_raw_mpi_open (w->bench);
    raw->repeat = repeat_mpi;
    raw->max_count = BENCH_RAW_MPI_MAX_COUNT;
    return w->mpi && w->mpi->has_type (w->bench->options.dtype);
}

bool bench_run_average (const struct bench *bench)
{
    struct average_bench work = {.bench = bench,
                                 .buf = bench_make_array (bench, bench->options.max_bytes)};
    struct bench_side ours = {.repeat = average_repeat_ours, .context = &work}, raw = {0};
    bool ok = bench_agree (bench, work.buf != NULL);

    ok = ok && bench_sweep (bench, &work.count, &ours, find_raw (&work, &raw) ? &raw : NULL);
    if (work.nccl)
        work.nccl->close ();
    bench_free_array (bench, work.buf);
    return ok;
}
