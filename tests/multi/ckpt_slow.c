/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ckpt_slow - checkpoints on file systems that take their time: whatever moves is waited for, on
 * all ranks; what hangs is told by its deadline; and a program that goes on beside a write does
 * not wait for files.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "known.h"

#define TIMEOUT_MS 3000
#define READ_US    (400 * 1000) /* of each read on the last rank: all of them take far longer */

static gs_comm_t *comm;
static struct known *state;
static char folder[1100];
static bool slow, vanishing; /* reads; and parts, once arrays are no longer those of step 0 */
static int reads;
static pthread_t main_thread;
static atomic_int watched, in_main; /* calls of the program's thread on files are counted */
static atomic_int held, kept;       /* syncs do not return; one does not */
static atomic_int hanging;          /* locks do not open, and nobody learns what is there */
static atomic_int broken;           /* data do not get to the disk */
static atomic_int sticking;         /* files that are not whole cannot be removed */

ssize_t pread (int fd, void *data, size_t bytes, off_t offset)
{
    if (slow && multi_rank () == multi_size () - 1) {
        reads++;
        usleep (READ_US);
    }
    return syscall (SYS_pread64, fd, data, bytes, offset);
}

static void note_call (void)
{
    if (watched && pthread_equal (pthread_self (), main_thread))
        in_main++;
}

ssize_t pwrite (int fd, const void *data, size_t bytes, off_t offset)
{
    note_call ();
    return syscall (SYS_pwrite64, fd, data, bytes, offset);
}

int fdatasync (int fd)
{
    note_call ();
    if (broken) {
        errno = EIO;
        return -1;
    }
    return (int) syscall (SYS_fdatasync, fd);
}

int fsync (int fd)
{
    note_call ();
    while (held && !pthread_equal (pthread_self (), main_thread)) {
        kept = 1;
        usleep (1000);
    }
    return (int) syscall (SYS_fsync, fd);
}

int rename (const char *path, const char *other)
{
    note_call ();
    return (int) syscall (SYS_renameat2, AT_FDCWD, path, AT_FDCWD, other, 0);
}

static int open_at (int dir, const char *path, int flags, mode_t mode)
{
    const char *name = strrchr (path, '/');

    name = name ? name + 1 : path;
    if (dir != AT_FDCWD || !strncmp (path, folder, strlen (folder)))
        note_call ();
    while (hanging && !strncmp (name, ".gs-lock", 8))
        usleep (1000);
    if (vanishing && !strncmp (name, "part-", 5) && !known_is (state, 0)) {
        errno = ENOENT;
        return -1;
    }
    return (int) syscall (SYS_openat, dir, path, flags, mode);
}

int open (const char *path, int flags, ...)
{
    mode_t mode = 0;
    va_list ap;

    va_start (ap, flags);
    if (flags & O_CREAT)
        mode = va_arg (ap, mode_t);
    va_end (ap);
    return open_at (AT_FDCWD, path, flags, mode);
}

int openat (int dir, const char *path, int flags, ...)
{
    mode_t mode = 0;
    va_list ap;

    va_start (ap, flags);
    if (flags & O_CREAT)
        mode = va_arg (ap, mode_t);
    va_end (ap);
    return open_at (dir, path, flags, mode);
}

int access (const char *path, int mode)
{
    note_call ();
    while (hanging && !strncmp (path, folder, strlen (folder)))
        usleep (1000);
    return (int) syscall (SYS_faccessat, AT_FDCWD, path, mode);
}

