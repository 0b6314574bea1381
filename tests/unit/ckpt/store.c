/* SPDX-License-Identifier: BSD-3-Clause */
/* store - what becomes of files that are coming, of this job and of others. */
#include "ckpt/folder/store.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "ckpt/format/file.h"
#include "unit/alone.h"

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

static void remove_folder_of (int step)
{
    char name[64];

    snprintf (name, sizeof (name), "ck-%012d/index.h5", step);
    unlink (path_of (name));
    snprintf (name, sizeof (name), "ck-%012d/part-0000.h5", step);
    unlink (path_of (name));
    snprintf (name, sizeof (name), "ck-%012d", step);
    ck_assert_int_eq (rmdir (path_of (name)), 0);
}

static void make_plan_with (const gs_ckpt_opts_t *opts)
{
    unit_ok (gs_ckpt_create (comm, folder, opts, &plan));
    unit_ok (gs_ckpt_add_replicated (plan, "x", 0, NULL, GS_F64, &value));
    unit_ok (gs_ckpt_commit (plan));
}

static void make_plan (void)
{
    make_plan_with (NULL);
}

static void begin (void)
{
    strcpy (folder, "store.XXXXXX");
    ck_assert_ptr_nonnull (mkdtemp (folder));
    comm = alone_create ();
}

static void end (void)
{
    unit_ok (gs_comm_destroy (comm));
    ck_assert_int_eq (rmdir (folder), 0);
}

/* What is coming of a step, of this plan or of the job 99. */
static const char *coming_of (int step, const char *id)
{
    static char name[64];

    snprintf (name, sizeof (name), "ck-%012d.h5.%s.tmp", step, id);
    return name;
}

/* Another job takes the folder while a file is written. */
START_TEST (taken_in_between)
{
    make_plan ();
    unit_ok (gsi_store_begin (plan, 5));
    ck_assert (is_there (coming_of (5, plan->coming.id)));
    put_foreign_lock (0);
    put (coming_of (5, "0123456789abcdef"), "", 0);
    unit_fails (gsi_store_hold (plan), GS_ERR_STATE, folder, "job 99", "elsewhere");
    unit_fails (gsi_store_publish (plan, 5), GS_ERR_STATE, folder, "job 99");
    gsi_store_give_up (plan, 5); /* which is not that job's */
    ck_assert (!is_there (coming_of (5, plan->coming.id)));
    ck_assert (is_there (coming_of (5, "0123456789abcdef")));
    ck_assert (!is_there ("ck-000000000005.h5"));
    unit_fails (gs_ckpt_write (plan, 6, NULL), GS_ERR_STATE, folder, "job 99");
    ck_assert (!is_there ("ck-000000000006.h5"));
    ck_assert (!is_there (coming_of (6, plan->coming.id)));
    unit_ok (gs_ckpt_destroy (plan));
    ck_assert (is_there (".gs-lock"));
    unlink (path_of (".gs-lock"));
    ck_assert_int_eq (unlink (path_of (coming_of (5, "0123456789abcdef"))), 0);
}
END_TEST

/* What has the name of what is coming is another file, before and after it gets its own name. */
START_TEST (replaced)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    char kept[128];
    int fd;

    opts.overwrite = 1;
    make_plan_with (&opts);
    unit_ok (gsi_store_begin (plan, 5));
    strcpy (kept, path_of (coming_of (5, plan->coming.id)));
    ck_assert_int_eq (rename (kept, path_of ("aside")), 0);
    put (coming_of (5, plan->coming.id), "half of a file", 0);
    unit_fails (gsi_file_open (AT_FDCWD, kept, O_WRONLY, plan->coming.number, &fd), GS_ERR_IO,
                kept, "not the one that was made");
    unit_fails (gsi_store_publish (plan, 5), GS_ERR_STATE, kept, "not the one");
    ck_assert (!is_there ("ck-000000000005.h5"));
    ck_assert_int_eq (rename (path_of ("aside"), kept), 0);
    unit_ok (gsi_store_publish (plan, 5));
    ck_assert (is_there ("ck-000000000005.h5"));
    gsi_store_end (plan);
    unit_ok (gs_ckpt_destroy (plan));
    unlink (path_of ("ck-000000000005.h5"));
}
END_TEST

