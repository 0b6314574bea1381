/* SPDX-License-Identifier: BSD-3-Clause */
/* proc - which processes go on. */
#include "base/proc.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/record.h"
#include "unit/unit.h"

/* Sends [signal] to [child] and waits until it is there; a zombie stays one. */
static void strike (pid_t child, int signal, int options)
{
    siginfo_t info;

    ck_assert_int_eq (kill (child, signal), 0);
    ck_assert_int_eq (waitid (P_PID, (id_t) child, &info, options | WNOWAIT), 0);
}

START_TEST (stopped_and_ended_processes_do_not)
{
    pid_t child = fork ();
    struct gsi_record_state record = {.pid = child, .space = gsi_process_space ()};
    bool runs, other, stopped, ended, halted[3], gone[3];
    uint64_t start;

    if (!child)
        for (alarm (15);;)
            pause ();
    start = gsi_process_start (child, &ended);
    runs = gsi_process_runs (child, start) && !ended;
    other = gsi_process_runs (child, start + 1); /* another one of its number */
    record.started = start;
    halted[0] = gsi_record_halted (&record);
    gone[0] = gsi_process_has_ended (child, start, record.space);
    strike (child, SIGSTOP, WSTOPPED);
    stopped = !gsi_process_runs (child, start) && gsi_process_start (child, &ended) == start;
    stopped = stopped && !ended;
    halted[1] = gsi_record_halted (&record);
    gone[1] = gsi_process_has_ended (child, start, record.space);
    strike (child, SIGKILL, WEXITED);
    halted[2] = gsi_record_halted (&record);
    gone[2] = gsi_process_has_ended (child, start, record.space);
    ck_assert (start && runs && !other && stopped);
    ck_assert (!halted[0] && halted[1] && halted[2]);
    ck_assert (!gone[0] && !gone[1] && gone[2]);
    ck_assert (!gsi_process_has_ended (child, start, record.space + 1)); /* in another one's */
    ck_assert (!gsi_process_has_ended (child, 0, record.space));
    record.verdict = GS_ERR_STATE; /* it gave up before */
    ck_assert (!gsi_record_halted (&record));
    ck_assert (!gsi_process_runs (child, start));
    gsi_process_start (child, &ended);
    ck_assert (ended);
    ck_assert_int_eq (waitpid (child, NULL, 0), child);
    ck_assert (!gsi_process_runs (child, start));
    ck_assert (gsi_process_has_ended (child, start, record.space));
    ck_assert (!gsi_process_has_ended (getpid (), start, 0));
    ck_assert (!gsi_process_runs (getpid (), 0));
}
END_TEST

UNIT_SUITE ("proc", 20, stopped_and_ended_processes_do_not)
