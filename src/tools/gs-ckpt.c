/* SPDX-License-Identifier: BSD-3-Clause */
/* gs-ckpt - looks at checkpoints: which there are, what is in them, whether they are whole. */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/ckpt_diff.h"

#define EXIT_USAGE 2

static const char help[] =
    "Usage: gs-ckpt list FOLDER\n"
    "       gs-ckpt info FILE...\n"
    "       gs-ckpt verify FILE...\n"
    "       gs-ckpt diff [--tolerance T] FILE FILE\n"
    "Looks at checkpoints that gradsync has written.\n"
    "\n"
    "  list        the checkpoints of a folder: step, time, ranks that wrote it, bytes\n"
    "  info        what is in one: its arrays with types, shapes, and attributes\n"
    "  verify      compares all of it with its checksums\n"
    "  diff        the arrays that differ between two\n"
    "\n"
    "  --tolerance numbers a and b are the same if |a - b| <= T * max (|a|, |b|); default 0\n"
    "  --help      this text\n"
    "  --version   the version\n"
    "\n"
    "Exit status: 0; 1 if a file is damaged or cannot be read, or if two differ; 2 for a wrong\n"
    "option.\n";

static int usage_error (const char *culprit, const char *text)
{
    fprintf (stderr, "gs-ckpt: %s: %s\nTry 'gs-ckpt --help'.\n", culprit, text);
    return EXIT_USAGE;
}

/* ---- Commands ---- */

static void print_time (int64_t ns)
{
    time_t seconds = (time_t) (ns / 1000000000);
    struct tm parts;
    char text[40] = "?";

    if (gmtime_r (&seconds, &parts))
        strftime (text, sizeof (text), "%Y-%m-%dT%H:%M:%SZ", &parts);
    fputs (text, stdout);
}

static bool print_line (const char *path)
{
    struct ckpt_file f;

    if (!ckpt_file_open (path, &f))
        return false;
    printf ("%12" PRIu64 "  ", f.seal.step);
    print_time (ckpt_file_number (&f, "/gs/time"));
    printf ("  %6" PRIu64 "  %14" PRIu64 "  %s\n", f.seal.ranks, f.seal.file_bytes, path);
    ckpt_file_close (&f);
    return true;
}

static int is_checkpoint (const struct dirent *entry)
{
    size_t length = strlen (entry->d_name);

    return !strncmp (entry->d_name, "ck-", 3) && length > 6 &&
           !strcmp (entry->d_name + length - 3, ".h5");
}

static int list (const char *folder)
{
    struct dirent **entry;
    int number = scandir (folder, &entry, is_checkpoint, versionsort);
    bool fine = number >= 0;

    if (!fine)
        fprintf (stderr, "gs-ckpt: %s: %s\n", folder, strerror (errno));
    if (number > 0)
        printf ("%12s  %-20s  %6s  %14s  file\n", "step", "time", "ranks", "bytes");
    for (int i = 0; i < number; i++) {
        char *path = malloc (strlen (folder) + strlen (entry[i]->d_name) + 2);
        if (path) {
            sprintf (path, "%s/%s", folder, entry[i]->d_name);
            fine = print_line (path) && fine;
        }
        fine = fine && path;
        free (path);
        free (entry[i]);
    }
    if (number >= 0)
        free (entry);
    return fine ? EXIT_SUCCESS : EXIT_FAILURE;
}

static bool info (const char *path)
{
    struct ckpt_file f;
    char text[256];

    if (!ckpt_file_open (path, &f))
        return false;
    printf ("%s\n  step    %" PRIu64 "\n  time    ", path, f.seal.step);
    print_time (ckpt_file_number (&f, "/gs/time"));
    printf ("\n  ranks   %" PRIu64 "\n  bytes   %" PRIu64 "\n  format  %" PRIu64 "\n",
            f.seal.ranks, f.seal.file_bytes, f.seal.version);
    for (size_t i = 0; i < f.h5.sets; i++) {
        const struct gsi_h5_set *set = &f.h5.set[i];
        if (!strncmp (set->path, "/gs/", 4))
            continue;
        ckpt_file_describe (set, text, sizeof (text));
        printf ("  %s  %s\n", set->path, text);
        for (int k = 0; k < set->texts; k++)
            printf ("      %s = %s\n", set->text[k].name, set->text[k].text);
    }
    ckpt_file_close (&f);
    return true;
}

static bool verify (const char *path)
{
    struct ckpt_file f;
    bool right;

    if (!ckpt_file_open (path, &f))
        return false;
    if ((right = ckpt_file_verify (&f)))
        printf ("%s: whole, step %" PRIu64 "\n", path, f.seal.step);
    ckpt_file_close (&f);
    return right;
}

static int diff (char **path, double tolerance)
{
    struct ckpt_file a, b;
    int number = -1;

    if (ckpt_file_open (path[0], &a)) {
        if (ckpt_file_open (path[1], &b)) {
            number = ckpt_diff (&a, &b, tolerance);
            ckpt_file_close (&b);
        }
        ckpt_file_close (&a);
    }
    return number ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- Words ---- */

static int each (bool (*command) (const char *path), int count, char **path)
{
    bool fine = true;

    for (int i = 0; i < count; i++)
        fine = command (path[i]) && fine;
    return fine ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int run_command (const char *command, int count, char **path, double tolerance)
{
    if (tolerance >= 0 && strcmp (command, "diff"))
        return usage_error ("--tolerance", "is for diff only");
    if (!strcmp (command, "list"))
        return count == 1 ? list (path[0]) : usage_error (command, "takes one FOLDER");
    if (!strcmp (command, "info"))
        return count ? each (info, count, path) : usage_error (command, "needs a FILE");
    if (!strcmp (command, "verify"))
        return count ? each (verify, count, path) : usage_error (command, "needs a FILE");
    if (!strcmp (command, "diff"))
        return count == 2 ? diff (path, tolerance < 0 ? 0 : tolerance)
                          : usage_error (command, "takes two FILEs");
    return usage_error (command, "is not a command");
}

static int run (int argc, char **argv)
{
    static const struct option options[] = {{"tolerance", required_argument, NULL, 't'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"version", no_argument, NULL, 'v'},
                                            {NULL, 0, NULL, 0}};
    double tolerance = -1;
    char *end;
    int c;

    opterr = 0;
    while ((c = getopt_long (argc, argv, ":", options, NULL)) != -1) {
        switch (c) {
        case 't':
            tolerance = strtod (optarg, &end);
            if (*end || end == optarg || !isfinite (tolerance) || tolerance < 0)
                return usage_error (optarg, "is no tolerance: a number, 0 or more");
            break;
        case 'h': fputs (help, stdout); return EXIT_SUCCESS;
        case 'v': printf ("gs-ckpt (gradsync) %s\n", gs_version ()); return EXIT_SUCCESS;
        case ':': return usage_error (argv[optind - 1], "needs a number");
        default: return usage_error (argv[optind - 1], "is not an option");
        }
    }
    if (optind == argc)
        return usage_error ("gs-ckpt", "needs a command");
    if (gsi_h5_present ("gs-ckpt")) {
        fprintf (stderr, "%s\n", gs_last_error ());
        return EXIT_FAILURE;
    }
    return run_command (argv[optind], argc - optind - 1, argv + optind + 1, tolerance);
}

int main (int argc, char **argv)
{
    int status = run (argc, argv);

    if (fflush (stdout) || ferror (stdout)) {
        perror ("gs-ckpt: cannot write");
        return EXIT_FAILURE;
    }
    return status;
}