/* A link that someone has put where a file is to be made, or was. */
START_TEST (links)
{
    char kept[128];
    int fd;

    make_plan ();
    put ("precious", "precious", 0);
    strcpy (kept, path_of (coming_of (5, plan->coming.id)));
    unit_ok (gsi_store_begin (plan, 5));
    ck_assert_int_eq (unlink (kept), 0);
    ck_assert_int_eq (symlink ("precious", kept), 0);
    unit_fails (gsi_file_open (AT_FDCWD, kept, O_WRONLY, 0, &fd), GS_ERR_IO, kept);
    unit_fails (gsi_store_publish (plan, 5), GS_ERR_STATE, kept);
    gsi_store_give_up (plan, 5);
    ck_assert (!is_there (coming_of (5, plan->coming.id)) && is_there ("precious"));
    unit_ok (gs_ckpt_destroy (plan));
    unlink (path_of ("precious"));
}
END_TEST

/* Nobody does. */
START_TEST (given_up)
{
    make_plan ();
    unit_ok (gsi_store_begin (plan, 5));
    gsi_store_give_up (plan, 5);
    ck_assert (!is_there (coming_of (5, plan->coming.id)));
    unit_ok (gs_ckpt_destroy (plan));
}
END_TEST

START_TEST (sweeps)
{
    put ("ck-000000000001.h5.tmp", "", 0);
    put ("ck-000000000002.h5.tmp", "", 4000);
    put ("ck-000000000003.h5", "", 4000);
    put ("other.tmp", "", 4000);
    put ("ck-000000000001.h5.0123456789abcde.tmp", "", 4000);
    put (coming_of (1, "0123456789abcdef"), "", 0);
    put ("ck-000000000002.0123456789abcdef.tmp", "", 4000);
    put ("ck-000000000002.gone3.tmp", "", 4000);
    make_plan (); /* nobody had the folder: what is new may be of another plan of this step */
    ck_assert (is_there ("ck-000000000001.h5.tmp"));
    ck_assert (is_there (coming_of (1, "0123456789abcdef")));
    ck_assert (!is_there ("ck-000000000002.h5.tmp"));
    ck_assert (!is_there ("ck-000000000002.0123456789abcdef.tmp"));
    ck_assert (!is_there ("ck-000000000002.gone3.tmp"));
    unit_ok (gs_ckpt_destroy (plan));
    put_foreign_lock (70);
    make_plan (); /* nobody else writes here now */
    ck_assert (!is_there ("ck-000000000001.h5.tmp"));
    ck_assert (!is_there (coming_of (1, "0123456789abcdef")));
    ck_assert (is_there ("ck-000000000003.h5") && is_there ("other.tmp"));
    unit_ok (gs_ckpt_destroy (plan));
    unlink (path_of ("ck-000000000003.h5"));
    unlink (path_of ("other.tmp"));
    ck_assert_int_eq (unlink (path_of ("ck-000000000001.h5.0123456789abcde.tmp")), 0);
}
END_TEST

/* What an overwrite that was cut off has left of the layout with a file for each node is the
 * checkpoint, until there is a new one. */
START_TEST (cut_off)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    int64_t found, step = -1;
    size_t number;
    char old[128];

    opts.layout = GS_CKPT_LAYOUT_NODE;
    make_plan_with (&opts);
    value = 7;
    unit_ok (gs_ckpt_write (plan, 7, NULL));
    strcpy (old, path_of ("ck-000000000007.old"));
    ck_assert_int_eq (rename (path_of ("ck-000000000007"), old), 0);
    value = 0;
    unit_ok (gs_ckpt_list (plan, &step, 1, &number));
    ck_assert_uint_eq (number, 1);
    ck_assert_int_eq (step, 7);
    unit_ok (gs_ckpt_read (plan, GS_CKPT_LATEST, &found, NULL));
    ck_assert_int_eq (found, 7);
    ck_assert_double_eq (value, 7);
    unit_fails (gs_ckpt_write (plan, 7, NULL), GS_ERR_STATE, old, "overwrite");
    unit_ok (gs_ckpt_destroy (plan));
    opts.overwrite = 1;
    opts.keep_last = 1;
    make_plan_with (&opts);
    ck_assert (is_there ("ck-000000000007.old"));
    value = 8;
    for (int i = 0; i < 2; i++) {
        unit_ok (gs_ckpt_write (plan, 7, NULL));
        ck_assert (is_there ("ck-000000000007") && !is_there ("ck-000000000007.old"));
    }
    ck_assert_int_eq (rename (path_of ("ck-000000000007"), old), 0);
    unit_ok (gs_ckpt_write (plan, 8, NULL)); /* of which only that one stays */
    ck_assert (!is_there ("ck-000000000007.old") && is_there ("ck-000000000008"));
    unit_ok (gs_ckpt_destroy (plan));
    remove_folder_of (8);
}
END_TEST

