/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * from_mpi - communicators of some ranks of an MPI program, beside the program's own messages.
 * With 10 ranks the last 2 never call gradsync, as I/O servers do.
 */
#include <dlfcn.h>
#include <glob.h>
#include <stdatomic.h>

#include "meet.h"
#include "multi.h"

#include "gradsync_mpi.h"

static int rank, size, users;
static MPI_Comm working; /* of those that use gradsync, in reverse order */

static atomic_bool slow; /* this rank, at its next question to PMIx */

int PMIx_Get_nb (const void *process, const char *key, const void *info, size_t number,
                 void *answer, void *context);

int PMIx_Get_nb (const void *process, const char *key, const void *info, size_t number,
                 void *answer, void *context)
{
    int (*get) (const void *, const char *, const void *, size_t, void *, void *);

    if (atomic_exchange (&slow, false))
        sleep (2);
    *(void **) &get = dlsym (RTLD_NEXT, "PMIx_Get_nb");
    return get (process, key, info, number, answer, context);
}

static int duplicates; /* that live */

int MPI_Comm_idup (MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request)
{
    duplicates++;
    return PMPI_Comm_idup (comm, newcomm, request);
}

int MPI_Comm_free (MPI_Comm *comm)
{
    duplicates--;
    return PMPI_Comm_free (comm);
}

static void check_sum (gs_comm_t *comm)
{
    int64_t x = gs_comm_rank (comm) + 1, n = gs_comm_size (comm);
    int32_t large[30000];

    for (int i = 0; i < 30000; i++)
        large[i] = i;
    CHECK_OK (gs_allreduce (comm, &x, 1, GS_I64, GS_SUM, NULL));
    CHECK (x == n * (n + 1) / 2, "sum of ranks is %lld", (long long) x);
    CHECK_OK (gs_allreduce (comm, large, 30000, GS_I32, GS_SUM, NULL));
    for (int i = 0; i < 30000; i++)
        if (large[i] != n * i) {
            CHECK (false, "element %d is %d", i, large[i]);
            break;
        }
}

static void outside_mpi (const char *when)
{
    gs_comm_t *comm = (gs_comm_t *) &comm;

    CHECK_FAILS (gs_comm_from_mpi (MPI_COMM_WORLD, NULL, &comm), GS_ERR_STATE, "MPI_Init", when);
    CHECK (!comm, "a communicator without MPI");
}

static void refused (void)
{
    int color = rank % 2, other = color ? 0 : 1;
    gs_comm_t *comm;
    MPI_Comm half, inter;
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;

    CHECK_FAILS (gs_comm_from_mpi (MPI_COMM_NULL, NULL, &comm), GS_ERR_ARG, "MPI_COMM_NULL");
    CHECK_FAILS (gs_comm_from_mpi (MPI_COMM_SELF, NULL, NULL), GS_ERR_ARG, "comm is NULL");
    for (opts.boot_timeout_ms = 1; opts.boot_timeout_ms < 20; opts.boot_timeout_ms++)
        if (!gs_comm_from_mpi (MPI_COMM_SELF, &opts, &comm)) /* no call of MPI's is left behind */
            gs_comm_destroy (comm);
    MPI_Comm_split (MPI_COMM_WORLD, color, rank, &half);
    MPI_Intercomm_create (half, 0, MPI_COMM_WORLD, other, 1, &inter);
    CHECK_FAILS (gs_comm_from_mpi (inter, NULL, &comm), GS_ERR_ARG, "intercommunicator",
                 "MPI_Intercomm_merge");
    CHECK (!comm, "a communicator of two groups");
    MPI_Comm_free (&inter);
    MPI_Comm_free (&half);
}

/* Ranks find each other's records, also if they have made other communicators before. */
static void check_records (const char *name, int local)
{
    const char *folder = getenv ("GS_RECORD_DIR");
    char pattern[4096];
    glob_t found;

    snprintf (pattern, sizeof (pattern), "%s/gradsync-*-%s.*-r*.ring", folder, name);
    if (!folder || getenv ("GS_RECORD"))
        return;
    CHECK (!glob (pattern, 0, NULL, &found), "no file like %s", pattern);
    CHECK (found.gl_pathc >= (size_t) local, "%zu records of %d ranks", found.gl_pathc, local);
    for (size_t i = 1; i < found.gl_pathc; i++) {
        const char *path = found.gl_pathv[i];
        CHECK (!strncmp (found.gl_pathv[0], path, (size_t) (strrchr (path, '-') - path)),
               "records %s and %s", found.gl_pathv[0], path);
    }
    globfree (&found);
}

