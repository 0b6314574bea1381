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

#include "base/printable.h"
#include "ckpt/format/reader.h"
#include "tools/ckpt_vtk.h"

#define EXIT_USAGE 2

static const char help[] =
    "Usage: gs-ckpt list FOLDER\n"
    "       gs-ckpt info FILE...\n"
    "       gs-ckpt verify FILE...\n"
    "       gs-ckpt diff [--tolerance T] FILE FILE\n"
    "       gs-ckpt flatten [-o FILE] [--force] FOLDER\n"
    "       gs-ckpt vtk [-o FILE] [--field NAME]... [--origin X,Y[,Z]] [--spacing X,Y[,Z]]\n"
    "                   [--cells] [--force] FILE\n"
    "       gs-ckpt h5py FILE\n"
    "Looks at checkpoints that gradsync has written.\n"
    "\n"
    "  list        the checkpoints of a folder: step, time, ranks that wrote it, bytes\n"
    "  info        what is in one: its arrays with types, shapes, and attributes\n"
    "  verify      compares all of it with its checksums\n"
    "  diff        the arrays that differ between two\n"
    "  flatten     makes one file of a checkpoint that has one for each node\n"
    "  vtk         writes fields of it to a file that ParaView and VTK open\n"
    "  h5py        prints a program in Python that reads it\n"
    "\n"
    "A FILE may be the folder of a checkpoint with a file for each node, too.\n"
    "\n"
    "  --tolerance numbers a and b are the same if |a - b| <= T * max (|a|, |b|); default 0\n"
    "  -o FILE     what flatten makes, default FOLDER.h5; or vtk: XML if it ends in .vti, else\n"
    "              VTKHDF, default the checkpoint's name with the ending .hdf\n"
    "  --force     it takes the place of a file that is there\n"
    "  --field     this one, and others with --field again; default those on the grid of the\n"
    "              checkpoint, or all sharded ones of the usual shape\n"
    "  --origin    of the grid, x first; default the checkpoint's, or 0\n"
    "  --spacing   of its points; default the checkpoint's, or 1\n"
    "  --cells     numbers are in cells, unless the checkpoint places them\n"
    "  --help      this text\n"
    "  --version   the version\n"
    "\n"
    "Exit status: 0; 1 if a file is damaged or cannot be read or written, or if two differ; 2\n"
    "for a wrong option.\n";

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

static bool list_print_line (const char *path)
{
    struct ckpt_file f;

    if (!ckpt_file_open (path, &f))
        return false;
    printf ("%12" PRIu64 "  ", f.reader.trailer.step);
    print_time (ckpt_file_number (&f, "/gs/time"));
    printf ("  %6" PRIu64 "  %14" PRIu64 "  ", f.reader.trailer.ranks, ckpt_file_bytes (&f));
    gsi_printable_put (stdout, path);
    putchar ('\n');
    ckpt_file_close (&f);
    return true;
}

/* A file ck-....h5, or a folder ck-STEP or ck-STEP.old. */
static int is_checkpoint (const struct dirent *entry)
{
    const char *name = entry->d_name, *behind;
    size_t length = strlen (name);

    if (strncmp (name, "ck-", 3) != 0 || length <= 6)
        return 0;
    behind = name + 3 + strspn (name + 3, "0123456789");
    return !strcmp (name + length - 3, ".h5") || !*behind || !strcmp (behind, ".old");
}

