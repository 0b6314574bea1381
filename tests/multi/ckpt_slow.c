/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ckpt_slow - checkpoints on file systems that take their time: whatever moves is waited for, on
 * all ranks.
 */
#include <sys/stat.h>
#include <sys/syscall.h>

#include "known.h"

#define TIMEOUT_MS 3000
#define READ_US    (400 * 1000) /* of each read on the last rank: all of them take far longer */

static gs_comm_t *comm;
static struct known *state;
static char folder[1100];
static bool slow;
static int reads;

ssize_t pread (int fd, void *data, size_t bytes, off_t offset)
{
    if (slow && multi_rank () == multi_size () - 1) {
        reads++;
        usleep (READ_US);
    }
    return syscall (SYS_pread64, fd, data, bytes, offset);
}

/* Each read of one rank is slow, and others have long ended theirs. */
static void check_slow_reads (const char *layout)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    int64_t found = -1;
    gs_ckpt_t *plan;

    opts.layout = known_layout (layout);
    opts.overwrite = 1;
    plan = known_plan (state, comm, folder, &opts);
    known_fill (state, 1);
    CHECK_OK (gs_ckpt_write (plan, 1, NULL));
    known_fill (state, 0);
    slow = true;
    reads = 0;
    CHECK_OK (gs_ckpt_read (plan, GS_CKPT_LATEST, &found, NULL));
    slow = false;
    CHECK (multi_rank () < multi_size () - 1 || reads * READ_US > 1500 * TIMEOUT_MS,
           "%d reads do not take longer than the deadline", reads);
    CHECK (found == 1 && known_is (state, 1), "%s: step %lld is not what was written", layout,
           (long long) found);
    CHECK_OK (gs_ckpt_destroy (plan));
}

static void open_folder (void)
{
    const char *parent = getenv ("TMPDIR");

    snprintf (folder, sizeof (folder), "%s/ckpt-slow", parent ? parent : "/tmp");
    if (!multi_rank ())
        CHECK (!mkdir (folder, 0777), "cannot make %s", folder);
    CHECK_OK (gs_barrier (comm, NULL));
}

static void close_folder (void)
{
    char command[1300];

    CHECK_OK (gs_barrier (comm, NULL));
    snprintf (command, sizeof (command), "rm -r '%s'", folder);
    if (!multi_rank ())
        CHECK (!system (command), "cannot remove %s", folder);
}

int main (void)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    gs_ckpt_t *plan;

    if (gs_ckpt_create (NULL, "x", NULL, &plan) == GS_ERR_UNSUPPORTED) {
        printf ("skip: this build has no HDF5\n");
        return 77;
    }
    opts.timeout_ms = TIMEOUT_MS;
    comm = multi_create (&opts);
    state = known_make (comm);
    open_folder ();
    check_slow_reads ("single");
    check_slow_reads ("node");
    close_folder ();
    CHECK_OK (gs_comm_destroy (comm));
    free (state);
    return multi_end ("what moves is waited for");
}
