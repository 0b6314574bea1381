/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nccl - runs the cases. "test_nccl RANKS [CASE...]" starts RANKS processes of itself for
 * each case that can have so many, and looks at how they end and what they print; "test_nccl
 * version" prints the version of the library that it runs with.
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test_nccl.h"

#define LIMIT_S 60 /* for a case; they take parts of a second, and with real GPUs some */
#define SKIPPED 77 /* status of need_gpus */

int rank, ranks;
static int wire; /* to the parent, who passes on what ranks tell */

void failed (const char *file, int line, const char *format, ...)
{
    char text[1000];
    va_list args;

    va_start (args, format);
    vsnprintf (text, sizeof (text), format, args);
    va_end (args);
    fprintf (stderr, "%s:%d: rank %d of %d: %s\n", file, line, rank, ranks, text);
    _exit (1);
}

void need_gpus (int each)
{
    int devices;

    CUDA (cudaGetDeviceCount (&devices));
    if (devices < each * ranks)
        _exit (SKIPPED);
}

/* The parent sends everything that one rank writes to all. */
void tell (int from, void *data, size_t bytes)
{
    if (rank == from && write (wire, data, bytes) != (ssize_t) bytes)
        FAIL ("cannot write to the parent");
    for (size_t done = 0; done < bytes;) {
        ssize_t n = read (wire, (char *) data + done, bytes - done);

        if (n <= 0)
            FAIL ("nothing comes from the parent");
        done += (size_t) n;
    }
}

void meet (void)
{
    char byte = 0;

    for (int i = 0; i < ranks; i++)
        tell (i, &byte, 1);
}

ncclComm_t make_comm_from (ncclUniqueId id, bool blocking)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm = NULL;

    config.blocking = blocking;
    if (blocking) {
        NCCL (ncclCommInitRankConfig (&comm, ranks, id, rank, &config));
    } else {
        GIVES (ncclInProgress, ncclCommInitRankConfig (&comm, ranks, id, rank, &config));
        CHECK (settle (comm) == ncclSuccess);
    }
    return comm;
}

ncclComm_t make_comm (bool blocking)
{
    ncclUniqueId id;

    if (rank == 0)
        NCCL (ncclGetUniqueId (&id));
    tell (0, &id, sizeof (id));
    return make_comm_from (id, blocking);
}

ncclResult_t settle (ncclComm_t comm)
{
    ncclResult_t state = ncclInProgress;

    for (;;) {
        NCCL (ncclCommGetAsyncError (comm, &state));
        if (state != ncclInProgress)
            return state;
        nanosleep (&(struct timespec){0, 1000000}, NULL);
    }
}

void end_comm (ncclComm_t comm)
{
    ncclResult_t result = ncclCommFinalize (comm);

    CHECK (result == ncclSuccess || result == ncclInProgress);
    CHECK (settle (comm) == ncclSuccess);
    NCCL (ncclCommDestroy (comm));
}

/* What a case has made; it is given back when the case is done. */
static cudaStream_t streams[64];
static void *memories[4096];
static int streams_n, memories_n;

cudaStream_t make_stream (void)
{
    CUDA (cudaStreamCreateWithFlags (&streams[streams_n], cudaStreamNonBlocking));
    return streams[streams_n++];
}

static void give_back (void)
{
    for (int i = 0; i < streams_n; i++)
        CUDA (cudaStreamDestroy (streams[i]));
    for (int i = 0; i < memories_n; i++)
        CUDA (cudaFree (memories[i]));
}

void write_device (void *device, const void *host, size_t bytes)
{
    CUDA (cudaMemcpy (device, host, bytes, cudaMemcpyHostToDevice));
    CUDA (cudaDeviceSynchronize ());
}

void *make_device (const void *host, size_t bytes)
{
    void *device;

    CUDA (cudaMalloc (&device, bytes ? bytes : 1));
    if (host) {
        write_device (device, host, bytes);
    } else {
        CUDA (cudaMemset (device, 0, bytes));
        CUDA (cudaDeviceSynchronize ());
    }
    memories[memories_n++] = device;
    return device;
}

void read_device (void *host, const void *device, size_t bytes)
{
    CUDA (cudaMemcpy (host, device, bytes, cudaMemcpyDeviceToHost));
}

static const struct test *const all[] = {data_tests, group_tests, life_tests, memory_tests,
                                         rule_tests};
#define KINDS (sizeof (all) / sizeof (all[0]))

