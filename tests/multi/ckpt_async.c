/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ckpt_async - checkpoints that are written while the program goes on: what they hold is what the
 * arrays were; slow, full and hanging disks; replicas that are none.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "array.h"

#define CELLS   ((size_t) 300000) /* of a rank, or one more */
#define WEIGHTS ((size_t) 400003)
#define ODD     ((size_t) 13)

static gs_comm_t *world;
static char folder[1100];
static int rank, size;
static bool on_gpus;
static struct array field, weights, odd, seeds;

/* ---- A disk that is slow, or full ---- */

/* What fdatasync and pwrite, which the library calls in its thread, do in this program: a disk
 * that is stuck has taken what it was given, but does not say so. */
enum disk { FINE, HELD, FULL, STUCK, KEEPING };
static _Atomic enum disk disk;
static pthread_t main_thread;

/* What takes a file system long: calls of the main thread, and of others that a disk which is
 * keeping what it has does not let go on. */
static _Atomic int in_main, kept;

static void take_long (void)
{
    if (pthread_equal (pthread_self (), main_thread)) {
        atomic_fetch_add (&in_main, 1);
        return;
    }
    while (atomic_load (&disk) == KEEPING) {
        atomic_store (&kept, 1);
        usleep (1000);
    }
}

ssize_t pwrite (int fd, const void *data, size_t bytes, off_t offset)
{
    ssize_t n = syscall (SYS_pwrite64, fd, data, bytes, offset);

    while (atomic_load (&disk) == STUCK && !pthread_equal (pthread_self (), main_thread))
        usleep (1000);
    return n;
}

int fdatasync (int fd)
{
    while (atomic_load (&disk) == HELD)
        usleep (1000);
    if (atomic_load (&disk) == FULL) {
        errno = ENOSPC;
        return -1;
    }
    return fsync (fd);
}

int fallocate (int fd, int mode, off_t offset, off_t bytes)
{
    if (pthread_equal (pthread_self (), main_thread))
        atomic_fetch_add (&in_main, 1);
    return (int) syscall (SYS_fallocate, fd, mode, offset, bytes);
}

int unlinkat (int fd, const char *path, int flags)
{
    take_long ();
    return (int) syscall (SYS_unlinkat, fd, path, flags);
}

int unlink (const char *path)
{
    struct stat facts;

    if (!stat (path, &facts) && S_ISREG (facts.st_mode) && facts.st_size > (off_t) 1 << 20)
        take_long ();
    return (int) syscall (SYS_unlinkat, AT_FDCWD, path, 0);
}

/* ---- State ---- */

static double value (int64_t step, size_t i)
{
    return (double) step + (double) i / 1048576;
}

static size_t cells_of (int r)
{
    return CELLS + (size_t) (r % 2);
}

static size_t begin_of (int r)
{
    return CELLS * (size_t) r + (size_t) (r / 2);
}

static void fill (int64_t step)
{
    for (size_t i = 0; i < cells_of (rank); i++)
        ((double *) field.host)[i] = value (step, begin_of (rank) + i);
    for (size_t i = 0; i < WEIGHTS; i++)
        ((double *) weights.host)[i] = value (-step, i);
    for (size_t i = 0; i < ODD; i++)
        odd.host[i] = (char) ((size_t) step + i);
    ((int64_t *) seeds.host)[0] = 1000 * step + rank;
    array_bring (&field);
    array_bring (&weights);
    array_bring (&odd);
    array_bring (&seeds);
}

/* Whether the arrays are as [step] had them. */
static bool holds (int64_t step)
{
    bool right = true;

    array_fetch (&field);
    array_fetch (&weights);
    array_fetch (&odd);
    array_fetch (&seeds);
    for (size_t i = 0; i < cells_of (rank); i++)
        right = right && ((double *) field.host)[i] == value (step, begin_of (rank) + i);
    for (size_t i = 0; i < WEIGHTS; i++)
        right = right && ((double *) weights.host)[i] == value (-step, i);
    for (size_t i = 0; i < ODD; i++)
        right = right && odd.host[i] == (char) ((size_t) step + i);
    return right && ((int64_t *) seeds.host)[0] == 1000 * step + rank;
}

