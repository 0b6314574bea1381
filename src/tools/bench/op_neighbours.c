/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op_neighbours - what ranks in a ring exchange with both neighbours, beside MPI's messages in
 * the same places: rows of a field of two own rows and a ghost row on either side.
 */
#include <stdint.h>

#include "tools/bench/bench.h"
#include "tools/bench/measure.h"
#include "tools/bench/raw.h"

#define ROWS 4 /* ghosts from the rank before, two own rows, ghosts from the next one */

struct neighbours_bench {
    const struct bench *bench;
    const struct bench_raw_mpi *mpi;
    char *field;
    size_t count; /* of a row */
    gs_halo_t *halo;
    size_t made; /* rows of the halo have as many */
};

static void *row (const struct neighbours_bench *w, int i)
{
    return w->field + (size_t) i * w->count * gs_dtype_size (w->bench->options.dtype);
}

/* Of two ranks each is the other one's neighbour on both sides: receives are in the order of the
 * sends. */
static gs_status_t exchange_neighbours (const struct neighbours_bench *w)
{
    gs_comm_t *comm = w->bench->comm;
    gs_dtype_t dtype = w->bench->options.dtype;
    int rank = gs_comm_rank (comm), size = gs_comm_size (comm);
    int before = (rank + size - 1) % size, next = (rank + 1) % size;
    gs_status_t st;

    if ((st = gs_group_begin (comm)) ||
        (st = gs_send (comm, row (w, 1), w->count, dtype, before, NULL)) ||
        (st = gs_send (comm, row (w, 2), w->count, dtype, next, NULL)) ||
        (st = gs_recv (comm, row (w, 3), w->count, dtype, next, NULL)) ||
        (st = gs_recv (comm, row (w, 0), w->count, dtype, before, NULL)))
        return st;
    return gs_group_end (comm);
}

static bool repeat_messages (void *context, int times)
{
    const struct neighbours_bench *w = context;
    gs_status_t st = GS_OK;

    for (int t = 0; t < times && !st; t++)
        st = exchange_neighbours (w);
    return bench_good (w->bench, st);
}

/* A halo for rows of this length: bench_sweep changes it. */
static gs_status_t make_halo (struct neighbours_bench *w)
{
    size_t extents[] = {2, w->count}, width[] = {1, 0};
    int grid[] = {gs_comm_size (w->bench->comm), 1}, periodic[] = {1, 0};

    if (w->made == w->count)
        return GS_OK;
    gs_halo_destroy (w->halo);
    w->made = w->count;
    return gs_halo_create (w->bench->comm, 2, grid, extents, width, periodic,
                           w->bench->options.dtype, &w->halo);
}

static bool repeat_halo (void *context, int times)
{
    struct neighbours_bench *w = context;
    gs_status_t st = make_halo (w);

    for (int t = 0; t < times && !st; t++)
        st = gs_halo_exchange (w->halo, w->field, NULL);
    return bench_good (w->bench, st);
}

static bool neighbours_repeat_raw (void *context, int times)
{
    const struct neighbours_bench *w = context;

    w->mpi->neighbours (w->field, (int) (w->count * gs_dtype_size (w->bench->options.dtype)),
                        times);
    return true;
}

bool bench_run_neighbours (const struct bench *bench)
{
    struct neighbours_bench work = {.bench = bench};
    struct bench_side ours = {.repeat = repeat_messages, .context = &work};
    struct bench_side raw = {
        .repeat = neighbours_repeat_raw, .context = &work, .max_count = BENCH_RAW_MPI_MAX_COUNT};
    bool ok;

    if (bench->options.op->what)
        ours.repeat = repeat_halo;
    if (bench->options.max_bytes <= SIZE_MAX / ROWS)
        work.field = bench_make_array (bench, ROWS * bench->options.max_bytes);
    else
        bench_fail (bench, "no memory for %d times %zu bytes", ROWS, bench->options.max_bytes);
    if ((ok = bench_agree (bench, work.field))) {
        work.mpi = bench_raw_mpi_open (bench);
        ok = bench_sweep (bench, &work.count, &ours, work.mpi ? &raw : NULL);
    }
    gs_halo_destroy (work.halo);
    bench_free_array (bench, work.field);
    return ok;
}
