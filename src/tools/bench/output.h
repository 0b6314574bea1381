/* SPDX-License-Identifier: BSD-3-Clause */
/* output - the table for people and the lines for programs. Rank 0 prints, the others do not. */
#ifndef GS_TOOLS_BENCH_OUTPUT_H
#define GS_TOOLS_BENCH_OUTPUT_H

#include "tools/bench/bench.h"

/* What stands above the lines of a table; nothing with --json. */
void bench_print_head (const struct bench *bench, bool sized);

/* One line: of the table, or a JSON object. */
void bench_print (const struct bench *bench, const struct bench_result *result);

/* A remark below the table; nothing with --json. */
void bench_remark (const struct bench *bench, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

#endif /* GS_TOOLS_BENCH_OUTPUT_H */