static gs_ckpt_t *plan_on (gs_comm_t *comm, const gs_ckpt_opts_t *opts)
{
    const size_t cells = cells_of (rank), begin = begin_of (rank), whole = begin_of (size);
    const size_t weight_count = WEIGHTS, odd_count = ODD, one = 1;
    gs_ckpt_t *plan;

    CHECK_OK (gs_ckpt_create (comm, folder, opts, &plan));
    CHECK_OK (gs_ckpt_add_replicated (plan, "odd", 1, &odd_count, GS_U8, odd.used));
    CHECK_OK (gs_ckpt_add_sharded (plan, "u", 1, &cells, &begin, &whole, GS_F64, field.used));
    CHECK_OK (gs_ckpt_add_replicated (plan, "w", 1, &weight_count, GS_F64, weights.used));
    CHECK_OK (gs_ckpt_add_per_rank (plan, "seed", 1, &one, GS_I64, seeds.used));
    CHECK_OK (gs_ckpt_commit (plan));
    return plan;
}

static gs_ckpt_t *plan_with (const gs_ckpt_opts_t *opts)
{
    return plan_on (world, opts);
}

/* Puts the disk of one rank in a state, between two barriers. */
static void set_disk (enum disk state, int of)
{
    CHECK_OK (multi_wait (world, gs_barrier (world, NULL)));
    if (rank == of)
        atomic_store (&disk, state);
    CHECK_OK (multi_wait (world, gs_barrier (world, NULL)));
}

/* Steps of a program until [step] is on disk. */
static void step_on (gs_ckpt_t *plan, int64_t step)
{
    int64_t written = -1;
    double until = multi_seconds () + 60;

    while (written < 0 && multi_seconds () < until)
        if (gs_ckpt_test (plan, &written, NULL))
            break;
    CHECK (written == step, "%lld is on disk, not %lld: %s", (long long) written,
           (long long) step, gs_last_error ());
}

static void read_back (gs_ckpt_t *plan, int64_t step)
{
    int64_t found = -7;

    fill (1);
    CHECK_OK (gs_ckpt_read (plan, step, &found, NULL));
    CHECK (holds (step), "step %lld is not what was written", (long long) step);
}

static int files (const char *pattern)
{
    char command[1300];
    FILE *out;
    int number = -1;

    snprintf (command, sizeof (command), "find '%s' -name '%s' | wc -l", folder, pattern);
    if ((out = popen (command, "r"))) {
        CHECK (fscanf (out, "%d", &number) == 1, "no number");
        pclose (out);
    }
    return number;
}

/* ---- What is asserted ---- */

/* The arrays may change as soon as the calls say so. */
static void check_copies (const gs_ckpt_opts_t *opts, int64_t first)
{
    gs_ckpt_t *plan = plan_with (opts);
    int64_t written = -7;
    int begun = -1;

    CHECK_OK (gs_ckpt_test (plan, &written, NULL));
    CHECK (written == -1, "%lld is on disk, of no write", (long long) written);
    CHECK_OK (gs_ckpt_wait_staged (plan));
    for (int64_t step = first; step < first + 3; step++) {
        fill (step);
        CHECK_OK (gs_ckpt_write_async (plan, step, &begun, NULL));
        CHECK (begun == 1, "begun is %d", begun);
        CHECK_FAILS (gs_ckpt_read (plan, step, NULL, NULL), GS_ERR_STATE, "gs_ckpt_wait");
        CHECK_FAILS (gs_ckpt_destroy (plan), GS_ERR_STATE, "gs_ckpt_wait");
        CHECK_OK (gs_ckpt_wait_staged (plan));
        fill (2);
        if (step == first)
            step_on (plan, step);
        if (step == first + 1) {
            CHECK_OK (gs_ckpt_wait (plan, &written, NULL));
            CHECK (written == step, "%lld is on disk", (long long) written);
        }
    }
    fill (first + 3);
    CHECK_OK (gs_ckpt_write (plan, first + 3, NULL)); /* which waits for the one before */
    CHECK_OK (gs_ckpt_wait (plan, &written, NULL));
    CHECK (written == -1, "%lld is on disk, of no write", (long long) written);
    for (int64_t step = first; step <= first + 3; step++)
        read_back (plan, step);
    CHECK_OK (gs_ckpt_destroy (plan));
}

