/* SPDX-License-Identifier: BSD-3-Clause */
/* output - the table for people and the lines for programs. */
#include "tools/bench/output.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

static bool silent (const struct bench *bench)
{
    return gs_comm_rank (bench->comm) != 0;
}

void bench_print_title (const struct bench *bench)
{
    int ranks = gs_comm_size (bench->comm), nodes = gs_comm_nodes (bench->comm);

    if (silent (bench) || bench->options.json)
        return;
    printf ("gs-bench %s: %d rank%s on %d node%s, transport %s, %d rounds\n",
            bench->options.op->name, ranks, ranks == 1 ? "" : "s", nodes, nodes == 1 ? "" : "s",
            gs_comm_transport (bench->comm), bench->options.rounds);
}

void bench_print_head (const struct bench *bench, bool sized)
{
    if (silent (bench) || bench->options.json)
        return;
    bench_print_title (bench);
    if (sized)
        printf ("%12s %6s", "bytes", "type");
    printf ("%8s %14s %14s %9s\n", "calls", "gradsync us", "raw us", "raw/ours");
}

const char *bench_format (double number, const char *nothing, char *out, size_t room)
{
    if (isnan (number))
        return nothing;
    snprintf (out, room, "%.4f", number);
    return out;
}

static void result_print_json (const struct bench *bench, const struct bench_result *r)
{
    char raw[64], ratio[64];

    /* No name or number here needs escaping. */
    printf ("{\"op\":\"%s\",\"dtype\":", bench->options.op->name);
    if (r->dtype)
        printf ("\"%s\"", r->dtype);
    else
        printf ("null");
    printf (",\"bytes\":%zu,\"ranks\":%d,\"nodes\":%d,\"transport\":\"%s\",\"time_us\":%.4f,"
            "\"raw_time_us\":%s,\"ratio\":%s}\n",
            r->bytes, gs_comm_size (bench->comm), gs_comm_nodes (bench->comm), r->transport,
            r->time_us, bench_format (r->raw_time_us, "null", raw, sizeof (raw)),
            bench_format (r->raw_time_us / r->time_us, "null", ratio, sizeof (ratio)));
}

static void result_print_text (const struct bench_result *r)
{
    char raw[64], ratio[64];

    if (r->dtype)
        printf ("%12zu %6s", r->bytes, r->dtype);
    printf ("%8d %14.4f %14s %9s\n", r->iterations, r->time_us,
            bench_format (r->raw_time_us, "-", raw, sizeof (raw)),
            bench_format (r->raw_time_us / r->time_us, "-", ratio, sizeof (ratio)));
}

void bench_print (const struct bench *bench, const struct bench_result *result)
{
    if (silent (bench))
        return;
    if (bench->options.json)
        result_print_json (bench, result);
    else
        result_print_text (result);
    fflush (stdout);
}

void bench_remark (const struct bench *bench, const char *format, ...)
{
    va_list ap;

    if (silent (bench) || bench->options.json)
        return;
    va_start (ap, format);
    vprintf (format, ap);
    va_end (ap);
    putchar ('\n');
}
