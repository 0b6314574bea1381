/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rival - the program of ckpt_rivals.sh, a job that has a folder to itself, or thinks so:
 *
 *   rival FOLDER save STEP TAG LAYOUT   saves values that tell TAG, by recorder.so's places, and
 *                                       says how that went; the newest one stays. The number
 *                                       of each process is in FOLDER.TAG.RANK
 *   rival FOLDER look TAG...            says which of these the newest one has
 */
#include <dlfcn.h>

#include "journal.h"
#include "known.h"

static void mark (enum journal_kind kind, int64_t step)
{
    journal_mark_f tell;

    *(void **) &tell = dlsym (RTLD_DEFAULT, JOURNAL_MARK);
    if (tell)
        tell (kind, step);
}

/* Where its processes are. */
static void note_pid (const char *folder, const char *job)
{
    char path[2000];
    FILE *file;

    snprintf (path, sizeof (path), "%s.%s.%d", folder, job, multi_rank ());
    file = fopen (path, "w");
    CHECK (file && fprintf (file, "%ld\n", (long) getpid ()) > 0, "cannot write %s", path);
    if (file)
        fclose (file);
}

static void save (struct known *state, gs_comm_t *comm, char **argv)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    int64_t step = atoi (argv[3]);
    gs_ckpt_t *plan;
    gs_status_t st;

    opts.keep_last = 1;
    opts.overwrite = 1;
    opts.layout = known_layout (argv[5]);
    plan = known_plan (state, comm, argv[1], &opts);
    note_pid (argv[1], argv[4]);
    known_fill (state, atoi (argv[4]));
    mark (JOURNAL_BEGINS, step);
    st = gs_ckpt_write (plan, step, NULL);
    mark (JOURNAL_SAVED, step);
    printf ("rank %d: write: %s: %s\n", multi_rank (), gs_status_string (st),
            st ? gs_last_error () : "");
    CHECK_OK (gs_ckpt_destroy (plan));
}

static void look (struct known *state, gs_comm_t *comm, char **argv)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    int64_t found = -1;
    gs_ckpt_t *plan;

    opts.read_only = 1;
    opts.ranks = GS_CKPT_RANKS_FIRST;
    plan = known_plan (state, comm, argv[1], &opts);
    CHECK_OK (gs_ckpt_read (plan, GS_CKPT_LATEST, &found, NULL));
    for (argv += 3; *argv && !known_is (state, atoi (*argv)); argv++)
        ;
    printf ("step %lld tag %s\n", (long long) found, *argv && found >= 0 ? *argv : "none");
    CHECK_OK (gs_ckpt_destroy (plan));
}

int main (int argc, char **argv)
{
    struct known *state;
    gs_ckpt_t *plan;
    gs_comm_t *comm;

    if (argc < 4)
        return 2;
    if (gs_ckpt_create (NULL, "x", NULL, &plan) == GS_ERR_UNSUPPORTED) {
        printf ("skip: this build has no HDF5\n");
        return 77;
    }
    comm = multi_create (NULL);
    state = known_make (comm);
    if (!strcmp (argv[2], "save") && argc == 6)
        save (state, comm, argv);
    else
        look (state, comm, argv);
    CHECK_OK (gs_comm_destroy (comm));
    free (state);
    return multi_failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
