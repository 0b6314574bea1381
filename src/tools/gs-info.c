/* SPDX-License-Identifier: BSD-3-Clause */
/* gs-info - tells what this gradsync is, how it is set and which way data goes; prints records.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "gradsync.h"
#include "tools/info.h"
#include "tools/json.h"
#include "tools/setting.h"

#define EXIT_USAGE 2

extern char **environ;

static const char help[] =
    "Usage: gs-info [--json]\n"
    "       gs-info --hosts LAYOUT\n"
    "       gs-info --layout LAYOUT [--json]\n"
    "       gs-info --nccl\n"
    "       gs-info --record FILE...\n"
    "Tells the version of gradsync, what was built in, and every GS_* variable as it is set in\n"
    "this environment; or which way data goes between hosts; or which way a job with GPUs takes\n"
    "and what to type for it; or prints flight records, newest operation last.\n"
    "\n"
    "  --json      the same as one JSON object\n"
    "  --hosts     for LAYOUT: RANKS of one node, NODESxRANKS, or RANKS+RANKS+... of each node\n"
    "  --layout    for LAYOUT: NODESxRANKSxGPUS, so many ranks and GPUs on each node\n"
    "  --nccl      what becomes of each version of NCCL, the one that is found marked\n"
    "  --record    print the flight records (gradsync-*.ring) given as FILEs\n"
    "  --help      this text\n"
    "  --version   the version\n"
    "\n"
    "Exit status: 0; 1 if a variable is not understood, a record is damaged, the module for MPI\n"
    "is not there or a job of this layout would fail; 2 for a wrong option.\n";

/*
 * The next line "name: value" of gs_build_info (): its two parts by pointer and length. Returns
 * where to go on, NULL at the end.
 */
static const char *next_fact (const char *text, int *name_length, const char **value,
                              int *value_length)
{
    size_t line = strcspn (text, "\n");
    const char *colon = memchr (text, ':', line);

    if (!colon)
        return NULL;
    *name_length = (int) (colon - text);
    *value = colon + 1 + strspn (colon + 1, " ");
    *value_length = (int) (text + line - *value);
    return text + line + (text[line] == '\n');
}

/* Whether [entry], "NAME=value", is one of the variables gradsync knows. */
static bool known (const char *entry)
{
    gs_setting_t s;

    for (int i = 0; !gs_setting_get (i, &s); i++) {
        size_t length = strlen (s.name);
        if (!strncmp (entry, s.name, length) && entry[length] == '=')
            return true;
    }
    return false;
}

/* Likely a slip of the pen, but other programs have GS_ variables too: said, not an error. */
static void print_unknown (void)
{
    for (char **e = environ; *e; e++)
        if (!strncmp (*e, "GS_", 3) && !known (*e))
            printf ("  %.*s is set, but gradsync has no such variable\n", (int) strcspn (*e, "="),
                    *e);
}

/* Setting number [index], its origin as the section on [profile] tells it; false at the end. */
static bool get_setting (int index, const char *profile, gs_setting_t *s)
{
    if (gs_setting_get (index, s))
        return false;
    if (*profile && !strcmp (s->origin, "environment") && info_profile_gave (profile, s->name))
        s->origin = "profile";
    return true;
}

/* False if the profile cannot be read. */
static bool info_print_text (void)
{
    const char *fact = gs_build_info (), *profile = setting_value ("GS_PROFILE"), *next, *value;
    int name_length, value_length;
    gs_setting_t s;

    printf ("gradsync %s\n\nBuilt in\n", gs_version ());
    while ((next = next_fact (fact, &name_length, &value, &value_length))) {
        if (strncmp (fact, "version", (size_t) name_length) != 0)
            printf ("  %-18.*s %.*s\n", name_length, fact, value_length, value);
        fact = next;
    }
    printf ("\nSettings\n");
    for (int i = 0; get_setting (i, profile, &s); i++)
        printf ("  %-18s %-12s %-12s %s\n", s.name, *s.value ? s.value : "-", s.origin, s.help);
    print_unknown ();
    printf ("\nNCCL\n");
    info_nccl_found ();
    if (!*profile)
        return true;
    printf ("\nProfile %s\n", profile);
    return info_profile (profile, false);
}

static void print_json_fact (const char *name, int name_length, const char *value,
                             int value_length)
{
    char text[512];

    snprintf (text, sizeof (text), "%.*s", name_length, name);
    json_string (stdout, text);
    fputc (':', stdout);
    snprintf (text, sizeof (text), "%.*s", value_length, value);
    json_string (stdout, text);
}

