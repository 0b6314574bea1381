/* SPDX-License-Identifier: BSD-3-Clause */
/* thread - threads of the library at the end of the process. */
#include "base/thread.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "unit/unit.h"

static int out, begun[2];

static void say (int file, const char *letter)
{
    ck_assert_int_eq (write (file, letter, 1), 1);
}

/* A call that takes a while. */
static void *call (void *unused)
{
    say (out, gsi_thread_enter_gpu () ? "i" : "n");
    say (begun[1], "b");
    usleep (200000);
    say (out, "o");
    gsi_thread_leave_gpu ();
    return unused;
}

static void *last_call (void *unused)
{
    say (out, gsi_thread_enter_gpu () ? "i" : "n");
    return unused;
}

/* What was registered before is run behind the wait, as the end of CUDA's libraries is. */
static void after_wait (void)
{
    pthread_t thread;

    unit_ok (gsi_thread_start (&thread, last_call, NULL, "test"));
    pthread_join (thread, NULL);
}

static void run_process (void)
{
    pthread_t thread;
    char letter;

    atexit (after_wait);
    gsi_thread_outlast_gpu ();
    unit_ok (gsi_thread_start (&thread, call, NULL, "test"));
    pthread_detach (thread); /* nobody waits for it, but the end of the process */
    ck_assert_int_eq (read (begun[0], &letter, 1), 1);
    exit (3);
}

START_TEST (end_awaits_calls)
{
    int words[2], status = -1;
    char said[8] = "";
    size_t used = 0;
    pid_t child;

    ck_assert_int_eq (pipe (words), 0);
    ck_assert_int_eq (pipe (begun), 0);
    out = words[1];
    if (!(child = fork ()))
        run_process ();
    close (out);
    while (used < sizeof (said) - 1 && read (words[0], said + used, 1) == 1)
        used++;
    ck_assert_int_eq (waitpid (child, &status, 0), child);
    ck_assert (WIFEXITED (status));
    ck_assert_int_eq (WEXITSTATUS (status), 3);
    ck_assert_str_eq (said, "ion");
}
END_TEST

/* A thread that is inside itself ends the process: it does not wait for itself. */
START_TEST (end_by_a_thread)
{
    int64_t begin_ns = gsi_now_ns ();
    int status = -1;
    pid_t child = fork ();

    if (!child) {
        gsi_thread_outlast_gpu ();
        ck_assert (gsi_thread_enter_gpu ());
        exit (4);
    }
    ck_assert_int_eq (waitpid (child, &status, 0), child);
    ck_assert_int_eq (WEXITSTATUS (status), 4);
    ck_assert_int_lt (gsi_now_ns () - begin_ns, 4 * GSI_NS_PER_S);
}
END_TEST

static void *ask_mask (void *blocked)
{
    pthread_sigmask (SIG_SETMASK, NULL, blocked);
    return NULL;
}

/* Signals go to the program's threads; a fault goes to the program's handler for it. */
START_TEST (only_faults_are_taken)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL}, others[] = {SIGTERM, SIGUSR1};
    pthread_t thread;
    sigset_t blocked;

    unit_ok (gsi_thread_start (&thread, ask_mask, &blocked, "test"));
    pthread_join (thread, NULL);
    for (size_t i = 0; i < sizeof (faults) / sizeof (*faults); i++)
        ck_assert (!sigismember (&blocked, faults[i]));
    for (size_t i = 0; i < sizeof (others) / sizeof (*others); i++)
        ck_assert (sigismember (&blocked, others[i]));
}
END_TEST

UNIT_SUITE ("thread", 20, end_awaits_calls, end_by_a_thread, only_faults_are_taken)
