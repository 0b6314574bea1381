/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op_queue - what the host spends to queue gs_allreduce_avg, beside ncclAllReduce. The stream is
 * held meanwhile, so that the time is that of the calls and not of their work.
 */
#include <stdint.h>

#include "tools/bench/bench.h"
#include "tools/bench/measure.h"
#include "tools/bench/raw.h"

/* On a stream that is held: behind some 1000 launches CUDA waits. */
#define MAX_CALLS 100

struct queue_bench {
    const struct bench *bench;
    const struct bench_raw_nccl *nccl;
    void *buf;
    size_t count;
};

static bool queue_check (const struct queue_bench *w, const char *why)
{
    return !why || bench_fail (w->bench, "ncclAllReduce: %s", why);
}

static bool queue_repeat_ours (void *context, int times)
{
    const struct queue_bench *w = context;

    for (int t = 0; t < times; t++)
        if (gs_allreduce_avg (w->bench->comm, w->buf, w->count, w->bench->options.dtype, NULL))
            return bench_fail (w->bench, "%s", gs_last_error ());
    return true;
}

static bool queue_repeat_raw (void *context, int times)
{
    const struct queue_bench *w = context;

    return queue_check (w, w->nccl->allreduce_avg (w->count, w->bench->options.dtype, times));
}

static bool hold (void *context)
{
    const struct queue_bench *w = context;

    return queue_check (w, w->nccl->hold ());
}

static bool queue_release (void *context)
{
    const struct queue_bench *w = context;

    w->nccl->release ();
    return queue_check (w, w->nccl->wait ());
}

static bool queue_measure (struct queue_bench *w)
{
    struct bench_side ours = {.repeat = queue_repeat_ours,
                              .before = hold,
                              .after = queue_release,
                              .context = w,
                              .max_count = SIZE_MAX,
                              .max_calls = MAX_CALLS};
    struct bench_side raw = ours;

    raw.repeat = queue_repeat_raw;
    return bench_sweep (w->bench, &w->count, &ours, &raw);
}

bool bench_run_queue (const struct bench *bench)
{
    struct queue_bench work = {.bench = bench,
                               .buf = bench_make_array (bench, bench->options.max_bytes)};
    bool ok = bench_agree (bench, work.buf != NULL);

    ok = ok && (work.nccl = bench_raw_nccl_open (bench)) && queue_measure (&work);
    if (work.nccl)
        work.nccl->close ();
    bench_free_array (bench, work.buf);
    return ok;
}
