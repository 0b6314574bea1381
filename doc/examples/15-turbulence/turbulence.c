/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * turbulence.c - decaying turbulence in two dimensions, that trains a closure for a coarse grid
 * while it runs; and then what the closure is good for, beside that of Smagorinsky.
 */
#include "picture.h"
#include "training.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static const char help[] =
    "usage: turbulence [option ...]\n"
    "\n"
    "Simulates decaying turbulence in two dimensions, trains a small network for what a grid "
    "that\n"
    "is four times as coarse does not see, and compares it with the closure of Smagorinsky.\n"
    "Runs on any number of ranks: start it alone, or with srun or mpirun.\n"
    "\n"
    "  --size N             cells along a side, a multiple of 4          (default 256)\n"
    "  --steps N            time steps, of the training and of the test  (default 4000)\n"
    "  --seed N             of the flow to learn from; that to test with\n"
    "                       has the next one                             (default 1)\n"
    "  --out FOLDER         for turbulence.svg and, for ParaView,\n"
    "                       fields.hdf; made if absent            (default turbulence-out)\n"
    "  --checkpoint FOLDER  save the state of the training there, in HDF5 files; the newest two\n"
    "                       stay; made if absent                         (default: not saved)\n"
    "  --every N            time steps from one to the next              (default 500)\n"
    "  --resume             go on from the newest one in FOLDER, on any number of ranks\n"
    "  --help               print this and stop\n";

