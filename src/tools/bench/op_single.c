/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op_single - what has no size.
 *
 * bootstrap: finding all ranks: the open and exchange phases of gs_comm_create beside PMIx_Init,
 * a fence that collects, and the gets. PMIx counts its initialisations and gradsync keeps it
 * open, so the rounds tell what a create costs a running job. The first create, which also
 * reaches the server, is told in a remark: on rank 0, where it has the wait for ranks that start
 * later in it, and on the rank that came last.
 *
 * split: making groups: gs_comm_split into halves, of all ranks as they are interleaved. There is
 * no plain call that makes the same: MPI_Comm_split makes no shared memory.
 *
 * record: what an entry of the flight record costs, which every call pays.
 */
#include <math.h>
#include <stdlib.h>

#include "base/record.h"
#include "core/card.h"
#include "tools/bench/bench.h"
#include "tools/bench/measure.h"
#include "tools/bench/output.h"
#include "tools/bench/raw.h"

struct single_bench {
    const struct bench *bench;
    int round;
    gs_comm_t *group;
    double ours_us, raw_us; /* what the bootstraps took */
};

/* One call in a round of each of [sides] sides, ours last, and the line of it. */
static bool measure_single (const struct bench *bench, const struct bench_side *const *side,
                            int sides, size_t bytes)
{
    struct bench_result result = {
        .bytes = bytes, .iterations = 1, .transport = gs_comm_transport (bench->comm)};
    double *times = calloc ((size_t) (sides * bench->options.rounds), sizeof (*times));
    double medians[2];
    bool ok = bench_agree (bench, times || bench_fail (bench, "out of memory"));

    ok = ok && bench_rounds (bench, side, sides, 1, times) &&
         bench_medians (bench, times, sides, medians);
    if (ok) {
        result.time_us = medians[sides - 1];
        result.raw_time_us = sides > 1 ? medians[0] : NAN;
        bench_print_head (bench, false);
        bench_print (bench, &result);
    }
    free (times);
    return ok;
}

/* ---- bootstrap ---- */

static bool create_one (void *context, int times)
{
    struct single_bench *w = context;
    gs_comm_times_t took = {.size = sizeof (took)};
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    gs_status_t st = GS_OK;
    gs_comm_t *comm;

    opts.name = "bench";
    opts.device = GS_DEVICE_HOST;
    for (int t = 0; t < times && !st; t++)
        if (!(st = gs_comm_create (&opts, &comm)) && !(st = gs_comm_get_times (comm, &took)))
            st = gs_comm_destroy (comm);
    w->ours_us = took.open_us + took.exchange_us;
    return bench_good (w->bench, st);
}

static bool exchange_raw (void *context, int times)
{
    struct single_bench *w = context;

    for (int t = 0; t < times; t++) {
        if (!bench_raw_pmix (w->bench, w->round++, sizeof (struct gsi_card), &w->raw_us))
            return false;
        bench_raw_pmix_close ();
    }
    return true;
}

static void remark_first (const struct bench *bench)
{
    gs_comm_times_t first = {.size = sizeof (first)};
    double least;

    if (gs_comm_get_times (bench->comm, &first))
        return;
    least = first.open_us + first.exchange_us;
    if (gs_allreduce (bench->comm, &least, 1, GS_F64, GS_MIN, NULL))
        return;
    bench_remark (bench,
                  "first create of the process, on rank 0: open %.0f us, exchange %.0f us, "
                  "transport %.0f us; open and exchange on the rank that came last: %.0f us",
                  first.open_us, first.exchange_us, first.transport_us, least);
}

bool bench_run_bootstrap (const struct bench *bench)
{
    struct single_bench work = {.bench = bench};
    struct bench_side ours = {.repeat = create_one, .us = &work.ours_us, .context = &work};
    struct bench_side raw = {.repeat = exchange_raw, .us = &work.raw_us, .context = &work};
    const struct bench_side *side[] = {&raw, &ours};
    int sides = bench_agree (bench, bench_raw_pmix_answers ()) ? 2 : 1;

    if (!measure_single (bench, side + 2 - sides, sides, sizeof (struct gsi_card)))
        return false;
    remark_first (bench);
    return true;
}

/* ---- split ---- */

static bool finish_all (void *context)
{
    const struct single_bench *w = context;

    return bench_good (w->bench, gs_comm_wait (w->bench->comm, NULL));
}

static bool split_once (void *context, int times)
{
    struct single_bench *w = context;
    gs_comm_t *comm = w->bench->comm;
    gs_status_t st = GS_OK;

    for (int t = 0; t < times && !st; t++)
        st = gs_comm_split (comm, gs_comm_rank (comm) % 2, 0, &w->group);
    return bench_good (w->bench, st);
}

/* The destroy is not timed. */
static bool end_group (void *context)
{
    const struct single_bench *w = context;

    return bench_good (w->bench, gs_comm_destroy (w->group));
}

bool bench_run_split (const struct bench *bench)
{
    struct single_bench work = {.bench = bench};
    const struct bench_side ours = {
        .repeat = split_once, .before = finish_all, .after = end_group, .context = &work};
    const struct bench_side *side = &ours;

    return measure_single (bench, &side, 1, 0);
}

/* ---- record ---- */

static bool write_entries (void *record, int times)
{
    for (int t = 0; t < times; t++) {
        gsi_record_begin (record, GSI_OP_BARRIER, 0, 0, 0);
        gsi_record_end (record, GS_OK);
    }
    return true;
}

bool bench_run_record (const struct bench *bench)
{
    struct gsi_record record;
    struct bench_side ours = {.repeat = write_entries, .context = &record};
    struct bench_result result = {.transport = gs_comm_transport (bench->comm)};
    int rank = gs_comm_rank (bench->comm), size = gs_comm_size (bench->comm);
    gs_status_t st = gsi_record_open (&record, "gs-bench", "record", 0, rank, size,
                                      gs_comm_host_of (bench->comm, rank));
    bool ok = bench_agree (bench, bench_good (bench, st));

    if (ok) {
        bench_print_head (bench, false);
        ok = bench_compare (bench, &ours, NULL, &result);
    }
    if (ok) {
        bench_print (bench, &result);
        bench_remark (bench, "one entry: %.1f ns", result.time_us * 1e3);
    }
    gsi_record_close (&record, 0);
    return ok;
}
