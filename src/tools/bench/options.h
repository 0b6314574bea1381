/* SPDX-License-Identifier: BSD-3-Clause */
/* options - the command line of gs-bench. */
#ifndef GS_TOOLS_BENCH_OPTIONS_H
#define GS_TOOLS_BENCH_OPTIONS_H

#include "tools/bench/bench.h"

enum bench_parsed { BENCH_RUN, BENCH_DONE, BENCH_WRONG };

/* Fills [options]; BENCH_DONE after --help or --version, BENCH_WRONG after saying what is. */
enum bench_parsed bench_parse (int argc, char **argv, struct bench_options *options);

/* The name --dtype takes: "f32". */
const char *bench_dtype_name (gs_dtype_t dtype);

/* The type of this name; false if there is none. */
bool bench_dtype_find (const char *name, gs_dtype_t *dtype);

#endif /* GS_TOOLS_BENCH_OPTIONS_H */
