/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op_average - gs_allreduce_avg beside MPI_Allreduce and a division, or ncclAllReduce: the whole
 * call, or (queue) what the host spends to queue it; and (bucket) what it spends on a bucket of a
 * reducer on a GPU, whose gradient is ready on the default stream, beside an event and
 * ncclAllReduce on another stream. For queue and bucket the stream is held meanwhile, so that the
 * time is that of the calls and not of their work.
 */
#include <stdint.h>
#include <stdio.h>

#include "tools/bench/bench.h"
#include "tools/bench/measure.h"
#include "tools/bench/raw.h"

#define MAX_CALLS 100 /* on a stream that is held: behind some 1000 launches CUDA waits */
#define TIMED     16  /* the first steps, which cost more */
#define ALL_BYTES ((size_t) 1 << 30) /* of the buckets of a step */

struct average_bench {
    const struct bench *bench;
    const struct bench_raw_mpi *mpi;
    const struct bench_raw_nccl *nccl;
    void *buf;
    size_t count;
    bool waits; /* for what is queued: the whole call is measured */

    gs_reducer_t *reducer; /* of buckets of [made] elements */
    size_t made;
    int buckets, next;
    bool held;
};

static bool nccl_good (const struct average_bench *w, const char *why)
{
    return !why || bench_fail (w->bench, "%s: %s", w->buckets ? "NCCL" : "ncclAllReduce", why);
}

/* ---- Averages ---- */

static bool average_ours (void *context, int times)
{
    const struct average_bench *w = context;
    gs_comm_t *comm = w->bench->comm;
    gs_status_t st = GS_OK;

    for (int t = 0; t < times && !st; t++)
        st = gs_allreduce_avg (comm, w->buf, w->count, w->bench->options.dtype, NULL);
    if (!st && w->waits)
        st = gs_comm_wait (comm, NULL);
    return bench_good (w->bench, st);
}

static bool average_mpi (void *context, int times)
{
    const struct average_bench *w = context;

    w->mpi->allreduce_avg (w->buf, (int) w->count, w->bench->options.dtype, times);
    return true;
}

static bool average_nccl (void *context, int times)
{
    const struct average_bench *w = context;

    return nccl_good (w, w->nccl->allreduce_avg (w->count, w->bench->options.dtype, times)) &&
           (!w->waits || nccl_good (w, w->nccl->wait ()));
}

/* The plain call for where the arrays are; false if there is none. */
static bool find_raw (struct average_bench *w, struct bench_side *raw)
{
    raw->context = w;
    if (w->bench->options.memory == BENCH_DEVICE) {
        w->nccl = bench_raw_nccl_open (w->bench);
        raw->repeat = average_nccl;
        raw->max_count = SIZE_MAX;
        return w->nccl != NULL;
    }
    w->mpi = bench_raw_mpi_open (w->bench);
    raw->repeat = average_mpi;
    raw->max_count = BENCH_RAW_MPI_MAX_COUNT;
    return w->mpi && w->mpi->has_type (w->bench->options.dtype);
}

/* ---- Buckets ---- */

/* Up to the end of the step. */
static bool finish_buckets (struct average_bench *w)
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
    struct average_bench *w = context;
    gs_reducer_opts_t opts = GS_REDUCER_OPTS_INIT;
    gs_dtype_t dtype = w->bench->options.dtype;
    char name[32];
    gs_status_t st;

    if (w->made == w->count)
        return true;
    opts.first_bytes = opts.bucket_bytes = opts.last_bytes = w->count * gs_dtype_size (dtype);
    opts.forward = 1;
    if (!(st = gs_reducer_destroy (w->reducer)))
        st = gs_reducer_create (w->bench->comm, &opts, &w->reducer);
    for (int i = 0; i < w->buckets && !st; i++) {
        snprintf (name, sizeof (name), "gradient %d", i);
        st = gs_reducer_add (w->reducer, name, 1, &w->count, dtype, NULL, NULL);
    }
    w->made = w->count;
    if (!bench_good (w->bench, st ? st : gs_reducer_commit (w->reducer)))
        return false;
    for (int s = 0; s < TIMED; s++)
        if (!finish_buckets (w))
            return false;
    return true;
}

static bool bucket_ours (void *context, int times)
{
    struct average_bench *w = context;
    gs_status_t st = GS_OK;

    if (!make_buckets (w))
        return false;
    for (int t = 0; t < times && !st; t++) {
        if (w->next == w->buckets && !finish_buckets (w))
            return false;
        st = gs_reducer_ready (w->reducer, w->next++, NULL);
    }
    return bench_good (w->bench, st) && (w->held || finish_buckets (w));
}

static bool bucket_nccl (void *context, int times)
{
    const struct average_bench *w = context;

    return nccl_good (w, w->nccl->bucket (w->count, w->bench->options.dtype, times));
}

/* ---- Runs ---- */

static bool hold (void *context)
{
    struct average_bench *w = context;

    w->held = true;
    return nccl_good (w, w->nccl->hold ());
}

static bool let_go (void *context)
{
    struct average_bench *w = context;

    w->held = false;
    w->nccl->release ();
    return nccl_good (w, w->nccl->wait ()) && (!w->next || finish_buckets (w));
}

bool bench_run_average (const struct bench *bench)
{
    struct average_bench work = {
        .bench = bench, .buf = bench_make_array (bench, bench->options.max_bytes), .waits = true};
    struct bench_side ours = {.repeat = average_ours, .context = &work}, raw = {0};
    bool ok = bench_agree (bench, work.buf != NULL);

    ok = ok && bench_sweep (bench, &work.count, &ours, find_raw (&work, &raw) ? &raw : NULL);
    if (work.nccl)
        work.nccl->close ();
    bench_free_array (bench, work.buf);
    return ok;
}

/* Measures what is queued on a stream that is held. */
static bool measure_queued (struct average_bench *w, struct bench_side ours,
                            bool (*raw_repeat) (void *context, int times))
{
    struct bench_side raw;
    bool ok;

    ours.before = hold;
    ours.after = let_go;
    ours.context = w;
    ours.max_count = SIZE_MAX;
    raw = ours;
    raw.repeat = raw_repeat;
    ok = (w->nccl = bench_raw_nccl_open (w->bench)) &&
         bench_sweep (w->bench, &w->count, &ours, &raw);
    gs_reducer_destroy (w->reducer);
    if (w->nccl)
        w->nccl->close ();
    return ok;
}

bool bench_run_queue (const struct bench *bench)
{
    struct average_bench work = {.bench = bench,
                                 .buf = bench_make_array (bench, bench->options.max_bytes)};
    struct bench_side ours = {.repeat = average_ours, .max_calls = MAX_CALLS};
    bool ok = bench_agree (bench, work.buf != NULL) && measure_queued (&work, ours, average_nccl);

    bench_free_array (bench, work.buf);
    return ok;
}

bool bench_run_bucket (const struct bench *bench)
{
    size_t most = ALL_BYTES / bench->options.max_bytes;
    struct average_bench work = {.bench = bench,
                                 .buckets = most < 1           ? 1
                                            : most < MAX_CALLS ? (int) most
                                                               : MAX_CALLS};
    struct bench_side ours = {
        .repeat = bucket_ours, .prepare = make_buckets, .max_calls = work.buckets};

    return measure_queued (&work, ours, bucket_nccl);
}
