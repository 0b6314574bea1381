/* SPDX-License-Identifier: BSD-3-Clause */
/* gs-bench - measures gradsync's operations beside the plain calls that do the same. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/bench/bench.h"
#include "tools/bench/options.h"

#define EXIT_USAGE 2

bool bench_fail (const struct bench *bench, const char *format, ...)
{
    char text[2048], who[32] = "";
    va_list ap;

    if (bench->comm)
        snprintf (who, sizeof (who), "[%d/%d]", gs_comm_rank (bench->comm),
                  gs_comm_size (bench->comm));
    va_start (ap, format);
    vsnprintf (text, sizeof (text), format, ap);
    va_end (ap);
    fprintf (stderr, "gs-bench%s: %s\n", who, text); /* at once: other ranks write there too */
    return false;
}

bool bench_agree (const struct bench *bench, bool mine)
{
    int32_t all = mine;

    if (gs_allreduce (bench->comm, &all, 1, GS_I32, GS_MIN, NULL))
        return bench_fail (bench, "%s", gs_last_error ());
    return all;
}

/* After a failure the ranks are no longer in step: leave without waiting for the others. */
static bool leave (struct bench *bench, bool ok)
{
    if (!ok)
        gs_comm_abort (bench->comm);
    if (gs_comm_destroy (bench->comm) && ok) {
        bench->comm = NULL;
        return bench_fail (bench, "%s", gs_last_error ());
    }
    return ok;
}

int main (int argc, char **argv)
{
    struct bench bench = {0};
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    bool ok;

    switch (bench_parse (argc, argv, &bench.options)) {
    case BENCH_RUN: break;
    case BENCH_DONE: return EXIT_SUCCESS;
    case BENCH_WRONG: return EXIT_USAGE;
    }
    opts.name = "gs-bench";
    opts.device = GS_DEVICE_HOST; /* the buffers are there */
    if (gs_comm_create (&opts, &bench.comm)) {
        bench_fail (&bench, "%s", gs_last_error ());
        return EXIT_FAILURE;
    }
    ok = leave (&bench, bench.options.op->run (&bench));
    if (fflush (stdout) || ferror (stdout)) {
        perror ("gs-bench: cannot write");
        ok = false;
    }
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
