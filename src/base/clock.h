/* SPDX-License-Identifier: BSD-3-Clause */
/* clock - time for deadlines and records. */
#ifndef GS_BASE_CLOCK_H
#define GS_BASE_CLOCK_H

#include <sched.h>
#include <stdbool.h>
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
#define GSI_SPIN_NS (GSI_NS_PER_MS / 10) /* what most waits spin before they sleep */
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

/*
 * A wait that looks again and again, and its end: while (!there () && gsi_wait_on (&wait)).
 */
struct gsi_wait {
    int64_t begin_ns, until_ns, spin_ns;
};

static inline struct gsi_wait gsi_wait_until (int64_t until_ns)
{
    return (struct gsi_wait){gsi_now_ns (), until_ns, GSI_SPIN_NS};
}

/* For [most_ns]; [spin_ns] as in gsi_pause. */
static inline struct gsi_wait gsi_wait_for (int64_t most_ns, int64_t spin_ns)
{
    int64_t now_ns = gsi_now_ns ();

    return (struct gsi_wait){now_ns, now_ns + most_ns, spin_ns};
}

/* After a look in vain: lets time pass, or false, at its end. */
static inline bool gsi_wait_on (const struct gsi_wait *wait)
{
    int64_t now_ns = gsi_now_ns ();

    if (now_ns >= wait->until_ns)
        return false;
    gsi_pause (now_ns - wait->begin_ns, wait->spin_ns);
    return true;
}

/*
 * A grace period for others, who may be as slow as this process is: of the time between two looks
 * no more than GSI_GRACE_LOOK_NS counts, so that it lasts longer where processes wait for cores,
 * up to GSI_GRACE_MOST times. To be looked at every 10 ms or more often.
 */
#define GSI_GRACE_LOOK_NS (15 * GSI_NS_PER_MS)
#define GSI_GRACE_MOST    6

struct gsi_grace {
    int64_t left_ns, looked_ns, until_ns;
};

static inline void gsi_grace_begin (struct gsi_grace *grace, int64_t ns)
{
    grace->left_ns = ns;
    grace->looked_ns = gsi_now_ns ();
    grace->until_ns = grace->looked_ns + GSI_GRACE_MOST * ns;
}

static inline bool gsi_grace_is_over (struct gsi_grace *grace)
{
    int64_t now_ns = gsi_now_ns (), since_ns = now_ns - grace->looked_ns;

    grace->left_ns -= since_ns < GSI_GRACE_LOOK_NS ? since_ns : GSI_GRACE_LOOK_NS;
    grace->looked_ns = now_ns;
    return grace->left_ns <= 0 || now_ns >= grace->until_ns;
}

/* [timeout_ns] / 8, between the two bounds: how long others are waited for behind a deadline. */
static inline int64_t gsi_grace_of (int64_t timeout_ns, int64_t least_ns, int64_t most_ns)
{
    int64_t ns = timeout_ns / 8;

    return ns < least_ns ? least_ns : ns > most_ns ? most_ns : ns;
}

#endif /* GS_BASE_CLOCK_H */