static void check_all_copies (void)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;

    check_copies (NULL, 100);
    opts.memory = (size_t) 1 << 20;
    check_copies (&opts, 200);
    opts.lazy = 1;
    check_copies (&opts, 300);
    opts.memory = 0;
    opts.compare = GS_CKPT_COMPARE_SAMPLE;
    check_copies (&opts, 400);
    opts.direct = 1;
    check_copies (&opts, 500);
    opts.lazy = 0;
    opts.compare = GS_CKPT_COMPARE_NONE;
    check_copies (&opts, 600);
    opts.memory = 4711;
    CHECK_FAILS (gs_ckpt_create (world, folder, &opts, &(gs_ckpt_t *){NULL}), GS_ERR_ARG,
                 "memory is 4711");
}

/* As much as the ring has room for, behind an odd number of bytes. */
static void check_ring (void)
{
    static char data[2 << 20];
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    const size_t many = (1 << 20) - 1, more = 1 << 19;
    gs_ckpt_t *plan;

    opts.memory = many + 1;
    CHECK_OK (gs_ckpt_create (world, folder, &opts, &plan));
    CHECK_OK (gs_ckpt_add_per_rank (plan, "a", 1, &many, GS_U8, data));
    CHECK_OK (gs_ckpt_add_per_rank (plan, "b", 1, &more, GS_F32, data));
    CHECK_OK (gs_ckpt_commit (plan));
    CHECK_OK (gs_ckpt_write_async (plan, 700, NULL, NULL));
    CHECK_OK (gs_ckpt_wait (plan, NULL, NULL));
    CHECK_OK (gs_ckpt_destroy (plan));
}

/* A second write while the first one's disk takes its time. */
static void check_busy (gs_ckpt_busy_t busy, int64_t first)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    int64_t written = -7;
    gs_ckpt_t *plan;
    int begun = -1;

    opts.busy = busy;
    plan = plan_with (&opts);
    set_disk (HELD, size - 1);
    fill (first);
    CHECK_OK (gs_ckpt_write_async (plan, first, &begun, NULL));
    CHECK_OK (gs_ckpt_test (plan, &written, NULL));
    CHECK (begun == 1 && written == -1, "begun %d, written %lld", begun, (long long) written);
    fill (first + 1);
    if (busy == GS_CKPT_BUSY_SKIP) {
        CHECK_OK (gs_ckpt_write_async (plan, first + 1, &begun, NULL));
    } else if (busy == GS_CKPT_BUSY_ERROR) {
        CHECK_FAILS (gs_ckpt_write_async (plan, first + 1, &begun, NULL), GS_ERR_STATE,
                     "still being written", "busy");
    }
    CHECK (begun == (busy == GS_CKPT_BUSY_WAIT), "begun is %d", begun);
    set_disk (FINE, size - 1);
    if (busy == GS_CKPT_BUSY_WAIT)
        CHECK_OK (gs_ckpt_write_async (plan, first + 1, &begun, NULL));
    CHECK_OK (gs_ckpt_wait (plan, &written, NULL));
    CHECK (written == first + (busy == GS_CKPT_BUSY_WAIT), "%lld is on disk",
           (long long) written);
    read_back (plan, first);
    CHECK_OK (gs_ckpt_destroy (plan));
}