static const struct test *find_test (const char *name)
{
    for (size_t i = 0; i < KINDS; i++)
        for (const struct test *test = all[i]; test->name; test++)
            if (strcmp (test->name, name) == 0)
                return test;
    return NULL;
}

/* A rank of the case in argv[2]. */
static int be_rank (char **argv)
{
    const struct test *test = find_test (argv[2]);
    int devices;

    rank = atoi (argv[3]);
    ranks = atoi (argv[4]);
    wire = atoi (argv[5]);
    CUDA (cudaGetDeviceCount (&devices));
    CUDA (cudaSetDevice (rank % devices));
    if (devices < ranks) /* real ones: what keeps NCCL from refusing to share them */
        setenv ("NCCL_HOSTID", argv[3], 1);
    test->run ();
    give_back ();
    return 0;
}

struct child {
    pid_t pid;
    int wire, error;
    int status;
};

/* TEST_NCCL_WRAP: a program that starts each rank, "WRAP RANK PROGRAM ARGUMENT...". */
static void become_rank (const char *test, char numbers[3][16])
{
    const char *wrap = getenv ("TEST_NCCL_WRAP");
    char self[4096] = "";

    if (readlink ("/proc/self/exe", self, sizeof (self) - 1) < 0)
        _exit (99);
    if (wrap)
        execl (wrap, wrap, numbers[0], self, "-", test, numbers[0], numbers[1], numbers[2],
               (char *) NULL);
    else
        execl (self, self, "-", test, numbers[0], numbers[1], numbers[2], (char *) NULL);
    _exit (99);
}

static void start_child (struct child *child, const struct test *test, int i, int n)
{
    int pair[2], error[2];
    char numbers[3][16];

    if (socketpair (AF_UNIX, SOCK_STREAM, 0, pair) != 0 || pipe (error) != 0)
        exit (99);
    child->pid = fork ();
    if (child->pid == 0) {
        if (test->set)
            putenv (strdup (test->set));
        snprintf (numbers[0], 16, "%d", i);
        snprintf (numbers[1], 16, "%d", n);
        snprintf (numbers[2], 16, "%d", pair[1]);
        setenv ("PMIX_RANK", numbers[0], 1); /* as SIM_FAULT knows ranks */
        dup2 (error[1], STDERR_FILENO);
        close (error[0]);
        close (error[1]);
        close (pair[0]);
        become_rank (test->name, numbers);
    }
    close (pair[1]);
    close (error[1]);
    child->wire = pair[0];
    child->error = error[0];
}

/* Passes on what one rank tells, and keeps what is written to stderr. */
static bool serve (struct child *child, int n, char *text, size_t *length, size_t room)
{
    struct pollfd wait[2 * MOST];
    bool open = false;
    char data[4096];

    for (int i = 0; i < n; i++) {
        wait[2 * i] = (struct pollfd){child[i].wire, POLLIN, 0};
        wait[2 * i + 1] = (struct pollfd){child[i].error, POLLIN, 0};
        open = open || child[i].error >= 0;
    }
    if (!open || poll (wait, (nfds_t) (2 * n), -1) < 0)
        return false;
    for (int i = 0; i < 2 * n; i++) {
        int *fd = i % 2 ? &child[i / 2].error : &child[i / 2].wire;
        ssize_t got = wait[i].revents ? read (*fd, data, sizeof (data)) : -1;

        if (!wait[i].revents)
            continue;
        if (got <= 0) {
            close (*fd);
            *fd = -1;
        } else if (i % 2) {
            size_t kept = *length + (size_t) got < room ? (size_t) got : room - *length;

            memcpy (text + *length, data, kept);
            *length += kept;
        } else {
            for (int k = 0; k < n; k++)
                if (child[k].wire >= 0)
                    (void) !send (child[k].wire, data, (size_t) got, MSG_NOSIGNAL);
        }
    }
    return true;
}

bool is_simulated (void)
{
    return dlsym (RTLD_DEFAULT, "sim_push") != NULL;
}

/* What the real libraries cannot answer: misuse, which they do not see, and faults on demand. */
static bool needs_simulation (const struct test *test)
{
    return test->status == MISUSE || (test->set && strncmp (test->set, "SIM_", 4) == 0);
}

/* Seconds for the next case: GS_TEST_SECONDS, or less, [cut] short, where TEST_NCCL_UNTIL, in
 * seconds since 1970, is when all must have ended. */
