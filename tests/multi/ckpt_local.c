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

/* It is found when the plan is committed, and the plan is as it was. */
static void check_commit (void)
{
    gs_ckpt_t *plan = make ();

    check_text ("gs_ckpt_commit", gs_ckpt_commit (plan), "/ck");
    CHECK (access ("ck/.gs-lock", F_OK), "the lock stays");
    CHECK_OK (gs_ckpt_destroy (plan));
}

/* It has what looks like the lock of rank 0. */
static void check_write (void)
{
    bool last = gs_comm_rank (comm) == gs_comm_size (comm) - 1;
    gs_ckpt_t *plan = make ();
    FILE *file = last ? fopen ("ck/.gs-lock", "w") : NULL;

    if (file)
        fclose (file);
    CHECK_OK (gs_barrier (comm, NULL));
    CHECK_OK (gs_ckpt_commit (plan));
    check_text ("gs_ckpt_write", gs_ckpt_write (plan, 1, NULL), "ck-000000000001");
    CHECK_OK (gs_ckpt_destroy (plan));
    if (last)
        unlink ("ck/.gs-lock");
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
    snprintf (folder, sizeof (folder), "%s/node-%d", parent ? parent : "/tmp",
              gs_comm_rank (comm) == gs_comm_size (comm) - 1);
    mkdir (folder, 0777);
    CHECK (!chdir (folder), "no %s", folder);
    mkdir ("ck", 0777);
    CHECK_OK (gs_barrier (comm, NULL));
    check_commit ();
    check_write ();
    CHECK_OK (gs_barrier (comm, NULL));
    rmdir ("ck");
    rmdir (folder);
    CHECK_OK (gs_comm_destroy (comm));
    free (state);
    return multi_end ("a folder that is local to nodes is told");
}
