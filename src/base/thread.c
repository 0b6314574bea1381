/* SPDX-License-Identifier: BSD-3-Clause */
/* thread - threads of the library's own. */
#include "base/thread.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"

#define STANDS_BACK 5 /* of nice: a quarter of a core that the program wants, too */

gs_status_t gsi_thread_start (pthread_t *thread, void *(*work) (void *), void *argument,
                              const char *owner)
{
    sigset_t all, before;
    int rc;

    sigfillset (&all);
    pthread_sigmask (SIG_SETMASK, &all, &before);
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
