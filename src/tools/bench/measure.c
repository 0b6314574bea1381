/* SPDX-License-Identifier: BSD-3-Clause */
/* measure - times sides in turn, so that what disturbs one disturbs the other. */
#include "tools/bench/measure.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tools/bench/options.h"
#include "tools/bench/output.h"
#include "tools/bench/stats.h"

#define ROUND_US       2000.0 /* long against the meeting before it, short against a scheduler */
#define MAX_ITERATIONS 2000   /* in a round, unless asked for */
#define TRIAL          5      /* calls that tell how many fill a round */
#define TRIALS         3

/* [calls] calls begun together: microseconds of one, on this rank. */
static bool time_round (const struct bench *bench, const struct bench_side *side, int calls,
                        double *us)
{
    int64_t begin;

    if (side->prepare && !side->prepare (side->context))
        return false;
    if (gs_barrier (bench->comm, NULL))
        return bench_fail (bench, "%s", gs_last_error ());
    if (side->before && !side->before (side->context))
        return false;
    begin = gsi_now_ns ();
    if (!side->repeat (side->context, calls))
        return false;
    *us = side->us ? *side->us : (double) (gsi_now_ns () - begin) / 1e3 / calls;
    return !side->after || side->after (side->context);
}

/* What a call takes at its best of some trials: in one alone a rank may have been without a core.
 */
static bool try_calls (const struct bench *bench, const struct bench_side *side, double *us)
{
    double trial = 0;

    *us = INFINITY;
    for (int t = 0; t < TRIALS && trial < 10 * ROUND_US; t++) {
        if (!time_round (bench, side, TRIAL, &trial))
            return false;
        if (gs_allreduce (bench->comm, &trial, 1, GS_F64, GS_MAX, NULL))
            return bench_fail (bench, "%s", gs_last_error ());
        *us = trial < *us ? trial : *us;
    }
    return true;
}

/* The same on all ranks, by the slowest one. */
static bool choose_iterations (const struct bench *bench, const struct bench_side *side,
                               int *iterations)
{
    double us;

    *iterations = bench->options.iterations;
    if (!*iterations) {
        if (!try_calls (bench, side, &us))
            return false;
        *iterations = us * MAX_ITERATIONS < ROUND_US ? MAX_ITERATIONS
                      : us > ROUND_US                ? 1
                                                     : (int) (ROUND_US / us);
    }
    if (side->max_calls && *iterations > side->max_calls)
        *iterations = side->max_calls;
    return true;
}

bool bench_slowest (const struct bench *bench, double *times, int sides)
{
    size_t count = (size_t) (sides * bench->options.rounds);

    return bench_good (bench, gs_allreduce (bench->comm, times, count, GS_F64, GS_MAX, NULL));
}

bool bench_medians (const struct bench *bench, double *times, int sides, double *medians)
{
    int rounds = bench->options.rounds;

    if (!bench_slowest (bench, times, sides))
        return false;
    for (int side = 0; side < sides; side++)
        medians[side] = bench_median (times + side * rounds, rounds);
    return true;
}

/* Who begins changes every round. */
bool bench_rounds (const struct bench *bench, const struct bench_side *const *side, int sides,
                   int iterations, double *times)
{
    int rounds = bench->options.rounds;

    for (int round = 0; round < rounds; round++) {
        for (int turn = 0; turn < sides; turn++) {
            int s = (round + turn) % sides;
            if (!time_round (bench, side[s], iterations, &times[s * rounds + round]))
                return false;
        }
    }
    return true;
}

bool bench_compare (const struct bench *bench, const struct bench_side *ours,
                    const struct bench_side *raw, struct bench_result *result)
{
    const struct bench_side *side[2] = {ours, raw};
    int sides = raw ? 2 : 1;
    double medians[2] = {NAN, NAN};
    double *times = calloc ((size_t) (2 * bench->options.rounds), sizeof (*times));
    bool ok = bench_agree (bench, times || bench_fail (bench, "out of memory"));

    for (int s = 0; s < sides && ok; s++)
        ok = side[s]->repeat (side[s]->context, bench->options.warmup);
    ok = ok && choose_iterations (bench, ours, &result->iterations) &&
         bench_rounds (bench, side, sides, result->iterations, times) &&
         bench_medians (bench, times, sides, medians);
    result->time_us = medians[0];
    result->raw_time_us = medians[1];
    free (times);
    return ok;
}

bool bench_sweep (const struct bench *bench, size_t *count, const struct bench_side *ours,
                  const struct bench_side *raw)
{
    const struct bench_options *o = &bench->options;
    struct bench_result result = {.dtype = bench_dtype_name (o->dtype),
                                  .transport = gs_comm_transport (bench->comm)};

    bench_print_head (bench, true);
    for (size_t bytes = o->min_bytes; bytes <= o->max_bytes; bytes *= 2) {
        *count = bytes / gs_dtype_size (o->dtype);
        result.bytes = bytes;
        if (!bench_compare (bench, ours, raw && *count <= raw->max_count ? raw : NULL, &result))
            return false;
        bench_print (bench, &result);
    }
    return true;
}
