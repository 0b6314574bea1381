/* SPDX-License-Identifier: BSD-3-Clause */
/* process - which process this is, after a fork. */
#include "base/process.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/status.h"

/*
 * A byte that is 1 here and 0 in every child. The kernel sees to it (Linux 4.14), however the
 * child was made (fork, _Fork, clone); before that a handler does, which only fork calls.
 */
static atomic_uchar ours;
static volatile atomic_uchar *here = &ours;

static atomic_bool used; /* what is made by it is there: children inherit that */
static atomic_long user; /* which process did; written before [used] */
static atomic_bool told; /* see gsi_process_told */
static atomic_bool left_behind;

bool gsi_process_is_child (void)
{
    return atomic_load_explicit (&used, memory_order_acquire) &&
           !atomic_load_explicit (here, memory_order_relaxed);
}

/* Several threads may come first. */
static void begin_use (void)
{
    user = (long) getpid ();
    *here = 1;
    atomic_store_explicit (&used, true, memory_order_release);
}

/* Whether the program itself has MPI or PMIx up. It is only asked for what is there: homes of
 * both load what they need, which a fork is no occasion for. */
static bool others_are_up (void)
{
    int (*pmix) (void) = (int (*) (void)) dlsym (RTLD_DEFAULT, "PMIx_Initialized");
    int (*initialized) (int *) = (int (*) (int *)) dlsym (RTLD_DEFAULT, "MPI_Initialized");
    int (*finalized) (int *) = (int (*) (int *)) dlsym (RTLD_DEFAULT, "MPI_Finalized");
    int up = 0, over = 0;

    if (initialized && finalized) {
        initialized (&up);
        finalized (&over);
    }
    return (up && !over) || (pmix && pmix ());
}

/* What is up now is the parent's, whoever started it. */
static void before_fork (void)
{
    if (!atomic_load (&used) && others_are_up ())
        begin_use ();
}

static void in_child (void)
{
    *here = 0;
}

static void __attribute__ ((constructor)) begin (void)
{
    size_t bytes = (size_t) sysconf (_SC_PAGESIZE);
    void *page = mmap (NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

#ifdef MADV_WIPEONFORK
    if (page != MAP_FAILED && !madvise (page, bytes, MADV_WIPEONFORK)) {
        here = page;
        page = MAP_FAILED;
    }
#endif
    if (page != MAP_FAILED)
        munmap (page, bytes);
    pthread_atfork (before_fork, NULL, in_child);
}

static gs_status_t refuse_child (const char *caller)
{
    return gsi_fail (
        GS_ERR_STATE,
        "%s: process %ld is a fork of process %ld, which uses gradsync, MPI or PMIx: what is "
        "open there is not this one's. Call gradsync in that process only; or fork before it "
        "uses any "
        "of them; or start a program of its own (posix_spawn, exec; in Python multiprocessing "
        "with 'spawn')",
        caller, (long) getpid (), user);
}

gs_status_t gsi_process_use (const char *caller)
{
    if (gsi_process_is_child ())
        return refuse_child (caller);
    if (!atomic_load_explicit (&used, memory_order_acquire))
        begin_use ();
    return GS_OK;
}

/* Unlike SIG_IGN, a handler is not inherited by the programs that this one starts. */
static void go_on (int signal)
{
    (void) signal;
}

void gsi_process_outlive_pipes (void)
{
    struct sigaction action;

    if (sigaction (SIGPIPE, NULL, &action) || (action.sa_flags & SA_SIGINFO) ||
        action.sa_handler != SIG_DFL)
        return;
    action.sa_handler = go_on;
    action.sa_flags = SA_RESTART;
    sigaction (SIGPIPE, &action, NULL);
}

void gsi_process_told (void)
{
    atomic_store (&told, true);
}

bool gsi_process_is_told (void)
{
    return atomic_load (&told);
}

void gsi_process_leave_behind (void)
{
    atomic_store (&left_behind, true);
}

bool gsi_process_has_left_behind (void)
{
    return atomic_load (&left_behind);
}

void gsi_process_host (char *host, size_t room)
{
    memset (host, 0, room);
    if (gethostname (host, room - 1) || !host[0])
        strcpy (host, "localhost");
}

gs_status_t gsi_handle_check (const char *caller, const char *argument, const char *kind,
                              const void *handle, bool intact)
{
    if (!handle)
        return gsi_fail (GS_ERR_ARG, "%s: %s is NULL", caller, argument);
    if (!intact)
        return gsi_fail (GS_ERR_STATE, "%s: %s was destroyed, or is no %s", caller, argument,
                         kind);
    return gsi_process_is_child () ? refuse_child (caller) : GS_OK;
}
