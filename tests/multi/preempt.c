/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * preempt - a signal to one rank, the end of the job and a file ask all ranks to stop, in the
 * same call; handlers of the program's are called, and are there again after the plan.
 *
 * What a signal has told stays told, so each check has signals of its own.
 */
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>

#include "multi.h"

static gs_comm_t *comm;
static int rank, last;
static char folder[1100], file[1110];
static char heard[8000]; /* warnings of this rank */
static double state;

/* ---- What is shared ---- */

static void hear (gs_log_level_t level, const char *line, void *context)
{
    size_t used = strlen (heard);

    (void) context;
    if (level <= GS_LOG_WARN)
        snprintf (heard + used, sizeof (heard) - used, "%s\n", line);
}

static void forget (void)
{
    heard[0] = 0;
}

/* Rank 0 has said one thing with each of these parts, and the others nothing. */
static void check_heard (const char *what, const char *part, const char *other)
{
    const char *end = strchr (heard, '\n');

    if (rank)
        CHECK (!*heard, "%s: says '%s'", what, heard);
    else
        CHECK (end && !end[1] && strstr (heard, part) && strstr (heard, other),
               "%s: no '%s' and '%s' in '%s'", what, part, other, heard);
    forget ();
}

static void check_silent (const char *what)
{
    CHECK (!*heard, "%s: says '%s'", what, heard);
    forget ();
}

static void meet (void)
{
    CHECK_OK (multi_barrier (comm));
}

static gs_ckpt_t *plan (const char *signals, double margin_s)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    gs_ckpt_t *ckpt;

    opts.signals = signals;
    opts.stop_margin_s = margin_s;
    opts.overwrite = 1;
    CHECK_OK (gs_ckpt_create (comm, folder, &opts, &ckpt));
    CHECK_OK (gs_ckpt_add_replicated (ckpt, "x", 0, NULL, GS_F64, &state));
    CHECK_OK (gs_ckpt_commit (ckpt));
    return ckpt;
}

static int ask (gs_ckpt_t *ckpt)
{
    int reasons = -1;

    CHECK_OK (gs_stop_requested (ckpt, &reasons, NULL));
    return reasons;
}

static void expect (gs_ckpt_t *ckpt, int reasons, const char *when)
{
    int found = ask (ckpt);

    CHECK (found == reasons, "%s: reasons are %d, not %d", when, found, reasons);
}

/* A plan that asks once. */
static void expect_once (const char *signals, double margin_s, int reasons, const char *when)
{
    gs_ckpt_t *ckpt = plan (signals, margin_s);

    expect (ckpt, reasons, when);
    CHECK_OK (gs_ckpt_destroy (ckpt));
}

static struct sigaction handler_of (int number)
{
    struct sigaction now;

    CHECK (!sigaction (number, NULL, &now), "no signal %d", number);
    return now;
}

static bool is_default (int number)
{
    return handler_of (number).sa_handler == SIG_DFL;
}

/* ---- Signals ---- */

static void check_signal (void)
{
    void (*of_usr2) (int) = handler_of (SIGUSR2).sa_handler; /* launchers may ignore signals */
    void (*of_hup) (int) = handler_of (SIGHUP).sa_handler;
    gs_ckpt_t *ckpt = plan (NULL, 0);
    char who[40];

    CHECK (is_default (SIGUSR1) && is_default (SIGTERM),
           "a plan that has not asked handles them");
    expect (ckpt, 0, "nothing has happened");
    CHECK (!is_default (SIGUSR1) && !is_default (SIGTERM), "one that has does not");
    CHECK (handler_of (SIGUSR2).sa_handler == of_usr2 && handler_of (SIGHUP).sa_handler == of_hup,
           "others are handled");
    meet ();
    if (rank == last)
        raise (SIGUSR1);
    expect (ckpt, GS_CKPT_STOP_SIGNAL, "one rank had a signal");
    snprintf (who, sizeof (who), "rank %d (host ", last);
    check_heard ("a signal", who, "SIGUSR1");
    expect (ckpt, GS_CKPT_STOP_SIGNAL, "it had");
    check_silent ("what was said");
    CHECK_OK (gs_ckpt_destroy (ckpt));
    CHECK (is_default (SIGUSR1) && is_default (SIGTERM), "handlers are left");
    expect_once (NULL, 0, GS_CKPT_STOP_SIGNAL, "another plan of the same process");
    forget ();
    expect_once ("none", 0, 0, "no signals");
    expect_once ("HUP", 0, 0, "another signal");
}

