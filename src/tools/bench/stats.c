/* SPDX-License-Identifier: BSD-3-Clause */
/* stats - arithmetic on measurements; pure. */
#include "tools/bench/stats.h"

#include <stdlib.h>

static int by_value (const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}

double bench_median (double *values, int count)
{
    qsort (values, (size_t) count, sizeof (*values), by_value);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}