/* A step that is saved again in the other layout is only there in that. */
START_TEST (other_layout)
{
    static const gs_ckpt_layout_t layouts[] = {GS_CKPT_LAYOUT_SINGLE, GS_CKPT_LAYOUT_NODE,
                                               GS_CKPT_LAYOUT_SINGLE, GS_CKPT_LAYOUT_NODE};
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;

    opts.overwrite = 1;
    for (int i = 0; i < 4; i++) {
        bool alone = (opts.layout = layouts[i]) == GS_CKPT_LAYOUT_SINGLE;
        make_plan_with (&opts);
        value = i;
        unit_ok (gs_ckpt_write (plan, 3, NULL));
        value = -1;
        unit_ok (gs_ckpt_read (plan, 3, NULL, NULL));
        ck_assert_double_eq (value, i);
        unit_ok (gs_ckpt_destroy (plan));
        ck_assert (is_there ("ck-000000000003.h5") == alone);
        ck_assert (is_there ("ck-000000000003") == !alone);
    }
    remove_folder_of (3);
}
END_TEST

/* More than the remover takes at a time, now or beside the program. */
static void check_many (bool folders, bool beside)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    int64_t step = -1;
    size_t number;

    opts.layout = folders ? GS_CKPT_LAYOUT_NODE : GS_CKPT_LAYOUT_SINGLE;
    make_plan_with (&opts);
    for (int64_t i = 0; i < 40; i++)
        unit_ok (gs_ckpt_write (plan, i, NULL));
    unit_ok (gs_ckpt_destroy (plan));
    opts.keep_last = 1;
    make_plan_with (&opts);
    unit_ok (beside ? gs_ckpt_write_async (plan, 40, NULL, NULL)
                    : gs_ckpt_write (plan, 40, NULL));
    unit_ok (gs_ckpt_wait (plan, NULL, NULL));
    unit_ok (gs_ckpt_list (plan, &step, 1, &number));
    ck_assert_uint_eq (number, 1);
    ck_assert_int_eq (step, 40);
    unit_ok (gs_ckpt_destroy (plan));
    if (folders)
        remove_folder_of (40);
    else
        unlink (path_of ("ck-000000000040.h5"));
}

START_TEST (many_go)
{
    for (int i = 0; i < 4; i++)
        check_many (i % 2, i / 2);
}
END_TEST

/* What a read has filled of two arrays, one of which was given another name since. */
START_TEST (missing)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    double other = 3;
    int64_t found;
    int filled = 7;

    make_plan ();
    unit_ok (gs_ckpt_read (plan, GS_CKPT_LATEST, &found, NULL));
    unit_ok (gs_ckpt_was_read (plan, "x", &filled)); /* no file */
    ck_assert_int_eq (filled, 0);
    unit_ok (gs_ckpt_write (plan, 1, NULL));
    unit_ok (gs_ckpt_destroy (plan));
    opts.allow_missing = opts.allow_extra = 1;
    unit_ok (gs_ckpt_create (comm, folder, &opts, &plan));
    unit_ok (gs_ckpt_add_replicated (plan, "y", 0, NULL, GS_F64, &other));
    unit_fails (gs_ckpt_was_read (plan, "y", &filled), GS_ERR_STATE, "gs_ckpt_was_read");
    unit_ok (gs_ckpt_commit (plan));
    unit_fails (gs_ckpt_read (plan, 1, NULL, NULL), GS_ERR_MISMATCH, "none of the arrays");
    unit_ok (gs_ckpt_destroy (plan));
    unit_ok (gs_ckpt_create (comm, folder, &opts, &plan));
    unit_ok (gs_ckpt_add_replicated (plan, "y", 0, NULL, GS_F64, &other));
    unit_ok (gs_ckpt_add_replicated (plan, "x", 0, NULL, GS_F64, &value));
    unit_ok (gs_ckpt_commit (plan));
    unit_ok (gs_ckpt_read (plan, 1, NULL, NULL));
    unit_ok (gs_ckpt_was_read (plan, "x", &filled));
    ck_assert_int_eq (filled, 1);
    unit_ok (gs_ckpt_was_read (plan, "y", &filled));
    ck_assert_int_eq (filled, 0);
    ck_assert_double_eq (other, 3);
    unit_fails (gs_ckpt_was_read (plan, "z", &filled), GS_ERR_ARG, "'z'");
    unit_fails (gs_ckpt_was_read (plan, NULL, &filled), GS_ERR_ARG, "NULL");
    unit_fails (gs_ckpt_was_read (plan, "x", NULL), GS_ERR_ARG, "filled is NULL");
    unit_ok (gs_ckpt_destroy (plan));
    unlink (path_of ("ck-000000000001.h5"));
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
    make_plan_with (&opts);
    unit_fails (gs_ckpt_write (plan, 3, NULL), GS_ERR_STATE, "option read_only");
    unit_ok (gs_ckpt_destroy (plan));
    ck_assert (is_there ("ck-000000000002.h5.tmp") && is_there (".gs-lock"));
    unlink (path_of ("ck-000000000002.h5.tmp"));
    unlink (path_of (".gs-lock"));
}
END_TEST