int unlinkat (int dir, const char *path, int flags)
{
    note_call ();
    while (sticking && strstr (path, ".tmp"))
        usleep (1000);
    return (int) syscall (SYS_unlinkat, dir, path, flags);
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

/* A part that is gone when arrays have been filled from others: not told as what leaves them. */
static void check_vanishing_part (void)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    gs_ckpt_t *plan;

    if (gs_comm_nodes (comm) < 2)
        return;
    opts.layout = GS_CKPT_LAYOUT_NODE;
    plan = known_plan (state, comm, folder, &opts);
    known_fill (state, 2);
    CHECK_OK (gs_ckpt_write (plan, 2, NULL));
    known_fill (state, 0);
    vanishing = true;
    CHECK_FAILS (gs_ckpt_read (plan, 2, NULL, NULL), GS_ERR_IO, "part-0", "No such file",
                 "arrays may have been filled in part");
    vanishing = false;
    CHECK_OK (gs_ckpt_read (plan, 2, NULL, NULL));
    CHECK (known_is (state, 2), "what is read then is not what was written");
    CHECK_OK (gs_ckpt_destroy (plan));
}

/* The calls of a write that the program goes on beside, while the disk keeps the last of its
 * syncs. */
static void check_beside (const char *layout)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    int64_t written = -1;
    gs_ckpt_t *plan;

    opts.layout = known_layout (layout);
    opts.keep_last = 1;
    opts.overwrite = 1;
    plan = known_plan (state, comm, folder, &opts);
    known_fill (state, 2);
    in_main = kept = 0;
    watched = 1;
    CHECK_OK (gs_ckpt_write_async (plan, 2, NULL, NULL));
    held = 1;
    for (int i = 0; i < 20000 && written < 0; i++) {
        if (gs_ckpt_test (plan, &written, NULL))
            break;
        held = held && !kept;
        usleep (1000);
    }
    watched = held = 0;
    CHECK (written == 2, "%s: step %lld is on disk: %s", layout, (long long) written,
           gs_last_error ());
    CHECK (!in_main, "%s: %d calls on files are in the program's thread", layout, in_main);
    CHECK (kept || multi_rank (), "%s: nobody syncs", layout);
    CHECK_OK (gs_ckpt_destroy (plan));
    CHECK_OK (multi_barrier (comm));
}

static void hang (bool begin)
{
    CHECK_OK (multi_barrier (comm));
    hanging = begin && !multi_rank ();
    CHECK_OK (multi_barrier (comm));
}

/* The lock cannot be read: no rank waits for ever, and later all goes on. */
static void check_hanging_lock (void)
{
    int64_t found = -1;
    gs_ckpt_t *plan = known_plan (state, comm, folder, NULL);

    known_fill (state, 3);
    hang (true);
    CHECK_FAILS (gs_ckpt_write (plan, 3, NULL), GS_ERR_TIMEOUT, folder, "has taken nothing");
    CHECK_FAILS (gs_ckpt_write (plan, 3, NULL), GS_ERR_STATE, "still holds the thread", "step 3");
    hang (false);
    known_fill (state, 4);
    CHECK_OK (gs_ckpt_write (plan, 4, NULL));
    known_fill (state, 0);
    CHECK_OK (gs_ckpt_read (plan, GS_CKPT_LATEST, &found, NULL));
    CHECK (found == 4 && known_is (state, 4), "step %lld is not what was written",
           (long long) found);
    CHECK_OK (gs_ckpt_destroy (plan));
}

/* Nor can what a write that failed has left be removed. */
static void check_sticking_file (void)
{
    gs_ckpt_t *plan = known_plan (state, comm, folder, NULL);

    known_fill (state, 5);
    CHECK_OK (multi_barrier (comm));
    broken = multi_rank () == multi_size () - 1;
    sticking = !multi_rank ();
    in_main = 0;
    watched = 1;
    CHECK_FAILS (gs_ckpt_write (plan, 5, NULL), GS_ERR_IO, "Input/output error");
    watched = 0;
    CHECK (!in_main, "%d calls on files are in the program's thread", in_main);
    CHECK_FAILS (gs_ckpt_write (plan, 6, NULL), GS_ERR_STATE, "still holds the thread");
    CHECK_OK (multi_barrier (comm));
    broken = sticking = 0;
    CHECK_OK (multi_barrier (comm));
    CHECK_OK (gs_ckpt_write (plan, 5, NULL));
    CHECK_OK (gs_ckpt_destroy (plan));
}

