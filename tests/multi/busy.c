/* SPDX-License-Identifier: BSD-3-Clause */
/* busy - a second thread that calls on the same communicator is sent away; the first goes on. */
#include <pthread.h>

#include "multi.h"

static gs_comm_t *comm;
static int rank, size;

/* Calls while the first thread waits in a call for the last rank. */
static void *intrude (void *unused)
{
    float x = 7, y[64];

    usleep (200000);
    CHECK_FAILS (gs_barrier (comm, NULL), GS_ERR_STATE, "inside another call");
    CHECK_FAILS (gs_allreduce_avg (comm, &x, 1, GS_F32, NULL), GS_ERR_STATE, "one thread");
    CHECK_FAILS (gs_allgather (comm, &x, y, 1, GS_F32, NULL), GS_ERR_STATE,
                 "inside another call");
    CHECK_FAILS (gs_comm_destroy (comm), GS_ERR_STATE, "inside another call");
    CHECK (x == 7, "a refused call changes the buffer");
    CHECK_OK (gs_comm_check (comm)); /* what needs no turn */
    CHECK (gs_comm_size (comm) == size, "size %d", gs_comm_size (comm));
    if (rank == 0)
        multi_signal ("intruded", 0);
    return unused;
}

int main (void)
{
    int32_t n = 1;

    setenv ("GS_TIMEOUT_MS", "60000", 1);
    comm = multi_create (NULL);
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    for (int i = 0; i < 3; i++)
        CHECK_OK (gs_barrier (comm, NULL));
    if (rank == size - 1) {
        multi_await ("intruded", 0);
        CHECK_OK (gs_allreduce (comm, &n, 1, GS_I32, GS_MAX, NULL));
    } else {
        pthread_t thread;
        int rc = rank ? 0 : pthread_create (&thread, NULL, intrude, NULL);
        CHECK (!rc, "no thread");
        CHECK_OK (gs_allreduce (comm, &n, 1, GS_I32, GS_MAX, NULL));
        if (!rank && !rc)
            pthread_join (thread, NULL);
    }
    CHECK_OK (gs_allreduce (comm, &n, 1, GS_I32, GS_SUM, NULL));
    CHECK (n == size, "the sum over %d ranks is %d", size, n);
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("an intruder is sent away");
}
