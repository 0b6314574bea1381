/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ckpt_local - a folder of checkpoints that is local to each node: whose name is the same
 * everywhere, and which is not. The last rank has one of its own.
 */
#include <sys/stat.h>

#include "known.h"

static gs_comm_t *comm;
static struct known *state;

/* The error names the path, the host that does not see, that of rank 0, and the cure. */
static void check_text (const char *call, gs_status_t st, const char *path)
{
    const int last = gs_comm_size (comm) - 1;
    const char *const parts[] = {path, gs_comm_host_of (comm, last), gs_comm_host_of (comm, 0),
                                 "does not see what rank 0 has made", "that all nodes share"};

    CHECK (st == GS_ERR_IO, "%s gives %s", call, gs_status_string (st));
    for (int i = 0; i < 5 && st; i++)
        CHECK (strstr (gs_last_error (), parts[i]), "%s: no '%s' in '%s'", call, parts[i],
               gs_last_error ());
}

static gs_ckpt_t *make (void)
{
    const size_t count = KNOWN_WEIGHTS;
    gs_ckpt_t *plan;

    CHECK_OK (gs_ckpt_create (comm, "ck", NULL, &plan));
    CHECK_OK (gs_ckpt_add_replicated (plan, "w", 1, &count, GS_U32, state->weights));
    return plan;
}

static bool last (void)
{
    return gs_comm_rank (comm) == gs_comm_size (comm) - 1;
}

/* It is found when the plan is committed, also where a job that died has left a lock in both. */
static void check_commit (bool locked)
{
    gs_ckpt_t *plan = make ();
    FILE *file = locked && last () ? fopen ("ck/.gs-lock", "w") : NULL;

    if (file) {
        fprintf (file, "id=0123456789abcdef\n");
        fclose (file);
    }
    CHECK_OK (multi_barrier (comm));
    check_text ("gs_ckpt_commit", gs_ckpt_commit (plan), "/ck");
    if (file)
        unlink ("ck/.gs-lock");
    CHECK_OK (multi_barrier (comm)); /* now rank 0 has taken its lock away */
    CHECK (access ("ck/.gs-lock", F_OK), "the lock stays");
    CHECK_OK (gs_ckpt_destroy (plan));
}

/* It is the right one at the commit, and another one in the write. */
static void check_write (void)
{
    gs_ckpt_t *plan = make ();

    if (last ()) {
        rmdir ("ck");
        CHECK (!symlink ("../node-0/ck", "ck"), "no link");
    }
    CHECK_OK (multi_barrier (comm));
    CHECK_OK (gs_ckpt_commit (plan));
    if (last ()) {
        unlink ("ck");
        mkdir ("ck", 0777);
    }
    CHECK_OK (multi_barrier (comm));
    check_text ("gs_ckpt_write", gs_ckpt_write (plan, 1, NULL), "ck-000000000001");
    CHECK_OK (gs_ckpt_destroy (plan));
}

int main (void)
{
    const char *parent = getenv ("TMPDIR");
    char folder[1100];
    gs_ckpt_t *plan;

    if (gs_ckpt_create (NULL, "x", NULL, &plan) == GS_ERR_UNSUPPORTED) {
        printf ("skip: this build has no HDF5\n");
        return 77;
    }
    comm = multi_create (NULL);
    state = known_make (comm);
    snprintf (folder, sizeof (folder), "%s/node-%d", parent ? parent : "/tmp", last ());
    mkdir (folder, 0777);
    CHECK (!chdir (folder), "no %s", folder);
    mkdir ("ck", 0777);
    CHECK_OK (multi_barrier (comm));
    check_commit (false);
    check_commit (true);
    check_write ();
    CHECK_OK (multi_barrier (comm));
    rmdir ("ck");
    rmdir (folder);
    CHECK_OK (gs_comm_destroy (comm));
    free (state);
    return multi_end ("a folder that is local to nodes is told");
}
