/* SPDX-License-Identifier: BSD-3-Clause */
/* from_id - communicators of those who know an id: subsets, other orders, and all that fails. */
#include <pthread.h>

#include "meet.h"
#include "multi.h"

#include "gradsync_mpi.h"

#define THREADS 4

static int rank, size;

/* A new id made by [maker], on all ranks. */
static gs_unique_id_t share_id (int maker)
{
    gs_unique_id_t id = {{0}};

    if (rank == maker)
        CHECK_OK (gs_unique_id_get (&id));
    MPI_Bcast (&id, sizeof (id), MPI_BYTE, maker, MPI_COMM_WORLD);
    return id;
}

static void check_sum (gs_comm_t *comm)
{
    int64_t x = gs_comm_rank (comm) + 1, n = gs_comm_size (comm);

    for (int i = 0; i < 3; i++, x = gs_comm_rank (comm) + 1) {
        CHECK_OK (gs_allreduce (comm, &x, 1, GS_I64, GS_SUM, NULL));
        CHECK (x == n * (n + 1) / 2, "sum of ranks is %lld", (long long) x);
    }
}

/* Without MPI nobody could carry the data; the id travels by file. */
static void before_mpi (void)
{
    gs_unique_id_t id;
    gs_comm_t *comm;
    FILE *file;

    if (!multi_rank ()) {
        CHECK_OK (gs_unique_id_get (&id));
        if ((file = fopen (multi_signal_path ("id", 0), "w"))) {
            CHECK (fwrite (&id, sizeof (id), 1, file) == 1, "the id is not written");
            fclose (file);
        }
        multi_signal ("id-there", 0);
    }
    multi_await ("id-there", 0);
    if ((file = fopen (multi_signal_path ("id", 0), "r"))) {
        CHECK (fread (&id, sizeof (id), 1, file) == 1, "the id is not read");
        fclose (file);
    }
    /* NCCL needs no MPI, and where GPUs are shared libfabric takes its place. */
    if (MULTI_LIBFABRIC ? multi_any_gpus () : multi_on_gpus () && !multi_shares_gpus ()) {
        CHECK_OK (gs_comm_create_from_id (&id, multi_rank (), multi_size (), NULL, &comm));
        CHECK_OK (gs_comm_destroy (comm));
        return;
    }
    CHECK_FAILS (gs_comm_create_from_id (&id, multi_rank (), multi_size (), NULL, &comm),
                 GS_ERR_STATE, "gs_comm_create_from_id", "initialised it before");
    CHECK (!comm, "a communicator without MPI");
}

/* All ranks, the last one first. */
static void reversed (void)
{
    gs_unique_id_t id = share_id (size - 1);
    gs_comm_t *comm;

    CHECK_OK (gs_comm_create_from_id (&id, size - 1 - rank, size, NULL, &comm));
    if (!comm)
        return;
    CHECK (gs_comm_rank (comm) == size - 1 - rank && gs_comm_size (comm) == size, "rank %d of %d",
           gs_comm_rank (comm), gs_comm_size (comm));
    check_sum (comm);
    CHECK_OK (gs_comm_destroy (comm));
}

/* Every second rank; the others go on with MPI. Twice at once. */
static void some_ranks (void)
{
    gs_unique_id_t first = share_id (0), second = share_id (0);
    gs_comm_t *comm, *other;
    int few = (size + 1) / 2;

    if (rank % 2 == 0) {
        CHECK_OK (gs_comm_create_from_id (&first, rank / 2, few, NULL, &comm));
        CHECK_OK (gs_comm_create_from_id (&second, rank / 2, few, NULL, &other));
        if (comm && other) {
            check_sum (comm);
            check_sum (other);
            CHECK_OK (gs_comm_destroy (other));
            CHECK_OK (gs_comm_destroy (comm));
        }
    }
    multi_meet (MPI_COMM_WORLD);
}

/* All ranks call as told and fail alike. */
static void fail (int as_rank, int as_size, const gs_comm_opts_t *opts, gs_status_t st,
                  const char *part)
{
    gs_unique_id_t id = share_id (0);
    gs_comm_t *comm = (gs_comm_t *) &comm;
    double begin = multi_seconds ();

    CHECK_FAILS (gs_comm_create_from_id (&id, as_rank, as_size, opts, &comm), st, part);
    CHECK (!comm, "a communicator all the same");
    CHECK (multi_seconds () - begin < 20, "told after %g s", multi_seconds () - begin);
    multi_meet (MPI_COMM_WORLD);
}

