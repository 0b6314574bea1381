/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ckpt_layout - files with many arrays, long names, deep groups, many and long attributes: what
 * HDF5 writes is all before the data, and what was written is read.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "unit/alone.h"

static char folder[64], path[96];
static gs_comm_t *comm;
static gs_ckpt_t *plan;
static double value[400];

static void begin (void)
{
    strcpy (folder, "ckpt_layout.XXXXXX");
    ck_assert_ptr_nonnull (mkdtemp (folder));
    snprintf (path, sizeof (path), "%s/ck-000000000001.h5", folder);
    comm = alone_create ();
    unit_ok (gs_ckpt_create (comm, folder, NULL, &plan));
}

/* Array [i], of one number. */
static void add (const char *name, int i)
{
    value[i] = i + 0.25;
    unit_ok (gs_ckpt_add_replicated (plan, name, 0, NULL, GS_F64, &value[i]));
}

/* Where HDF5 takes the file to end: in its superblock, of version 2. */
static uint64_t end_of (void)
{
    unsigned char block[48];
    uint64_t end;
    int fd = open (path, O_RDONLY);

    ck_assert_int_eq (read (fd, block, sizeof (block)), sizeof (block));
    close (fd);
    ck_assert_int_eq (memcmp (block, "\x89HDF\r\n\x1a\n\2", 9), 0);
    memcpy (&end, block + 28, sizeof (end));
    return end;
}

static void check (int arrays)
{
    struct stat facts;

    unit_ok (gs_ckpt_commit (plan));
    unit_ok (gs_ckpt_write (plan, 1, NULL));
    memset (value, 0, sizeof (value));
    unit_ok (gs_ckpt_read (plan, 1, NULL, NULL));
    for (int i = 0; i < arrays; i++)
        unit_check (value[i] == i + 0.25, "array %d is %g", i, value[i]);
    ck_assert_int_eq (stat (path, &facts), 0);
    ck_assert_uint_eq (end_of (), (uint64_t) facts.st_size);
    unit_ok (gs_ckpt_destroy (plan));
    unit_ok (gs_comm_destroy (comm));
    unlink (path);
    ck_assert_int_eq (rmdir (folder), 0);
}

/* What HDF5 finds of the arrays of a checkpoint with a file for each node. */
static void check_virtual (const char *const *names, int arrays)
{
    char command[300], text[64];

    if (system ("command -v h5dump >/dev/null"))
        return;
    for (int i = 0; i < arrays; i++) {
        FILE *out;
        snprintf (command, sizeof (command),
                  "h5dump -d '/replicated/%s' %s/ck-000000000001/index.h5 | grep -c '(0): %g'",
                  names[i], folder, i + 0.25);
        ck_assert_ptr_nonnull (out = popen (command, "r"));
        ck_assert_ptr_nonnull (fgets (text, sizeof (text), out));
        pclose (out);
        unit_check (atoi (text) == 1, "h5dump does not find %s", names[i]);
    }
}

START_TEST (attributes)
{
    static const int numbers[] = {0, 8, 9, 40}, lengths[] = {1, 400, 3000, 4096};
    char name[32], text[4097];

    for (int i = 0; i < 16; i++) {
        begin ();
        add ("a", 0);
        add ("b", 1);
        memset (text, 'x', sizeof (text));
        text[lengths[i % 4]] = 0;
        for (int k = 0; k < numbers[i / 4]; k++) {
            snprintf (name, sizeof (name), "attribute%d", k);
            unit_ok (gs_ckpt_set_attribute (plan, "a", name, text));
            unit_ok (gs_ckpt_set_attribute (plan, "b", name, text));
        }
        check (2);
    }
}
END_TEST

START_TEST (many_arrays)
{
    static const int numbers[] = {1, 7, 8, 9, 33, 400};
    char name[GS_CKPT_NAME_MAX + 1];

    for (int i = 0; i < 12; i++) {
        begin ();
        for (int k = 0; k < numbers[i / 2]; k++) {
            snprintf (name, sizeof (name), "%0*d", i % 2 ? GS_CKPT_NAME_MAX : 4, k);
            add (name, k);
        }
        check (numbers[i / 2]);
    }
}
END_TEST

START_TEST (deep_groups)
{
    char name[GS_CKPT_NAME_MAX + 1] = "", end[16];

    begin ();
    for (int depth = 0; depth < 60; depth++) {
        snprintf (end, sizeof (end), "x%d", depth);
        strcat (name, end);
        add (name, depth);
        name[strlen (name) - strlen (end)] = 0;
        strcat (name, "g/");
    }
    check (60);
}
END_TEST

/* HDF5 reads a percent sign as the begin of a number in names of what lies in other files. */
START_TEST (percents)
{
    static const char *const names[] = {"%", "50%", "a%b", "%%", "g%0d/100%%b"};
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;

    begin ();
    unit_ok (gs_ckpt_destroy (plan));
    opts.layout = GS_CKPT_LAYOUT_NODE;
    unit_ok (gs_ckpt_create (comm, folder, &opts, &plan));
    for (int i = 0; i < 5; i++)
        add (names[i], i);
    unit_ok (gs_ckpt_commit (plan));
    unit_ok (gs_ckpt_write (plan, 1, NULL));
    memset (value, 0, sizeof (value));
    unit_ok (gs_ckpt_read (plan, 1, NULL, NULL));
    for (int i = 0; i < 5; i++)
        unit_check (value[i] == i + 0.25, "array %d is %g", i, value[i]);
    check_virtual (names, 5);
    unit_ok (gs_ckpt_destroy (plan));
    unit_ok (gs_comm_destroy (comm));
    snprintf (path, sizeof (path), "rm -r %s", folder);
    ck_assert_int_eq (system (path), 0);
}
END_TEST

UNIT_SUITE ("ckpt_layout", 120, attributes, many_arrays, deep_groups, percents)
