/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ckpt_beside - checkpoints in a program that uses HDF5 itself: its handles, its error handler,
 * what is on its error stacks, and its data are left alone, and it may have checkpoints open.
 * Compiled twice: with the HDF5 that gradsync has, and, as ckpt_beside_mpi, with a parallel one,
 * which is then in the process beside gradsync's.
 */
#include "multi.h"

#ifdef BESIDE

#define H5_USE_110_API 1

#include <dirent.h>
#include <errno.h>
#include <hdf5.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define COUNT ((size_t) 3000)

static gs_comm_t *comm;
static char folder[1100];
static double weights[COUNT], field[10];
static int rank, size;

/* ---- What the program has of its own ---- */

static hid_t own_file, own_set, own_class, own_stack;
static int cookie, told; /* by its error handler */
static ssize_t noted;    /* on the default error stack */
static int told_before;
static ssize_t open_objects;

static herr_t tell (hid_t stack, void *data)
{
    (void) stack;
    told += data == &cookie;
    return 0;
}

static void open_own (void)
{
    hid_t access = H5Pcreate (H5P_FILE_ACCESS), space, message;
    const hsize_t shape[] = {(hsize_t) size, COUNT};
    char path[1200];

    snprintf (path, sizeof (path), "%s/../own-%d.h5", folder, rank);
#ifdef H5_HAVE_PARALLEL
    snprintf (path, sizeof (path), "%s/../own.h5", folder);
    CHECK (H5Pset_fapl_mpio (access, MPI_COMM_WORLD, MPI_INFO_NULL) >= 0, "no MPI-IO");
#endif
    own_file = H5Fcreate (path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    space = H5Screate_simple (2, shape, NULL);
    own_set = H5Dcreate2 (own_file, "x", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT,
                          H5P_DEFAULT);
    CHECK (own_file >= 0 && own_set >= 0, "cannot make %s", path);
    H5Sclose (space);
    H5Pclose (access);
    own_class = H5Eregister_class ("mine", "mine", "1");
    own_stack = H5Ecreate_stack ();
    message = H5Ecreate_msg (own_class, H5E_MAJOR, "of my own");
    H5Epush2 (own_stack, __FILE__, __func__, __LINE__, own_class, message, message, "one");
    H5Epush2 (own_stack, __FILE__, __func__, __LINE__, own_class, message, message, "two");
    H5Eclose_msg (message);
    H5Eset_auto2 (H5E_DEFAULT, tell, &cookie);
}

/* Writes this rank's row, or reads it and tells whether it is that. */
static bool use_own (double value, bool writes)
{
    const hsize_t start[] = {(hsize_t) rank, 0}, count[] = {1, COUNT};
    hid_t there = H5Dget_space (own_set), here = H5Screate_simple (2, count, NULL);
    double row[COUNT];
    herr_t rc;
    bool right = true;

    H5Sselect_hyperslab (there, H5S_SELECT_SET, start, NULL, count, NULL);
    for (size_t i = 0; i < COUNT; i++)
        row[i] = writes ? value + (double) i + rank : 0;
    rc = writes ? H5Dwrite (own_set, H5T_NATIVE_DOUBLE, here, there, H5P_DEFAULT, row)
                : H5Dread (own_set, H5T_NATIVE_DOUBLE, here, there, H5P_DEFAULT, row);
    for (size_t i = 0; i < COUNT; i++)
        right = right && row[i] == value + (double) i + rank;
    H5Sclose (here);
    H5Sclose (there);
    return rc >= 0 && right;
}

/* Something fails, of which the program's handler hears and its stack keeps a note. */
static void before (void)
{
    hid_t none = H5Dopen2 (own_file, "no such data set", H5P_DEFAULT);

    noted = H5Eget_num (H5E_DEFAULT);
    told_before = told;
    CHECK (none < 0 && noted > 0 && told, "%zd notes of an error, %d times told", noted, told);
}

static void after (const char *call)
{
    H5E_auto2_t handler;
    void *data;

    CHECK (H5Eget_num (H5E_DEFAULT) == noted, "%s: %zd notes on the stack became %zd", call,
           noted, H5Eget_num (H5E_DEFAULT));
    CHECK (told == told_before, "%s: the error handler was told something", call);
    H5Eget_auto2 (H5E_DEFAULT, &handler, &data);
    CHECK (handler == tell && data == &cookie, "%s: it is another error handler", call);
    CHECK (H5Eget_num (own_stack) == 2, "%s: the program's own stack has changed", call);
    CHECK (H5Iis_valid (own_file) > 0 && H5Iis_valid (own_set) > 0 && H5Iis_valid (own_class) > 0,
           "%s: a handle is not valid any more", call);
    CHECK (H5Fget_obj_count ((hid_t) H5F_OBJ_ALL, H5F_OBJ_ALL) == open_objects,
           "%s: %zd objects are open, not %zd", call,
           H5Fget_obj_count ((hid_t) H5F_OBJ_ALL, H5F_OBJ_ALL), open_objects);
}

#define BESIDE_OK(call)  \
    do {                 \
        before ();       \
        CHECK_OK (call); \
        after (#call);   \
    } while (0)

#define BESIDE_FAILS(call, status, ...)          \
    do {                                         \
        before ();                               \
        CHECK_FAILS (call, status, __VA_ARGS__); \
        after (#call);                           \
    } while (0)

static void close_own (void)
{
    char path[1200];

    CHECK (H5Eclose_stack (own_stack) >= 0 && H5Eunregister_class (own_class) >= 0,
           "its error stack is gone");
    CHECK (H5Dclose (own_set) >= 0 && H5Fclose (own_file) >= 0, "its file does not close");
    snprintf (path, sizeof (path), "%s/../own-%d.h5", folder, rank);
#ifdef H5_HAVE_PARALLEL
    snprintf (path, sizeof (path), "%s/../own.h5", folder);
#endif
    own_file = H5Fopen (path, H5F_ACC_RDONLY, H5P_DEFAULT);
    own_set = H5Dopen2 (own_file, "x", H5P_DEFAULT);
    CHECK (use_own (5, false), "its file has other data");
    H5Dclose (own_set);
    H5Fclose (own_file);
}

/* ---- Checkpoints ---- */

static void fill (double value)
{
    for (size_t i = 0; i < COUNT; i++)
        weights[i] = value + (double) i;
    for (int i = 0; i < 10; i++)
        field[i] = value + 10 * rank + i;
}

static bool is_filled (double value)
{
    bool right = true;

    for (size_t i = 0; i < COUNT; i++)
        right = right && weights[i] == value + (double) i;
    for (int i = 0; i < 10; i++)
        right = right && field[i] == value + 10 * rank + i;
    return right;
}

static gs_ckpt_t *make_plan (void)
{
    const size_t count = COUNT, ten = 10, at = 10 * (size_t) rank, all = 10 * (size_t) size;
    gs_ckpt_t *plan;

    CHECK_OK (gs_ckpt_create (comm, folder, NULL, &plan));
    CHECK_OK (gs_ckpt_add_replicated (plan, "net/weights", 1, &count, GS_F64, weights));
    CHECK_OK (gs_ckpt_add_sharded (plan, "u", 1, &ten, &at, &all, GS_F64, field));
    CHECK_OK (gs_ckpt_set_attribute (plan, "u", "units", "m s-1"));
    return plan;
}

/* There is no room for the file that HDF5 is to make: it would not get over that. */
static void check_failure (void)
{
    struct rlimit normal, low = {1000, RLIM_INFINITY};
    gs_ckpt_t *plan = make_plan ();
    DIR *dir;
    struct dirent *entry;

    signal (SIGXFSZ, SIG_IGN);
    getrlimit (RLIMIT_FSIZE, &normal);
    low.rlim_max = normal.rlim_max;
    before ();
    setrlimit (RLIMIT_FSIZE, &low);
    CHECK_FAILS (gs_ckpt_commit (plan), GS_ERR_IO, "File too large");
    setrlimit (RLIMIT_FSIZE, &normal);
    after ("a commit that fails");
    CHECK_OK (gs_ckpt_destroy (plan));
    dir = opendir (folder);
    while (dir && (entry = readdir (dir)))
        CHECK (entry->d_name[0] == '.' && strlen (entry->d_name) < 3, "%s is left",
               entry->d_name);
    if (dir)
        closedir (dir);
}

/* The program reads the newest one itself, and keeps it open while gradsync reads it. */
static void hold_open (gs_ckpt_t *plan, int64_t step, H5F_close_degree_t degree)
{
    hid_t access = H5Pcreate (H5P_FILE_ACCESS), file, set;
    double there[COUNT];
    char path[1200];
    int64_t found;

    snprintf (path, sizeof (path), "%s/ck-%012lld.h5", folder, (long long) step);
    H5Pset_fclose_degree (access, degree);
    file = H5Fopen (path, H5F_ACC_RDONLY, access);
    set = H5Dopen2 (file, "/replicated/net/weights", H5P_DEFAULT);
    open_objects += 2;
    CHECK (H5Dread (set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, there) >= 0 &&
               !memcmp (there, weights, sizeof (there)),
           "the program reads something else");
    CHECK_OK (multi_barrier (comm));
    fill (0);
    BESIDE_OK (gs_ckpt_read (plan, GS_CKPT_LATEST, &found, NULL));
    CHECK (found == step && is_filled ((double) step),
           "close degree %d: step %lld is read, or it is wrong", (int) degree, (long long) found);
    CHECK (H5Dread (set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, there) >= 0 &&
               !memcmp (there, weights, sizeof (there)),
           "the program does not read it any more");
    CHECK (H5Dclose (set) >= 0 && H5Fclose (file) >= 0, "the checkpoint does not close");
    open_objects -= 2;
    H5Pclose (access);
}

/* Rank 0 has no descriptor for the file: that is not damage, and nothing older is taken. */
static void check_descriptors (gs_ckpt_t *plan, int64_t step)
{
    struct rlimit normal, low;
    int lowest = dup (0);
    int64_t found;

    close (lowest);
    getrlimit (RLIMIT_NOFILE, &normal);
    low = (struct rlimit){(rlim_t) lowest, normal.rlim_max};
    fill (0);
    setrlimit (RLIMIT_NOFILE, &low);
    BESIDE_FAILS (gs_ckpt_read (plan, GS_CKPT_LATEST, &found, NULL), GS_ERR_NOMEM,
                  "Too many open files");
    setrlimit (RLIMIT_NOFILE, &normal);
    CHECK (is_filled (0), "something was read");
    BESIDE_OK (gs_ckpt_read (plan, GS_CKPT_LATEST, &found, NULL));
    CHECK (found == step && is_filled ((double) step), "step %lld is read", (long long) found);
}

/* What the program calls of HDF5 while a checkpoint is written waits for nothing of gradsync: how
 * long that takes is told, and can only be judged where each rank has two cores. */
static void check_meanwhile (int64_t step)
{
    const size_t count = (size_t) 4 << 20;
    double *large = malloc (count * sizeof (*large)), longest_us[2] = {0, 0}, begin;
    long calls[2] = {0, 0};
    int64_t written = -1, found;
    gs_ckpt_t *plan;

    CHECK_OK (gs_ckpt_create (comm, folder, NULL, &plan));
    CHECK_OK (gs_ckpt_add_replicated (plan, "large", 1, &count, GS_F64, large));
    BESIDE_OK (gs_ckpt_commit (plan));
    for (size_t i = 0; i < count; i++)
        large[i] = (double) i;
    for (int writes = 0; writes < 2; writes++) {
        if (writes)
            BESIDE_OK (gs_ckpt_write_async (plan, step, NULL, NULL));
        while (writes ? written < 0 : calls[0] < 100) {
            begin = multi_seconds ();
            CHECK (use_own ((double) calls[writes]++, true), "its file cannot be written to");
            begin = 1e6 * (multi_seconds () - begin);
            longest_us[writes] = begin > longest_us[writes] ? begin : longest_us[writes];
            if (writes)
                CHECK_OK (gs_ckpt_test (plan, &written, NULL));
        }
        CHECK (use_own ((double) (calls[writes] - 1), false), "its data have changed");
    }
    memset (large, 0, count * sizeof (*large));
    BESIDE_OK (gs_ckpt_read (plan, step, &found, NULL));
    CHECK (found == step && large[count - 1] == (double) (count - 1), "it is not what was saved");
    BESIDE_OK (gs_ckpt_destroy (plan));
    free (large);
    printf ("rank %d: %ld rows by HDF5 during a write, the longest took %.0f us; %ld before it, "
            "%.0f us\n",
            rank, calls[1], longest_us[1], calls[0], longest_us[0]);
}

static void run (void)
{
    int64_t steps[4], found;
    size_t number = 0;
    gs_ckpt_t *plan;

    open_objects = H5Fget_obj_count ((hid_t) H5F_OBJ_ALL, H5F_OBJ_ALL);
    check_failure ();
    plan = make_plan ();
    BESIDE_OK (gs_ckpt_commit (plan));
    for (int64_t step = 1; step <= 3; step++) {
        CHECK (use_own ((double) step, true), "its file cannot be written to");
        fill ((double) step);
        BESIDE_OK (gs_ckpt_write (plan, step, NULL));
        fill (0);
        BESIDE_OK (gs_ckpt_read (plan, step, &found, NULL));
        CHECK (found == step && is_filled ((double) step), "step %lld is wrong",
               (long long) step);
        CHECK (use_own ((double) step, false), "its data have changed");
    }
    BESIDE_OK (gs_ckpt_list (plan, steps, 4, &number));
    CHECK (number == 3, "%zu steps", number);
    BESIDE_FAILS (gs_ckpt_read (plan, 9, &found, NULL), GS_ERR_IO, "000009.h5");
    check_descriptors (plan, 3);
    hold_open (plan, 3, H5F_CLOSE_DEFAULT);
    hold_open (plan, 3, H5F_CLOSE_SEMI);
    hold_open (plan, 3, H5F_CLOSE_STRONG);
    BESIDE_OK (gs_ckpt_destroy (plan));
    check_meanwhile (4);
    CHECK (use_own (5, true), "its file cannot be written to");
}

#ifdef H5_HAVE_PARALLEL
/* How many different libraries of HDF5 are in this process. */
static int libraries (void)
{
    FILE *file = fopen ("/proc/self/maps", "r");
    char line[1200], seen[4][1200] = {""};
    int number = 0;

    while (file && fgets (line, sizeof (line), file)) {
        const char *name = strstr (line, "/libhdf5");
        bool known = !name || strstr (name, "_hl");
        for (int i = 0; i < number && !known; i++)
            known = !strcmp (seen[i], name);
        if (!known && number < 4)
            strcpy (seen[number++], name);
    }
    if (file)
        fclose (file);
    return number;
}
#endif

int main (void)
{
    const char *tmp = getenv ("TMPDIR");
    gs_ckpt_t *plan;

    if (gs_ckpt_create (NULL, "x", NULL, &plan) == GS_ERR_UNSUPPORTED) {
        printf ("skip: this build has no HDF5\n");
        return 77;
    }
#ifdef H5_HAVE_PARALLEL
    int level;
    MPI_Init_thread (NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    CHECK (libraries () == 2, "%d libraries of HDF5 are in this process", libraries ());
#endif
    comm = multi_create (NULL);
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    snprintf (folder, sizeof (folder), "%s/checkpoints", tmp ? tmp : "/tmp");
    CHECK (rank || !mkdir (folder, 0777) || errno == EEXIST, "cannot make %s", folder);
    CHECK_OK (multi_barrier (comm));
    open_own ();
    run ();
    close_own ();
    CHECK_OK (gs_comm_destroy (comm));
#ifdef H5_HAVE_PARALLEL
    MPI_Finalize ();
#endif
    return multi_end ("the program's own HDF5 is left alone");
}

#else

int main (void)
{
    printf ("skip: no HDF5, or no parallel one of this MPI (Debian: libhdf5-openmpi-dev)\n");
    return 77;
}

#endif