/* The ranks are those of the MPI communicator; its own messages are left alone. */
static void beside_own_messages (void)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    gs_comm_t *comm, *second, *alone;
    int place, mail = -1, post = 1000 + rank;
    MPI_Request request;

    MPI_Comm_rank (working, &place);
    MPI_Irecv (&mail, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, working, &request);
    CHECK_OK (gs_comm_from_mpi (working, NULL, &comm));
    if (place % 2)
        CHECK_OK (gs_comm_from_mpi (MPI_COMM_SELF, NULL, &alone));
    opts.name = "second";
    CHECK_OK (gs_comm_from_mpi (working, &opts, &second));
    check_records (opts.name, gs_comm_local_size (second));
    if (place % 2 == 0)
        CHECK_OK (gs_comm_from_mpi (MPI_COMM_SELF, NULL, &alone));
    CHECK (gs_comm_rank (comm) == place && gs_comm_size (comm) == users,
           "rank %d of %d, not %d of "
           "%d",
           gs_comm_rank (comm), gs_comm_size (comm), place, users);
    CHECK (gs_comm_size (alone) == 1, "MPI_COMM_SELF has %d ranks", gs_comm_size (alone));
    check_sum (comm);
    check_sum (second);
    check_sum (alone);
    CHECK (mail == -1, "a message of the program was taken: %d", mail);
    multi_meet (working); /* until here nobody has sent any */
    MPI_Send (&post, 1, MPI_INT, (place + 1) % users, 5, working);
    check_sum (comm);
    MPI_Wait (&request, MPI_STATUS_IGNORE);
    CHECK (mail >= 1000, "the program's message is %d", mail);
    CHECK_OK (gs_comm_destroy (second));
    CHECK_OK (gs_comm_destroy (alone));
    MPI_Comm_free (&working); /* it was duplicated */
    check_sum (comm);
    CHECK_OK (gs_comm_destroy (comm));
}

/* MPI_Init allows no thread of a reducer's: that is said, and to ask for one is refused. */
static void no_thread (gs_comm_t *comm)
{
    gs_reducer_opts_t opts = GS_REDUCER_OPTS_INIT;
    gs_reducer_stats_t stats = {.size = sizeof (stats)};
    gs_reducer_t *reducer;

    CHECK_OK (gs_reducer_create (comm, NULL, &reducer));
    CHECK_OK (gs_reducer_add (reducer, "w", 0, NULL, GS_F64, NULL, NULL));
    CHECK_OK (gs_reducer_commit (reducer));
    CHECK_OK (gs_reducer_get_stats (reducer, &stats));
    CHECK (stats.overlaps == 0, "a thread calls MPI");
    CHECK_OK (gs_reducer_destroy (reducer));
    opts.overlap = GS_OVERLAP_THREAD;
    CHECK_OK (gs_reducer_create (comm, &opts, &reducer));
    CHECK_OK (gs_reducer_add (reducer, "w", 0, NULL, GS_F64, NULL, NULL));
    CHECK_FAILS (gs_reducer_commit (reducer), GS_ERR_UNSUPPORTED, "rank 0", "GS_OVERLAP_THREAD",
                 multi_mixed () ? "others none" : "MPI_THREAD_MULTIPLE, so no thread");
    CHECK (multi_mixed () || strstr (gs_last_error (), "MPI_Init_thread"), "no cure");
    CHECK_OK (gs_reducer_destroy (reducer));
}

/* The world by PMIx and by MPI, alive together. */
static void both_ways (void)
{
    int before = duplicates;
    gs_comm_t *by_mpi, *by_launcher = multi_create (NULL);

    CHECK_OK (gs_comm_from_mpi (MPI_COMM_WORLD, NULL, &by_mpi));
    CHECK (gs_comm_rank (by_mpi) == gs_comm_rank (by_launcher), "rank %d by MPI, %d by PMIx",
           gs_comm_rank (by_mpi), gs_comm_rank (by_launcher));
    CHECK (gs_comm_nodes (by_mpi) == gs_comm_nodes (by_launcher), "%d nodes by MPI, %d by PMIx",
           gs_comm_nodes (by_mpi), gs_comm_nodes (by_launcher));
    check_sum (by_launcher);
    check_sum (by_mpi);
    if (gs_comm_size (by_mpi) > 1 && !multi_on_gpus ())
        no_thread (by_mpi);
    CHECK_OK (gs_comm_destroy (by_launcher));
    check_sum (by_mpi);
    CHECK_OK (gs_comm_destroy (by_mpi));
    CHECK (duplicates == before, "%d communicators of MPI are left", duplicates - before);
}

/*
 * No rank has MPI any more. The last one asks for the others' cards when these know that, and a
 * server of PMIx may forget those of a rank that has ended.
 */
static void without_mpi (void)
{
    gs_comm_t *comm;

    slow = rank == size - 1;
    if (multi_mixed () && MULTI_LIBFABRIC) { /* which needs none */
        CHECK_OK (gs_comm_create (NULL, &comm));
        CHECK_OK (gs_comm_destroy (comm));
        return;
    }
    CHECK_FAILS (gs_comm_create (NULL, &comm), GS_ERR_STATE, "MPI was finalized already");
}

int main (void)
{
    setenv ("GS_BOOT_TIMEOUT_MS", "30000", 1);
    outside_mpi ("not initialised");
    MPI_Init (NULL, NULL);
    MPI_Comm_rank (MPI_COMM_WORLD, &rank);
    MPI_Comm_size (MPI_COMM_WORLD, &size);
    users = size >= 10 ? size - 2 : size;
    if (size > 1)
        refused ();
    MPI_Comm_split (MPI_COMM_WORLD, rank < users, -rank, &working);
    if (rank < users)
        beside_own_messages ();
    multi_meet (MPI_COMM_WORLD);
    both_ways ();
    MPI_Finalize ();
    outside_mpi ("finalized already");
    if (size > 1 && !multi_on_gpus ())
        without_mpi ();
    return multi_end ("communicators of MPI communicators");
}