/* With none, a signal does what it does. */
static void check_none (void)
{
    gs_ckpt_t *ckpt = plan ("none", 0);

    for (int n = 1; n < 32; n++) {
        struct sigaction before = handler_of (n);
        expect (ckpt, 0, "nothing");
        CHECK (handler_of (n).sa_handler == before.sa_handler, "signal %d is handled", n);
    }
    CHECK_OK (gs_ckpt_destroy (ckpt));
}

static volatile sig_atomic_t plain_calls, full_calls, full_value, other_calls;

static void plain (int number)
{
    plain_calls += number == SIGHUP;
}

static void full (int number, siginfo_t *info, void *context)
{
    (void) number;
    full_calls += context != NULL;
    full_value = info->si_value.sival_int;
}

static void check_chain (void)
{
    struct sigaction one = {.sa_handler = plain}, two = {.sa_flags = SA_SIGINFO}, ignore = one;
    union sigval value = {.sival_int = 42};
    gs_ckpt_t *ckpt;

    two.sa_sigaction = full;
    ignore.sa_handler = SIG_IGN;
    sigaction (SIGHUP, &one, NULL);
    sigaction (SIGUSR2, &two, NULL);
    sigaction (SIGURG, &ignore, NULL);
    ckpt = plan ("SIGHUP, usr2, URG", 0);
    expect (ckpt, 0, "nothing has happened");
    raise (SIGHUP);
    sigqueue (getpid (), SIGUSR2, value);
    raise (SIGURG);
    expect (ckpt, GS_CKPT_STOP_SIGNAL, "signals that the program handles");
    forget ();
    CHECK (plain_calls == 1, "the program's handler was called %d times", (int) plain_calls);
    CHECK (full_calls == 1 && full_value == 42, "the other one %d times, with %d",
           (int) full_calls, (int) full_value);
    CHECK_OK (gs_ckpt_destroy (ckpt));
    CHECK (handler_of (SIGHUP).sa_handler == plain && handler_of (SIGUSR2).sa_sigaction == full &&
               handler_of (SIGURG).sa_handler == SIG_IGN,
           "handlers of before are not restored");
    raise (SIGHUP);
    raise (SIGURG);
    CHECK (plain_calls == 2, "the program's handler is not what it was");
}

static struct sigaction behind; /* other */

static void other (int number, siginfo_t *info, void *context)
{
    other_calls++;
    if (behind.sa_flags & SA_SIGINFO)
        behind.sa_sigaction (number, info, context);
    else if (behind.sa_handler != SIG_DFL)
        behind.sa_handler (number);
}

static volatile sig_atomic_t alarms;

static void count_alarm (int number)
{
    (void) number;
    alarms++;
}

/* Somebody replaces the handler: and may call the one that was there, or not. */
static void check_replaced (bool chains)
{
    int number = chains ? SIGALRM : SIGPROF;
    struct sigaction act = {.sa_handler = count_alarm};
    gs_ckpt_t *ckpt;

    alarms = other_calls = 0;
    behind = (struct sigaction){.sa_handler = SIG_DFL};
    sigaction (number, &act, NULL);
    ckpt = plan (chains ? "ALRM" : "PROF", 0);
    expect (ckpt, 0, "nothing has happened");
    act = (struct sigaction){.sa_flags = SA_SIGINFO};
    act.sa_sigaction = other;
    sigaction (number, &act, chains ? &behind : NULL);
    expect (ckpt, 0, "a handler was replaced");
    CHECK (strstr (heard, chains ? "SIGALRM" : "SIGPROF") && strstr (heard, "replaced"),
           "no warning, but '%s'", heard);
    forget ();
    CHECK (handler_of (number).sa_sigaction != other, "the handler is not put back");
    expect (ckpt, 0, "it is there again");
    check_silent ("a handler that is there");
    for (int i = 0; i < 3 && !rank; i++)
        raise (number);
    expect (ckpt, GS_CKPT_STOP_SIGNAL, "signals to two handlers");
    forget ();
    CHECK (other_calls == (rank ? 0 : 3), "the other handler was called %d times",
           (int) other_calls);
    CHECK (alarms == (rank || !chains ? 0 : 3), "the first one %d times", (int) alarms);
    CHECK_OK (gs_ckpt_destroy (ckpt));
    CHECK (handler_of (number).sa_sigaction == other, "the other handler is gone");
    alarms = other_calls = 0;
    raise (number);
    CHECK (other_calls == 1 && alarms == chains, "then: %d and %d calls", (int) other_calls,
           (int) alarms);
}

/* What others have installed by the end is left alone. */
static void check_left_alone (void)
{
    gs_ckpt_t *ckpt = plan ("WINCH", 0);

    expect (ckpt, 0, "nothing has happened");
    signal (SIGWINCH, plain);
    CHECK_OK (gs_ckpt_destroy (ckpt));
    CHECK (handler_of (SIGWINCH).sa_handler == plain, "a handler of the program's is gone");
    signal (SIGWINCH, SIG_DFL);
}