/* What a thread meets is told by all ranks, and there is no file. */
static void check_full (gs_ckpt_t *plan, int64_t step)
{
    bool culprit = rank == size - 1;
    char name[32];

    snprintf (name, sizeof (name), "rank %d", size - 1);
    set_disk (FULL, size - 1);
    fill (step);
    CHECK_OK (gs_ckpt_write_async (plan, step, NULL, NULL));
    CHECK_FAILS (gs_ckpt_wait (plan, NULL, NULL), GS_ERR_IO, "fdatasync: No space left",
                 culprit ? "ck-" : name);
    CHECK_OK (gs_ckpt_write_async (plan, step, NULL, NULL));
    CHECK_FAILS (gs_ckpt_write_async (plan, step + 1, NULL, NULL), GS_ERR_IO, "No space left");
    set_disk (FINE, size - 1);
    CHECK (!files ("*.tmp"), "%d files left", files ("*.tmp"));
    CHECK_OK (gs_ckpt_write_async (plan, step, NULL, NULL));
    CHECK_OK (gs_ckpt_wait (plan, NULL, NULL));
    read_back (plan, step);
}

/* One bit on one rank. */
static void check_diverged (gs_ckpt_compare_t compare, size_t at, bool found, int64_t step)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    gs_ckpt_t *plan;
    char name[32];

    if (size == 1)
        return;
    snprintf (name, sizeof (name), "rank %d", size - 1);
    opts.compare = compare;
    plan = plan_with (&opts);
    for (int i = 0; i < 2; i++) {
        gs_status_t st;
        fill (step + i);
        if (rank == size - 1)
            weights.host[at] ^= 1;
        array_bring (&weights);
        st = i ? gs_ckpt_write (plan, step + i, NULL)
               : gs_ckpt_write_async (plan, step + i, NULL, NULL);
        if (!st)
            st = gs_ckpt_wait (plan, NULL, NULL);
        if (!found)
            CHECK_OK (st);
        else
            CHECK_FAILS (st, GS_ERR_MISMATCH, "w'", "differ", size > 2 ? name : "rank");
    }
    CHECK_OK (multi_wait (world, gs_barrier (world, NULL)));
    CHECK (files ("*.tmp") == 0, "%d files left", files ("*.tmp"));
    if (found)
        CHECK_FAILS (gs_ckpt_read (plan, step, NULL, NULL), GS_ERR_IO, "No such file");
    CHECK_OK (gs_ckpt_destroy (plan));
}

/* A disk that takes nothing any more: no rank waits for ever, and later all goes on. */
static void check_hanging (void)
{
    gs_comm_opts_t copts = GS_COMM_OPTS_INIT;
    gs_comm_t *comm;
    gs_ckpt_t *plan;

    copts.timeout_ms = 4000;
    comm = multi_create (&copts);
    plan = plan_on (comm, NULL);
    set_disk (HELD, size - 1);
    fill (900);
    CHECK_FAILS (gs_ckpt_write (plan, 900, NULL), GS_ERR_TIMEOUT, "has taken nothing");
    CHECK_FAILS (gs_ckpt_write (plan, 901, NULL), GS_ERR_STATE, "still holds the thread",
                 "step 900");
    set_disk (FINE, size - 1);
    fill (902);
    CHECK_OK (gs_ckpt_write (plan, 902, NULL));
    read_back (plan, 902);
    CHECK_OK (gs_ckpt_destroy (plan));
    CHECK_OK (gs_comm_destroy (comm));
}

/* Not those of simulated GPUs, which begin when a stream is first used. */
static bool is_ours (const char *task)
{
    char path[300], name[32] = "";
    FILE *file;

    snprintf (path, sizeof (path), "/proc/self/task/%s/comm", task);
    if ((file = fopen (path, "r"))) {
        if (!fgets (name, sizeof (name), file))
            *name = 0;
        fclose (file);
    }
    return strncmp (name, "simgpu", 6) != 0;
}

