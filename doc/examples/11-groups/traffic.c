/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * traffic.c - what travels in a step of training: as much as there are parameters, whatever the
 * batch.
 */
#include <gradsync.h>
#include <stdio.h>

enum { PARAMETERS = 100000 };

/* A step with [samples] samples on each rank; its gradient is averaged. */
static gs_status_t step (gs_comm_t *comm, int samples)
{
    static double gradient[PARAMETERS];

    for (int i = 0; i < PARAMETERS; i++)
        gradient[i] = 0;
    for (int s = 0; s < samples; s++)
        for (int i = 0; i < PARAMETERS; i++)
            gradient[i] += (double) (s % 7) * i / samples;
    return gs_allreduce_avg (comm, gradient, PARAMETERS, GS_F64, NULL);
}

int main (void)
{
    gs_traffic_t traffic = {.size = sizeof (traffic)};
    gs_comm_t *comm;

    if (gs_comm_create (NULL, &comm))
        goto fail;
    /* The ranks compare what they do in the first two calls, which takes some bytes more. */
    if (gs_barrier (comm, NULL) || gs_barrier (comm, NULL))
        goto fail;
    for (int samples = 10; samples <= 1000; samples *= 10) {
        if (gs_comm_reset_traffic (comm) || step (comm, samples) ||
            gs_comm_get_traffic (comm, "allreduce_avg", &traffic))
            goto fail;
        if (gs_comm_rank (comm) == 0)
            printf ("%d samples: %llu bytes averaged in %llu call; to other nodes: %s%llu\n",
                    samples, (unsigned long long) traffic.bytes,
                    (unsigned long long) traffic.calls, traffic.between_known ? "" : "at least ",
                    (unsigned long long) traffic.between);
    }
    if (!gs_comm_destroy (comm))
        return 0;
fail:
    fprintf (stderr, "traffic: %s\n", gs_last_error ());
    return 1;
}
