/* SPDX-License-Identifier: BSD-3-Clause */
/* output - the table for people and the lines for programs. Rank 0 prints, the others do not. */
#ifndef GS_TOOLS_BENCH_OUTPUT_H
#define GS_TOOLS_BENCH_OUTPUT_H

#include "tools/bench/bench.h"

/* The first line, which says what is measured where; nothing with --json. */
void bench_print_title (const struct bench *bench);

/* That, and what stands above the columns; nothing with --json. */
void bench_print_head (const struct bench *bench, bool sized);

/* One line: of the table, or a JSON object. */
void bench_print (const struct bench *bench, const struct bench_result *result);

/* Of the lines an operation prints by itself: how [number] is written, [nothing] if it is NAN. */
const char *bench_format (double number, const char *nothing, char *out, size_t room);

/* A remark above or below the table; nothing with --json. */
void bench_remark (const struct bench *bench, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

#endif /* GS_TOOLS_BENCH_OUTPUT_H */
