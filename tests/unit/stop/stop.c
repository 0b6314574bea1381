/* SPDX-License-Identifier: BSD-3-Clause */
/* stop - names of signals; how much time a program is to leave at the end of its job. */
#include "stop/stop.h"

#include <signal.h>

#include "stop/signals.h"
#include "unit/unit.h"

#define BIT(number) (UINT64_C (1) << ((number) -1))

static uint64_t parse (const char *list)
{
    uint64_t mask = 99;

    unit_ok (gsi_signals_parse ("f", list, &mask));
    return mask;
}

START_TEST (names_as_of_kill)
{
    ck_assert_uint_eq (parse ("USR1"), BIT (SIGUSR1));
    ck_assert_uint_eq (parse ("sigUsr2"), BIT (SIGUSR2));
    ck_assert_uint_eq (parse ("USR1,TERM"), BIT (SIGUSR1) | BIT (SIGTERM));
    ck_assert_uint_eq (parse (" HUP , SIGINT  ,XCPU "),
                       BIT (SIGHUP) | BIT (SIGINT) | BIT (SIGXCPU));
    ck_assert_uint_eq (parse ("TERM,TERM"), BIT (SIGTERM));
    ck_assert_uint_eq (parse ("None"), 0);
}
END_TEST

/* Every name that the shell knows and that can be asked for has the shell's number. */
START_TEST (numbers_as_of_kill)
{
    FILE *list = popen ("bash -c 'kill -l'", "r");
    int number, understood = 0;
    uint64_t mask, all = 0;
    char name[32], text[200];

    ck_assert_ptr_nonnull (list);
    while (fscanf (list, "%d) %31s", &number, name) == 2) {
        if (gsi_signals_parse ("f", name, &mask))
            continue;
        ck_assert_msg (mask == BIT (number), "%s is not %d", name, number);
        ck_assert_str_eq (gsi_signals_name (mask), name);
        all |= mask;
        understood++;
    }
    pclose (list);
    ck_assert_int_gt (understood, 15);
    gsi_signals_describe (all, text, sizeof (text));
    ck_assert_uint_eq (parse (text), all);
}
END_TEST

START_TEST (a_text_of_them)
{
    char text[200];

    gsi_signals_describe (BIT (SIGTERM) | BIT (SIGUSR1), text, sizeof (text));
    ck_assert_str_eq (text, "USR1,TERM");
    gsi_signals_describe (0, text, sizeof (text));
    ck_assert_str_eq (text, "none");
    ck_assert_ptr_null (gsi_signals_name (0));
}
END_TEST

START_TEST (what_is_refused)
{
    static const struct {
        const char *list, *culprit, *reason;
    } bad[] = {
        {"", "''", "no name of a signal"},
        {"USR1,", "''", "none"},
        {",USR1", "''", "kill -l"},
        {"USR1 TERM", "'USR1 TERM'", "no name of a signal"},
        {"USR1,none", "'none'", "no name of a signal"},
        {"10", "'10'", "no name of a signal"},
        {"SIG", "'SIG'", "no name of a signal"},
        {"USR", "'USR'", "no name of a signal"},
        {"USR11", "'USR11'", "no name of a signal"},
        {"TERM,KILL", "SIGKILL", "cannot be caught"},
        {"stop", "SIGSTOP", "cannot be caught"},
        {"SIGSEGV", "SIGSEGV", "the program has failed"},
        {"BUS", "SIGBUS", "the program has failed"},
        {"ABRT", "SIGABRT", "the program has failed"},
    };
    uint64_t mask;

    for (size_t i = 0; i < sizeof (bad) / sizeof (*bad); i++)
        unit_fails (gsi_signals_parse ("f", bad[i].list, &mask), GS_ERR_ARG, "f: signals",
                    bad[i].list, bad[i].culprit, bad[i].reason);
}
END_TEST

START_TEST (time_that_is_needed)
{
    struct gsi_stop s = {.margin_s = 60};

    ck_assert_double_eq (gsi_stop_needed_s (&s), 60);
    s.longest_call_s = 2;
    ck_assert_double_eq (gsi_stop_needed_s (&s), 62);
    gsi_stop_note_write (&s, 4000000000);
    ck_assert_double_eq (gsi_stop_needed_s (&s), 68);
    gsi_stop_note_write (&s, 3000000000);
    ck_assert_double_eq (gsi_stop_needed_s (&s), 68);
    gsi_stop_note_write (&s, 40000000000);
    ck_assert_double_eq (gsi_stop_needed_s (&s), 122);
}
END_TEST

START_TEST (options)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    static const double bad[] = {-1, 1e308 * 10, -1e308 * 10, 0.0 / 0.0};
    struct gsi_stop s;

    unit_ok (gsi_stop_open (&s, "folder", &opts));
    ck_assert_double_eq (s.margin_s, 60);
    ck_assert_uint_eq (s.signals, BIT (SIGUSR1) | BIT (SIGTERM));
    ck_assert_str_eq (s.file, "folder/stop");
    gsi_stop_close (&s);
    opts.stop_margin_s = 0.5;
    opts.signals = "none";
    unit_ok (gsi_stop_open (&s, "folder", &opts));
    ck_assert_double_eq (s.margin_s, 0.5);
    ck_assert_uint_eq (s.signals, 0);
    gsi_stop_close (&s);
    for (size_t i = 0; i < sizeof (bad) / sizeof (*bad); i++) {
        opts.stop_margin_s = bad[i];
        unit_fails (gsi_stop_open (&s, "folder", &opts), GS_ERR_ARG, "gs_ckpt_create",
                    "stop_margin_s", "seconds");
        gsi_stop_close (&s);
    }
}
END_TEST

UNIT_SUITE ("stop", 20, names_as_of_kill, numbers_as_of_kill, a_text_of_them, what_is_refused,
            time_that_is_needed, options)
