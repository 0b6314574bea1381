/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resume - a run that can be interrupted, as slurm/templates/requeue.sbatch asks for.
 *
 *   resume FILE ROUNDS PAUSE_MS [LATE_MS]
 *
 * Continues from the round that FILE names and does one every PAUSE_MS. On SIGUSR1 or SIGTERM
 * all ranks agree to stop. When the others may have left, and LATE_MS later, rank 0 writes the
 * next round to FILE and, before the last round, makes the file NOT_FINISHED if that is set.
 * All exit with 0.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "gradsync.h"

static volatile sig_atomic_t wanted;

static void want (int signal_number)
{
    (void) signal_number;
    wanted = 1;
}

static int32_t read_round (const char *path)
{
    FILE *in = fopen (path, "r");
    int round = 0;

    if (!in)
        return 0;
    if (fscanf (in, "%d", &round) != 1)
        round = -1;
    fclose (in);
    return round;
}

static int write_round (const char *path, int32_t round)
{
    FILE *out = fopen (path, "w");

    return out && fprintf (out, "%d\n", round) > 0 && !fclose (out) ? 0 : 97;
}

/* Asks the job's script for another part, if it is one that listens. */
static int ask_for_more (void)
{
    const char *path = getenv ("NOT_FINISHED");
    FILE *out = path ? fopen (path, "w") : NULL;

    return !path || (out && !fclose (out)) ? 0 : 95;
}

static int failed (const char *call)
{
    fprintf (stderr, "resume: %s: %s\n", call, gs_last_error ());
    return 98;
}

int main (int argc, char **argv)
{
    long rounds = argc > 3 ? strtol (argv[2], NULL, 10) : 0;
    long pause_ms = argc > 3 ? strtol (argv[3], NULL, 10) : 0;
    long late_ms = argc > 4 ? strtol (argv[4], NULL, 10) : 0;
    struct timespec pause = {pause_ms / 1000, pause_ms % 1000 * 1000000};
    struct timespec late = {late_ms / 1000, late_ms % 1000 * 1000000};
    int32_t round, stop = 0;
    int status = 0, rank;
    gs_comm_t *comm;

    if (rounds < 1)
        return 99;
    setvbuf (stdout, NULL, _IOLBF, 0); /* the tests wait for the first line */
    signal (SIGUSR1, want);
    signal (SIGTERM, want);
    if (gs_comm_create (NULL, &comm))
        return failed ("gs_comm_create");
    rank = gs_comm_rank (comm);
    if ((round = read_round (argv[1])) < 0)
        return 96;
    if (gs_broadcast (comm, &round, 1, GS_I32, 0, NULL))
        return failed ("gs_broadcast");
    if (rank == 0)
        printf ("from round %d\n", round);
    for (; round < rounds && !stop; round++) {
        nanosleep (&pause, NULL);
        stop = wanted;
        if (gs_allreduce (comm, &stop, 1, GS_I32, GS_MAX, NULL))
            return failed ("gs_allreduce");
    }
    if (gs_comm_destroy (comm))
        return failed ("gs_comm_destroy");
    if (rank == 0) {
        nanosleep (&late, NULL);
        status = write_round (argv[1], round);
        if (!status && round < rounds)
            status = ask_for_more ();
        printf ("to round %d\n", round);
    }
    return status;
}