static bool info_print_json (void)
{
    const char *fact = gs_build_info (), *profile = setting_value ("GS_PROFILE"), *next, *value;
    bool ok = true;
    int name_length, value_length;
    gs_setting_t s;

    printf ("{\"version\":");
    json_string (stdout, gs_version ());
    printf (",\"build\":{");
    for (bool first = true; (next = next_fact (fact, &name_length, &value, &value_length));
         first = false, fact = next) {
        fputs (first ? "" : ",", stdout);
        print_json_fact (fact, name_length, value, value_length);
    }
    printf ("},\"settings\":[");
    for (int i = 0; get_setting (i, profile, &s); i++) {
        printf ("%s{\"name\":", i ? "," : "");
        json_string (stdout, s.name);
        printf (",\"value\":");
        json_string (stdout, s.value);
        printf (",\"origin\":");
        json_string (stdout, s.origin);
        printf (",\"help\":");
        json_string (stdout, s.help);
        fputc ('}', stdout);
    }
    if (*profile) {
        printf ("],\"profile\":[");
        ok = info_profile (profile, true);
    }
    printf ("]}\n");
    return ok;
}

static int usage_error (const char *culprit, const char *text)
{
    fprintf (stderr, "gs-info: %s: %s\nTry 'gs-info --help'.\n", culprit, text);
    return EXIT_USAGE;
}

static int print_records (int count, char **paths)
{
    bool ok = true;

    if (!count)
        return usage_error ("--record", "needs at least one FILE");
    for (int i = 0; i < count; i++) {
        fputs (i ? "\n" : "", stdout);
        ok = info_record (paths[i]) && ok;
    }
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* What is asked for. */
struct query {
    bool json, record, nccl;
    const char *hosts, *layout; /* layouts, or NULL */
};

static int print_info (const struct query *w)
{
    bool ok = w->layout  ? info_layout (w->layout, w->json)
              : w->hosts ? info_hosts (w->hosts)
              : w->json  ? info_print_json ()
                         : info_print_text ();

    if (!gsi_env_check ())
        return ok ? EXIT_SUCCESS : EXIT_FAILURE;
    fprintf (stderr, "gs-info: %s\n", gs_last_error ());
    return EXIT_FAILURE;
}

/* Whether the options go together; [files] follow them. EXIT_SUCCESS if they do. */
static int check_query (const struct query *w, int files)
{
    if (w->nccl && (w->json || w->record || w->hosts || w->layout || files))
        return usage_error ("--nccl", "stands alone");
    if (w->json && (w->record || w->hosts))
        return usage_error ("--json", w->record ? "cannot be had with --record"
                                                : "cannot be had with --hosts");
    if ((w->hosts || w->layout) && w->record)
        return usage_error (w->hosts ? "--hosts" : "--layout", "cannot be had with --record");
    if (w->hosts && w->layout)
        return usage_error ("--layout", "cannot be had with --hosts");
    if (w->hosts && !info_hosts_is_layout (w->hosts))
        return usage_error (w->hosts, "is no layout of two ranks or more: give RANKS, "
                                      "NODESxRANKS or RANKS+RANKS+...");
    if (w->layout && !info_layout_is_layout (w->layout))
        return usage_error (w->layout, "is no layout: give NODESxRANKSxGPUS, such as 2x16x4, of "
                                       "up to 1024 ranks and 16 GPUs a node, and 65536 ranks");
    return EXIT_SUCCESS;
}

static int run_info (int argc, char **argv)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'},         {"hosts", required_argument, NULL, 'l'},
        {"layout", required_argument, NULL, 'g'}, {"nccl", no_argument, NULL, 'n'},
        {"record", no_argument, NULL, 'r'},       {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},      {NULL, 0, NULL, 0}};
    struct query w = {.json = false};
    int c, status;

    opterr = 0;
    while ((c = getopt_long (argc, argv, ":", options, NULL)) != -1) {
        switch (c) {
        case 'j': w.json = true; break;
        case 'l': w.hosts = optarg; break;
        case 'g': w.layout = optarg; break;
        case 'n': w.nccl = true; break;
        case 'r': w.record = true; break;
        case 'h': fputs (help, stdout); return EXIT_SUCCESS;
        case 'v': printf ("gs-info (gradsync) %s\n", gs_version ()); return EXIT_SUCCESS;
        case ':': return usage_error (argv[optind - 1], "needs a LAYOUT");
        default: return usage_error (argv[optind - 1], "is not an option");
        }
    }
    if ((status = check_query (&w, argc - optind)))
        return status;
    if (w.nccl) {
        info_nccl_table ();
        return EXIT_SUCCESS;
    }
    if (w.record)
        return print_records (argc - optind, argv + optind);
    if (optind < argc)
        return usage_error (argv[optind], "a FILE is taken with --record only");
    return print_info (&w);
}

int main (int argc, char **argv)
{
    int status = run_info (argc, argv);

    if (fflush (stdout) || ferror (stdout)) {
        perror ("gs-info: cannot write");
        return EXIT_FAILURE;
    }
    return status;
}
