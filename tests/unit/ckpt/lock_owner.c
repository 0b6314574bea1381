/* SPDX-License-Identifier: BSD-3-Clause */
/* lock_owner - what a lock says is read as it was written, and judged by who is asked. */
#include "ckpt/folder/lock_owner.h"

#include <signal.h>

#include "unit/unit.h"

/* ---- As text ---- */

START_TEST (round_trip)
{
    struct gsi_owner h, back;
    char text[GSI_OWNER_TEXT_MAX];
    size_t length;

    setenv ("SLURM_JOB_ID", "4711", 1);
    setenv ("SLURM_RESTART_COUNT", "3", 1);
    setenv ("SLURM_CLUSTER_NAME", "first\nid=0000000000000000", 1);
    gsi_owner_self (&h);
    length = gsi_owner_write (&h, text);
    ck_assert_uint_eq (length, strlen (text));
    ck_assert (gsi_owner_read (&back, text));
    ck_assert_str_eq (back.id, h.id);
    ck_assert_str_eq (back.cluster, "first_id=0000000000000000");
    ck_assert_str_eq (back.job, "4711");
    ck_assert_int_eq (back.restarts, 3);
    ck_assert_str_eq (back.step, h.step);
    ck_assert_str_eq (back.host, h.host);
    ck_assert_int_eq (back.pid, getpid ());
    ck_assert_str_eq (back.boot, h.boot);
    ck_assert_uint_eq (back.pid_space, h.pid_space);
    ck_assert_uint_eq (back.start, h.start);
    ck_assert_str_eq (back.since, h.since);
    for (size_t n = 0; n < length; n++) {
        text[n] = 0; /* a lock that is being written */
        unit_check (!gsi_owner_read (&back, text), "the first %zu bytes are a lock", n);
        gsi_owner_write (&h, text);
    }
}
END_TEST

START_TEST (longest)
{
    struct gsi_owner h, back;
    char text[GSI_OWNER_TEXT_MAX], name[600];

    memset (name, 'x', sizeof (name));
    name[sizeof (name) - 1] = 0;
    setenv ("SLURM_JOB_ID", name, 1);
    setenv ("SLURM_CLUSTER_NAME", name, 1);
    setenv ("SLURM_RESTART_COUNT", "9223372036854775807", 1);
    setenv ("PMIX_NAMESPACE", name, 1);
    gsi_owner_self (&h);
    memset (h.host, 'y', sizeof (h.host) - 1);
    h.pid_space = h.start = UINT64_MAX;
    ck_assert_uint_lt (gsi_owner_write (&h, text), sizeof (text));
    ck_assert (gsi_owner_read (&back, text));
    ck_assert_str_eq (back.step, h.step);
    ck_assert_str_eq (back.host, h.host);
}
END_TEST

START_TEST (foreign_text)
{
    static const char *const wrong[] = {
        "",
        "\n",
        "id",
        "job=1\n",
        "id=0123456789abcdef",  /* without an end */
        "id=0123456789abcde\n", /* short */
        "id=0123456789abcdef0\n",
        "id=../../../../etc/\n",
        "an id=0123456789abcdef\n",
    };
    struct gsi_owner h;

    for (size_t i = 0; i < sizeof (wrong) / sizeof (wrong[0]); i++)
        unit_check (!gsi_owner_read (&h, wrong[i]) && !*h.id, "'%s' is a lock", wrong[i]);
    ck_assert (gsi_owner_read (&h, "later=1\n\nhost=n1\nid=0123456789abcdef\n"));
    ck_assert_str_eq (h.host, "n1");
    ck_assert_str_eq (h.job, "");
    ck_assert_int_eq (h.pid, 0);
}
END_TEST

