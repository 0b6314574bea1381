/* SPDX-License-Identifier: BSD-3-Clause */
/* gs-bench - measures gradsync's operations beside the plain calls that do the same. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "tools/bench/bench.h"
#include "tools/bench/options.h"
#include "tools/bench/ranks.h"

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

bool bench_good (const struct bench *bench, gs_status_t st)
{
    return !st || bench_fail (bench, "%s", gs_last_error ());
}

static void *make_host_array (const struct bench *bench, size_t bytes)
{
    void *array = malloc (bytes);

    if (array)
        memset (array, BENCH_FILL, bytes);
    else
        bench_fail (bench, "no memory for %zu bytes", bytes);
    return array;
}

void *bench_make_array (const struct bench *bench, size_t bytes)
{
    void *array = NULL, *content = make_host_array (bench, bytes);
    gs_status_t st;

    if (!content || bench->options.memory == BENCH_HOST)
        return content;
    st = gs_device_alloc (bench->comm, bytes, &array);
    if (!st)
        st = gs_device_copy (bench->comm, array, content, bytes, NULL);
    free (content);
    if (bench_good (bench, st))
        return array;
    bench_free_array (bench, array);
    return NULL;
}

void bench_free_array (const struct bench *bench, void *array)
{
    if (bench->options.memory == BENCH_HOST)
        free (array);
    else
        bench_good (bench, gs_device_free (bench->comm, array));
}

bool bench_has_average (gs_dtype_t dtype)
{
    return !gsi_dtype_is_integer (dtype);
}

bool bench_agree (const struct bench *bench, bool mine)
{
    int32_t all = mine;

    return bench_good (bench, gs_allreduce (bench->comm, &all, 1, GS_I32, GS_MIN, NULL)) && all;
}

static bool make_comm (struct bench *bench)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;

    opts.name = "gs-bench";
    if (bench->options.memory == BENCH_DEVICE)
        opts.transport = GS_TRANSPORT_NCCL;
    else
        opts.device = GS_DEVICE_HOST; /* the buffers are there */
    if (bench->options.ranks)
        return bench_start_ranks (bench, &opts);
    return bench_good (bench, gs_comm_create (&opts, &bench->comm));
}

/* After a failure the ranks are no longer in step: leave without waiting for the others. */
static bool leave_bench (struct bench *bench, bool ok)
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
    bool ok;

    switch (bench_parse (argc, argv, &bench.options)) {
    case BENCH_RUN: break;
    case BENCH_DONE: return EXIT_SUCCESS;
    case BENCH_WRONG: return EXIT_USAGE;
    }
    ok = make_comm (&bench) && leave_bench (&bench, bench.options.op->run (&bench));
    if (fflush (stdout) || ferror (stdout)) {
        perror ("gs-bench: cannot write");
        ok = false;
    }
    return bench_await_ranks (&bench, ok) ? EXIT_SUCCESS : EXIT_FAILURE;
}
