/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compute - stands in for a backward pass: arithmetic that keeps a core busy. It is counted in
 * units of work, not in time, and so takes longer when others want the core as well.
 */
#ifndef GS_TOOLS_BENCH_COMPUTE_H
#define GS_TOOLS_BENCH_COMPUTE_H

#include <stdint.h>

#include "tools/bench/bench.h"

/* Collective. How many units this rank does in a microsecond, while no other of its node works.
 */
bool bench_compute_measure (const struct bench *bench, double *units_per_us);

void bench_compute (uint64_t units);

#endif /* GS_TOOLS_BENCH_COMPUTE_H */
