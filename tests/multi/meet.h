/* SPDX-License-Identifier: BSD-3-Clause */
/* meet - a barrier of MPI that sleeps, for programs in which some ranks wait while others work.
 */
#ifndef GS_TESTS_MEET_H
#define GS_TESTS_MEET_H

#include <mpi.h>
#include <stdbool.h>
#include <unistd.h>

#include "config.h"

#ifdef HAVE_OFI
#define MULTI_LIBFABRIC true
#else
#define MULTI_LIBFABRIC false
#endif

/*
 * N.B. A rank that waits inside MPI takes a core; with Linux 6.18 some were seen to keep it for
 * half a minute from ranks that had slept and were to go on, though they call sched_yield.
 */
static inline void multi_meet (MPI_Comm where)
{
    MPI_Request request;
    int done = 0;

    MPI_Ibarrier (where, &request);
    while (!done) {
        usleep (1000);
        MPI_Test (&request, &done, MPI_STATUS_IGNORE);
    }
}

#endif /* GS_TESTS_MEET_H */