static int threads (void)
{
    DIR *tasks = opendir ("/proc/self/task");
    const struct dirent *task;
    int number = 0;

    while (tasks && (task = readdir (tasks)))
        number += is_ours (task->d_name);
    if (tasks)
        closedir (tasks);
    return number;
}

static void await_threads (int wanted)
{
    double until = multi_seconds () + 20;

    while (threads () > wanted && multi_seconds () < until)
        usleep (1000);
    CHECK (threads () <= wanted, "%d threads, not %d", threads (), wanted);
}

static gs_ckpt_t *volatile late_plan[2]; /* which keep memory for their threads */

/* A thread that comes back when plan and arrays are gone leaves them alone. */
static void check_late (int direct, int64_t step)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    gs_comm_opts_t copts = GS_COMM_OPTS_INIT;
    const size_t bytes = (size_t) 3 << 20;
    gs_ckpt_t *plan;
    gs_comm_t *comm;
    void *array;
    int before;

    CHECK (!late_plan[direct], "once for each way to write");
    copts.timeout_ms = 4000;
    opts.direct = direct;
    comm = multi_create (&copts);
    array = mmap (NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_OK (gs_ckpt_create (comm, folder, &opts, &plan));
    late_plan[direct] = plan;
    CHECK_OK (gs_ckpt_add_replicated (plan, "late", 1, &bytes, GS_U8, array));
    CHECK_OK (gs_ckpt_commit (plan));
    before = threads (); /* with that of the lock, which stays where the thread hangs */
    set_disk (STUCK, size - 1);
    CHECK_FAILS (gs_ckpt_write (plan, step, NULL), GS_ERR_TIMEOUT, "has taken nothing");
    CHECK_OK (gs_ckpt_destroy (plan));
    munmap (array, bytes);
    set_disk (FINE, size - 1);
    await_threads (before);
    CHECK_OK (gs_comm_destroy (comm));
}

static void write_beside (gs_ckpt_t *plan, int64_t step)
{
    int64_t written;

    fill (step);
    CHECK_OK (gs_ckpt_write_async (plan, step, NULL, NULL));
    CHECK_OK (gs_ckpt_wait (plan, &written, NULL));
    CHECK (written == step, "%lld is on disk", (long long) written);
}

static void check_steps (gs_ckpt_t *plan, int64_t oldest, int64_t newest)
{
    int64_t steps[3] = {-1, -1, -1};
    size_t number = 0;

    CHECK_OK (gs_ckpt_list (plan, steps, 3, &number));
    CHECK (number == (size_t) (newest - oldest + 1), "%zu checkpoints", number);
    for (int64_t i = 0; oldest + i <= newest; i++)
        CHECK (steps[i] == oldest + i, "checkpoint %d is of step %lld", (int) i,
               (long long) steps[i]);
}

static void await_removal (void)
{
    double until = multi_seconds () + 20;

    while (!rank && !atomic_load (&kept) && multi_seconds () < until)
        usleep (1000);
    CHECK (rank || atomic_load (&kept), "no thread removes what is not to be kept");
}

/* What a write that the program goes beside makes room for, and what it removes, take no time of
 * the program, though the disk keeps a thread that removes. */