static void check_two_plans (void)
{
    gs_ckpt_t *one = plan ("XCPU", 0), *two = plan ("XCPU,VTALRM", 0), *silent = plan ("XCPU", 0);

    expect (one, 0, "one plan");
    expect (two, 0, "another plan");
    CHECK_OK (gs_ckpt_destroy (one));
    CHECK (!is_default (SIGXCPU), "the other plan's handler is gone");
    if (rank == last)
        raise (SIGXCPU);
    expect (two, GS_CKPT_STOP_SIGNAL, "a signal after another plan's end");
    forget ();
    CHECK_OK (gs_ckpt_destroy (silent));
    CHECK (!is_default (SIGXCPU), "it went with a plan that has never asked");
    CHECK_OK (gs_ckpt_destroy (two));
    CHECK (is_default (SIGXCPU) && is_default (SIGVTALRM), "handlers are left");
}

/* ---- Time ---- */

/* Rank [who] is told, or all for -1, that the job ends in [seconds] from now. */
static void set_end (const char *name, int who, double seconds)
{
    char text[40];

    snprintf (text, sizeof (text), "%lld", (long long) ((double) time (NULL) + seconds));
    if (who == rank || who < 0)
        setenv (name, text, 1);
}

static void forget_end (void)
{
    unsetenv ("GS_JOB_END");
    unsetenv ("SLURM_JOB_END_TIME");
    forget ();
}

static void check_end (void)
{
    forget_end ();
    set_end ("GS_JOB_END", -1, 100000);
    expect_once ("none", 0, 0, "the end is far");
    expect_once ("none", 200000, GS_CKPT_STOP_TIME, "the end is near for what is needed");
    check_heard ("a large margin", "stop_margin_s 200000", "GS_JOB_END");
    set_end ("GS_JOB_END", -1, 50);
    expect_once ("none", 0, GS_CKPT_STOP_TIME, "the end is nearer than the default");
    check_heard ("the default", "stop_margin_s 60", "from the first call on");
    set_end ("GS_JOB_END", -1, -5000);
    expect_once ("none", 1, GS_CKPT_STOP_TIME, "the end is past");
    forget_end ();
    set_end ("SLURM_JOB_END_TIME", -1, 10);
    expect_once ("none", 0, GS_CKPT_STOP_TIME, "what Slurm says");
    set_end ("GS_JOB_END", -1, 100000);
    expect_once ("none", 0, 0, "what GS_JOB_END says in its place");
    setenv ("GS_JOB_END", "none", 1);
    expect_once ("none", 0, 0, "an end that is none");
    setenv ("GS_JOB_END", "auto", 1);
    expect_once ("none", 0, GS_CKPT_STOP_TIME, "Slurm's again");
    forget_end ();
    setenv ("SLURM_JOB_END_TIME", "tomorrow", 1);
    expect_once ("none", 0, 0, "no number");
    check_heard ("no number", "SLURM_JOB_END_TIME='tomorrow'", "GS_JOB_END");
    forget_end ();
    if (!last)
        return;
    set_end ("GS_JOB_END", last, 10);
    expect_once ("none", 0, 0, "the end is near on another rank than 0");
    forget_end ();
    set_end ("GS_JOB_END", 0, 10);
    expect_once ("none", 0, GS_CKPT_STOP_TIME, "the end is near on rank 0");
    forget_end ();
}

/* A run up to the end of its job: it comes to know how long a checkpoint takes. */
static void check_run (void)
{
    const char *text;
    double write_s = 0, until = multi_seconds () + 40;
    gs_ckpt_t *ckpt;
    int reasons = 0;

    set_end ("GS_JOB_END", -1, 4);
    ckpt = plan ("none", 0.5);
    for (int step = 0; !reasons && multi_seconds () < until; step++) {
        CHECK_OK (gs_ckpt_write (ckpt, step % 2, NULL));
        reasons = ask (ckpt);
        usleep (10000);
    }
    CHECK (reasons == GS_CKPT_STOP_TIME, "reasons are %d", reasons);
    text = strstr (heard, "1.5 times ");
    CHECK (rank || (text && sscanf (text, "1.5 times %lf", &write_s) == 1 && write_s > 0),
           "no time of a write in '%s'", heard);
    check_heard ("the end of a run", "stop_margin_s 0.5", "between two calls");
    CHECK_OK (gs_ckpt_destroy (ckpt));
    forget_end ();
}

/* ---- The file ---- */

