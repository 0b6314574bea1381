/* SPDX-License-Identifier: BSD-3-Clause */
/* fault - GS_FAULT=point[:n][@rank] fails just that passage; never without fault injection. */
#include "base/fault.h"

#include "base/log.h"
#include "config.h"
#include "unit/unit.h"

static void silence (gs_log_level_t level, const char *line, void *context)
{
    (void) level, (void) line, (void) context;
}

/* The passages, of 8 through each of two points, that fail with GS_FAULT=[wish] on [rank]: bit i
 * for the i-th, first "a.one" then "a.two" in turn. In a process of its own: passages count. */
static unsigned failing (const char *wish, int rank)
{
    int status;
    pid_t pid = fork ();

    ck_assert_int_ge (pid, 0);
    if (!pid) {
        unsigned failed = 0;
        gs_log_set_sink (silence, NULL);
        setenv ("GS_FAULT", wish, 1);
        gsi_fault_identity (rank);
        for (unsigned i = 0; i < 8; i++)
            failed |= (unsigned) gsi_fault (i % 2 ? "a.two" : "a.one") << i;
        _exit ((int) failed);
    }
    ck_assert_int_eq (waitpid (pid, &status, 0), pid);
    ck_assert (WIFEXITED (status));
    return (unsigned) WEXITSTATUS (status);
}

#ifdef GS_FAULT_INJECTION
START_TEST (points)
{
    ck_assert_uint_eq (failing ("a.one", 0), 1u << 0);
    ck_assert_uint_eq (failing ("a.two", 0), 1u << 1);
    ck_assert_uint_eq (failing ("a.one:3", 0), 1u << 4);
    ck_assert_uint_eq (failing ("a.two:4", 0), 1u << 7);
    ck_assert_uint_eq (failing ("a.two:5", 0), 0);
    ck_assert_uint_eq (failing ("*:3", 0), 1u << 2);
    ck_assert_uint_eq (failing ("*", 0), 1u << 0);
}
END_TEST

START_TEST (other_points_pass)
{
    ck_assert_uint_eq (failing ("", 0), 0);
    ck_assert_uint_eq (failing ("a", 0), 0);
    ck_assert_uint_eq (failing ("a.on", 0), 0);
    ck_assert_uint_eq (failing ("a.one.more", 0), 0);
    ck_assert_uint_eq (failing ("a.one:0", 0), 0);
}
END_TEST

START_TEST (ranks)
{
    ck_assert_uint_eq (failing ("a.one@2", 2), 1u << 0);
    ck_assert_uint_eq (failing ("a.one@2", 1), 0);
    ck_assert_uint_eq (failing ("a.one:2@2", 2), 1u << 2);
    ck_assert_uint_eq (failing ("*:5@0", 0), 1u << 4);
    ck_assert_uint_eq (failing ("*:5@0", -1), 0);
}
END_TEST

UNIT_SUITE ("fault", 30, points, other_points_pass, ranks)
#else
START_TEST (nothing_ever_fails)
{
    ck_assert_uint_eq (failing ("a.one", 0), 0);
    ck_assert_uint_eq (failing ("*", 0), 0);
    ck_assert_uint_eq (failing ("*:1@0", 0), 0);
}
END_TEST

UNIT_SUITE ("fault", 30, nothing_ever_fails)
#endif