static long seconds_left (bool *cut)
{
    const char *until = getenv ("TEST_NCCL_UNTIL"), *seconds = getenv ("GS_TEST_SECONDS");
    long limit = seconds ? atol (seconds) : LIMIT_S;
    long left = until ? atol (until) - (long) time (NULL) : limit;

    *cut = left < limit / 2; /* in more than that it has to end */
    return left < limit ? left : limit;
}

static struct child child[MOST];
static int children;
static volatile sig_atomic_t expired;

static void on_alarm (int number)
{
    (void) number;
    expired = 1;
    for (int i = 0; i < children; i++)
        if (child[i].pid > 0)
            kill (child[i].pid, SIGKILL);
}

static void print_no_time (const struct test *test, int n)
{
    printf ("not run %s, %d ranks: no time left\n", test->name, n);
    fflush (stdout);
}

/* Whether the case ended as it has to. [cut]: it need not have ended within [limit]. */
static bool run_test (const struct test *test, int n, long limit, bool cut)
{
    static char text[1 << 16];
    size_t length = 0;
    bool good = true, alone = true; /* all that is not good is that they were killed */
    int skipped = 0;

    expired = 0;
    memset (child, 0, sizeof (child));
    children = n;
    for (int i = 0; i < n; i++)
        start_child (&child[i], test, i, n);
    alarm ((unsigned) limit);
    while (serve (child, n, text, &length, sizeof (text) - 1))
        continue;
    text[length] = '\0';
    for (int i = 0; i < n; i++) {
        int status = 0;

        waitpid (child[i].pid, &status, 0);
        child[i].pid = 0;
        if (child[i].wire >= 0)
            close (child[i].wire);
        skipped += WIFEXITED (status) && WEXITSTATUS (status) == SKIPPED;
        if (skipped == i + 1 || /* all so far: some alone would be wrong */
            (!skipped && WIFEXITED (status) && WEXITSTATUS (status) == test->status))
            continue;
        good = false;
        if (cut && WIFSIGNALED (status) && WTERMSIG (status) == SIGKILL)
            continue;
        alone = false;
        printf ("%s: rank %d of %d ended with %s %d, not with status %d\n", test->name, i, n,
                WIFEXITED (status) ? "status" : "signal",
                WIFEXITED (status) ? WEXITSTATUS (status) : WTERMSIG (status), test->status);
    }
    alarm (0);
    if (!good && alone && expired) {
        print_no_time (test, n);
        return true;
    }
    if (test->text && !skipped && !strstr (text, test->text)) {
        printf ("%s: nobody printed '%s'\n", test->name, test->text);
        good = false;
    }
    if (!test->text && strstr (text, "simgpu: misuse"))
        good = false;
    if (!good)
        printf ("%s", text);
    printf ("%s %s, %d ranks", good ? "ok" : "not ok", test->name, n);
    printf ("%s\n", skipped ? " # skip: needs more GPUs" : "");
    fflush (stdout);
    return good;
}

/* Whether the case is as it has to be, or cannot be tried here. */
static bool try_test (const struct test *test, int n)
{
    bool cut;
    long limit = seconds_left (&cut);

    if (needs_simulation (test) && !is_simulated ())
        return true;
    if (limit > 0)
        return run_test (test, n, limit, cut);
    print_no_time (test, n);
    return true;
}

static bool chosen (const struct test *test, int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if (strcmp (argv[i], test->name) == 0)
            return true;
    return argc == 2;
}

static int print_version (void)
{
    int version;

    NCCL (ncclGetVersion (&version));
    printf ("%d.%d.%d\n", version / 10000, version / 100 % 100, version % 100);
    return 0;
}

int main (int argc, char **argv)
{
    int n = argc > 1 ? atoi (argv[1]) : 0, bad = 0;

    if (argc == 6 && strcmp (argv[1], "-") == 0)
        return be_rank (argv);
    if (argc == 2 && strcmp (argv[1], "version") == 0)
        return print_version ();
    if (n < 1 || n > MOST) {
        fprintf (stderr, "usage: test_nccl RANKS [CASE...] | version\n");
        return 2;
    }
    signal (SIGALRM, on_alarm);
    for (size_t i = 0; i < KINDS; i++)
        for (const struct test *test = all[i]; test->name; test++)
            if (chosen (test, argc, argv) && n >= test->least &&
                (test->most == 0 || n <= test->most))
                bad += !try_test (test, n);
    return bad > 0;
}
