/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks - without a launcher: this process becomes rank 0 and its children the others. */
#include "tools/bench/ranks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/setting.h"

/* Begun in rank 0, which alone waits for them. */
static int children;

/* The rank that this process becomes; -1 after a failure. */
static int fork_ranks (const struct bench *bench)
{
    for (int rank = 1; rank < bench->options.ranks; rank++) {
        pid_t pid = fork ();
        if (pid == 0) {
            children = 0;
            return rank;
        }
        if (pid < 0) {
            bench_fail (bench, "cannot start rank %d: %s", rank, strerror (errno));
            return -1;
        }
        children++;
    }
    return 0;
}

/* The id of rank 0 for all; it is short enough to be written and read whole. */
static bool share_id (const struct bench *bench, int rank, const int fd[2], gs_unique_id_t *id)
{
    if (rank > 0)
        return read (fd[0], id, sizeof (*id)) == (ssize_t) sizeof (*id) ||
               bench_fail (bench, "rank %d gets no id from rank 0", rank);
    if (gs_unique_id_get (id))
        return bench_fail (bench, "%s", gs_last_error ());
    for (int i = 0; i < children; i++)
        if (write (fd[1], id, sizeof (*id)) != (ssize_t) sizeof (*id))
            return bench_fail (bench, "cannot hand the id on: %s", strerror (errno));
    return true;
}

/*
 * NCCL, the raw side, refuses ranks of one host that share a GPU, so that ours do not either;
 * where that is allowed each is its own host.
 */
static void stand_alone (int rank)
{
    char host[32];

    setenv ("GS_GPU_SHARING", "never", 0);
    if (strcmp (setting_value ("GS_ALLOW_SHARED_GPU"), "1") != 0)
        return;
    snprintf (host, sizeof (host), "gs-bench-%d", rank);
    setenv ("NCCL_HOSTID", host, 0);
}

bool bench_start_ranks (struct bench *bench, const gs_comm_opts_t *opts)
{
    gs_unique_id_t id;
    int rank, fd[2];
    bool ok;

    if (pipe (fd) != 0)
        return bench_fail (bench, "no pipe: %s", strerror (errno));
    rank = fork_ranks (bench);
    if (rank > 0)
        close (fd[1]); /* so that a rank 0 that gives up is noticed */
    ok = rank >= 0 && share_id (bench, rank, fd, &id);
    close (fd[0]);
    if (rank <= 0)
        close (fd[1]);
    if (!ok)
        return false;
    stand_alone (rank);
    return bench_good (
        bench, gs_comm_create_from_id (&id, rank, bench->options.ranks, opts, &bench->comm));
}

bool bench_await_ranks (const struct bench *bench, bool ok)
{
    int status;

    for (; children > 0; children--) {
        if (wait (&status) < 0)
            return bench_fail (bench, "cannot wait for a rank: %s", strerror (errno));
        ok = ok && WIFEXITED (status) && WEXITSTATUS (status) == EXIT_SUCCESS;
    }
    return ok;
}
