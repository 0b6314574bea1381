/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op_bucket - what the host spends on a bucket of a reducer on a GPU: a gradient is ready on the
 * default stream, which is held meanwhile. Beside it an event and ncclAllReduce on another
 * stream.
 */
#include <stdint.h>
#include <stdio.h>

#include "tools/bench/bench.h"
#include "tools/bench/measure.h"
#include "tools/bench/raw.h"

#define MAX_BUCKETS 100                /* CUDA queues about 1000 launches, then waits */
#define TIMED       16                 /* the first steps, which cost more */
#define ALL_BYTES   ((size_t) 1 << 30) /* of the buckets of a step */

struct bucket_bench {
    const struct bench *bench;
    const struct bench_raw_nccl *nccl;
    gs_reducer_t *reducer;
    size_t count, made; /* elements of a bucket; those that [reducer] has */
    int buckets, next;
    bool held;
};

static bool bucket_plain (const struct bucket_bench *w, const char *why)
{
    return !why || bench_fail (w->bench, "NCCL: %s", why);
}

/* Up to the end of the step. */
static bool finish_buckets (struct bucket_bench *w)
{
    gs_status_t st = GS_OK;

    while (w->next < w->buckets && !st)
        st = gs_reducer_ready (w->reducer, w->next++, NULL);
    w->next = 0;
    if (!st)
        st = gs_reducer_finish (w->reducer, NULL);
    return bench_good (w->bench, st ? st : gs_comm_wait (w->bench->comm, NULL));
}

/* Collective: a reducer of buckets of one gradient each, some steps old. */
static bool make_buckets (void *context)
{
    struct bucket_bench *w = context;
    gs_reducer_opts_t opts = GS_REDUCER_OPTS_INIT;
    gs_dtype_t dtype = w->bench->options.dtype;
    char name[32];
    bool ok = true;

    if (w->made == w->count)
        return true;
    opts.first_bytes = opts.bucket_bytes = opts.last_bytes = w->count * gs_dtype_size (dtype);
    opts.forward = 1;
    if (!bench_good (w->bench, gs_reducer_destroy (w->reducer)) ||
        !bench_good (w->bench, gs_reducer_create (w->bench->comm, &opts, &w->reducer)))
        return false;
    for (int i = 0; i < w->buckets && ok; i++) {
        snprintf (name, sizeof (name), "gradient %d", i);
        ok = bench_good (w->bench,
                         gs_reducer_add (w->reducer, name, 1, &w->count, dtype, NULL, NULL));
    }
    w->made = w->count;
    ok = ok && bench_good (w->bench, gs_reducer_commit (w->reducer));
    for (int s = 0; s < TIMED && ok; s++)
        ok = finish_buckets (w);
    return ok;
}

static bool bucket_repeat_ours (void *context, int times)
{
    struct bucket_bench *w = context;

    if (!make_buckets (w))
        return false;
    for (int t = 0; t < times; t++)
        if ((w->next == w->buckets && !finish_buckets (w)) ||
            !bench_good (w->bench, gs_reducer_ready (w->reducer, w->next++, NULL)))
            return false;
    return w->held || finish_buckets (w);
}

static bool bucket_repeat_raw (void *context, int times)
{
    const struct bucket_bench *w = context;

    return bucket_plain (w, w->nccl->bucket (w->count, w->bench->options.dtype, times));
}

static bool hold_stream (void *context)
{
    struct bucket_bench *w = context;

    w->held = true;
    return bucket_plain (w, w->nccl->hold ());
}

static bool let_stream_go (void *context)
{
    struct bucket_bench *w = context;

    w->held = false;
    w->nccl->release ();
    return bucket_plain (w, w->nccl->wait ()) && (!w->next || finish_buckets (w));
}

bool bench_run_bucket (const struct bench *bench)
{
    size_t most = ALL_BYTES / bench->options.max_bytes;
    struct bucket_bench work = {.bench = bench,
                                .nccl = bench_raw_nccl_open (bench),
                                .buckets = most < 1             ? 1
                                           : most < MAX_BUCKETS ? (int) most
                                                                : MAX_BUCKETS};
    struct bench_side ours = {.repeat = bucket_repeat_ours,
                              .prepare = make_buckets,
                              .before = hold_stream,
                              .after = let_stream_go,
                              .context = &work,
                              .max_count = SIZE_MAX,
                              .max_calls = work.buckets};
    struct bench_side raw = ours;
    bool ok;

    raw.repeat = bucket_repeat_raw;
    ok = work.nccl && bench_sweep (bench, &work.count, &ours, &raw);
    gs_reducer_destroy (work.reducer);
    if (work.nccl)
        work.nccl->close ();
    return ok;
}
