/* SPDX-License-Identifier: BSD-3-Clause */
/* status - every status has its name and number; texts belong to threads and are cut, not lost.
 */
#include "base/status.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/printable.h"

#include "unit/unit.h"

START_TEST (names_and_numbers)
{
    static const char *const names[] = {
        "GS_OK",         "GS_ERR_ARG",       "GS_ERR_MISMATCH",    "GS_ERR_NOMEM",
        "GS_ERR_BOOT",   "GS_ERR_TRANSPORT", "GS_ERR_DEVICE",      "GS_ERR_IO",
        "GS_ERR_FORMAT", "GS_ERR_TIMEOUT",   "GS_ERR_UNSUPPORTED", "GS_ERR_STATE",
    };
    static const int outside[] = {-1, 12, 99, 0x7fffffff, -0x7fffffff - 1};

    for (int i = 0; i < 12; i++)
        ck_assert_str_eq (gs_status_string ((gs_status_t) i), names[i]);
    for (size_t i = 0; i < sizeof (outside) / sizeof (outside[0]); i++)
        ck_assert_str_eq (gs_status_string ((gs_status_t) outside[i]), "unknown status");
    ck_assert_uint_eq (sizeof (gs_status_t), sizeof (int));
}
END_TEST

START_TEST (fail_keeps_its_text)
{
    ck_assert_int_eq (gsi_fail (GS_ERR_IO, "file %s, line %d", "x", 7), GS_ERR_IO);
    ck_assert_str_eq (gs_last_error (), "file x, line 7");
    gs_status_string (GS_OK); /* what returns no status leaves the text alone */
    ck_assert_str_eq (gs_last_error (), "file x, line 7");
}
END_TEST

START_TEST (success_has_no_text)
{
    gs_setting_t setting;

    unit_fails (gs_setting_get (-1, &setting), GS_ERR_ARG, "index -1", "gs_setting_get");
    unit_ok (gs_setting_get (0, &setting));
    ck_assert_str_eq (gs_last_error (), "");
    unit_ok (gs_comm_destroy (NULL));
    ck_assert_str_eq (gs_last_error (), "");
}
END_TEST

START_TEST (a_failure_may_be_fatal)
{
    char line[200] = "";
    int ends[2], status;
    pid_t pid;

    GS_ABORT_ON_ERROR (GS_OK);
    ck_assert_int_eq (pipe (ends), 0);
    if (!(pid = fork ())) {
        dup2 (ends[1], STDERR_FILENO);
        GS_ABORT_ON_ERROR (gsi_fail (GS_ERR_IO, "disk %d", 7));
        _exit (0);
    }
    close (ends[1]);
    ck_assert_int_gt (read (ends[0], line, sizeof (line) - 1), 0);
    close (ends[0]);
    ck_assert_int_eq (waitpid (pid, &status, 0), pid);
    ck_assert (WIFSIGNALED (status) && WTERMSIG (status) == SIGABRT);
    ck_assert_ptr_nonnull (
        strstr (line, ": gsi_fail (GS_ERR_IO, \"disk %d\", 7): GS_ERR_IO: disk 7\n"));
}
END_TEST

/* What a failure that travels to other hosts has behind its text is nothing of this process. */
START_TEST (failures_are_clean)
{
    struct gsi_failure failure;
    size_t at;

    memset (&failure, 'x', sizeof (failure));
    gsi_fail (GS_ERR_IO, "%0900d", 1);
    gsi_fail (GS_ERR_IO, "short");
    gsi_failure_note (&failure, GS_ERR_IO);
    ck_assert_str_eq (failure.text, "short");
    for (at = strlen (failure.text); at < sizeof (failure.text) && !failure.text[at]; at++)
        ;
    ck_assert_uint_eq (at, sizeof (failure.text));
}
END_TEST

/* A failure that was overcome within a call is not told; one that is returned is, whatever other
 * public calls have succeeded since. */
START_TEST (calls_within_a_call)
{
    gs_setting_t setting;

    gsi_fail (GS_ERR_DEVICE, "no GPU");
    ck_assert_int_eq (gsi_result (GS_OK), GS_OK);
    ck_assert_str_eq (gs_last_error (), "");
    gsi_fail (GS_ERR_IO, "disk full");
    unit_ok (gs_setting_get (0, &setting));
    ck_assert_str_eq (gsi_last_text (), "disk full");
    ck_assert_int_eq (gsi_result (GS_ERR_IO), GS_ERR_IO);
    ck_assert_str_eq (gs_last_error (), "disk full");
}
END_TEST