/* The thread comes out of the file system some time after it may. */
static gs_status_t commit_when_free (gs_ckpt_t *plan)
{
    gs_status_t st = gs_ckpt_commit (plan);

    for (int i = 0; i < 20000 && st == GS_ERR_STATE; i++) {
        usleep (1000);
        st = gs_ckpt_commit (plan);
    }
    return st;
}

/* The same when the folder is taken, and when it is given back. */
static void check_hanging_folder (void)
{
    const size_t count = KNOWN_WEIGHTS;
    char lock[1200];
    gs_ckpt_t *plan;

    CHECK_OK (gs_ckpt_create (comm, folder, NULL, &plan));
    CHECK_OK (gs_ckpt_add_replicated (plan, "w", 1, &count, GS_U32, state->weights));
    hang (true);
    CHECK_FAILS (gs_ckpt_commit (plan), GS_ERR_TIMEOUT, folder, "has taken nothing");
    CHECK_FAILS (gs_ckpt_commit (plan), GS_ERR_STATE, "still holds the thread", folder);
    hang (false);
    CHECK_OK (commit_when_free (plan));
    CHECK_OK (gs_ckpt_write (plan, 8, NULL));
    hang (true);
    CHECK_OK (gs_ckpt_destroy (plan));
    hang (false);
    snprintf (lock, sizeof (lock), "%s/.gs-lock", folder);
    for (int i = 0; i < 20000 && !access (lock, F_OK); i++)
        usleep (1000);
    CHECK (access (lock, F_OK), "the lock stays");
    CHECK_OK (multi_barrier (comm));
}

/* Nobody can tell whether there is a file that stops the program: it goes on until then. */
static void check_hanging_stop (void)
{
    int reasons = -1;
    char file[1200];
    gs_ckpt_t *plan;

    snprintf (file, sizeof (file), "%s/stop", folder);
    plan = known_plan (state, comm, folder, NULL);
    if (!multi_rank ())
        fclose (fopen (file, "w"));
    hang (true);
    for (int i = 0; i < 3; i++) {
        CHECK_OK (gs_stop_requested (plan, &reasons, NULL));
        CHECK (!reasons, "reasons %d, which nobody knows", reasons);
    }
    hang (false);
    for (int i = 0; i < 20000 && !reasons; i++) {
        usleep (1000);
        CHECK_OK (gs_stop_requested (plan, &reasons, NULL));
    }
    CHECK (reasons == GS_CKPT_STOP_FILE, "reasons %d", reasons);
    CHECK_OK (gs_ckpt_destroy (plan));
    plan = known_plan (state, comm, folder, NULL);
    hang (true); /* and such a plan goes, too */
    CHECK_OK (gs_stop_requested (plan, &reasons, NULL));
    CHECK_OK (gs_ckpt_destroy (plan));
    hang (false);
    if (!multi_rank ())
        CHECK (!unlink (file), "no %s", file);
}

static void open_folder (void)
{
    const char *parent = getenv ("TMPDIR");

    snprintf (folder, sizeof (folder), "%s/ckpt-slow", parent ? parent : "/tmp");
    if (!multi_rank ())
        CHECK (!mkdir (folder, 0777), "cannot make %s", folder);
    CHECK_OK (multi_barrier (comm));
}

static void close_folder (void)
{
    char command[1300];

    CHECK_OK (multi_barrier (comm));
    snprintf (command, sizeof (command), "rm -rf '%s'", folder); /* a thread ends */
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
    main_thread = pthread_self ();
    opts.timeout_ms = TIMEOUT_MS;
    comm = multi_create (&opts);
    state = known_make (comm);
    open_folder ();
    check_slow_reads ("single");
    check_slow_reads ("node");
    check_vanishing_part ();
    check_beside ("single");
    check_beside ("node");
    check_hanging_lock ();
    check_sticking_file ();
    check_hanging_folder ();
    check_hanging_stop ();
    close_folder ();
    CHECK_OK (gs_comm_destroy (comm));
    free (state);
    return multi_end ("what moves is waited for");
}
