/* SPDX-License-Identifier: BSD-3-Clause */
/* store - what becomes of files that are coming, of this job and of others. */
#include "ckpt/store.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "alone.h"

static char folder[64];
static gs_comm_t *comm;
static gs_ckpt_t *plan;
static double value = 1;

static const char *path_of (const char *name)
{
    static char path[128];

    snprintf (path, sizeof (path), "%s/%s", folder, name);
    return path;
}

static void put (const char *name, const char *text, int age_s)
{
    struct timespec times[2];
    FILE *file = fopen (path_of (name), "w");

    ck_assert_ptr_nonnull (file);
    fputs (text, file);
    fclose (file);
    clock_gettime (CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= age_s;
    times[1] = times[0];
    ck_assert_int_eq (utimensat (AT_FDCWD, path_of (name), times, 0), 0);
}

static void put_foreign_lock (int age_s)
{
    put (".gs-lock", "job=99\nstep=slurm:99.2\nhost=elsewhere\nid=0123456789abcdef\n", age_s);
}

static bool is_there (const char *name)
{
    return !access (path_of (name), F_OK);
}

static void make_plan (void)
{
    unit_ok (gs_ckpt_create (comm, folder, NULL, &plan));
    unit_ok (gs_ckpt_add_replicated (plan, "x", 0, NULL, GS_F64, &value));
    unit_ok (gs_ckpt_commit (plan));
}

static void begin (void)
{
    unit_clean_env ();
    strcpy (folder, "store.XXXXXX");
    ck_assert_ptr_nonnull (mkdtemp (folder));
    comm = alone_create ();
}

static void end (void)
{
    unit_ok (gs_comm_destroy (comm));
    ck_assert_int_eq (rmdir (folder), 0);
}

/* Another job takes the folder while a file is written. */
START_TEST (taken_in_between)
{
    make_plan ();
    unit_ok (gsi_store_begin (plan, 5));
    put_foreign_lock (0);
    unit_fails (gsi_store_hold (plan), GS_ERR_STATE, folder, "job 99", "elsewhere");
    unit_fails (gsi_store_publish (plan, 5), GS_ERR_STATE, folder, "job 99");
    gsi_store_give_up (plan, 5); /* it may be that job's */
    ck_assert (is_there ("ck-000000000005.h5.tmp"));
    ck_assert (!is_there ("ck-000000000005.h5"));
    unit_fails (gs_ckpt_write (plan, 6, NULL), GS_ERR_STATE, folder, "job 99");
    ck_assert (!is_there ("ck-000000000006.h5") && !is_there ("ck-000000000006.h5.tmp"));
    unit_ok (gs_ckpt_destroy (plan));
    ck_assert (is_there (".gs-lock"));
    unlink (path_of (".gs-lock"));
    unlink (path_of ("ck-000000000005.h5.tmp"));
}
END_TEST

/* Nobody does. */
START_TEST (given_up)
{
    make_plan ();
    unit_ok (gsi_store_begin (plan, 5));
    gsi_store_give_up (plan, 5);
    ck_assert (!is_there ("ck-000000000005.h5.tmp"));
    unit_ok (gs_ckpt_destroy (plan));
}
END_TEST

START_TEST (sweeps)
{
    put ("ck-000000000001.h5.tmp", "", 0);
    put ("ck-000000000002.h5.tmp", "", 4000);
    put ("ck-000000000003.h5", "", 4000);
    put ("other.tmp", "", 4000);
    make_plan (); /* nobody had the folder: what is new may be of another plan of this step */
    ck_assert (is_there ("ck-000000000001.h5.tmp"));
    ck_assert (!is_there ("ck-000000000002.h5.tmp"));
    unit_ok (gs_ckpt_destroy (plan));
    put_foreign_lock (70);
    make_plan (); /* nobody else writes here now */
    ck_assert (!is_there ("ck-000000000001.h5.tmp"));
    ck_assert (is_there ("ck-000000000003.h5") && is_there ("other.tmp"));
    unit_ok (gs_ckpt_destroy (plan));
    unlink (path_of ("ck-000000000003.h5"));
    unlink (path_of ("other.tmp"));
}
END_TEST

/* A plan that only reads leaves all alone. */
START_TEST (read_only)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;

    opts.read_only = 1;
    opts.keep_last = 1;
    put ("ck-000000000002.h5.tmp", "", 4000);
    put_foreign_lock (0);
    unit_ok (gs_ckpt_create (comm, folder, &opts, &plan));
    unit_ok (gs_ckpt_add_replicated (plan, "x", 0, NULL, GS_F64, &value));
    unit_ok (gs_ckpt_commit (plan));
    unit_fails (gs_ckpt_write (plan, 3, NULL), GS_ERR_STATE, "option read_only");
    unit_ok (gs_ckpt_destroy (plan));
    ck_assert (is_there ("ck-000000000002.h5.tmp") && is_there (".gs-lock"));
    unlink (path_of ("ck-000000000002.h5.tmp"));
    unlink (path_of (".gs-lock"));
}
END_TEST

int main (void)
{
    const TTest *const tests[] = {taken_in_between, given_up, sweeps, read_only};

    return unit_run (
        unit_suite ("store", tests, sizeof (tests) / sizeof (tests[0]), 60, begin, end));
}
