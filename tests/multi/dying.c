/* SPDX-License-Identifier: BSD-3-Clause */
/* dying - the program of ends.sh: its last rank ends in the way that GS_TEST_END says. */
#include <pthread.h>
#include <signal.h>

#include "multi.h"

static void *kill_soon (void *unused)
{
    usleep (300000);
    raise (SIGKILL);
    return unused;
}

/* Is killed in a barrier that the other ranks do not come to. */
static int die_inside (gs_comm_t *comm, bool dies)
{
    pthread_t thread;

    if (!dies) {
        sleep (30);
        return 0;
    }
    if (pthread_create (&thread, NULL, kill_soon, NULL))
        return 1;
    gs_barrier (comm, NULL);
    return 1;
}

int main (void)
{
    const char *how = getenv ("GS_TEST_END"), *records = getenv ("GS_TEST_RECORDS");
    bool dies = multi_rank () == multi_size () - 1;
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    gs_comm_t *comm;
    gs_status_t st;

    if (records)
        setenv ("GS_RECORD_DIR", records, 1);
    opts.name = "dying";
    opts.timeout_ms = opts.boot_timeout_ms = 10000;
    if (dies && !strcmp (how, "exit-before"))
        _exit (3);
    if (dies && !strcmp (how, "kill-before"))
        raise (SIGKILL);
    st = gs_comm_create (&opts, &comm);
    if (st) {
        printf ("rank %d: %s: %s\n", multi_rank (), gs_status_string (st), gs_last_error ());
        return 4;
    }
    for (int i = 0; i < 5; i++)
        CHECK_OK (gs_barrier (comm, NULL));
    if (!strcmp (how, "kill-inside"))
        return die_inside (comm, dies);
    if (!strcmp (how, "forget"))
        return 0;
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("nobody died");
}