START_TEST (description)
{
    struct gsi_owner h = {.id = "0123456789abcdef",
                          .job = "71",
                          .restarts = 2,
                          .step = "slurm:71.0",
                          .host = "n1",
                          .pid = 44,
                          .since = "2026-11-22T20:00:00Z"};
    char text[512];

    gsi_owner_describe (&h, text, sizeof (text));
    ck_assert_str_eq (text, "job 71 (restart 2, step slurm:71.0), process 44 on host n1, since "
                            "2026-11-22T20:00:00Z");
    *h.job = 0;
    gsi_owner_describe (&h, text, sizeof (text));
    ck_assert_ptr_nonnull (strstr (text, "without a Slurm id (step slurm:71.0), process 44"));
    *h.id = 0;
    gsi_owner_describe (&h, text, sizeof (text));
    ck_assert_ptr_nonnull (strstr (text, "cannot be read"));
}
END_TEST

/* ---- Which step ---- */

/* The step of this process, with the variable set. */
static const char *step_with (const char *name, const char *value)
{
    static struct gsi_owner h;

    setenv (name, value, 1);
    gsi_owner_self (&h);
    return h.step;
}

START_TEST (steps)
{
    char own[64];

    snprintf (own, sizeof (own), ".%ld.", (long) getpid ());
    ck_assert_ptr_nonnull (strstr (step_with ("SLURM_JOB_ID", "17"), own));
    ck_assert_ptr_nonnull (strstr (step_with ("SLURM_STEP_ID", "4"), own));
    ck_assert_ptr_nonnull (strstr (step_with ("SLURM_STEP_NUM_TASKS", "1"), own));
    ck_assert_ptr_nonnull (strstr (step_with ("PMIX_NAMESPACE", "slurm.pmix.17.4"), own));
    ck_assert_str_eq (step_with ("SLURM_STEP_NUM_TASKS", "2"), "pmix:slurm.pmix.17.4");
    unsetenv ("PMIX_NAMESPACE");
    ck_assert_str_eq (step_with ("SLURM_STEP_ID", "4"), "slurm:17.4");
    ck_assert_str_eq (step_with ("PMIX_NAMESPACE", "prterun-n1-3@1"), "pmix:prterun-n1-3@1");
    unit_clean_env ();
    ck_assert_str_eq (step_with ("PALS_APID", "abc"), "pals:abc");
}
END_TEST

/* Two jobs that Open MPI has given one namespace. */
START_TEST (one_namespace)
{
    static const char key[] = "OMPI_MCA_orte_precondition_transports";
    struct gsi_owner a, b;

    setenv ("PMIX_NAMESPACE", "946667521", 1);
    setenv (key, "8369e4d591169702-de88b37fc4d5cb7d", 1);
    gsi_owner_self (&a);
    gsi_owner_self (&b);
    ck_assert (gsi_owner_is_same_step (&a, &b));
    setenv (key, "a8dd31c6a0c9cd0c-4cef90d03e5c5bd1", 1);
    gsi_owner_self (&b);
    ck_assert (!gsi_owner_is_same_step (&a, &b));
    ck_assert_int_eq (gsi_owner_judge (&a, &b, 1), GSI_RIGHT_NONE);
    unsetenv (key);
}
END_TEST

/* ---- Who may take it ---- */

/* A job of another host. */
static struct gsi_owner other_job (void)
{
    return (struct gsi_owner){.id = "0123456789abcdef",
                              .job = "17",
                              .step = "slurm:17.0",
                              .host = "elsewhere",
                              .boot = "00000000-0000-0000-0000-000000000000",
                              .pid = 1,
                              .pid_space = 1,
                              .start = 1};
}

