/* SPDX-License-Identifier: BSD-3-Clause */
/* info_profile - the settings of a site profile and what became of them. */
#include "tools/info.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/json.h"

/* Cuts [line] into name and value in place; false for a comment or an empty line. */
static bool split_line (char *line, char **value)
{
    line[strcspn (line, "\n")] = 0;
    *value = strchr (line, '=');
    if (line[strspn (line, " \t")] == '#' || !*value)
        return false;
    *(*value)++ = 0;
    return true;
}

static const char *origin_of (const char *name, const char *wanted)
{
    const char *value = getenv (name);

    return !value ? "unset" : strcmp (value, wanted) != 0 ? "environment" : "profile";
}

static void print_setting (const char *name, const char *wanted, bool json, bool first)
{
    const char *value = getenv (name), *origin = origin_of (name, wanted);

    if (!json) {
        printf ("  %-28s %-16s %s\n", name, value ? value : "-", origin);
        return;
    }
    printf ("%s{\"name\":", first ? "" : ",");
    json_string (stdout, name);
    printf (",\"value\":");
    json_string (stdout, value ? value : "");
    printf (",\"origin\":\"%s\"}", origin);
}

bool info_profile_gave (const char *path, const char *name)
{
    FILE *in = fopen (path, "r");
    char *line = NULL, *value;
    size_t room = 0;
    bool gave = false;

    while (in && !gave && getline (&line, &room, in) >= 0)
        gave = split_line (line, &value) && !strcmp (line, name) &&
               !strcmp (origin_of (name, value), "profile");
    free (line);
    if (in)
        fclose (in);
    return gave;
}

bool info_profile (const char *path, bool json)
{
    FILE *in = fopen (path, "r");
    char *line = NULL, *value;
    size_t room = 0;
    bool first = true, ok;

    if (!in) {
        fprintf (stderr, "gs-info: GS_PROFILE='%s': %s\n", path, strerror (errno));
        return false;
    }
    while (getline (&line, &room, in) >= 0) {
        if (split_line (line, &value)) {
            print_setting (line, value, json, first);
            first = false;
        }
    }
    if (!(ok = !ferror (in)))
        fprintf (stderr, "gs-info: GS_PROFILE='%s': %s\n", path, strerror (errno));
    free (line);
    fclose (in);
    return ok;
}
