/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * preemptible - a run that goes on from its last checkpoint and stops when it is asked to, as
 * slurm/templates/requeue.sbatch wants it.
 *
 *   preemptible FOLDER STEPS PAUSE_MS MARGIN_S [LATE_MS]
 *
 * A step takes PAUSE_MS and adds its number to a sum, which a run in one part has as well. The
 * last rank leaves LATE_MS after the others, when MPI has ended.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "gradsync.h"

static gs_comm_t *comm;
static gs_ckpt_t *ckpt;
static double sum;
static const char *late_ms; /* of the rank that leaves late */

static int failed (const char *call)
{
    fprintf (stderr, "preemptible: %s: %s\n", call, gs_last_error ());
    return 98;
}

static void wait_ms (const char *text)
{
    long ms = text ? strtol (text, NULL, 10) : 0;
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};

    while (nanosleep (&left, &left)) /* signals may come */
        ;
}

static void be_late (void)
{
    wait_ms (late_ms);
}

static gs_status_t make_plan (const char *folder, const char *margin_s)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    gs_status_t st;

    opts.keep_last = 2;
    opts.stop_margin_s = strtod (margin_s, NULL);
    if ((st = gs_ckpt_create (comm, folder, &opts, &ckpt)) ||
        (st = gs_ckpt_add_replicated (ckpt, "sum", 0, NULL, GS_F64, &sum)))
        return st;
    return gs_ckpt_commit (ckpt);
}

/* Steps until [steps], or until asked to stop; then writes. */
static gs_status_t run (int64_t *step, int64_t steps, const char *pause_ms, int *reasons)
{
    gs_status_t st;

    *reasons = 0;
    while (*step < steps && !*reasons) {
        wait_ms (pause_ms);
        sum += (double) ++*step;
        if ((st = gs_stop_requested (ckpt, reasons, NULL)))
            return st;
    }
    return gs_ckpt_write (ckpt, *step, NULL);
}

int main (int argc, char **argv)
{
    int64_t step, steps = argc > 4 ? strtoll (argv[2], NULL, 10) : 0;
    int reasons, rank, last;

    if (steps < 1)
        return 99;
    atexit (be_late);                  /* the first one is the last to be called */
    setvbuf (stdout, NULL, _IOLBF, 0); /* the tests wait for the first line */
    if (gs_comm_create (NULL, &comm))
        return failed ("gs_comm_create");
    rank = gs_comm_rank (comm);
    last = gs_comm_size (comm) - 1;
    if (make_plan (argv[1], argv[4]) || gs_ckpt_read (ckpt, GS_CKPT_LATEST, &step, NULL))
        return failed ("gs_ckpt_read");
    step = step < 0 ? 0 : step;
    if (!rank)
        printf ("from step %" PRId64 "\n", step);
    if (run (&step, steps, argv[3], &reasons))
        return failed ("gs_stop_requested");
    if (!rank)
        printf ("to step %" PRId64 ", sum %g, reasons %d\n", step, sum, reasons);
    if (gs_ckpt_destroy (ckpt) || gs_comm_destroy (comm))
        return failed ("gs_comm_destroy");
    if (rank == last)
        late_ms = argv[5];
    return step == steps || reasons & GS_CKPT_STOP_FILE ? 0 : GS_CKPT_EXIT_REQUEUE;
}