/* What failed before is no reason for what a function of the program's returns. */
START_TEST (callbacks)
{
    gs_setting_t setting;

    gsi_fail (GS_ERR_DEVICE, "no GPU");
    gsi_callback_begin ();
    ck_assert_str_eq (gsi_callback_text (), "");
    ck_assert_int_eq (gs_setting_get (-1, &setting), GS_ERR_ARG);
    ck_assert (strstr (gsi_callback_text (), "index -1"));
}
END_TEST

START_TEST (text_may_contain_the_last_one)
{
    gsi_fail (GS_ERR_IO, "inner");
    gsi_fail (GS_ERR_BOOT, "outer: %s: %s", gs_last_error (), gs_last_error ());
    ck_assert_str_eq (gs_last_error (), "outer: inner: inner");
}
END_TEST

START_TEST (long_text_is_cut)
{
    char text[3 * GSI_TEXT_MAX];

    memset (text, 'x', sizeof (text));
    text[sizeof (text) - 1] = 0;
    gsi_fail (GS_ERR_IO, "begin %s", text);
    ck_assert_uint_eq (strlen (gs_last_error ()), GSI_TEXT_MAX - 1);
    ck_assert_ptr_eq (strstr (gs_last_error (), "begin xx"), gs_last_error ());
}
END_TEST

START_TEST (nothing_commands_a_terminal)
{
    char text[GSI_TEXT_MAX];

    gsi_fail (GS_ERR_IO, "file '%s'", "a\033[2Jb\nc\177 \303\251 \302\233 \302\240");
    ck_assert_str_eq (gs_last_error (),
                      "file 'a\\x1b[2Jb\\x0ac\\x7f \303\251 \\xc2\\x9b \302\240'");
    memset (text, '\033', sizeof (text));
    text[sizeof (text) - 1] = 0;
    gsi_fail (GS_ERR_IO, "%s", text);
    ck_assert_uint_lt (strlen (gs_last_error ()), GSI_TEXT_MAX);
    ck_assert_ptr_null (strchr (gs_last_error (), '\033'));
    for (size_t room = 1; room < 12; room++) {
        char few[12] = "a\302\233b\033";
        gsi_printable (few, room > 5 ? room : 6);
        ck_assert_ptr_null (strpbrk (few, "\302\233\033"));
    }
}
END_TEST

/* Wherever what replaces it does not fit, nothing behind the room is read (valgrind, sanitizers).
 */
START_TEST (two_bytes_are_cut)
{
    for (size_t at = 0; at < 7; at++) {
        char *text = malloc (9);
        memcpy (text, "aaaaaaaa", 9);
        memcpy (text + at, "\302\200", 2);
        gsi_printable (text, 9);
        ck_assert_ptr_null (strpbrk (text, "\302\200"));
        free (text);
    }
}
END_TEST

/* Returns [mark] if the thread begins with a text, else NULL. */
static void *other_thread (void *mark)
{
    void *dirty = gs_last_error ()[0] ? mark : NULL;

    gsi_fail (GS_ERR_IO, "theirs");
    return dirty;
}

START_TEST (texts_belong_to_threads)
{
    pthread_t thread;
    int mark;
    void *dirty;

    gsi_fail (GS_ERR_IO, "mine");
    ck_assert_int_eq (pthread_create (&thread, NULL, other_thread, &mark), 0);
    ck_assert_int_eq (pthread_join (thread, &dirty), 0);
    ck_assert_msg (!dirty, "a new thread begins with a text");
    ck_assert_str_eq (gs_last_error (), "mine");
}
END_TEST

UNIT_SUITE ("status", 10, names_and_numbers, a_failure_may_be_fatal, fail_keeps_its_text,
            success_has_no_text, calls_within_a_call, callbacks, text_may_contain_the_last_one,
            long_text_is_cut, nothing_commands_a_terminal, two_bytes_are_cut, failures_are_clean,
            texts_belong_to_threads)
