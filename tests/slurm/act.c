/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * act - a rank that averages in rounds and can be told to misbehave in one of them.
 *
 *   act [ROUNDS [PAUSE_MS [ACTION RANK ROUND]]]
 *
 * ACTION kill, stop: RANK sends itself SIGKILL or SIGSTOP before ROUND; exit: it exits with 0
 * before ROUND, without ending its communicator. Exits with 0, or with the status of the call
 * that failed, whose text goes to stderr.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gradsync.h"

static int failed (const char *call, gs_status_t st)
{
    fprintf (stderr, "act: %s: %s: %s\n", call, gs_status_string (st), gs_last_error ());
    return (int) st;
}

static void misbehave (const char *action)
{
    if (!strcmp (action, "kill"))
        raise (SIGKILL);
    else if (!strcmp (action, "stop"))
        raise (SIGSTOP);
    else if (!strcmp (action, "exit"))
        exit (0);
}

int main (int argc, char **argv)
{
    long rounds = argc > 1 ? strtol (argv[1], NULL, 10) : 1;
    long pause_ms = argc > 2 ? strtol (argv[2], NULL, 10) : 0;
    const char *action = argc > 5 ? argv[3] : "";
    long actor = argc > 5 ? strtol (argv[4], NULL, 10) : -1;
    long when = argc > 5 ? strtol (argv[5], NULL, 10) : -1;
    struct timespec pause = {pause_ms / 1000, pause_ms % 1000 * 1000000};
    gs_comm_t *comm;
    gs_status_t st;
    int rank, size;
    double x;
    long i;

    if ((st = gs_comm_create (NULL, &comm)) != GS_OK)
        return failed ("gs_comm_create", st);
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    for (i = 0; i < rounds; i++) {
        nanosleep (&pause, NULL);
        if (rank == actor && i == when)
            misbehave (action);
        x = rank + (double) i;
        if ((st = gs_allreduce_avg (comm, &x, 1, GS_F64, NULL)) != GS_OK)
            return failed ("gs_allreduce_avg", st);
        if (x != (size - 1) / 2.0 + (double) i) {
            fprintf (stderr, "act: rank %d round %ld: average is %g\n", rank, i, x);
            return 98;
        }
    }
    printf ("rank %d of %d on %s: local %d of %d, node %d of %d\n", rank, size,
            gs_comm_host_of (comm, rank), gs_comm_local_rank (comm), gs_comm_local_size (comm),
            gs_comm_node (comm), gs_comm_nodes (comm));
    if ((st = gs_comm_destroy (comm)) != GS_OK)
        return failed ("gs_comm_destroy", st);
    return 0;
}
