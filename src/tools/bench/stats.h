/* SPDX-License-Identifier: BSD-3-Clause */
/* stats - arithmetic on measurements; pure. */
#ifndef GS_TOOLS_BENCH_STATS_H
#define GS_TOOLS_BENCH_STATS_H

/* The median of [count] > 0 values, which are sorted by it. */
double bench_median (double *values, int count);

#endif /* GS_TOOLS_BENCH_STATS_H */
