/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stuck - a call of MPI, GS_TEST_STUCK, that a rank does not return from: no rank waits for ever.
 * The program has MPI's functions itself, and hands on what it does not hold up.
 */
#include <mpi.h>

#include "multi.h"

#define HELD 1 /* the rank that does not return */

static const char *held;

/* Waits for ever if this is the call, and the rank. */
static void hold (const char *name, int rank)
{
    while (held && !strcmp (held, name) && multi_rank () == rank)
        sleep (1000);
}

int MPI_Init_thread (int *argc, char ***argv, int required, int *provided)
{
    hold ("init", HELD);
    return PMPI_Init_thread (argc, argv, required, provided);
}

int MPI_Comm_create_group (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm)
{
    hold ("group", HELD);
    return PMPI_Comm_create_group (comm, group, tag, newcomm);
}

int MPI_Finalize (void)
{
    hold ("finalize", multi_rank ());
    return PMPI_Finalize ();
}

static gs_comm_t *create (void)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;

    opts.timeout_ms = opts.boot_timeout_ms = 2000;
    return multi_create (&opts);
}

/* The start of MPI, in a create. */
static void start (void)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    gs_comm_t *comm;

    opts.boot_timeout_ms = 2000;
    CHECK_FAILS (gs_comm_create (&opts, &comm), GS_ERR_TIMEOUT, "GS_BOOT_TIMEOUT_MS",
                 "while MPI started");
}

/* A communicator of MPI's for a group. */
static void group (void)
{
    gs_comm_t *comm = create (), *all;

    CHECK_FAILS (gs_comm_split (comm, 0, 0, &all), GS_ERR_TIMEOUT, "MPI_Comm_create_group");
    gs_comm_destroy (comm);
}

/* The end of the process. */
static void end (void)
{
    CHECK_OK (gs_comm_destroy (create ()));
}

int main (void)
{
    int level;

    setenv ("GS_BOOT_TIMEOUT_MS", "2000", 0);
    held = getenv ("GS_TEST_STUCK");
    if (multi_on_gpus ()) {
        puts ("skip: NCCL and GPUs carry the data, not MPI");
        return 77;
    }
    if (getenv ("GS_TEST_LEVEL")) { /* the application's MPI, which knows of no threads */
        MPI_Init (NULL, NULL);
        MPI_Query_thread (&level);
        CHECK (level == MPI_THREAD_SINGLE, "thread level %d", level);
    }
    if (!strcmp (held, "init"))
        start ();
    else if (!strcmp (held, "group"))
        group ();
    else
        end ();
    return multi_end ("a call of MPI that does not return is left behind");
}