static void check_file (void)
{
    double until = multi_seconds () + 40;
    gs_ckpt_t *ckpt = plan ("none", 0);
    int reasons = 0;
    FILE *made;

    expect (ckpt, 0, "there is no file");
    meet ();
    if (!rank && (made = fopen (file, "w")))
        fclose (made);
    while (!reasons && multi_seconds () < until) {
        usleep (20000);
        reasons = ask (ckpt);
    }
    CHECK (reasons == GS_CKPT_STOP_FILE, "reasons are %d", reasons);
    check_heard ("a file", file, "stops");
    expect_once ("none", 0, GS_CKPT_STOP_FILE, "the file of before");
    check_heard ("a file that was there", file, "remove the file");
    meet ();
    CHECK (rank || !unlink (file), "no file");
    meet ();
    expect (ckpt, GS_CKPT_STOP_FILE, "a plan that has stopped");
    CHECK_OK (gs_ckpt_destroy (ckpt));
    expect_once ("none", 0, 0, "the file is gone");
    check_silent ("no file");
}

/* ---- What is refused ---- */

static void check_options (void)
{
    static const struct {
        const char *signals, *culprit;
        double margin_s;
    } bad[] = {{"USR1,FOO", "'FOO'", 0},
               {"KILL", "SIGKILL", 0},
               {"TERM,SEGV", "SIGSEGV", 0},
               {"", "''", 0},
               {NULL, "stop_margin_s is -1", -1}};
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    gs_ckpt_t *ckpt;

    for (size_t i = 0; i < sizeof (bad) / sizeof (*bad); i++) {
        opts.signals = bad[i].signals;
        opts.stop_margin_s = bad[i].margin_s;
        CHECK_FAILS (gs_ckpt_create (comm, folder, &opts, &ckpt), GS_ERR_ARG, "gs_ckpt_create",
                     bad[i].culprit);
        CHECK (!ckpt, "a plan");
    }
    if (!last)
        return;
    for (int i = 0; i < 2; i++) {
        opts.signals = i && rank ? "USR2" : "USR1";
        opts.stop_margin_s = !i && rank ? 3 : 4;
        CHECK_OK (gs_ckpt_create (comm, folder, &opts, &ckpt));
        CHECK_OK (gs_ckpt_add_replicated (ckpt, "x", 0, NULL, GS_F64, &state));
        CHECK_FAILS (gs_ckpt_commit (ckpt), GS_ERR_MISMATCH, "signals USR1, stop_margin_s 4",
                     i ? "signals USR2" : "stop_margin_s 3");
        CHECK_OK (gs_ckpt_destroy (ckpt));
    }
}

static void check_calls (void)
{
    gs_ckpt_t *ckpt;
    int reasons = 9;

    CHECK_FAILS (gs_stop_requested (NULL, &reasons, NULL), GS_ERR_ARG, "gs_stop_requested",
                 "ckpt is NULL");
    CHECK_OK (gs_ckpt_create (comm, folder, NULL, &ckpt));
    CHECK_FAILS (gs_stop_requested (ckpt, &reasons, NULL), GS_ERR_STATE, "gs_stop_requested",
                 "not committed");
    CHECK_OK (gs_ckpt_destroy (ckpt));
    ckpt = plan ("USR2", 0);
    CHECK_FAILS (gs_stop_requested (ckpt, rank == last ? NULL : &reasons, NULL), GS_ERR_ARG,
                 "reasons is NULL");
    CHECK (is_default (SIGUSR2), "a call that failed has left a handler");
    CHECK (reasons == 9, "reasons became %d in calls that failed", reasons);
    expect (ckpt, 0, "after a call that failed");
    CHECK_OK (gs_ckpt_destroy (ckpt));
}

int main (void)
{
    const char *tmp = getenv ("TMPDIR");
    gs_ckpt_t *ckpt;

    if (gs_ckpt_create (NULL, "x", NULL, &ckpt) == GS_ERR_UNSUPPORTED) {
        printf ("skip: this build has no HDF5\n");
        return 77;
    }
    comm = multi_create (NULL);
    rank = gs_comm_rank (comm);
    last = gs_comm_size (comm) - 1;
    snprintf (folder, sizeof (folder), "%s/preempt", tmp ? tmp : "/tmp");
    snprintf (file, sizeof (file), "%s/stop", folder);
    CHECK (rank || !mkdir (folder, 0777) || errno == EEXIST, "cannot make %s", folder);
    meet ();
    gs_log_set_sink (hear, NULL);
    forget_end ();
    check_options ();
    check_calls ();
    check_signal ();
    check_none ();
    check_chain ();
    check_replaced (false);
    check_replaced (true);
    check_left_alone ();
    check_two_plans ();
    check_end ();
    check_run ();
    check_file ();
    gs_log_set_sink (NULL, NULL);
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("all ranks stop for a signal to one, for their time, for a file");
}
