/* SPDX-License-Identifier: BSD-3-Clause */
/* op_allgather - gs_allgather beside MPI_Allgather. */
#include <stdint.h>

#include "tools/bench/bench.h"
#include "tools/bench/measure.h"
#include "tools/bench/raw.h"

struct work {
    const struct bench *bench;
    const struct bench_raw_mpi *mpi;
    void *send, *recv;
    size_t count;
};

static bool repeat_ours (void *context, int times)
{
    const struct work *w = context;

    for (int t = 0; t < times; t++)
        if (gs_allgather (w->bench->comm, w->send, w->recv, w->count, w->bench->options.dtype,
                          NULL))
            return bench_fail (w->bench, "%s", gs_last_error ());
    return true;
}

static bool repeat_raw (void *context, int times)
{
    const struct work *w = context;
    size_t bytes = w->count * gs_dtype_size (w->bench->options.dtype);

    w->mpi->allgather (w->send, w->recv, (int) bytes, times);
    return true;
}

static bool get_memory (struct work *w)
{
    size_t bytes = w->bench->options.max_bytes;
    size_t size = (size_t) gs_comm_size (w->bench->comm);

    if (bytes > SIZE_MAX / size)
        return bench_fail (w->bench, "no memory for %zu times %zu bytes", size, bytes);
    w->send = bench_make_array (w->bench, bytes);
    w->recv = bench_make_array (w->bench, bytes * size);
    return w->send && w->recv;
}

static bool run (const struct bench *bench)
{
    struct work work = {.bench = bench};
    struct bench_side ours = {.repeat = repeat_ours, .context = &work};
    struct bench_side raw = {
        .repeat = repeat_raw, .context = &work, .max_count = BENCH_RAW_MPI_MAX_COUNT};
    bool ok = bench_agree (bench, get_memory (&work));

    if (ok) {
        work.mpi = bench_raw_mpi_open (bench);
        ok = bench_sweep (bench, &work.count, &ours, work.mpi ? &raw : NULL);
    }
    bench_free_array (bench, work.send);
    bench_free_array (bench, work.recv);
    return ok;
}

const struct bench_op bench_op_allgather = {
    .name = "allgather",
    .help = "collect from all ranks; raw: MPI_Allgather",
    .sized = true,
    .run = run,
};
