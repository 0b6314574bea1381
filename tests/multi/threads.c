/* SPDX-License-Identifier: BSD-3-Clause */
/* threads - several communicators at the same time, each with a thread of its own. */
#include <pthread.h>

#include "multi.h"

#define THREADS 4
#define LARGE   20000

/* cudaStreamPerThread: in one stream each rank would have the calls in an order of its own. */
#define PER_THREAD ((gs_stream_t) 2)

/* What one thread does with its communicator. */
static void *work (void *argument)
{
    gs_comm_t *comm = argument;
    int size = gs_comm_size (comm), rank = gs_comm_rank (comm);
    int32_t *x = malloc (LARGE * sizeof (*x)), all[64];

    for (int round = 0; round < 60 && x; round++) {
        int32_t n = rank + round;
        size_t count = round % 3 ? 3 : LARGE;
        for (size_t i = 0; i < count; i++)
            x[i] = (int32_t) i + round;
        CHECK_OK (gs_allreduce (comm, x, count, GS_I32, GS_SUM, PER_THREAD));
        for (size_t i = 0; i < count; i++)
            if (x[i] != size * ((int32_t) i + round)) {
                CHECK (false, "round %d: element %zu is %d", round, i, x[i]);
                break;
            }
        CHECK_OK (gs_allgather (comm, &n, all, 1, GS_I32, PER_THREAD));
        for (int r = 0; r < size; r++)
            CHECK (all[r] == r + round, "round %d: rank %d gives %d", round, r, all[r]);
        CHECK_OK (gs_barrier (comm, PER_THREAD));
    }
    free (x);
    CHECK_OK (gs_comm_destroy (comm));
    return NULL;
}

int main (void)
{
    pthread_t threads[THREADS];
    gs_comm_t *comms[THREADS];

    for (int t = 0; t < THREADS; t++)
        comms[t] = multi_create (NULL);
    for (int t = 0; t < THREADS; t++)
        CHECK (!pthread_create (&threads[t], NULL, work, comms[t]), "no thread");
    for (int t = 0; t < THREADS; t++)
        pthread_join (threads[t], NULL);
    return multi_end ("four communicators in four threads");
}
