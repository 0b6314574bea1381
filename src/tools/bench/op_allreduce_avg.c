/* SPDX-License-Identifier: BSD-3-Clause */
/* op_allreduce_avg - gs_allreduce_avg beside MPI_Allreduce and a division. */
#include <stdlib.h>
#include <string.h>

#include "tools/bench/bench.h"
#include "tools/bench/measure.h"
#include "tools/bench/raw.h"

struct work {
    const struct bench *bench;
    const struct bench_raw_mpi *mpi;
    void *buf;
    size_t count;
};

static bool repeat_ours (void *context, int times)
{
    const struct work *w = context;

    for (int t = 0; t < times; t++)
        if (gs_allreduce_avg (w->bench->comm, w->buf, w->count, w->bench->options.dtype, NULL))
            return bench_fail (w->bench, "%s", gs_last_error ());
    return true;
}

static bool repeat_raw (void *context, int times)
{
    const struct work *w = context;

    w->mpi->allreduce_avg (w->buf, (int) w->count, w->bench->options.dtype, times);
    return true;
}

static bool takes (gs_dtype_t dtype)
{
    return dtype == GS_F16 || dtype == GS_BF16 || dtype == GS_F32 || dtype == GS_F64 ||
           dtype == GS_C64 || dtype == GS_C128;
}

static bool run (const struct bench *bench)
{
    struct work work = {.bench = bench, .buf = malloc (bench->options.max_bytes)};
    struct bench_side ours = {.repeat = repeat_ours, .context = &work};
    struct bench_side raw = {
        .repeat = repeat_raw, .context = &work, .max_count = BENCH_RAW_MPI_MAX_COUNT};
    bool ok = work.buf || bench_fail (bench, "no memory for %zu bytes", bench->options.max_bytes);

    ok = bench_agree (bench, ok);
    if (ok) {
        work.mpi = bench_raw_mpi_open (bench);
        memset (work.buf, BENCH_FILL, bench->options.max_bytes);
        ok = bench_sweep (bench, &work.count, &ours,
                          work.mpi && work.mpi->has_type (bench->options.dtype) ? &raw : NULL);
    }
    free (work.buf);
    return ok;
}

const struct bench_op bench_op_allreduce_avg = {
    .name = "allreduce_avg",
    .help = "average over ranks; raw: MPI_Allreduce and division",
    .sized = true,
    .takes = takes,
    .run = run,
};