START_TEST (judgement)
{
    struct gsi_owner there = other_job (), self = there;

    self.boot[0] = '1';
    ck_assert_int_eq (gsi_owner_judge (&there, &self, 0), GSI_RIGHT_SHARED);
    ck_assert_int_eq (gsi_owner_judge (&there, &self, 60), GSI_RIGHT_SHARED);
    ck_assert_int_eq (gsi_owner_judge (&there, &self, 61), GSI_RIGHT_SILENT);
    ck_assert_int_eq (gsi_owner_judge (&there, &self, -1000), GSI_RIGHT_SHARED);
    strcpy (self.step, "slurm:17.1"); /* another step of the job */
    ck_assert_int_eq (gsi_owner_judge (&there, &self, 60), GSI_RIGHT_NONE);
    ck_assert_int_eq (gsi_owner_judge (&there, &self, 61), GSI_RIGHT_SILENT);
    self.restarts = 1;
    ck_assert_int_eq (gsi_owner_judge (&there, &self, 0), GSI_RIGHT_OLDER);
    ck_assert_int_eq (gsi_owner_judge (&self, &there, 0), GSI_RIGHT_NONE);
    strcpy (self.step, there.step); /* which has the same name after it */
    ck_assert_int_eq (gsi_owner_judge (&there, &self, 0), GSI_RIGHT_OLDER);
    ck_assert_int_eq (gsi_owner_judge (&self, &there, 0), GSI_RIGHT_NONE);
    strcpy (self.cluster, "second");
    ck_assert_int_eq (gsi_owner_judge (&there, &self, 0), GSI_RIGHT_NONE);
    *self.cluster = *self.job = *there.job = 0; /* no Slurm: restarts mean nothing */
    ck_assert_int_eq (gsi_owner_judge (&there, &self, 0), GSI_RIGHT_NONE);
    there = (struct gsi_owner){.pid = 0}; /* nobody can read it */
    *self.step = 0;
    ck_assert_int_eq (gsi_owner_judge (&there, &self, 0), GSI_RIGHT_NONE);
    ck_assert_int_eq (gsi_owner_judge (&there, &self, 61), GSI_RIGHT_SILENT);
}
END_TEST

/* A process that lives until it is killed, and what its lock would say. */
static pid_t start_child (struct gsi_owner *h)
{
    int ends[2];
    pid_t pid;

    ck_assert_int_eq (pipe (ends), 0);
    if (!(pid = fork ())) {
        gsi_owner_self (h);
        if (write (ends[1], h, sizeof (*h)) == sizeof (*h))
            pause ();
        _exit (1);
    }
    ck_assert_int_eq (read (ends[0], h, sizeof (*h)), sizeof (*h));
    close (ends[0]);
    close (ends[1]);
    return pid;
}

/* Whether the parent has not asked for its end yet, but it has ended. */
static bool is_zombie (pid_t pid)
{
    siginfo_t info = {.si_pid = 0};

    return !waitid (P_PID, (id_t) pid, &info, WEXITED | WNOWAIT) && info.si_pid == pid;
}

START_TEST (processes)
{
    struct gsi_owner self, child, changed;
    pid_t pid = start_child (&child);

    gsi_owner_self (&self);
    ck_assert_uint_ne (self.start, 0);
    ck_assert_int_eq (gsi_owner_judge (&child, &self, 0), GSI_RIGHT_NONE);
    changed = child;
    changed.start++; /* its number was another's before */
    ck_assert_int_eq (gsi_owner_judge (&changed, &self, 0), GSI_RIGHT_GONE);
    changed.start = 0;
    ck_assert_int_eq (gsi_owner_judge (&changed, &self, 0), GSI_RIGHT_NONE);
    kill (pid, SIGKILL);
    ck_assert (is_zombie (pid));
    ck_assert_int_eq (gsi_owner_judge (&child, &self, 0), GSI_RIGHT_GONE);
    waitpid (pid, NULL, 0);
    ck_assert_int_eq (gsi_owner_judge (&child, &self, 0), GSI_RIGHT_GONE);
    changed = child; /* numbers of other machines and namespaces say nothing here */
    changed.boot[0] ^= 1;
    ck_assert_int_eq (gsi_owner_judge (&changed, &self, 0), GSI_RIGHT_NONE);
    changed = child;
    changed.pid_space++;
    ck_assert_int_eq (gsi_owner_judge (&changed, &self, 0), GSI_RIGHT_NONE);
    changed = child;
    *changed.boot = *self.boot = 0;
    ck_assert_int_eq (gsi_owner_judge (&changed, &self, 0), GSI_RIGHT_NONE);
}
END_TEST

UNIT_SUITE ("lock_owner", 30, round_trip, longest, foreign_text, description, steps,
            one_namespace, judgement, processes)
