/* SPDX-License-Identifier: BSD-3-Clause */
/* raw_nopmix - stands in for raw_pmix.c in a build without PMIx. */
#include "tools/bench/raw.h"

bool bench_raw_pmix_answers (void)
{
    return false;
}

bool bench_raw_pmix (const struct bench *bench, int round, size_t bytes, double *us)
{
    (void) round, (void) bytes, (void) us;
    return bench_fail (bench, "this build has no PMIx");
}

void bench_raw_pmix_close (void)
{
}