/* The program goes elsewhere: the folder stays where it was when it was named. */
START_TEST (chdirs)
{
    char *here = getcwd (NULL, 0);
    int64_t found = -1;
    int stop = 1;

    ck_assert_ptr_nonnull (here);
    make_plan ();
    ck_assert_int_eq (chdir ("/"), 0);
    value = 5;
    unit_ok (gs_ckpt_write (plan, 5, NULL));
    value = 0;
    unit_ok (gs_ckpt_read (plan, GS_CKPT_LATEST, &found, NULL));
    ck_assert_int_eq (found, 5);
    ck_assert_double_eq (value, 5);
    unit_ok (gs_stop_requested (plan, &stop, NULL));
    ck_assert_int_eq (stop, 0);
    ck_assert_int_eq (chdir (here), 0);
    put ("stop", "", 0);
    ck_assert_int_eq (chdir ("/"), 0);
    plan->stop.looked_ns = 0;
    unit_ok (gs_stop_requested (plan, &stop, NULL));
    ck_assert_int_eq (stop, GS_CKPT_STOP_FILE);
    unit_ok (gs_ckpt_destroy (plan));
    ck_assert_int_eq (chdir (here), 0);
    free (here);
    ck_assert (!is_there (".gs-lock"));
    unlink (path_of ("stop"));
    unlink (path_of ("ck-000000000005.h5"));
}
END_TEST

/* Of steps 1 and 2 the second one cannot be read: the first is, and stays while it is the only
 * one that is whole. */
static void check_fall_back (gs_ckpt_layout_t layout, void (*harm) (void), gs_status_t none)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    bool by_node = layout == GS_CKPT_LAYOUT_NODE;
    int64_t found = -1, steps[4];
    size_t number;

    opts.layout = layout;
    make_plan_with (&opts);
    for (value = 1; value <= 2; value++)
        unit_ok (gs_ckpt_write (plan, (int64_t) value, NULL));
    unit_ok (gs_ckpt_destroy (plan));
    harm ();
    opts.keep_last = 2;
    make_plan_with (&opts);
    unit_ok (gs_ckpt_read (plan, GS_CKPT_LATEST, &found, NULL));
    ck_assert_int_eq (found, 1);
    ck_assert_double_eq (value, 1);
    unit_fails (gs_ckpt_read (plan, 2, &found, NULL), none, "ck-000000000002");
    value = 3;
    unit_ok (gs_ckpt_write (plan, 3, NULL));
    unit_ok (gs_ckpt_list (plan, steps, 4, &number)); /* 1 and 3 are whole */
    ck_assert_uint_eq (number, 3);
    ck_assert_int_eq (steps[0], 1);
    value = 2.5;
    unit_ok (gs_ckpt_write (plan, 2, NULL)); /* in the place of what is damaged, */
    unit_fails (gs_ckpt_write (plan, 2, NULL), GS_ERR_STATE, "overwrite"); /* which now is not */
    unit_ok (gs_ckpt_read (plan, 2, NULL, NULL));
    unit_ok (gs_ckpt_write (plan, 4, NULL));
    unit_ok (gs_ckpt_list (plan, steps, 4, &number));
    ck_assert_uint_eq (number, 2);
    ck_assert_int_eq (steps[0], 3);
    unit_ok (gs_ckpt_destroy (plan));
    for (int step = 3; step <= 4; step++) {
        char name[64];
        snprintf (name, sizeof (name), "ck-%012d.h5", step);
        if (by_node)
            remove_folder_of (step);
        else
            unlink (path_of (name));
    }
}

static void take_index (void)
{
    ck_assert_int_eq (unlink (path_of ("ck-000000000002/index.h5")), 0);
}

static void loop (void)
{
    ck_assert_int_eq (unlink (path_of ("ck-000000000002.h5")), 0);
    ck_assert_int_eq (symlink ("ck-000000000002.h5", path_of ("ck-000000000002.h5")), 0);
}

static void make_folder (void)
{
    ck_assert_int_eq (unlink (path_of ("ck-000000000002.h5")), 0);
    ck_assert_int_eq (mkdir (path_of ("ck-000000000002.h5"), 0777), 0);
}

