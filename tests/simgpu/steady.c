/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * steady - the program of steady.sh: a reducer whose buckets have settled. What libgradsync asks
 * of libc in gs_reducer_ready and gs_reducer_finish is counted by functions that stand before
 * libc's: it must ask for no memory and no system call. Not counted is sched_yield and nanosleep:
 * NCCL takes an operation in by a thread of its own, to which the core is offered meanwhile. Runs
 * on real GPUs as well.
 *
 *   steady STEPS
 */
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>

#include "multi/multi.h"

#define GRADIENTS 50
#define COUNT     3000
#define SETTLED   32 /* steps: buckets are made anew after 1, 2, 4, ... */

static _Thread_local bool counting;
static _Thread_local char asked[256]; /* the first thing that was */
static _Thread_local int times;

/* Whether [address] is in libgradsync. */
static bool is_ours (const void *address)
{
    Dl_info info;

    return dladdr (address, &info) && info.dli_fname &&
           strstr (info.dli_fname, "/libgradsync.so");
}

static void note (const char *name, const void *caller)
{
    if (!counting)
        return;
    counting = false; /* for dladdr */
    if (is_ours (caller) && !times++)
        snprintf (asked, sizeof (asked), "%s", name);
    counting = true;
}

/* Defines NAME, which takes note and calls that of libc. */
#define STAND_BEFORE(TYPE, NAME, PARAMETERS, ARGUMENTS)  \
    TYPE NAME PARAMETERS                                 \
    {                                                    \
        static TYPE (*libc) PARAMETERS;                  \
        note (#NAME, __builtin_return_address (0));      \
        if (!libc)                                       \
            *(void **) &libc = dlsym (RTLD_NEXT, #NAME); \
        return libc ARGUMENTS;                           \
    }

extern void *__libc_malloc (size_t bytes);
extern void *__libc_calloc (size_t number, size_t bytes);
extern void *__libc_realloc (void *memory, size_t bytes);

/* These are needed before dlsym can be. */
void *malloc (size_t bytes)
{
    note ("malloc", __builtin_return_address (0));
    return __libc_malloc (bytes);
}

void *calloc (size_t number, size_t bytes)
{
    note ("calloc", __builtin_return_address (0));
    return __libc_calloc (number, bytes);
}

void *realloc (void *memory, size_t bytes)
{
    note ("realloc", __builtin_return_address (0));
    return __libc_realloc (memory, bytes);
}

STAND_BEFORE (void *, mmap, (void *at, size_t bytes, int rights, int flags, int file, off_t from),
              (at, bytes, rights, flags, file, from))
STAND_BEFORE (int, munmap, (void *at, size_t bytes), (at, bytes))
STAND_BEFORE (int, usleep, (useconds_t t), (t))
STAND_BEFORE (int, poll, (struct pollfd * files, nfds_t number, int timeout),
              (files, number, timeout))
STAND_BEFORE (FILE *, fopen, (const char *path, const char *mode), (path, mode))
STAND_BEFORE (int, pthread_cond_wait, (pthread_cond_t * bell, pthread_mutex_t *guard),
              (bell, guard))
STAND_BEFORE (int, pthread_cond_broadcast, (pthread_cond_t * bell), (bell))

/*
 * A step; the calls on the reducer are counted if [watched]. Returns whether they asked for
 * something: once in a while NCCL keeps a call waiting, and the library then looks for a rank
 * that has given up, in a file that it maps.
 */
static bool step (gs_comm_t *comm, gs_reducer_t *r, bool watched)
{
    gs_status_t st = GS_OK;
    bool asks;

    counting = watched;
    for (int g = GRADIENTS - 1; g >= 0 && !st; g--)
        st = gs_reducer_ready (r, g, NULL);
    st = st ? st : gs_reducer_finish (r, NULL);
    counting = false;
    CHECK_OK (st);
    asks = times > 0;
    times = 0;
    CHECK_OK (gs_comm_wait (comm, NULL)); /* so that the tail of the step has room */
    return asks;
}

/* Steps were timed, and in the last one of them each bucket was ready, travelled when the one
 * before had arrived, and arrived. */
static void check_times (gs_reducer_t *r)
{
    gs_reducer_stats_t stats = {.size = sizeof (stats)};
    gs_bucket_stats_t b = {.size = sizeof (b)};
    double free_us = 0;

    CHECK_OK (gs_reducer_get_stats (r, &stats));
    CHECK (stats.busy_us > 0 && stats.exposed_us >= 0 && stats.overlap >= 0 && stats.overlap <= 1,
           "under way %g us, exposed %g us, overlap %g", stats.busy_us, stats.exposed_us,
           stats.overlap);
    for (int i = 0; i < stats.buckets; i++) {
        CHECK_OK (gs_reducer_get_bucket (r, i, &b));
        CHECK (b.ready_us >= 0 && b.begin_us >= b.ready_us && b.begin_us >= free_us &&
                   b.end_us >= b.begin_us && b.exposed_us <= b.end_us - b.begin_us + 1e-3,
               "bucket %d is ready at %g, begins at %g behind %g, ends at %g us, exposed %g", i,
               b.ready_us, b.begin_us, free_us, b.end_us, b.exposed_us);
        free_us = b.end_us;
    }
    CHECK (free_us > 0, "the last bucket has no time");
}

/* Steps in which the others' buckets wait for those of the last rank: one in eight is timed, and
 * the one after it tells. */
static bool see_late (gs_comm_t *comm, gs_reducer_t *r, gs_reducer_stats_t *stats)
{
    int late = gs_comm_size (comm) - 1, seen = 0;

    for (int s = 0; s < 9; s++) {
        if (gs_comm_rank (comm) == late)
            usleep (50000);
        step (comm, r, false);
    }
    CHECK_OK (gs_barrier (comm, NULL)); /* behind the exchange that tells */
    CHECK_OK (gs_comm_wait (comm, NULL));
    CHECK_OK (gs_reducer_get_stats (r, stats));
    CHECK_OK (gs_flag_all (comm, stats->late_rank == late && stats->late_us > 5000, &seen, NULL));
    return seen;
}

/* Another rank may be later still where others want its core, but not again and again. */
static void check_late (gs_comm_t *comm, gs_reducer_t *r)
{
    gs_reducer_stats_t stats = {.size = sizeof (stats)};
    bool seen = gs_comm_size (comm) == 1;

    for (int tries = 0; tries < 10 && !seen; tries++)
        seen = see_late (comm, r, &stats);
    CHECK (seen, "rank %d is %g us late", stats.late_rank, stats.late_us);
}

/* The check itself: an allocation of the library's is seen. */
static void check_counting (void)
{
    gs_comm_t *comm = NULL;
    gs_reducer_t *r = NULL;

    CHECK_OK (gs_comm_create (NULL, &comm));
    counting = true;
    CHECK_OK (gs_reducer_create (comm, NULL, &r));
    counting = false;
    CHECK (times > 0 && !strcmp (asked, "calloc"), "a create asks %d times, first for '%s'",
           times, asked);
    times = 0;
    CHECK_OK (gs_reducer_destroy (r));
    CHECK_OK (gs_comm_destroy (comm));
}

int main (int argc, char **argv)
{
    gs_reducer_opts_t opts = GS_REDUCER_OPTS_INIT;
    int steps = argc > 1 ? atoi (argv[1]) : 40, ask = 0, watches = 0;
    gs_reducer_stats_t stats = {.size = sizeof (stats)};
    gs_reducer_t *r;
    gs_comm_t *comm;

    check_counting ();
    comm = multi_create (NULL);
    opts.first_bytes = opts.last_bytes = 20000;
    opts.bucket_bytes = 100000;
    CHECK_OK (gs_reducer_create (comm, &opts, &r));
    for (int g = 0; g < GRADIENTS; g++) {
        char name[16];
        size_t shape = COUNT;
        snprintf (name, sizeof (name), "g%d", g);
        CHECK_OK (gs_reducer_add (r, name, 1, &shape, GS_F32, NULL, NULL));
    }
    CHECK_OK (gs_reducer_commit (r));
    for (int s = 1; s <= steps; s++) {
        bool watched = s > SETTLED && (s & (s - 1));
        ask += step (comm, r, watched);
        watches += watched;
    }
    CHECK (ask <= watches / 4, "%d of %d steps ask libc, the last one for %s", ask, watches,
           asked);
    CHECK_OK (gs_reducer_get_stats (r, &stats));
    CHECK (stats.steps == steps && stats.buckets > 3, "%d buckets", stats.buckets);
    check_times (r);
    check_late (comm, r);
    CHECK_OK (gs_reducer_destroy (r));
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("steps of a reducer ask for no memory and no system call");
}