double elapsed (void)
{
    static double begin;
    struct timespec now;
    double seconds;

    timespec_get (&now, TIME_UTC);
    seconds = (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
    if (begin == 0)
        begin = seconds;
    return seconds - begin;
}

/* A whole number in a range; else says what is wrong and returns -1. */
static int read_number (const char *name, const char *value, size_t lowest, size_t highest,
                        size_t *number)
{
    size_t length = strlen (value), n = 0;

    if (length >= 1 && length <= 9 && strspn (value, "0123456789") == length)
        n = strtoul (value, NULL, 10);
    else
        n = highest + 1;
    if (n < lowest || n > highest) {
        fprintf (stderr, "turbulence: %s needs a whole number from %zu to %zu, not '%s'\n", name,
                 lowest, highest, value);
        return -1;
    }
    *number = n;
    return 0;
}

static int read_path (const char *name, const char *value, const char **path)
{
    *path = value;
    if (*value && strlen (value) < 4000)
        return 0;
    fprintf (stderr, "turbulence: %s needs a path\n", name);
    return -1;
}

/* An option with a value. */
static int read_option (const char *name, const char *value, struct settings *set)
{
    size_t seed = set->seed;
    int st;

    if (!strcmp (name, "--size"))
        return read_number (name, value, 64, 8192, &set->size);
    if (!strcmp (name, "--steps"))
        return read_number (name, value, 16, 10000000, &set->steps);
    if (!strcmp (name, "--every"))
        return read_number (name, value, 1, 10000000, &set->every);
    if (!strcmp (name, "--out"))
        return read_path (name, value, &set->out);
    if (!strcmp (name, "--checkpoint"))
        return read_path (name, value, &set->checkpoint);
    if (!strcmp (name, "--seed")) {
        st = read_number (name, value, 0, 999999999, &seed);
        set->seed = (unsigned) seed;
        return st;
    }
    fprintf (stderr, "turbulence: unknown option %s\n", name);
    return -1;
}

/* Reads the command line; -1 after a message. */
static int read_options (int argc, char **argv, struct settings *set)
{
    for (int i = 1; i < argc; i++) {
        char *name = argv[i], *equals = strchr (name, '=');
        const char *value = equals ? equals + 1 : "";
        if (!strcmp (argv[i], "--help") || !strcmp (argv[i], "-h")) {
            set->help = 1;
            continue;
        }
        if (!strcmp (argv[i], "--resume")) {
            set->resume = 1;
            continue;
        }
        if (equals)
            *equals = 0;
        else if (i + 1 < argc)
            value = argv[++i];
        if (read_option (name, value, set))
            return -1;
    }
    if (set->size % FACTOR) {
        fprintf (stderr, "turbulence: --size needs a multiple of %d, not '%zu'\n", FACTOR,
                 set->size);
        return -1;
    }
    if (!set->checkpoint && (set->resume || set->every)) {
        fprintf (stderr, "turbulence: --every and --resume need --checkpoint FOLDER\n");
        return -1;
    }
    set->every = set->every ? set->every : 500;
    return 0;
}

/* A row for each closure; what the columns are is in evaluate.h. */
static void print_table (const struct results *r)
{
    printf ("\nA held-out flow for %.1f turnover times, and coarse flows beside it\n"
            "%-12s %14s %17s %17s %14s %14s\n",
            r->time[r->points - 1], "closure", "R2 of force", "correlated until", "at the end",
            "enstrophy off", "spectrum off");
    for (int k = 0; k < CLOSURES; k++)
        printf ("%-12s %14.4f %17.4f %17.4f %14.4f %14.4f\n", closure_name[k], r->force[k],
                r->kept[k], r->correlation[k][r->points - 1], r->enstrophy_error[k],
                r->spectrum_error[k]);
    printf ("\n");
}

static void print_files (const struct results *r, const char *folder)
{
    if (r->no_file)
        printf ("[%6.1f s] no file for ParaView: this gradsync has no HDF5\n", elapsed ());
    else
        printf ("[%6.1f s] for ParaView: %s/fields.hdf\n", elapsed (), folder);
    if (picture_write (folder, r))
        fprintf (stderr, "turbulence: %s/turbulence.svg: %s\n", folder, strerror (errno));
    else
        printf ("[%6.1f s] picture: %s/turbulence.svg\n", elapsed (), folder);
}

/* Rank 0 makes the folder before the work begins, and tells the others how that went. */
static gs_status_t make_folder (gs_comm_t *comm, const char *folder, int *problem)
{
    int32_t code = 0;
    gs_status_t st;

    if (gs_comm_rank (comm) == 0 && mkdir (folder, 0777) && errno != EEXIST)
        code = errno;
    st = gs_broadcast (comm, &code, 1, GS_I32, 0, NULL);
    if (!st && code && gs_comm_rank (comm) == 0)
        fprintf (stderr, "turbulence: --out %s: %s\n", folder, strerror (code));
    *problem = code;
    return st;
}

int main (int argc, char **argv)
{
    struct settings set = {.size = 256, .steps = 4000, .seed = 1, .out = "turbulence-out"};
    static struct models models;
    struct results results = {0};
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    gs_comm_t *comm;
    const char *misfit = NULL;
    int problem;

    if (read_options (argc, argv, &set))
        return 2;
    if (set.help)
        return fputs (help, stdout) < 0;
    elapsed ();
    opts.device = GS_DEVICE_HOST; /* all of this runs on the host */
    if (gs_comm_create (&opts, &comm) || make_folder (comm, set.out, &problem))
        goto fail;
    if (problem)
        return gs_comm_destroy (comm), 2;
    if (gs_comm_rank (comm) == 0)
        printf ("[%6.1f s] %d ranks, fine grid %zu x %zu, coarse %zu x %zu\n", elapsed (),
                gs_comm_size (comm), set.size, set.size, set.size / FACTOR, set.size / FACTOR);
    if (train (comm, &set, &models, &misfit))
        goto fail;
    if (misfit) {
        if (gs_comm_rank (comm) == 0)
            fprintf (stderr, "turbulence: %s %s\n", set.checkpoint, misfit);
        return gs_comm_destroy (comm), 2;
    }
    if (evaluate (comm, &set, &models, &results))
        goto fail;
    if (gs_comm_rank (comm) == 0) {
        print_table (&results);
        print_files (&results, set.out);
        printf ("Held-out R2 of the sub-grid force: network %.3f, Smagorinsky %.3f\n",
                results.force[NETWORK], results.force[SMAGORINSKY]);
    }
    results_free (&results);
    if (!gs_comm_destroy (comm))
        return 0;
fail:
    fprintf (stderr, "turbulence: %s\n", *gs_last_error () ? gs_last_error () : "no memory");
    return 1; /* the other ranks find out */
}
