/* SPDX-License-Identifier: BSD-3-Clause */
/* compute - stands in for a backward pass: arithmetic that keeps a core busy. */
#include "tools/bench/compute.h"

#include "base/clock.h"

#define BURST_UNITS (UINT64_C (1) << 17) /* some tenths of a millisecond */
#define BURSTS      32 /* of which the fastest was not disturbed, nor the core slow yet */

void bench_compute (uint64_t units)
{
    static volatile double result;
    double x = result;

    for (uint64_t u = 0; u < units; u++)
        x = x * 0.999 + 0.001; /* each waits for the one before */
    result = x;
}

static double measure_step (void)
{
    int64_t least_ns = INT64_MAX;

    for (int burst = 0; burst < BURSTS; burst++) {
        int64_t begin = gsi_now_ns (), ns;
        bench_compute (BURST_UNITS);
        ns = gsi_now_ns () - begin;
        if (ns < least_ns)
            least_ns = ns;
    }
    return (double) BURST_UNITS * 1e3 / (double) (least_ns > 0 ? least_ns : 1);
}

bool bench_compute_measure (const struct bench *bench, double *units_per_us)
{
    int32_t turns = gs_comm_local_size (bench->comm);

    if (gs_allreduce (bench->comm, &turns, 1, GS_I32, GS_MAX, NULL))
        return bench_fail (bench, "%s", gs_last_error ());
    for (int turn = 0; turn < turns; turn++) {
        if (gs_barrier (bench->comm, NULL))
            return bench_fail (bench, "%s", gs_last_error ());
        if (turn == gs_comm_local_rank (bench->comm))
            *units_per_us = measure_step ();
    }
    return true;
}
