/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op_copy - memcpy of an array on all ranks at once: what memory allows an average. Each rank
 * reads and writes as much as one that adds up its share of all arrays in place. And, beside it,
 * CRC32C of the array, as a checkpoint takes of all its bytes.
 */
#include <string.h>

#include "base/crc32c.h"
#include "tools/bench/bench.h"
#include "tools/bench/measure.h"

struct copy_bench {
    const struct bench *bench;
    void *from, *to;
    size_t count;
    uint32_t sum;
};

static size_t bytes_of (const struct copy_bench *w)
{
    return w->count * gs_dtype_size (w->bench->options.dtype);
}

static bool copy_repeat (void *context, int times)
{
    const struct copy_bench *w = context;

    for (int t = 0; t < times; t++) {
        memcpy (w->to, w->from, bytes_of (w));
        __asm__ volatile("" ::: "memory"); /* each of them counts */
    }
    return true;
}

static bool take_sum (void *context, int times)
{
    struct copy_bench *w = context;

    for (int t = 0; t < times; t++)
        w->sum = gsi_crc32c (w->sum, w->from, bytes_of (w));
    return true;
}

bool bench_run_copy (const struct bench *bench)
{
    bool sums = bench->options.op->what;
    struct copy_bench work = {.bench = bench,
                              .from = bench_make_array (bench, bench->options.max_bytes),
                              .to = bench_make_array (bench, bench->options.max_bytes)};
    struct bench_side copies = {.repeat = copy_repeat, .context = &work, .max_count = SIZE_MAX};
    struct bench_side side = {.repeat = take_sum, .context = &work};
    bool ok = bench_agree (bench, work.from && work.to);

    ok = ok && bench_sweep (bench, &work.count, sums ? &side : &copies, sums ? &copies : NULL);
    bench_free_array (bench, work.from);
    bench_free_array (bench, work.to);
    return ok;
}
