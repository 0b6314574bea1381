/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op_pool - rows that arise unevenly go to the lowest rank of each node, and their results come
 * back: by a pool, where they are made in its memory, beside plain MPI that gathers their numbers
 * and them, and scatters the results. They are neither made nor evaluated in what is measured.
 *
 * Of each four ranks one has twice the rows, one none.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/bench.h"
#include "tools/bench/measure.h"
#include "tools/bench/raw.h"

#define INPUTS  16 /* elements of a row, */
#define OUTPUTS 4  /* and of its result */
#define TWICE   2  /* as many rows as a size asks for is the most that a rank has */

struct pool_bench {
    const struct bench *bench;
    const struct bench_raw_mpi *mpi;
    gs_pool_t *pool;
    size_t count;           /* elements that a rank gives on the average */
    size_t element;         /* bytes */
    bool filling;           /* the memory of the pool, with rows and results */
    char *in, *out;         /* of this rank; the first for MPI */
    char *all_in, *all_out; /* of the node, on its lowest rank, for MPI */
};

static size_t rows_for (size_t count)
{
    return (count + INPUTS - 1) / INPUTS;
}

static size_t pool_rows (const struct pool_bench *w)
{
    static const size_t times[] = {TWICE, 0, 1, 1};

    return times[gs_comm_local_rank (w->bench->comm) % 4] * rows_for (w->count);
}

static gs_status_t on_batch (size_t rows, const void *in, void *out, gs_stream_t stream,
                             void *context)
{
    const struct pool_bench *w = context;

    (void) in;
    (void) stream;
    if (w->filling)
        memset (out, 1, rows * OUTPUTS * w->element);
    return GS_OK;
}

static gs_status_t step (const struct pool_bench *w)
{
    size_t rows = pool_rows (w);
    gs_status_t st = gs_pool_begin (w->pool, NULL, rows);
    void *in;

    if (!st && w->filling && !(st = gs_pool_get_rows (w->pool, &in)))
        memset (in, 1, rows * INPUTS * w->element);
    return st ? st : gs_pool_end (w->pool, w->out);
}

static bool repeat_pool (void *context, int times)
{
    struct pool_bench *w = context;
    gs_status_t st = GS_OK;

    for (int t = 0; t < times && !st; t++)
        st = step (w);
    return bench_good (w->bench, st);
}

static bool pool_repeat_raw (void *context, int times)
{
    struct pool_bench *w = context;
    struct bench_raw_pool raw = {.in = w->in,
                                 .out = w->out,
                                 .node = gs_comm_node (w->bench->comm),
                                 .rows = (int) pool_rows (w),
                                 .in_bytes = (int) (INPUTS * w->element),
                                 .out_bytes = (int) (OUTPUTS * w->element),
                                 .all_in = w->all_in,
                                 .all_out = w->all_out};

    w->mpi->pool (&raw, times);
    return true;
}

/* Bytes of an array for [rows] rows of [wide] elements. */
static char *make_rows (const struct pool_bench *w, size_t rows, size_t wide)
{
    return bench_make_array (w->bench, rows * wide * w->element);
}

static bool make_arrays (struct pool_bench *w)
{
    size_t most = TWICE * rows_for (w->bench->options.max_bytes / w->element);
    size_t all = most * (size_t) gs_comm_local_size (w->bench->comm);
    bool first = gs_comm_local_rank (w->bench->comm) == 0;

    w->in = make_rows (w, most, INPUTS);
    w->out = make_rows (w, most, OUTPUTS);
    if (first && w->in && w->out) {
        w->all_in = make_rows (w, all, INPUTS);
        w->all_out = make_rows (w, all, OUTPUTS);
    }
    return bench_agree (w->bench, w->in && w->out && (!first || (w->all_in && w->all_out)));
}

/* Both steps that may be in flight, as long as they become. */
static gs_status_t fill_memory (struct pool_bench *w)
{
    gs_status_t st = GS_OK;

    w->count = w->bench->options.max_bytes / w->element;
    w->filling = true;
    for (int i = 0; i < 2 && !st; i++)
        st = step (w);
    w->filling = false;
    return st;
}

static bool make_pool (struct pool_bench *w)
{
    gs_pool_opts_t opts = GS_POOL_OPTS_INIT;

    opts.inputs = INPUTS;
    opts.outputs = OUTPUTS;
    opts.dtype = w->bench->options.dtype;
    opts.max_rows = TWICE * rows_for (w->bench->options.max_bytes / w->element);
    opts.evaluator = gs_comm_local_rank (w->bench->comm) ? GS_EVALUATOR_NO : GS_EVALUATOR_YES;
    opts.on_batch = on_batch;
    opts.context = w;
    return bench_good (w->bench, gs_pool_create (w->bench->comm, &opts, &w->pool)) &&
           bench_good (w->bench, fill_memory (w));
}

bool bench_run_pool (const struct bench *bench)
{
    struct pool_bench work = {.bench = bench, .element = gs_dtype_size (bench->options.dtype)};
    struct bench_side ours = {.repeat = repeat_pool, .context = &work};
    struct bench_side raw = {
        .repeat = pool_repeat_raw, .context = &work, .max_count = BENCH_RAW_MPI_MAX_COUNT};
    bool ok = make_arrays (&work);

    if (ok && (ok = make_pool (&work))) {
        work.mpi = bench_raw_mpi_open (bench);
        ok = bench_sweep (bench, &work.count, &ours, work.mpi ? &raw : NULL);
    }
    gs_pool_destroy (work.pool);
    bench_free_array (bench, work.in);
    bench_free_array (bench, work.out);
    bench_free_array (bench, work.all_in);
    bench_free_array (bench, work.all_out);
    return ok;
}
