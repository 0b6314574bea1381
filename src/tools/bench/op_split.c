/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op_split - making groups: gs_comm_split into halves, of all ranks as they are interleaved.
 * There is no plain call that makes the same: MPI_Comm_split makes no shared memory.
 */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tools/bench/bench.h"
#include "tools/bench/measure.h"
#include "tools/bench/output.h"

/* One group, made when all ranks are there; the destroy is not timed. */
static bool time_split (const struct bench *bench, double *us)
{
    gs_comm_t *group;
    int64_t begin_ns;

    if (gs_barrier (bench->comm, NULL) || gs_comm_wait (bench->comm, NULL))
        return bench_fail (bench, "%s", gs_last_error ());
    begin_ns = gsi_now_ns ();
    if (gs_comm_split (bench->comm, gs_comm_rank (bench->comm) % 2, 0, &group))
        return bench_fail (bench, "%s", gs_last_error ());
    *us = (double) (gsi_now_ns () - begin_ns) / 1e3;
    return bench_good (bench, gs_comm_destroy (group));
}

bool bench_run_split (const struct bench *bench)
{
    struct bench_result result = {.iterations = 1, .raw_time_us = NAN};
    double *times = calloc ((size_t) bench->options.rounds, sizeof (*times));
    bool ok = bench_agree (bench, times || bench_fail (bench, "out of memory"));

    for (int round = 0; round < bench->options.rounds && ok; round++)
        ok = time_split (bench, &times[round]);
    if (ok && (ok = bench_medians (bench, times, 1, &result.time_us))) {
        result.transport = gs_comm_transport (bench->comm);
        bench_print_head (bench, false);
        bench_print (bench, &result);
    }
    free (times);
    return ok;
}
