/* SPDX-License-Identifier: BSD-3-Clause */
/* clock - time for deadlines and records. */
#ifndef GS_BASE_CLOCK_H
#define GS_BASE_CLOCK_H

#include <sched.h>
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

/* Between two looks at a word that another core will change: leaves it the execution units. */
static inline void gsi_relax (void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause ();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/*
 * Lets time pass between two questions of a wait that has lasted [waited_ns]: up to [spin_ns]
 * only the core is offered, then an eighth of the wait so far is slept, a millisecond at most.
 * Many ranks may wait on few cores.
 */
static inline void gsi_pause (int64_t waited_ns, int64_t spin_ns)
{
    int64_t ns = waited_ns / 8;

    if (waited_ns < spin_ns) {
        sched_yield ();
        return;
    }
    ns = ns < 20000 ? 20000 : ns > GSI_NS_PER_MS ? GSI_NS_PER_MS : ns;
    nanosleep (&(struct timespec){.tv_nsec = ns}, NULL);
}

#endif /* GS_BASE_CLOCK_H */
