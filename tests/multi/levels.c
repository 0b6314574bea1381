/* SPDX-License-Identifier: BSD-3-Clause */
/* levels - an MPI program of each thread level; below SERIALIZED only its main thread may come.
 */
#include <pthread.h>

#include "multi.h"

#include "gradsync_mpi.h"

static int level;

static void *second_thread (void *unused)
{
    gs_comm_t *comm;
    int32_t n = 1;

    if (level < MPI_THREAD_SERIALIZED) {
        CHECK_FAILS (gs_comm_from_mpi (MPI_COMM_WORLD, NULL, &comm), GS_ERR_STATE, "main thread",
                     "MPI_THREAD_MULTIPLE");
        return unused;
    }
    CHECK_OK (gs_comm_from_mpi (MPI_COMM_WORLD, NULL, &comm));
    CHECK_OK (gs_allreduce (comm, &n, 1, GS_I32, GS_SUM, NULL));
    CHECK (n == multi_size (), "the sum is %d", n);
    CHECK_OK (gs_comm_destroy (comm));
    return unused;
}

int main (void)
{
    static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
                                 MPI_THREAD_MULTIPLE};
    pthread_t thread;
    gs_comm_t *comm;
    int32_t n = 1;

    MPI_Init_thread (NULL, NULL, levels[multi_number (0, "GS_TEST_LEVEL", NULL)], &level);
    comm = multi_create (NULL);
    CHECK_OK (gs_allreduce (comm, &n, 1, GS_I32, GS_SUM, NULL));
    CHECK (n == multi_size (), "the sum is %d", n);
    CHECK (!pthread_create (&thread, NULL, second_thread, NULL), "no thread");
    pthread_join (thread, NULL);
    CHECK_OK (gs_comm_destroy (comm));
    MPI_Finalize ();
    return multi_end ("an MPI program of one thread level");
}