static int list (const char *folder)
{
    struct dirent **entry;
    int number = scandir (folder, &entry, is_checkpoint, versionsort);
    bool fine = number >= 0 || ckpt_complain ("%s: %s", folder, strerror (errno));

    if (number > 0)
        printf ("%12s  %-20s  %6s  %14s  file\n", "step", "time", "ranks", "bytes");
    for (int i = 0; i < number; i++) {
        char *path;
        if (asprintf (&path, "%s/%s", folder, entry[i]->d_name) < 0) {
            fine = false;
        } else {
            fine = list_print_line (path) && fine;
            free (path);
        }
        free (entry[i]);
    }
    if (number >= 0)
        free (entry);
    return fine ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void print_parts (const struct gsi_reader *s)
{
    printf ("  layout  %s\n", s->trailer.parts ? "node" : "single");
    for (uint64_t p = 0; p < s->trailer.parts; p++) {
        printf ("  part    " GSI_PART_NAME, (int) p);
        if (s->part[p].file_bytes)
            printf ("  %" PRIu64 " bytes\n", s->part[p].file_bytes);
        else
            printf ("  none: its node had no data\n");
    }
}

/* A line for each dimension, x first. */
static void print_grid (const struct gsi_h5_grid *grid)
{
    for (int x = 0; x < grid->dims; x++) {
        int d = grid->dims - 1 - x;
        printf ("  %-6s  %c: %" PRIu64 " points from %g by %g\n", x ? "" : "grid", "xyz"[x],
                grid -> points[d], grid -> origin[d], grid -> spacing[d]);
    }
}

static bool info (const char *path)
{
    static const char *const places[] = {"", "  at points", "  in cells"};
    struct ckpt_file f;
    char text[256];

    if (!ckpt_file_open (path, &f))
        return false;
    printf ("%s\n  step    %" PRIu64 "\n  time    ", path, f.reader.trailer.step);
    print_time (ckpt_file_number (&f, "/gs/time"));
    printf ("\n  ranks   %" PRIu64 "\n  bytes   %" PRIu64 "\n  format  %" PRIu64 "\n",
            f.reader.trailer.ranks, ckpt_file_bytes (&f), f.reader.trailer.version);
    print_parts (&f.reader);
    print_grid (&f.reader.file.grid);
    for (size_t i = 0; i < f.reader.file.sets; i++) {
        const struct gsi_h5_set *set = &f.reader.file.set[i];
        if (!strncmp (set->path, "/gs/", 4))
            continue;
        ckpt_file_describe (set, text, sizeof (text));
        printf ("  ");
        gsi_printable_put (stdout, set->path);
        printf ("  %s%s\n", text, places[set->place]);
        for (int k = 0; k < set->texts; k++) {
            printf ("      ");
            gsi_printable_put (stdout, set->text[k].name);
            printf (" = ");
            gsi_printable_put (stdout, set->text[k].text);
            putchar ('\n');
        }
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
        printf ("%s: whole, step %" PRIu64 "\n", path, f.reader.trailer.step);
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

/* FOLDER.h5, beside the folder of the file at [main_file]; to be freed. NULL: it has told why. */
static char *name_flat (const char *main_file)
{
    char *name = ckpt_file_beside (main_file, ".h5");

    if (!name && errno)
        ckpt_complain ("%s: %s", main_file, strerror (errno));
    else if (!name)
        ckpt_complain ("%s: is no folder of a checkpoint", main_file);
    return name;
}

static int flatten (const char *folder, const char *out, bool force)
{
    char *main_file = ckpt_file_main (folder), *name = NULL;
    bool fine = false;

    if (!main_file)
        ckpt_complain ("out of memory");
    else if (!out)
        out = name = name_flat (main_file);
    if (main_file && out) {
        gs_status_t st = gsi_flatten (main_file, out, force);
        fine = !st;
        if (st)
            ckpt_complain ("%s%s", gs_last_error (),
                           st == GS_ERR_STATE ? "; --force replaces it" : "");
        else
            printf ("%s\n", out);
    }
    free (main_file);
    free (name);
    return fine ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int script (const char *path)
{
    struct ckpt_file f;

    if (!ckpt_file_open (path, &f))
        return EXIT_FAILURE;
    ckpt_script_print (&f);
    ckpt_file_close (&f);
    return EXIT_SUCCESS;
}

/* ---- Words ---- */

static int each (bool (*command) (const char *path), int count, char **path)
{
    bool fine = true;

    for (int i = 0; i < count; i++)
        fine = command (path[i]) && fine;
    return fine ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* What options say. */
struct wishes {
    double tolerance;               /* -1: nothing */
    struct ckpt_vtk_request vtk;    /* and for flatten, too: output and force */
    const char *for_file, *for_vtk; /* an option that was given and is for few commands */
};

static int check_wishes (const char *command, const struct wishes *w)
{
    bool vtk = !strcmp (command, "vtk");

    if (w->tolerance >= 0 && strcmp (command, "diff"))
        return usage_error ("--tolerance", "is for diff only");
    if (w->for_vtk && !vtk)
        return usage_error (w->for_vtk, "is for vtk only");
    if (w->for_file && !vtk && strcmp (command, "flatten"))
        return usage_error (w->for_file, "is for flatten and vtk only");
    return EXIT_SUCCESS;
}

static int run_command (const char *command, int count, char **path, const struct wishes *w)
{
    int status = check_wishes (command, w);

    if (status)
        return status;
    if (!strcmp (command, "list"))
        return count == 1 ? list (path[0]) : usage_error (command, "takes one FOLDER");
    if (!strcmp (command, "info"))
        return count ? each (info, count, path) : usage_error (command, "needs a FILE");
    if (!strcmp (command, "verify"))
        return count ? each (verify, count, path) : usage_error (command, "needs a FILE");
    if (!strcmp (command, "diff"))
        return count == 2 ? diff (path, w->tolerance < 0 ? 0 : w->tolerance)
                          : usage_error (command, "takes two FILEs");
    if (!strcmp (command, "flatten"))
        return count == 1 ? flatten (path[0], w->vtk.output, w->vtk.force)
                          : usage_error (command, "takes one FOLDER");
    if (!strcmp (command, "vtk"))
        return count != 1                    ? usage_error (command, "takes one FILE")
               : ckpt_vtk (path[0], &w->vtk) ? EXIT_SUCCESS
                                             : EXIT_FAILURE;
    if (!strcmp (command, "h5py"))
        return count == 1 ? script (path[0]) : usage_error (command, "takes one FILE");
    return usage_error (command, "is not a command");
}

/* "0,0.5,1": how many numbers; 0 if they are not 2 or 3, or some not finite. */
static int read_numbers (const char *text, double number[3])
{
    char *end;
    int count = 0;

    do {
        number[count] = strtod (text, &end);
        if (end == text || !isfinite (number[count]))
            return 0;
        count++;
        text = end + 1;
    } while (*end == ',' && count < 3);
    return *end || count < 2 ? 0 : count;
}

static bool is_positive (const double *number, int count)
{
    for (int i = 0; i < count; i++)
        if (number[i] <= 0)
            return false;
    return true;
}

static int read_tolerance (const char *value, struct wishes *w)
{
    char *end;

    w->tolerance = strtod (value, &end);
    if (*end || end == value || !isfinite (w->tolerance) || w->tolerance < 0)
        return usage_error (value, "is no tolerance: a number, 0 or more");
    return EXIT_SUCCESS;
}

/* EXIT_USAGE if it is wrong. */
static int read_option (int option, const char *value, struct wishes *w)
{
    struct ckpt_vtk_request *vtk = &w->vtk;

    switch (option) {
    case 't': return read_tolerance (value, w);
    case 'o':
        vtk->output = value;
        w->for_file = "-o";
        break;
    case 'f':
        vtk->force = true;
        w->for_file = "--force";
        break;
    case 'n':
        vtk->field[vtk->fields++] = value;
        w->for_vtk = "--field";
        break;
    case 'c':
        vtk->cells = true;
        w->for_vtk = "--cells";
        break;
    case 'p':
        w->for_vtk = "--origin";
        if (!(vtk->origins = read_numbers (value, vtk->origin)))
            return usage_error (value, "is no origin: 2 or 3 numbers, x,y,z");
        break;
    default:
        w->for_vtk = "--spacing";
        vtk->spacings = read_numbers (value, vtk->spacing);
        if (!vtk->spacings || !is_positive (vtk->spacing, vtk->spacings))
            return usage_error (value, "is no spacing: 2 or 3 numbers above 0, x,y,z");
    }
    return EXIT_SUCCESS;
}

static int read_words (int argc, char **argv, struct wishes *w)
{
    static const struct option options[] = {{"tolerance", required_argument, NULL, 't'},
                                            {"force", no_argument, NULL, 'f'},
                                            {"field", required_argument, NULL, 'n'},
                                            {"origin", required_argument, NULL, 'p'},
                                            {"spacing", required_argument, NULL, 's'},
                                            {"cells", no_argument, NULL, 'c'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"version", no_argument, NULL, 'v'},
                                            {NULL, 0, NULL, 0}};
    int status, c;

    opterr = 0;
    while ((c = getopt_long (argc, argv, ":o:", options, NULL)) != -1) {
        switch (c) {
        case 'h': fputs (help, stdout); return EXIT_SUCCESS;
        case 'v': printf ("gs-ckpt (gradsync) %s\n", gs_version ()); return EXIT_SUCCESS;
        case ':': return usage_error (argv[optind - 1], "needs a value");
        case '?': return usage_error (argv[optind - 1], "is not an option");
        default:
            if ((status = read_option (c, optarg, w)))
                return status;
        }
    }
    if (optind == argc)
        return usage_error ("gs-ckpt", "needs a command");
    if (gsi_h5_present ("gs-ckpt")) {
        fprintf (stderr, "%s\n", gs_last_error ());
        return EXIT_FAILURE;
    }
    return run_command (argv[optind], argc - optind - 1, argv + optind + 1, w);
}

static int run_gs_ckpt (int argc, char **argv)
{
    struct wishes w = {.tolerance = -1,
                       .vtk = {.field = calloc ((size_t) argc, sizeof (char *))}};
    int status;

    if (!w.vtk.field) {
        ckpt_complain ("out of memory");
        return EXIT_FAILURE;
    }
    status = read_words (argc, argv, &w);
    free (w.vtk.field);
    return status;
}

int main (int argc, char **argv)
{
    int status = run_gs_ckpt (argc, argv);

    if (fflush (stdout) || ferror (stdout)) {
        perror ("gs-ckpt: cannot write");
        return EXIT_FAILURE;
    }
    return status;
}
