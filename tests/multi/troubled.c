/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * troubled - the program of ckpt_trouble.sh: a full disk, a quota, a disk that may only be read,
 * a folder that is gone, lost permission, limits of the process, interrupted calls. Each time a
 * write says what was wrong, where and on which rank; the arrays and the checkpoint before are as
 * they were, and when the trouble is over the next write goes well.
 *
 *   troubled FOLDER   a mount of few MiB of its own
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "multi.h"

#define CELLS ((size_t) 200000)

static gs_comm_t *comm;
static const char *mount;
static char folder[1000];
static double field[CELLS], weights[CELLS];
static int64_t newest;

static void fill (int64_t step)
{
    for (size_t i = 0; i < CELLS; i++) {
        field[i] = (double) step + (double) i / 1048576 + gs_comm_rank (comm);
        weights[i] = (double) step - (double) i / 1048576;
    }
}

static bool is_filled (int64_t step)
{
    bool right = true;

    for (size_t i = 0; i < CELLS; i++)
        right = right && field[i] == (double) step + (double) i / 1048576 + gs_comm_rank (comm) &&
                weights[i] == (double) step - (double) i / 1048576;
    return right;
}

static gs_ckpt_t *make_plan (void)
{
    const size_t count = CELLS, begin = CELLS * (size_t) gs_comm_rank (comm),
                 whole = CELLS * (size_t) gs_comm_size (comm);
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    gs_ckpt_t *plan;

    opts.keep_last = 1;
    CHECK_OK (gs_ckpt_create (comm, folder, &opts, &plan));
    CHECK_OK (gs_ckpt_add_sharded (plan, "u", 1, &count, &begin, &whole, GS_F64, field));
    CHECK_OK (gs_ckpt_add_replicated (plan, "w", 1, &count, GS_F64, weights));
    CHECK_OK (gs_ckpt_commit (plan));
    return plan;
}

/* ---- Troubles ---- */

/* Rank 0 has a shell do it. */
__attribute__ ((format (printf, 1, 2))) static void shell (const char *format, ...)
{
    char command[2000];
    va_list ap;

    CHECK_OK (gs_barrier (comm, NULL));
    va_start (ap, format);
    vsnprintf (command, sizeof (command), format, ap);
    va_end (ap);
    if (!gs_comm_rank (comm))
        CHECK (!system (command), "'%s' fails", command);
    CHECK_OK (gs_barrier (comm, NULL));
}

static bool last_rank (void)
{
    return gs_comm_rank (comm) == gs_comm_size (comm) - 1;
}

/* Bytes that a quota leaves to this process; below 0: there is none. Few kernels of machines for
 * tests have quotas: this does what they do, a part first. */
static atomic_long left = -1;

ssize_t pwrite (int fd, const void *data, size_t bytes, off_t offset)
{
    long room = atomic_load (&left);

    if (!room) {
        errno = EDQUOT;
        return -1;
    }
    if (room > 0 && bytes > (size_t) room)
        bytes = (size_t) room;
    if (room > 0)
        atomic_fetch_sub (&left, (long) bytes);
    return syscall (SYS_pwrite64, fd, data, bytes, offset);
}

static void quota (bool begin)
{
    if (last_rank ())
        atomic_store (&left, begin ? 1000001 : -1);
}

static void full (bool begin)
{
    if (begin)
        shell ("head -c 64M /dev/zero >'%s/filler' 2>/dev/null; :", mount);
    else
        shell ("rm '%s/filler'", mount);
}

static void read_only (bool begin)
{
    shell ("mount -o remount,%s '%s'", begin ? "ro" : "rw", mount);
}

static void gone (bool begin)
{
    if (begin)
        shell ("mv '%s' '%s/away'", folder, mount);
    else
        shell ("mv '%s/away' '%s'", mount, folder);
}

static void forbidden (bool begin)
{
    shell ("chmod %s '%s'", begin ? "555" : "755", folder);
    CHECK (!seteuid (begin ? 65534 : 0), "cannot be another user");
}

