/* SPDX-License-Identifier: BSD-3-Clause */
/* op_record - what an entry of the flight record costs, which every call pays. */
#include <math.h>

#include "base/record.h"
#include "tools/bench/bench.h"
#include "tools/bench/measure.h"
#include "tools/bench/output.h"

struct record_bench {
    struct gsi_record record;
};

static bool repeat (void *context, int times)
{
    struct record_bench *w = context;

    for (int t = 0; t < times; t++) {
        gsi_record_begin (&w->record, GSI_OP_BARRIER, 0, 0, 0);
        gsi_record_end (&w->record, GS_OK);
    }
    return true;
}

bool bench_run_record (const struct bench *bench)
{
    struct record_bench work;
    struct bench_side ours = {.repeat = repeat, .context = &work};
    struct bench_result result = {.transport = gs_comm_transport (bench->comm)};
    int rank = gs_comm_rank (bench->comm), size = gs_comm_size (bench->comm);
    bool ok = bench_good (bench, gsi_record_open (&work.record, "gs-bench", "record", 0, rank,
                                                  size, gs_comm_host_of (bench->comm, rank)));

    ok = bench_agree (bench, ok);
    if (ok) {
        bench_print_head (bench, false);
        ok = bench_compare (bench, &ours, NULL, &result);
    }
    if (ok) {
        bench_print (bench, &result);
        bench_remark (bench, "one entry: %.1f ns", result.time_us * 1e3);
    }
    gsi_record_close (&work.record, 0);
    return ok;
}
