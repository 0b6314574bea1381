/* SPDX-License-Identifier: BSD-3-Clause */
/* clock - time for deadlines and records. */
#ifndef GS_BASE_CLOCK_H
#define GS_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define GSI_NS_PER_MS INT64_C (1000000)
#define GSI_NS_PER_S  INT64_C (1000000000)

/* Nanoseconds of a clock that never jumps; only differences mean something. */
static inline int64_t gsi_now_ns (void)
{
    struct timespec t;

    clock_gettime (CLOCK_MONOTONIC, &t);
    return t.tv_sec * GSI_NS_PER_S + t.tv_nsec;
}

/* Nanoseconds since 1970, to print. */
static inline int64_t gsi_wall_ns (void)
{
    struct timespec t;

    clock_gettime (CLOCK_REALTIME, &t);
    return t.tv_sec * GSI_NS_PER_S + t.tv_nsec;
}

#endif /* GS_BASE_CLOCK_H */
