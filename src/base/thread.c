/* SPDX-License-Identifier: BSD-3-Clause */
/* thread - threads of the library's own. */
#include "base/thread.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "base/status.h"

#define EXIT_NS     (5 * GSI_NS_PER_S) /* the end of the process waits so long for a call */
#define STANDS_BACK 5 /* of nice: a quarter of a core that the program wants, too */

/* A thread's own: blocked, they would end the process without the program's handler for them. */
static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

gs_status_t gsi_thread_start (pthread_t *thread, void *(*work) (void *), void *argument,
                              const char *owner)
{
    sigset_t blocked, before;
    int rc;

    sigfillset (&blocked);
    for (size_t i = 0; i < sizeof (faults) / sizeof (*faults); i++)
        sigdelset (&blocked, faults[i]);
    pthread_sigmask (SIG_SETMASK, &blocked, &before);
    rc = pthread_create (thread, NULL, work, argument);
    pthread_sigmask (SIG_SETMASK, &before, NULL);
    if (!rc)
        return GS_OK;
    return gsi_fail (GS_ERR_NOMEM, "%s: no thread can be made (error %d)", owner, rc);
}

/* N.B. On Linux the nice value is a thread's, whatever POSIX says. */
void gsi_thread_stand_back (void)
{
    id_t self = (id_t) syscall (SYS_gettid);

    setpriority (PRIO_PROCESS, self, getpriority (PRIO_PROCESS, self) + STANDS_BACK);
}

/* ---- The end of the process ---- */

static pthread_mutex_t exit_guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t left = PTHREAD_COND_INITIALIZER;
static int inside;
static _Thread_local bool is_inside;
static bool ending;

bool gsi_thread_enter_gpu (void)
{
    bool may;

    pthread_mutex_lock (&exit_guard);
    may = !ending;
    inside += may;
    is_inside = may;
    pthread_mutex_unlock (&exit_guard);
    return may;
}

void gsi_thread_leave_gpu (void)
{
    pthread_mutex_lock (&exit_guard);
    is_inside = false;
    inside--;
    pthread_cond_signal (&left);
    pthread_mutex_unlock (&exit_guard);
}

bool gsi_thread_must_leave_gpu (void)
{
    bool must;

    pthread_mutex_lock (&exit_guard);
    must = ending;
    pthread_mutex_unlock (&exit_guard);
    return must;
}

/* A thread of ours may call what ends the process: a sink of the log, for instance. */
static void await_threads (void)
{
    int64_t until_ns = gsi_now_ns () + EXIT_NS;

    if (gsi_process_is_child ()) /* it has none of them */
        return;
    pthread_mutex_lock (&exit_guard);
    ending = true;
    while (inside > is_inside && gsi_now_ns () < until_ns)
        gsi_condition_wait (&left, &exit_guard, until_ns);
    pthread_mutex_unlock (&exit_guard);
}

static void begin_waiting (void)
{
    pthread_mutex_lock (&exit_guard); /* a thread may leave already */
    gsi_condition_init (&left);
    pthread_mutex_unlock (&exit_guard);
    atexit (await_threads);
}

void gsi_thread_outlast_gpu (void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once (&once, begin_waiting);
}

/* ---- Conditions ---- */

void gsi_condition_init (pthread_cond_t *condition)
{
    pthread_condattr_t attributes;

    pthread_condattr_init (&attributes);
    pthread_condattr_setclock (&attributes, CLOCK_MONOTONIC);
    pthread_cond_init (condition, &attributes);
    pthread_condattr_destroy (&attributes);
}

void gsi_condition_wait (pthread_cond_t *condition, pthread_mutex_t *guard, int64_t until_ns)
{
    struct timespec until = {.tv_sec = until_ns / GSI_NS_PER_S,
                             .tv_nsec = until_ns % GSI_NS_PER_S};

    pthread_cond_timedwait (condition, guard, &until);
}
