/* SPDX-License-Identifier: BSD-3-Clause */
/* measure - times sides in turn, so that what disturbs one disturbs the other. */
#ifndef GS_TOOLS_BENCH_MEASURE_H
#define GS_TOOLS_BENCH_MEASURE_H

#include "tools/bench/bench.h"

/*
 * Collective. Warms both sides up, then times options.rounds rounds of [ours] and [raw], which
 * may be NULL, in turn: before each round all ranks meet, and a round's time is its slowest
 * rank's. Fills result's iterations and times with the medians.
 */
bool bench_compare (const struct bench *bench, const struct bench_side *ours,
                    const struct bench_side *raw, struct bench_result *result);

/*
 * Collective. Measures and prints every size that the options ask for; [count], which the sides
 * read, is set to each in elements. A side too small for a size counts as absent.
 */
bool bench_sweep (const struct bench *bench, size_t *count, const struct bench_side *ours,
                  const struct bench_side *raw);

/*
 * Collective. Times options.rounds rounds of each of [sides] sides, in turn, of [iterations]
 * calls each. Fills [times]: options.rounds values of the first side, then of the next, this
 * rank's.
 */
bool bench_rounds (const struct bench *bench, const struct bench_side *const *side, int sides,
                   int iterations, double *times);

/* Collective. Puts the slowest rank's value in the place of each of these. */
bool bench_slowest (const struct bench *bench, double *times, int sides);

/* Collective. The medians of the slowest ranks' values. [times] is overwritten. */
bool bench_medians (const struct bench *bench, double *times, int sides, double *medians);

#endif /* GS_TOOLS_BENCH_MEASURE_H */
