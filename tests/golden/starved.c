/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * starved - the program of memory.sh: reads the golden file of a folder while an allocation of
 * HDF5's fails, by the preloaded starve.so, in a process for each of them. The read goes well, or
 * it is GS_ERR_NOMEM; the file is never called damaged. N.B. HDF5 1.10 ends the process, or
 * crashes, where it has no memory for an id or its caches: that is left to it.
 *
 *   starved.mt DIR STEP EVERY   each allocation, or one of EVERY
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <sys/wait.h>

#include "../multi/multi.h"
#include "../multi/starve.h"

enum { FINE, WRONG, PAST_THE_LAST, LEFT_TO_HDF5 = 255 };

/* Whether HDF5 1.10 was copying a text there, which it does not miss afterwards. */
static bool is_copy_of_text (const char *where)
{
    char *copy = dlsym (RTLD_DEFAULT, "H5MM_xstrdup");
    const char *at = strrchr (where, '+');
    Dl_info info;
    long offset;

    if (!copy || !at || !dladdr (copy, &info))
        return false;
    offset = strtol (at + 1, NULL, 16) - (copy - (char *) info.dli_fbase);
    return offset >= 0 && offset < 256;
}

static int read_at (const struct starve *starve, const char *dir, int64_t wanted, long place)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    gs_comm_t *comm = multi_create (NULL);
    int64_t step = 0, state, found = -1;
    gs_ckpt_t *plan;
    gs_status_t st;
    char where[300];

    opts.read_only = opts.allow_extra = 1;
    if (gs_ckpt_create (comm, dir, &opts, &plan) ||
        gs_ckpt_add_replicated (plan, "step", 0, NULL, GS_I64, &step) || gs_ckpt_commit (plan) ||
        gs_ckpt_read (plan, wanted, NULL, NULL)) {
        printf ("FAIL: with memory for all: %s\n", gs_last_error ());
        return WRONG;
    }
    state = step;
    step = 0;
    starve->begin (place, false);
    st = gs_ckpt_read (plan, GS_CKPT_LATEST, &found, NULL);
    starve->end (where, sizeof (where));
    if (st == GS_ERR_FORMAT && is_copy_of_text (where))
        return LEFT_TO_HDF5;
    if (st ? st != GS_ERR_NOMEM : found != wanted || step != state) {
        printf ("FAIL: without allocation %ld of HDF5 (%s): %s, step %lld: %s\n", place, where,
                gs_status_string (st), (long long) found, gs_last_error ());
        return WRONG;
    }
    return *where ? FINE : PAST_THE_LAST;
}

/* Whose crash it is: of the innermost frame that is neither ours nor the C library's. */
static void on_crash (int number)
{
    void *frames[64];
    int count = backtrace (frames, 64);
    Dl_info info;

    for (int i = 0; i < count; i++)
        if (dladdr (frames[i], &info) && info.dli_fname && strstr (info.dli_fname, "/libhdf5"))
            _exit (LEFT_TO_HDF5);
        else if (strstr (info.dli_fname ? info.dli_fname : "", "gradsync"))
            break;
    printf ("FAIL: signal %d\n", number);
    fflush (stdout);
    _exit (WRONG);
}

/* What became of that in a process of its own. */
static int tried (const struct starve *starve, char **argv, long place)
{
    int status = 0;
    pid_t child;

    fflush (stdout);
    if (!(child = fork ())) {
        signal (SIGSEGV, on_crash);
        signal (SIGABRT, on_crash);
        status = read_at (starve, argv[1], atoll (argv[2]), place);
        fflush (stdout);
        _exit (status);
    }
    if (child < 0 || waitpid (child, &status, 0) != child || !WIFEXITED (status))
        return WRONG;
    return WEXITSTATUS (status);
}

int main (int argc, char **argv)
{
    const struct starve *starve = dlsym (RTLD_DEFAULT, STARVE);
    int counts[3] = {0}, ended = 0, came = FINE;

    if (argc != 4 || !starve)
        return 2;
    for (long place = 1; came != PAST_THE_LAST && counts[WRONG] < 20; place += atol (argv[3])) {
        came = tried (starve, argv, place);
        if (came == LEFT_TO_HDF5)
            ended++;
        else
            counts[came < PAST_THE_LAST ? came : PAST_THE_LAST]++;
    }
    printf ("%d reads without an allocation: %d right, %d wrong, %d where HDF5 fails itself\n",
            counts[FINE] + counts[WRONG] + ended, counts[FINE], counts[WRONG], ended);
    return counts[WRONG] || counts[FINE] < 3;
}