static void a_rank_is_missing (void)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    gs_unique_id_t id = share_id (0);
    gs_comm_t *comm;
    char text[64];

    opts.boot_timeout_ms = 2000;
    snprintf (text, sizeof (text), "1 of %d ranks did not come: rank %d", size, size - 1);
    if (rank < size - 1)
        CHECK_FAILS (gs_comm_create_from_id (&id, rank, size, &opts, &comm), GS_ERR_TIMEOUT,
                     text);
    multi_meet (MPI_COMM_WORLD);
}

static void used_twice (void)
{
    gs_unique_id_t id = share_id (0);
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    gs_comm_t *comm;

    CHECK_OK (gs_comm_create_from_id (&id, rank, size, NULL, &comm));
    CHECK_OK (gs_comm_destroy (comm));
    opts.boot_timeout_ms = 500;
    if (!rank)
        CHECK_FAILS (gs_comm_create_from_id (&id, rank, size, &opts, &comm), GS_ERR_ARG, "once");
    else
        CHECK_FAILS (gs_comm_create_from_id (&id, rank, size, &opts, &comm), GS_ERR_TIMEOUT,
                     "cannot reach rank 0");
    multi_meet (MPI_COMM_WORLD);
}

/* A communicator that a thread makes. */
struct making {
    gs_unique_id_t id;
    int64_t number;
};

static void *make_one (void *argument)
{
    struct making *m = argument;
    int64_t x = m->number;
    gs_comm_t *comm, *group;

    CHECK_OK (gs_comm_create_from_id (&m->id, rank, size, NULL, &comm));
    if (!comm)
        return NULL;
    CHECK_OK (gs_allreduce (comm, &x, 1, GS_I64, GS_SUM, NULL));
    CHECK (x == m->number * size, "communicator %d has ranks of another one", (int) m->number);
    CHECK_OK (gs_comm_split (comm, 0, -rank, &group));
    x = m->number;
    if (group) {
        CHECK_OK (gs_allreduce (group, &x, 1, GS_I64, GS_SUM, NULL));
        CHECK (x == m->number * size, "a group of %d has others", (int) m->number);
        CHECK_OK (gs_comm_destroy (group));
    }
    CHECK_OK (gs_comm_destroy (comm));
    return NULL;
}

/* Threads make one each, in whatever order they come to it on each rank. */
static void at_once (void)
{
    struct making making[THREADS];
    pthread_t thread[THREADS];

    for (int i = 0; i < THREADS; i++)
        making[i] = (struct making){share_id (0), 5 + 20 * i};
    for (int i = 0; i < THREADS; i++)
        CHECK (!pthread_create (&thread[i], NULL, make_one, &making[i]), "no thread");
    for (int i = 0; i < THREADS; i++)
        pthread_join (thread[i], NULL);
}

static int run_at_once (void)
{
    int level;

    MPI_Init_thread (NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank (MPI_COMM_WORLD, &rank);
    MPI_Comm_size (MPI_COMM_WORLD, &size);
    for (int round = 0; round < 5 && level == MPI_THREAD_MULTIPLE; round++)
        at_once ();
    MPI_Finalize ();
    return multi_end ("communicators by id, several at once");
}

int main (void)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    char taken[64];

    setenv ("GS_BOOT_TIMEOUT_MS", "30000", 1);
    if (strstr (gs_build_info (), "openssl: no")) {
        MPI_Init (NULL, NULL);
        MPI_Finalize ();
        return multi_end ("communicators by id: none in a build without OpenSSL");
    }
    if (getenv ("GS_TEST_THREADS"))
        return run_at_once ();
    before_mpi ();
    MPI_Init (NULL, NULL);
    MPI_Comm_rank (MPI_COMM_WORLD, &rank);
    MPI_Comm_size (MPI_COMM_WORLD, &size);
    reversed ();
    some_ranks ();
    if (size == 2) { /* each of these shows in the first rank that comes: no race with others */
        fail (rank, rank ? 3 : 2, NULL, GS_ERR_ARG, "rank 1 of 3, which does not fit");
        opts.transport = rank ? GS_TRANSPORT_MPI : GS_TRANSPORT_AUTO;
        fail (rank, 2, &opts, GS_ERR_MISMATCH, "transport");
        opts.transport = GS_TRANSPORT_AUTO;
        opts.timeout_ms = rank ? -1 : 0;
        fail (rank, 2, &opts, GS_ERR_ARG, "rank 1");
    } else {
        snprintf (taken, sizeof (taken), "rank 1 of %d, which is taken", size);
        fail (rank == 2 ? 1 : rank, size, NULL, GS_ERR_ARG, taken);
    }
    a_rank_is_missing ();
    used_twice ();
    setenv ("GS_CHECK", "collective", 1);
    reversed ();
    MPI_Finalize ();
    return multi_end ("communicators by id");
}
