/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * locker - the program of ckpt_lock.sh: does as it is told with a plan of a folder, and says how
 * it went.
 *
 *   locker FOLDER COMMAND...
 *
 *   commit, read_only   makes a plan; the second one of a plan that only reads
 *   write STEP, read, destroy
 *   say NAME            makes the file FOLDER.NAME
 *   await NAME          waits until it is there
 *   share               a plan of all ranks and one of those but the first, in turn
 */
#include "multi.h"

#define COUNT ((size_t) 1000)

static gs_comm_t *comm;
static const char *folder;
static double x[COUNT];

static gs_status_t make_plan (gs_comm_t *of, int read_only, gs_ckpt_t **plan)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    const size_t count = COUNT;
    gs_status_t st;

    opts.read_only = read_only;
    CHECK_OK (gs_ckpt_create (of, folder, &opts, plan));
    CHECK_OK (gs_ckpt_add_replicated (*plan, "x", 1, &count, GS_F64, x));
    if ((st = gs_ckpt_commit (*plan))) {
        char text[2000];
        snprintf (text, sizeof (text), "%s", gs_last_error ());
        CHECK_OK (gs_ckpt_destroy (*plan));
        *plan = NULL;
        printf ("rank %d: commit: %s: %s\n", multi_rank (), gs_status_string (st), text);
    } else {
        printf ("rank %d: commit: GS_OK\n", multi_rank ());
    }
    return st;
}

static void tell (const char *what, gs_status_t st)
{
    printf ("rank %d: %s: %s: %s\n", multi_rank (), what, gs_status_string (st),
            st ? gs_last_error () : "");
    fflush (stdout);
}

static const char *path_of (const char *name)
{
    static char path[2000];

    snprintf (path, sizeof (path), "%s.%s", folder, name);
    return path;
}

static void say (const char *name)
{
    FILE *file = fopen (path_of (name), "w");

    CHECK (file, "cannot write %s", path_of (name));
    if (file)
        fclose (file);
}

static void await (const char *name)
{
    double until = multi_seconds () + 60;

    while (access (path_of (name), F_OK) && multi_seconds () < until)
        usleep (1000);
    CHECK (!access (path_of (name), F_OK), "no %s", path_of (name));
}

/* Whether the folder has a lock. */
static bool is_locked (void)
{
    char path[2000];

    snprintf (path, sizeof (path), "%s/.gs-lock", folder);
    return !access (path, F_OK);
}

/* Plans whose first ranks are different processes, of one job step. */
static void share (void)
{
    gs_ckpt_t *all, *some = NULL;
    gs_comm_t *others;

    CHECK_OK (gs_comm_split (comm, multi_rank () ? 0 : GS_COLOR_NONE, 0, &others));
    CHECK_OK (make_plan (comm, 0, &all));
    if (others) {
        CHECK_OK (make_plan (others, 0, &some));
        CHECK_OK (gs_ckpt_write (some, 10, NULL));
    }
    CHECK_OK (gs_barrier (comm, NULL));
    CHECK_OK (gs_ckpt_write (all, 11, NULL));
    CHECK (is_locked (), "two plans, and no lock");
    CHECK_OK (gs_barrier (comm, NULL));
    CHECK_OK (gs_ckpt_destroy (all)); /* who made it */
    CHECK_OK (gs_barrier (comm, NULL));
    CHECK (!is_locked (), "its maker has left, and the lock is there");
    CHECK_OK (gs_barrier (comm, NULL));
    if (others)
        CHECK_OK (gs_ckpt_write (some, 12, NULL));
    CHECK_OK (gs_barrier (comm, NULL));
    CHECK (is_locked (), "a plan that writes, and no lock");
    CHECK_OK (make_plan (comm, 0, &all));
    CHECK_OK (gs_ckpt_write (all, 13, NULL));
    if (others) {
        CHECK_OK (gs_ckpt_destroy (some));
        CHECK_OK (gs_comm_destroy (others));
    }
    CHECK_OK (gs_barrier (comm, NULL));
    CHECK_OK (gs_ckpt_write (all, 14, NULL));
    CHECK (is_locked (), "another plan that writes, and no lock");
    CHECK_OK (gs_barrier (comm, NULL));
    CHECK_OK (gs_ckpt_destroy (all));
    CHECK_OK (gs_barrier (comm, NULL));
    CHECK (!is_locked (), "the lock is left");
}

/* Does one command; how many arguments it has taken. */
static int obey (char **argv, gs_ckpt_t **plan)
{
    const char *command = argv[0], *argument = argv[1];

    if (!strcmp (command, "commit") || !strcmp (command, "read_only"))
        make_plan (comm, *command == 'r', plan);
    else if (!strcmp (command, "read"))
        tell (command, gs_ckpt_read (*plan, GS_CKPT_LATEST, NULL, NULL));
    else if (!strcmp (command, "destroy"))
        tell (command, gs_ckpt_destroy (*plan));
    else if (!strcmp (command, "share"))
        share ();
    else if (!strcmp (command, "write"))
        tell (command, gs_ckpt_write (*plan, atoi (argument), NULL));
    else if (!strcmp (command, "say"))
        say (argument);
    else if (!strcmp (command, "await"))
        await (argument);
    return 1 +
           (!strcmp (command, "write") || !strcmp (command, "say") || !strcmp (command, "await"));
}

int main (int argc, char **argv)
{
    gs_ckpt_t *plan = NULL;

    if (argc < 3)
        return 2;
    if (gs_ckpt_create (NULL, "x", NULL, &plan) == GS_ERR_UNSUPPORTED) {
        printf ("skip: this build has no HDF5\n");
        return 77;
    }
    folder = argv[1];
    comm = multi_create (NULL);
    for (int i = 2; i < argc;)
        i += obey (argv + i, &plan);
    CHECK_OK (gs_comm_destroy (comm));
    return multi_failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
