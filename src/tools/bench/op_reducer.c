/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op_reducer - averages the gradients of a model: by a reducer, in several ways, beside
 * gs_allreduce_avg and MPI_Allreduce on the same arrays. All modes run in turn, round by round; a
 * mode without a reducer works first and averages then.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/bench/compute.h"
#include "tools/bench/measure.h"
#include "tools/bench/model.h"
#include "tools/bench/modes.h"
#include "tools/bench/options.h"
#include "tools/bench/output.h"
#include "tools/bench/stats.h"
#include "tools/json.h"

struct reducer_bench {
    const struct bench *bench;
    struct bench shared; /* the same, with arrays of gs_device_alloc */
    struct bench_model model;
    const struct bench_raw_mpi *mpi;
    uint64_t *units;                     /* [tensors] of work before each is ready */
    char *own, *flat;                    /* gradients of this program, and those of mode flat */
    double *times;                       /* [steps] runs of rounds */
    double *exposed;                     /* [rounds] */
    struct bench_step step[BENCH_MODES]; /* those that are measured, in the order of modes */
    int steps;
    double time_us[BENCH_MODES], exposed_us[BENCH_MODES]; /* medians */
};

/* ---- The model ---- */

/* Collective. Whether [mine] is NULL on all ranks; if not, the first rank with a text says it. */
static bool all_well (const struct bench *bench, const char *mine)
{
    int32_t rank = gs_comm_rank (bench->comm), size = gs_comm_size (bench->comm);
    int32_t first = mine ? rank : size;

    if (gs_allreduce (bench->comm, &first, 1, GS_I32, GS_MIN, NULL))
        return bench_fail (bench, "%s", gs_last_error ());
    return first == size || (first == rank && bench_fail (bench, "%s", mine));
}

static bool read_model (struct reducer_bench *w)
{
    char why[8192];
    bool ok = bench_model_read (w->bench->options.model.name, &w->model, why, sizeof (why));

    return all_well (w->bench, ok ? NULL : why);
}

/* Shares the work out in proportion to bytes, in the order of the backward pass. */
static void share_work (struct reducer_bench *w, double units)
{
    double share = units / (double) w->model.bytes;
    size_t bytes = 0;
    uint64_t given = 0;

    for (int i = w->model.tensors - 1; i >= 0; i--) {
        bytes += w->model.tensor[i].bytes;
        w->units[i] = (uint64_t) (share * (double) bytes) - given;
        given += w->units[i];
    }
}

static bool plan_work (struct reducer_bench *w)
{
    int us = w->bench->options.model.compute_us;
    double per_us;

    w->units = calloc ((size_t) w->model.tensors, sizeof (*w->units));
    if (!bench_agree (w->bench, w->units || bench_fail (w->bench, "out of memory")))
        return false;
    if (us == 0)
        return true;
    if (!bench_compute_measure (w->bench, &per_us))
        return false;
    share_work (w, us * per_us);
    return true;
}

/* ---- The modes ---- */

/* Collective. The plain calls, if MPI carries the data and has all types of the model. */
static const struct bench_raw_mpi *find_raw (const struct reducer_bench *w)
{
    const struct bench_raw_mpi *mpi;

    if (w->bench->options.memory == BENCH_DEVICE || !(mpi = bench_raw_mpi_open (w->bench)))
        return NULL;
    for (int i = 0; i < w->model.spans; i++)
        if (!mpi->has_type (w->model.span[i].dtype))
            return NULL;
    return mpi;
}

/* Bits by enum bench_mode. */
static unsigned choose_modes (const struct reducer_bench *w)
{
    unsigned modes = w->bench->options.model.modes;

    if (w->bench->options.model.compute_us)
        modes |= 1U << BENCH_COMPUTE;
    if (w->mpi)
        modes |= 1U << BENCH_RAW_PER_TENSOR | 1U << BENCH_RAW_FLAT;
    return modes;
}

static bool reducer_memory (struct reducer_bench *w, unsigned modes)
{
    unsigned own = 1U << BENCH_PER_TENSOR | 1U << BENCH_PACKED | 1U << BENCH_RAW_PER_TENSOR |
                   1U << BENCH_RAW_FLAT;
    size_t rounds = (size_t) w->bench->options.rounds;

    w->times = calloc (BENCH_MODES * rounds, sizeof (double));
    w->exposed = calloc (rounds, sizeof (double));
    if (!w->times || !w->exposed)
        return bench_fail (w->bench, "out of memory");
    if (modes & own && !(w->own = bench_make_array (w->bench, w->model.room)))
        return false;
    return !(modes & 1U << BENCH_FLAT) ||
           (w->flat = bench_make_array (&w->shared, w->model.room));
}

/* The gradients of a mode that are not in the storage of its reducer. */
static char *memory_of (const struct reducer_bench *w, enum bench_mode mode)
{
    switch (mode) {
    case BENCH_FLAT: return w->flat;
    case BENCH_COMPUTE:
    case BENCH_NO_OVERLAP:
    case BENCH_OVERLAP: return NULL;
    default: return w->own;
    }
}

