/* SPDX-License-Identifier: BSD-3-Clause */
/* process - which children of a process may use the library. */
#include "base/process.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status.h"
#include "unit/unit.h"

static const int handle;

static bool is_refused (void)
{
    return gsi_process_is_child () && gsi_process_use ("f") == GS_ERR_STATE &&
           gsi_handle_check ("f", "x", "thing", &handle, true) == GS_ERR_STATE;
}

static bool may_use (void)
{
    return !gsi_process_is_child () && gsi_process_use ("f") == GS_OK && !is_refused ();
}

/* What [claim] is in a child, made by libc or by the system call alone. */
static bool in_child (bool (*claim) (void), bool raw)
{
    int status = -1;
    pid_t child = raw ? (pid_t) syscall (SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) : fork ();

    if (!child)
        _exit (!claim ());
    ck_assert_int_eq (waitpid (child, &status, 0), child);
    return status == 0;
}

static bool has_refused_children (void)
{
    return may_use () && in_child (is_refused, false) && in_child (is_refused, true);
}

START_TEST (children_of_a_user_are_refused)
{
    unit_ok (gsi_process_use ("f"));
    ck_assert (in_child (is_refused, false));
    ck_assert (in_child (is_refused, true));
    ck_assert (!gsi_process_is_child ());
    unit_ok (gsi_handle_check ("f", "x", "thing", &handle, true));
}
END_TEST

START_TEST (others_are_like_any_process)
{
    ck_assert (in_child (may_use, false));
    ck_assert (in_child (has_refused_children, false));
    ck_assert (has_refused_children ());
}
END_TEST

START_TEST (handles)
{
    unit_fails (gsi_handle_check ("f", "x", "thing", NULL, false), GS_ERR_ARG, "f: x is NULL");
    unit_fails (gsi_handle_check ("f", "x", "thing", &handle, false), GS_ERR_STATE,
                "f: x was destroyed, or is no thing");
    unit_ok (gsi_handle_check ("f", "x", "thing", &handle, true));
}
END_TEST

UNIT_SUITE ("process", 20, children_of_a_user_are_refused, others_are_like_any_process, handles)
