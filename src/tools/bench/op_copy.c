/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op_copy - memcpy of an array on all ranks at once: what memory allows an average. Each rank
 * reads and writes as much as one that adds up its share of all arrays in place.
 */
#include <string.h>

#include "tools/bench/bench.h"
#include "tools/bench/measure.h"

struct work {
    const struct bench *bench;
    void *from, *to;
    size_t count;
};

static bool repeat (void *context, int times)
{
    const struct work *w = context;
    size_t bytes = w->count * gs_dtype_size (w->bench->options.dtype);

    for (int t = 0; t < times; t++) {
        memcpy (w->to, w->from, bytes);
        __asm__ volatile("" ::: "memory"); /* each of them counts */
    }
    return true;
}

static bool run (const struct bench *bench)
{
    struct work work = {.bench = bench,
                        .from = bench_make_array (bench, bench->options.max_bytes),
                        .to = bench_make_array (bench, bench->options.max_bytes)};
    struct bench_side ours = {.repeat = repeat, .context = &work};
    bool ok = bench_agree (bench, work.from && work.to);

    ok = ok && bench_sweep (bench, &work.count, &ours, NULL);
    bench_free_array (bench, work.from);
    bench_free_array (bench, work.to);
    return ok;
}

const struct bench_op bench_op_copy = {
    .name = "copy",
    .help = "memcpy on all ranks at once, what memory allows; raw: none",
    .sized = true,
    .run = run,
};