static void few_files (bool begin)
{
    static struct rlimit before;
    struct rlimit limit;
    int next;

    if (!last_rank ())
        return;
    if (begin) {
        getrlimit (RLIMIT_NOFILE, &before);
        next = open ("/", O_RDONLY);
        close (next);
        limit = (struct rlimit){(rlim_t) next, before.rlim_max};
        CHECK (!setrlimit (RLIMIT_NOFILE, &limit), "no limit");
    } else {
        setrlimit (RLIMIT_NOFILE, &before);
    }
}

static void short_files (bool begin)
{
    static struct rlimit before;
    struct rlimit limit;

    if (!last_rank ())
        return;
    signal (SIGXFSZ, SIG_IGN);
    if (begin) {
        getrlimit (RLIMIT_FSIZE, &before);
        limit = (struct rlimit){1 << 20, before.rlim_max};
        CHECK (!setrlimit (RLIMIT_FSIZE, &limit), "no limit");
    } else {
        setrlimit (RLIMIT_FSIZE, &before);
    }
}

static void check_trouble (gs_ckpt_t *plan, const char *name, void (*trouble) (bool begin),
                           const char *reason)
{
    char rank[40];
    bool first = trouble != few_files && trouble != short_files && trouble != quota;
    int64_t found;

    snprintf (rank, sizeof (rank), "rank %d (host ", first ? 0 : gs_comm_size (comm) - 1);
    fill (newest + 1);
    trouble (true);
    /* Each other rank is told which one it was; that one knows. */
    if (gs_comm_rank (comm) == (first ? 0 : gs_comm_size (comm) - 1))
        CHECK_FAILS (gs_ckpt_write (plan, newest + 1, NULL), GS_ERR_IO, folder, reason);
    else
        CHECK_FAILS (gs_ckpt_write (plan, newest + 1, NULL), GS_ERR_IO, folder, reason, rank);
    CHECK (is_filled (newest + 1), "%s: arrays are not as they were", name);
    trouble (false);
    CHECK_OK (gs_barrier (comm, NULL));
    CHECK_OK (gs_ckpt_read (plan, GS_CKPT_LATEST, &found, NULL));
    CHECK (found == newest && is_filled (newest), "%s: the one before is gone", name);
    fill (++newest);
    CHECK_OK (gs_ckpt_write (plan, newest, NULL));
}

/* ---- Interrupted calls ---- */

static void nothing (int number)
{
    (void) number;
}

static void check_interrupted (gs_ckpt_t *plan)
{
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    struct sigaction act = {.sa_handler = nothing};
    int64_t found;

    sigaction (SIGALRM, &act, NULL);
    setitimer (ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 20; i++) {
        fill (++newest);
        CHECK_OK (gs_ckpt_write (plan, newest, NULL));
        fill (0);
        CHECK_OK (gs_ckpt_read (plan, GS_CKPT_LATEST, &found, NULL));
        CHECK (found == newest && is_filled (newest), "interrupted, and something is lost");
    }
    setitimer (ITIMER_REAL, &never, NULL);
}

int main (int argc, char **argv)
{
    gs_ckpt_t *plan;

    if (argc < 2)
        return 2;
    if (gs_ckpt_create (NULL, "x", NULL, &plan) == GS_ERR_UNSUPPORTED) {
        printf ("skip: this build has no HDF5\n");
        return 77;
    }
    mount = argv[1];
    snprintf (folder, sizeof (folder), "%s/ck", mount);
    comm = multi_create (NULL);
    shell ("mkdir -p '%s'", folder);
    plan = make_plan ();
    fill (++newest);
    CHECK_OK (gs_ckpt_write (plan, newest, NULL));
    check_trouble (plan, "a full disk", full, "No space left on device");
    check_trouble (plan, "a quota", quota, "Disk quota exceeded");
    check_trouble (plan, "a disk to read", read_only, "Read-only file system");
    check_trouble (plan, "no folder", gone, "No such file or directory");
    check_trouble (plan, "no permission", forbidden, "Permission denied");
    check_trouble (plan, "no more files", few_files, "Too many open files");
    check_trouble (plan, "a limit of files' length", short_files, "File too large");
    check_interrupted (plan);
    CHECK_OK (gs_ckpt_destroy (plan));
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("trouble is told, and nothing is lost");
}
