/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks - without a launcher: this process becomes rank 0 and its children the others. */
#ifndef GS_TOOLS_BENCH_RANKS_H
#define GS_TOOLS_BENCH_RANKS_H

#include "tools/bench/bench.h"

/*
 * Starts bench->options.ranks ranks on this host, of which the caller is one when it returns, and
 * makes their communicator. To be called before anything that a fork would break.
 */
bool bench_start_ranks (struct bench *bench, const gs_comm_opts_t *opts);

/* On rank 0 waits for the others; whether all of them, and [ok], succeeded. */
bool bench_await_ranks (const struct bench *bench, bool ok);

#endif /* GS_TOOLS_BENCH_RANKS_H */