static bool open_modes (struct reducer_bench *w)
{
    unsigned modes;

    w->mpi = find_raw (w);
    modes = choose_modes (w);
    if (!bench_agree (w->bench, reducer_memory (w, modes)))
        return false;
    for (int mode = 0; mode < BENCH_MODES; mode++) {
        struct bench_step *step = &w->step[w->steps];
        if (!(modes & 1U << mode))
            continue;
        *step = (struct bench_step){.mode = (enum bench_mode) mode,
                                    .bench = w->bench,
                                    .model = &w->model,
                                    .units = w->units,
                                    .mpi = w->mpi,
                                    .memory = memory_of (w, (enum bench_mode) mode)};
        w->steps++;
        if (!bench_step_open (step))
            return false;
    }
    return true;
}

/* ---- Measuring ---- */

/* The medians, once [times] are those of the slowest ranks. */
static void conclude (struct reducer_bench *w)
{
    bool works = w->step[0].mode == BENCH_COMPUTE;
    int rounds = w->bench->options.rounds;

    for (int s = w->steps - 1; s >= 0; s--) { /* the work alone, which is sorted then, last */
        double *times = &w->times[s * rounds];
        for (int round = 0; round < rounds; round++)
            w->exposed[round] = times[round] - (works ? w->times[round] : 0);
        w->exposed_us[s] = bench_median (w->exposed, rounds);
        w->time_us[s] = bench_median (times, rounds);
    }
}

static bool reducer_measure (struct reducer_bench *w)
{
    struct bench_side side[BENCH_MODES];
    const struct bench_side *sides[BENCH_MODES];
    bool ok = true;

    for (int s = 0; s < w->steps && ok; s++) {
        side[s] = (struct bench_side){
            .repeat = bench_step_repeat, .prepare = bench_step_prepare, .context = &w->step[s]};
        sides[s] = &side[s];
        ok = bench_step_repeat (&w->step[s], w->bench->options.warmup);
    }
    ok = ok && bench_rounds (w->bench, sides, w->steps, 1, w->times) &&
         bench_slowest (w->bench, w->times, w->steps);
    if (ok)
        conclude (w);
    return ok;
}

/* ---- Printing ---- */

/* The better of the raw times; NAN if there is none. */
static double raw_time (const struct reducer_bench *w)
{
    double best = NAN;

    for (int s = 0; s < w->steps; s++)
        if (w->step[s].mode >= BENCH_RAW_PER_TENSOR)
            best = fmin (best, w->time_us[s]);
    return best;
}

static void reducer_print_json (const struct reducer_bench *w, int s)
{
    const struct bench *bench = w->bench;
    char raw[64], ratio[64];
    double raw_us = w->step[s].mode == BENCH_COMPUTE ? NAN : raw_time (w);

    printf ("{\"op\":\"%s\",\"mode\":\"%s\",\"model\":", bench->options.op->name,
            bench_mode_name (w->step[s].mode));
    json_string (stdout, bench->options.model.name);
    printf (",\"dtype\":");
    if (w->model.spans == 1)
        printf ("\"%s\"", bench_dtype_name (w->model.span[0].dtype));
    else
        printf ("null");
    printf (",\"bytes\":%zu,\"ranks\":%d,\"nodes\":%d,\"transport\":\"%s\",\"compute_us\":%d,"
            "\"exposed_us\":%.4f,\"time_us\":%.4f,\"raw_time_us\":%s,\"ratio\":%s}\n",
            w->model.bytes, gs_comm_size (bench->comm), gs_comm_nodes (bench->comm),
            gs_comm_transport (bench->comm), bench->options.model.compute_us, w->exposed_us[s],
            w->time_us[s], bench_format (raw_us, "null", raw, sizeof (raw)),
            bench_format (raw_us / w->time_us[s], "null", ratio, sizeof (ratio)));
}

static void reducer_print_text (const struct reducer_bench *w, int s)
{
    double ratio_of = w->step[s].mode == BENCH_COMPUTE ? NAN : raw_time (w) / w->time_us[s];
    char ratio[64];

    printf ("%-16s %14.4f %14.4f %9s\n", bench_mode_name (w->step[s].mode), w->time_us[s],
            w->exposed_us[s], bench_format (ratio_of, "-", ratio, sizeof (ratio)));
}

static void reducer_print (const struct reducer_bench *w)
{
    const struct bench *bench = w->bench;

    bench_print_title (bench);
    bench_remark (bench, "%s: %d tensors, %zu bytes, after %d us of work",
                  bench->options.model.name, w->model.tensors, w->model.bytes,
                  bench->options.model.compute_us);
    bench_remark (bench, "%-16s %14s %14s %9s", "mode", "time us", "exposed us", "raw/ours");
    for (int s = 0; s < w->steps && gs_comm_rank (bench->comm) == 0; s++)
        if (bench->options.json)
            reducer_print_json (w, s);
        else
            reducer_print_text (w, s);
}

static void clean_up (struct reducer_bench *w)
{
    for (int s = 0; s < w->steps; s++)
        bench_step_close (&w->step[s]);
    bench_free_array (w->bench, w->own);
    bench_free_array (&w->shared, w->flat);
    bench_model_free (&w->model);
    free (w->units);
    free (w->times);
    free (w->exposed);
}

bool bench_run_reducer (const struct bench *bench)
{
    struct reducer_bench work = {.bench = bench, .shared = *bench};
    bool ok;

    if (bench->options.memory == BENCH_HOST)
        work.shared.options.memory = BENCH_SHARED;
    ok = read_model (&work) && plan_work (&work) && open_modes (&work) && reducer_measure (&work);
    if (ok)
        reducer_print (&work);
    else
        gs_comm_abort (bench->comm); /* a step that goes on ends, before its memory does */
    clean_up (&work);
    return ok;
}
