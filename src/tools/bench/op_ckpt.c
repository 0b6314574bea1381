/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op_ckpt - a checkpoint, beside a file into which all ranks write as many bytes with pwrite and
 * which they fsync; and how long an asynchronous one keeps the caller, from its beginning to the
 * removal of the one before, beside a memcpy of its arrays.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/bench/bench.h"
#include "tools/bench/measure.h"
#include "tools/bench/output.h"

#define STEP        INT64_C (1) /* asynchronous ones have those behind it */
#define PIECE_BYTES ((size_t) 8 << 20)
#define PAUSE_US    1000

/* In the order in which they take turns. */
enum { SYNC, RAW, ASYNC, COPY, SIDES };

struct ckpt_bench {
    const struct bench *bench;
    gs_ckpt_t *plan;
    size_t replicated, shard, begin, whole; /* elements of f64: of all, mine and all shards */
    void *params, *field;
    char *other; /* [bytes of both], what they are copied to, */
    char *from;  /* and from */
    char path[4096], raw[4096];
    double *times;   /* [SIDES * rounds] */
    double *blocked; /* [rounds] */
    int asyncs;      /* rounds of ASYNC so far, warm-up not counted */
    int64_t newest;  /* the step that the last of them has written */
};

static size_t mine_of (const struct ckpt_bench *w)
{
    return (w->replicated + w->shard) * sizeof (double);
}

static bool system_says (const struct ckpt_bench *w, const char *call)
{
    return bench_fail (w->bench, "%s: %s: %s", w->raw, call, strerror (errno));
}

/* ---- The sides ---- */

static void name_file (const struct ckpt_bench *w, int64_t step, char *path, size_t room)
{
    snprintf (path, room, "%s/ck-%012" PRId64 ".h5", w->bench->options.ckpt.dir, step);
}

/* There is no file before a round, but that of the last asynchronous one. */
static bool remove_last (void *context)
{
    const struct ckpt_bench *w = context;

    if (!gs_comm_rank (w->bench->comm)) {
        unlink (w->path);
        unlink (w->raw);
    }
    return true;
}

static bool write_now (void *context, int times)
{
    const struct ckpt_bench *w = context;

    for (int t = 0; t < times; t++)
        if (!bench_good (w->bench, gs_ckpt_write (w->plan, STEP, NULL)))
            return false;
    return true;
}

/* What the call takes in which the program learns that the file is there; the others before it
 * only ask. */
static bool time_learning (const struct ckpt_bench *w, int64_t *call_ns)
{
    int64_t written = -1, begin_ns = 0;

    while (written < 0) {
        usleep (PAUSE_US);
        begin_ns = gsi_now_ns ();
        if (!bench_good (w->bench, gs_ckpt_test (w->plan, &written, NULL)))
            return false;
    }
    *call_ns = gsi_now_ns () - begin_ns;
    return true;
}

static bool write_async (void *context, int times)
{
    struct ckpt_bench *w = context;

    for (int t = 0; t < times; t++) {
        int64_t begin_ns = gsi_now_ns (), blocked_ns, end_ns;
        if (!bench_good (w->bench, gs_ckpt_write_async (w->plan, ++w->newest, NULL, NULL)))
            return false;
        blocked_ns = gsi_now_ns () - begin_ns;
        if (!time_learning (w, &end_ns))
            return false;
        w->blocked[w->asyncs++ % w->bench->options.rounds] = (double) (blocked_ns + end_ns) / 1e3;
    }
    return true;
}

static bool write_piece (const struct ckpt_bench *w, int fd, size_t at, size_t bytes,
                         off_t offset)
{
    ssize_t n = pwrite (fd, w->from + at, bytes, offset);

    return n == (ssize_t) bytes || system_says (w, "pwrite");
}