static void check_removal (gs_ckpt_layout_t layout, int64_t step)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    gs_comm_opts_t copts = GS_COMM_OPTS_INIT;
    gs_ckpt_t *plan;
    gs_comm_t *comm;
    int before;

    copts.timeout_ms = 4000;
    opts.keep_last = 1;
    opts.layout = layout;
    comm = multi_create (&copts);
    plan = plan_on (comm, &opts);
    before = threads (); /* with that of the lock, which stays where the thread does */
    fill (step);
    CHECK_OK (gs_ckpt_write (plan, step, NULL));
    atomic_store (&in_main, 0);
    atomic_store (&kept, 0);
    set_disk (KEEPING, 0);
    write_beside (plan, step + 1);
    await_removal ();
    CHECK (!atomic_load (&in_main), "%d calls that take long are in the program's thread",
           atomic_load (&in_main));
    check_steps (plan, step + 1, step + 1);
    write_beside (plan, step + 2); /* what this removes waits for the thread */
    check_steps (plan, step + 2, step + 2);
    set_disk (FINE, 0);
    fill (step + 3);
    CHECK_OK (gs_ckpt_write (plan, step + 3, NULL));
    check_steps (plan, step + 3, step + 3);
    CHECK (!files ("*.tmp"), "%d files left", files ("*.tmp"));
    read_back (plan, step + 3);
    atomic_store (&kept, 0);
    set_disk (KEEPING, 0);
    write_beside (plan, step + 4);
    await_removal ();
    CHECK_OK (gs_ckpt_destroy (plan)); /* which leaves the thread alone */
    set_disk (FINE, 0);
    await_threads (before);
    CHECK (rank || !files ("*.tmp"), "%d files left", files ("*.tmp"));
    CHECK_OK (gs_comm_destroy (comm));
}

static void open_folder (void)
{
    const char *parent = getenv ("TMPDIR");

    snprintf (folder, sizeof (folder), "%s/ckpt-async", parent ? parent : "/tmp");
    if (!rank)
        CHECK (!mkdir (folder, 0777), "cannot make %s", folder);
    CHECK_OK (multi_wait (world, gs_barrier (world, NULL)));
}

static void close_folder (void)
{
    char command[1300];

    CHECK_OK (multi_wait (world, gs_barrier (world, NULL)));
    snprintf (command, sizeof (command), "rm -r '%s'", folder);
    if (!rank)
        CHECK (!system (command), "cannot remove %s", folder);
}

int main (void)
{
    gs_ckpt_t *plan;

    if (gs_ckpt_create (NULL, "x", NULL, &plan) == GS_ERR_UNSUPPORTED) {
        printf ("skip: this build has no HDF5\n");
        return 77;
    }
    main_thread = pthread_self ();
    world = multi_create (NULL);
    rank = gs_comm_rank (world);
    size = gs_comm_size (world);
    on_gpus = multi_any_gpus ();
    open_folder ();
    field = array_allocate (world, cells_of (rank) * sizeof (double), on_gpus);
    weights = array_allocate (world, WEIGHTS * sizeof (double), on_gpus);
    odd = array_allocate (world, ODD, on_gpus);
    seeds = array_allocate (world, sizeof (int64_t), false);
    check_all_copies ();
    check_ring ();
    for (gs_ckpt_busy_t busy = GS_CKPT_BUSY_WAIT; busy <= GS_CKPT_BUSY_ERROR; busy++)
        check_busy (busy, 1000 + 10 * (int64_t) busy);
    plan = plan_with (NULL);
    check_full (plan, 1100);
    CHECK_OK (gs_ckpt_destroy (plan));
    check_diverged (GS_CKPT_COMPARE_FULL, 8 * WEIGHTS / 2 + 5, true, 1200);
    check_diverged (GS_CKPT_COMPARE_SAMPLE, 0, true, 1210);
    check_diverged (GS_CKPT_COMPARE_NONE, 0, false, 1220);
    check_hanging ();
    check_removal (GS_CKPT_LAYOUT_SINGLE, 1300);
    check_removal (GS_CKPT_LAYOUT_NODE, 1400);
    for (int late = 0; late < 2 && !on_gpus; late++) /* else it has copies */
        check_late (late, 910 + late);
    array_release (&field, "field");
    array_release (&weights, "weights");
    array_release (&odd, "odd");
    array_release (&seeds, "seeds");
    close_folder ();
    CHECK_OK (gs_comm_destroy (world));
    return multi_end ("asynchronous writes: copies, busy and full disks, replicas, hanging ones");
}