static void put_pipe (void)
{
    ck_assert_int_eq (unlink (path_of ("ck-000000000002.h5")), 0);
    ck_assert_int_eq (mkfifo (path_of ("ck-000000000002.h5"), 0666), 0);
}

static void put_pipe_for_part (void)
{
    ck_assert_int_eq (unlink (path_of ("ck-000000000002/part-0000.h5")), 0);
    ck_assert_int_eq (mkfifo (path_of ("ck-000000000002/part-0000.h5"), 0666), 0);
}

static void cut (void)
{
    ck_assert_int_eq (truncate (path_of ("ck-000000000002.h5"), 5000), 0);
}

START_TEST (no_index)
{
    check_fall_back (GS_CKPT_LAYOUT_NODE, take_index, GS_ERR_FORMAT);
}
END_TEST

START_TEST (cannot_be_opened)
{
    check_fall_back (GS_CKPT_LAYOUT_SINGLE, loop, GS_ERR_IO);
}
END_TEST

START_TEST (pipes)
{
    check_fall_back (GS_CKPT_LAYOUT_SINGLE, put_pipe, GS_ERR_FORMAT);
    check_fall_back (GS_CKPT_LAYOUT_NODE, put_pipe_for_part, GS_ERR_FORMAT);
}
END_TEST

START_TEST (damaged)
{
    check_fall_back (GS_CKPT_LAYOUT_SINGLE, cut, GS_ERR_FORMAT);
}
END_TEST

/* None can be read, and not for damage. */
START_TEST (all_unreadable)
{
    int64_t found;

    make_plan ();
    unit_ok (gs_ckpt_write (plan, 2, NULL));
    make_folder ();
    unit_fails (gs_ckpt_read (plan, GS_CKPT_LATEST, &found, NULL), GS_ERR_FORMAT, folder,
                "warnings");
    ck_assert_int_eq (rmdir (path_of ("ck-000000000002.h5")), 0);
    ck_assert_int_eq (symlink ("ck-000000000002.h5", path_of ("ck-000000000002.h5")), 0);
    unit_fails (gs_ckpt_read (plan, GS_CKPT_LATEST, &found, NULL), GS_ERR_IO, folder, "warnings");
    unit_ok (gs_ckpt_destroy (plan));
    ck_assert_int_eq (unlink (path_of ("ck-000000000002.h5")), 0);
}
END_TEST

/* A folder that is not there, nor the one that it is in. */
START_TEST (folder_made)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    char inner[96], file[96];

    snprintf (inner, sizeof (inner), "%s/a/b", folder);
    snprintf (file, sizeof (file), "%s/file", folder);
    put ("file", "", 0);
    for (int i = 0; i < 4; i++) {
        opts.create_folder = i > 0;
        opts.read_only = i == 1;
        unit_ok (gs_ckpt_create (comm, i == 2 ? file : inner, &opts, &plan));
        unit_ok (gs_ckpt_add_replicated (plan, "x", 0, NULL, GS_F64, &value));
        if (i < 2)
            unit_fails (gs_ckpt_commit (plan), GS_ERR_IO, inner, "No such file", "create_folder");
        else if (i == 2)
            unit_fails (gs_ckpt_commit (plan), GS_ERR_IO, file, "not a folder");
        else
            unit_ok (gs_ckpt_commit (plan));
        ck_assert (is_there ("a/b") == (i == 3));
        if (i == 3)
            unit_ok (gs_ckpt_write (plan, 1, NULL));
        unit_ok (gs_ckpt_destroy (plan));
    }
    unlink (path_of ("a/b/ck-000000000001.h5"));
    ck_assert_int_eq (rmdir (path_of ("a/b")) | rmdir (path_of ("a")), 0);
    unlink (path_of ("file"));
}
END_TEST

/* What jobs have left, if it is of another user than the lock; only root can make such. */
START_TEST (of_another_user)
{
    put ("ck-000000000002.h5.tmp", "", 4000);
    if (chown (path_of ("ck-000000000002.h5.tmp"), 65534, 65534)) {
        unlink (path_of ("ck-000000000002.h5.tmp"));
        return;
    }
    make_plan ();
    ck_assert (is_there ("ck-000000000002.h5.tmp"));
    unit_ok (gs_ckpt_destroy (plan));
    ck_assert_int_eq (unlink (path_of ("ck-000000000002.h5.tmp")), 0);
}
END_TEST

UNIT_SUITE_WITH ("store", 60, begin, end, taken_in_between, replaced, links, chdirs, missing,
                 no_index, cannot_be_opened, pipes, damaged, all_unreadable, given_up, sweeps,
                 cut_off, read_only, other_layout, many_go, folder_made, of_another_user)
