/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fence - whether a PMIx fence without data waits for all ranks of a step on this machine: they
 * come at different times, and each prints when it came to and left every fence. awk compares.
 */
#include <pmix.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define FENCES 4

static double seconds (void)
{
    struct timespec t;

    clock_gettime (CLOCK_MONOTONIC, &t); /* one clock for all simulated nodes */
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

int main (void)
{
    double came[FENCES], left[FENCES];
    pmix_proc_t me, all;

    if (PMIx_Init (&me, NULL, 0))
        return 1;
    PMIX_PROC_CONSTRUCT (&all);
    snprintf (all.nspace, sizeof (all.nspace), "%s", me.nspace);
    all.rank = PMIX_RANK_WILDCARD;
    for (unsigned i = 0; i < FENCES; i++) {
        struct timespec late = {.tv_nsec = 5000000L * ((me.rank + i) % FENCES)};
        nanosleep (&late, NULL);
        came[i] = seconds ();
        if (PMIx_Fence (&all, 1, NULL, 0))
            return 2;
        left[i] = seconds ();
    }
    for (int i = 0; i < FENCES; i++)
        printf ("fence %d rank %u %.6f %.6f\n", i, me.rank, came[i], left[i]);
    return PMIx_Finalize (NULL, 0) ? 3 : 0;
}
