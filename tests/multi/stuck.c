/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stuck - a call of MPI, GS_TEST_STUCK, that a rank does not return from: no rank waits for ever.
 * The program has MPI's functions itself, and hands on what it does not hold up.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdatomic.h>

#include "multi.h"

#include "gradsync_mpi.h"

#define HELD     1     /* the rank that does not return */
#define START_MS 10000 /* in which MPI starts where it is not held: slowly with sanitizers */

static const char *_Atomic held;

/* Waits as long as this is the call, and the rank. */
static void hold (const char *name, int rank)
{
    const char *now;

    while ((now = held) && !strcmp (now, name) && multi_rank () == rank)
        usleep (1000);
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

int MPI_Comm_idup (MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request)
{
    hold ("idup", HELD);
    return PMPI_Comm_idup (comm, newcomm, request);
}

int MPI_Iallgather (const void *own, int count, MPI_Datatype type, void *all, int each,
                    MPI_Datatype of_all, MPI_Comm comm, MPI_Request *request)
{
    hold ("gather", HELD);
    return PMPI_Iallgather (own, count, type, all, each, of_all, comm, request);
}

int MPI_Comm_free (MPI_Comm *comm)
{
    hold ("free", HELD);
    return PMPI_Comm_free (comm);
}

int MPI_Test (MPI_Request *request, int *flag, MPI_Status *status)
{
    hold ("test", HELD);
    return PMPI_Test (request, flag, status);
}

static atomic_bool finalizing;

int MPI_Finalize (void)
{
    finalizing = true;
    hold ("finalize", multi_rank ());
    return PMPI_Finalize ();
}

/* Once MPI_Finalize was left behind it may be using PMIx. */
int PMIx_Finalize (const void *info, size_t number);

int PMIx_Finalize (const void *info, size_t number)
{
    int (*finalize) (const void *, size_t);

    if (finalizing && held && !strcmp (held, "finalize")) {
        fputs ("PMIx_Finalize beside MPI_Finalize, which has not returned\n", stderr);
        _exit (EXIT_FAILURE);
    }
    *(void **) &finalize = dlsym (RTLD_NEXT, "PMIx_Finalize");
    return finalize (info, number);
}

int MPI_Testall (int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    hold ("testall", HELD);
    return PMPI_Testall (count, requests, flag, statuses);
}

static gs_comm_t *create (void)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;

    opts.timeout_ms = 2000;
    opts.boot_timeout_ms = START_MS;
    return multi_create (&opts);
}

/*
 * The start of MPI, in a create. It ends before the ranks do: mpirun of Open MPI 4.1 may crash in
 * PMIx_server_finalize where they leave amid a fence.
 */
static void start (void)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    gs_comm_t *comm;
    int up = 0;

    opts.boot_timeout_ms = 2000;
    CHECK_FAILS (gs_comm_create (&opts, &comm), GS_ERR_TIMEOUT, "GS_BOOT_TIMEOUT_MS",
                 "while MPI started");
    multi_signal ("late", multi_rank ()); /* whose MPI would start at once, and the rank leave */
    multi_await_others ("late", multi_rank ());
    for (held = NULL; !up; MPI_Initialized (&up))
        usleep (1000);
}

/* A communicator of MPI's for a group. */
static void group (void)
{
    gs_comm_t *comm = create (), *all;

    CHECK_FAILS (gs_comm_split (comm, 0, 0, &all), GS_ERR_TIMEOUT, "MPI_Comm_create_group");
    gs_comm_destroy (comm);
}

/*
 * What is done with the program's communicator before anybody watches. In a process whose MPI
 * knows of no threads it takes no other call then.
 */
static void duplicate (void)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    bool frees = !strcmp (held, "free");
    gs_comm_t *comm;

    opts.boot_timeout_ms = 2000;
    if (frees) { /* it was not used, and the communicator is good */
        CHECK_OK (gs_comm_from_mpi (MPI_COMM_SELF, &opts, &comm));
        CHECK_OK (gs_comm_destroy (comm));
    } else {
        CHECK_FAILS (gs_comm_from_mpi (MPI_COMM_WORLD, &opts, &comm), GS_ERR_TIMEOUT,
                     "GS_BOOT_TIMEOUT_MS",
                     *held == 'g' ? "MPI_Iallgather" : "2 ranks of the MPI communicator");
    }
    if (multi_rank () == HELD)
        CHECK_FAILS (gs_comm_from_mpi (MPI_COMM_SELF, &opts, &comm), GS_ERR_TRANSPORT,
                     "MPI is inside a call");
}

static char said[4096];

static void note (gs_log_level_t level, const char *line, void *context)
{
    (void) level, (void) context;
    snprintf (said, sizeof (said), "%s", line);
}

/* What becomes of the rank: the program has nothing more to say. */
static void aborted (int unused)
{
    (void) unused;
    CHECK (strstr (said, "allreduce_avg #") && strstr (said, "GS_STUCK_MS"), "said '%s'", said);
    _exit (multi_failures ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* A transfer: its rank is ended, and the other one told that it does not come. */
static void transfer (void)
{
    static float x[100000];
    const char *call = held;
    gs_comm_t *comm;

    held = NULL;
    comm = create ();
    CHECK_OK (gs_barrier (comm, NULL));
    CHECK_OK (gs_barrier (comm, NULL));
    gs_log_set_sink (note, NULL);
    signal (SIGABRT, aborted);
    held = call;
    CHECK_FAILS (gs_allreduce_avg (comm, x, 100000, GS_F32, NULL), GS_ERR_TIMEOUT,
                 "did not come: rank 1");
    CHECK (multi_rank () != HELD, "rank %d came back", HELD);
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
    if (multi_any_gpus ()) {
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
    else if (!strcmp (held, "testall"))
        transfer ();
    else if (!strcmp (held, "finalize"))
        end ();
    else
        duplicate ();
    return multi_end ("a call of MPI that does not return is left behind");
}
