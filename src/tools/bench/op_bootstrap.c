/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op_bootstrap - finding all ranks: the open and exchange phases of gs_comm_create beside
 * PMIx_Init, a fence that collects, and the gets.
 *
 * PMIx counts its initialisations and gradsync keeps it open, so the rounds tell what a create
 * costs a running job. The first create, which also reaches the server, is told in a remark: on
 * rank 0, where it has the wait for ranks that start later in it, and on the rank that came last.
 */
#include <math.h>
#include <stdlib.h>

#include "core/card.h"
#include "tools/bench/bench.h"
#include "tools/bench/measure.h"
#include "tools/bench/output.h"
#include "tools/bench/raw.h"

/* One create and destroy; what its bootstrap took, in [us]. */
static bool time_ours (const struct bench *bench, double *us)
{
    gs_comm_times_t times = {.size = sizeof (times)};
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    gs_comm_t *comm;

    opts.name = "bench";
    opts.device = GS_DEVICE_HOST;
    if (gs_barrier (bench->comm, NULL) || gs_comm_create (&opts, &comm))
        return bench_fail (bench, "%s", gs_last_error ());
    if (gs_comm_get_times (comm, &times) || gs_comm_destroy (comm))
        return bench_fail (bench, "%s", gs_last_error ());
    *us = times.open_us + times.exchange_us;
    return true;
}

static bool time_raw (const struct bench *bench, int round, double *us)
{
    struct bench_raw_pmix_times times;

    if (gs_barrier (bench->comm, NULL))
        return bench_fail (bench, "%s", gs_last_error ());
    if (!bench_raw_pmix (bench, round, sizeof (struct gsi_card), &times))
        return false;
    bench_raw_pmix_close ();
    *us = times.open_us + times.exchange_us;
    return true;
}

/* Fills times: [rounds] of ours, then of the raw exchange. Who begins changes every round. */
static bool run_rounds (const struct bench *bench, bool with_raw, double *times)
{
    int rounds = bench->options.rounds;
    bool ok = true;

    for (int round = 0; round < rounds && ok; round++) {
        double *ours = &times[round], *raw = &times[rounds + round];
        if (round % 2)
            ok = time_ours (bench, ours) && (!with_raw || time_raw (bench, round, raw));
        else
            ok = (!with_raw || time_raw (bench, round, raw)) && time_ours (bench, ours);
    }
    return ok;
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

static void bootstrap_print (const struct bench *bench, const double *medians)
{
    struct bench_result result = {.bytes = sizeof (struct gsi_card), .iterations = 1};

    result.transport = gs_comm_transport (bench->comm);
    result.time_us = medians[0];
    result.raw_time_us = medians[1];
    bench_print_head (bench, false);
    bench_print (bench, &result);
    remark_first (bench);
}

bool bench_run_bootstrap (const struct bench *bench)
{
    double *times = calloc ((size_t) (2 * bench->options.rounds), sizeof (*times));
    double medians[2] = {NAN, NAN};
    bool ok = bench_agree (bench, times || bench_fail (bench, "out of memory"));
    bool with_raw = ok && bench_agree (bench, bench_raw_pmix_answers ());

    ok = ok && run_rounds (bench, with_raw, times) &&
         bench_medians (bench, times, with_raw ? 2 : 1, medians);
    if (ok)
        bootstrap_print (bench, medians);
    free (times);
    return ok;
}