/* This rank's part of the same number of bytes. */
static bool write_raw (void *context, int times)
{
    const struct ckpt_bench *w = context;
    size_t size = (size_t) gs_comm_size (w->bench->comm);
    size_t bytes = w->replicated / size * sizeof (double) + w->shard * sizeof (double);
    off_t begin = (off_t) (bytes * (size_t) gs_comm_rank (w->bench->comm));
    int fd = open (w->raw, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    bool ok = (fd >= 0 && times >= 0) || system_says (w, "open");

    /* As for a checkpoint: else the file system makes it longer again and again. */
    if (ok && ftruncate (fd, (off_t) (bytes * size)))
        ok = system_says (w, "ftruncate");
    for (size_t at = 0, n; at < bytes && ok; at += n) {
        n = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        ok = write_piece (w, fd, at, n, begin + (off_t) at);
    }
    if (ok && fsync (fd))
        ok = system_says (w, "fsync");
    if (fd >= 0)
        close (fd);
    return ok;
}

static bool ckpt_copy (void *context, int times)
{
    const struct ckpt_bench *w = context;

    for (int t = 0; t < times; t++)
        memcpy (w->other, w->from, mine_of (w));
    return true;
}

/* ---- The plan ---- */

static bool ckpt_make_plan (struct ckpt_bench *w)
{
    const struct bench_ckpt_options *o = &w->bench->options.ckpt;
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    gs_status_t st;

    opts.overwrite = 1;
    opts.keep_last = 1;
    opts.direct = o->direct;
    st = gs_ckpt_create (w->bench->comm, o->dir, &opts, &w->plan);
    if (!st && w->replicated)
        st = gs_ckpt_add_replicated (w->plan, "params", 1, &w->replicated, GS_F64, w->params);
    if (!st && w->whole)
        st = gs_ckpt_add_sharded (w->plan, "field", 1, &w->shard, &w->begin, &w->whole, GS_F64,
                                  w->field);
    return bench_agree (w->bench, bench_good (w->bench, st)) &&
           bench_good (w->bench, gs_ckpt_commit (w->plan));
}

static bool ckpt_memory (struct ckpt_bench *w)
{
    size_t rounds = (size_t) w->bench->options.rounds;

    w->times = calloc (rounds, SIDES * sizeof (*w->times));
    w->blocked = calloc (rounds, sizeof (*w->blocked));
    w->params = bench_make_array (w->bench, w->replicated * sizeof (double) + 1);
    w->field = bench_make_array (w->bench, w->shard * sizeof (double) + 1);
    w->other = malloc (mine_of (w) + 1);
    w->from = malloc (mine_of (w) + 1);
    if (w->other && w->from) {
        memset (w->other, 1, mine_of (w));
        memset (w->from, BENCH_FILL, mine_of (w));
    }
    return (w->times && w->blocked && w->params && w->field && w->other && w->from) ||
           bench_fail (w->bench, "out of memory");
}

static bool plan_work (struct ckpt_bench *w)
{
    const struct bench_ckpt_options *o = &w->bench->options.ckpt;
    size_t size = (size_t) gs_comm_size (w->bench->comm),
           rank = (size_t) gs_comm_rank (w->bench->comm);

    w->replicated = o->bytes / sizeof (double) * (size_t) o->replicated / 100;
    w->whole = o->bytes / sizeof (double) - w->replicated;
    w->shard = w->whole / size;
    w->whole = w->shard * size;
    w->begin = w->shard * rank;
    w->newest = STEP;
    name_file (w, STEP, w->path, sizeof (w->path));
    snprintf (w->raw, sizeof (w->raw), "%s/gs-bench.raw", o->dir);
    if (!w->replicated && !w->whole)
        return bench_fail (w->bench, "--bytes %zu: too few", o->bytes);
    return bench_agree (w->bench, ckpt_memory (w)) && ckpt_make_plan (w);
}

/* ---- Times ---- */

static bool ckpt_measure (struct ckpt_bench *w, double *medians, double *blocked)
{
    static bool (*const repeat[SIDES]) (void *, int) = {write_now, write_raw, write_async,
                                                        ckpt_copy};
    const struct bench_options *o = &w->bench->options;
    int sides = o->ckpt.async ? SIDES : ASYNC;
    struct bench_side side[SIDES];
    const struct bench_side *all[SIDES];
    bool ok = true;

    for (int s = 0; s < sides && ok; s++) {
        side[s] = (struct bench_side){.repeat = repeat[s], .prepare = remove_last, .context = w};
        all[s] = &side[s];
        for (int t = 0; t < o->warmup && ok; t++)
            ok = remove_last (w) && bench_good (w->bench, gs_barrier (w->bench->comm, NULL)) &&
                 repeat[s](w, 1);
    }
    w->asyncs = 0;
    ok = ok && bench_rounds (w->bench, all, sides, 1, w->times) &&
         bench_medians (w->bench, w->times, sides, medians);
    return ok && (!o->ckpt.async || bench_medians (w->bench, w->blocked, 1, blocked));
}

static void ckpt_print_line (const struct ckpt_bench *w, const char *mode, double time_us,
                             double blocked_us, const double *medians)
{
    const struct bench *bench = w->bench;
    char copied[64], relative[64];
    double copy_us = bench->options.ckpt.async ? medians[COPY] : NAN;

    bench_format (copy_us, "null", copied, sizeof (copied));
    bench_format (copy_us / blocked_us, "null", relative, sizeof (relative));
    if (gs_comm_rank (bench->comm))
        return;
    if (!bench->options.json) {
        printf ("%-8s %14.1f %14.1f %14.1f %9.4f %14s %9s\n", mode, time_us, blocked_us,
                medians[RAW], medians[RAW] / time_us, isnan (copy_us) ? "-" : copied,
                isnan (copy_us) ? "-" : relative);
        return;
    }
    printf ("{\"op\":\"ckpt\",\"mode\":\"%s\",\"bytes\":%zu,\"ranks\":%d,\"nodes\":%d,"
            "\"transport\":\"%s\",\"time_us\":%.4f,\"blocked_us\":%.4f,\"raw_time_us\":%.4f,"
            "\"ratio\":%.4f,\"copy_us\":%s,\"copy_ratio\":%s}\n",
            mode, (w->replicated + w->whole) * sizeof (double), gs_comm_size (bench->comm),
            gs_comm_nodes (bench->comm), gs_comm_transport (bench->comm), time_us, blocked_us,
            medians[RAW], medians[RAW] / time_us, isnan (copy_us) ? "null" : copied,
            isnan (copy_us) ? "null" : relative);
}

static void ckpt_print (const struct ckpt_bench *w, const double *medians, double blocked)
{
    const struct bench_ckpt_options *o = &w->bench->options.ckpt;

    bench_print_title (w->bench);
    bench_remark (w->bench, "%zu bytes, of which %d %% are replicated, in %s",
                  (w->replicated + w->whole) * sizeof (double), o->replicated, o->dir);
    bench_remark (w->bench, "%-8s %14s %14s %14s %9s %14s %9s", "mode", "time us", "blocked us",
                  "pwrite us", "raw/ours", "memcpy us", "/blocked");
    ckpt_print_line (w, "sync", medians[SYNC], medians[SYNC], medians);
    if (o->async)
        ckpt_print_line (w, "async", medians[ASYNC], blocked, medians);
}

static bool clean_up (struct ckpt_bench *w, bool ok)
{
    if (w->plan && gs_ckpt_destroy (w->plan) && ok)
        ok = bench_good (w->bench, GS_ERR_STATE);
    if (!gs_comm_rank (w->bench->comm)) {
        unlink (w->raw);
        if (!w->bench->options.ckpt.keep)
            unlink (w->path);
        name_file (w, w->newest, w->path, sizeof (w->path));
        if (w->newest > STEP)
            unlink (w->path);
    }
    bench_free_array (w->bench, w->params);
    bench_free_array (w->bench, w->field);
    free (w->other);
    free (w->from);
    free (w->times);
    free (w->blocked);
    return ok;
}

bool bench_run_ckpt (const struct bench *bench)
{
    struct ckpt_bench *work = calloc (1, sizeof (*work));
    double medians[SIDES], blocked = NAN;
    bool ok = bench_agree (bench, work || bench_fail (bench, "out of memory"));

    if (!ok) {
        free (work);
        return false;
    }
    work->bench = bench;
    ok = plan_work (work) && ckpt_measure (work, medians, &blocked);
    if (ok && bench->options.ckpt.keep)
        ok = remove_last (work) && bench_good (bench, gs_barrier (bench->comm, NULL)) &&
             write_now (work, 1);
    if (ok)
        ckpt_print (work, medians, blocked);
    ok = clean_up (work, ok);
    free (work);
    return ok;
}
