/* SPDX-License-Identifier: BSD-3-Clause */
/* env - the GS_* variables: checked once per create, read by typed getters. */
#include "base/env.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"

#define PREFIX    3  /* letters of "GS_" */
#define NAME_MOST 63 /* of a name that is looked at */

enum kind { TEXT, CHOICE, INT, EITHER };

static const struct variable {
    const char *name;
    enum kind kind;
    const char *standard;
    int64_t low, high;
    const char *choices;
    const char *help;
} variables[] = {
#define GSI_ENV(id, name, kind, standard, low, high, choices, help) \
    [id] = {name, kind, standard, low, high, choices, help},
#include "base/env.def"
#undef GSI_ENV
};

/* The text set in the environment; an empty variable counts as unset. */
static const char *set_text (enum gsi_env id)
{
    const char *text = getenv (variables[id].name);

    return text && *text ? text : NULL;
}

/* Index of [text] in "a|b|c", or -1. */
static int parse_choice (const char *choices, const char *text)
{
    size_t length = strlen (text);
    int index = 0;

    for (const char *c = choices; *c; index++) {
        size_t n = strcspn (c, "|");
        if (n == length && !memcmp (c, text, n))
            return index;
        c += n;
        c += *c == '|';
    }
    return -1;
}

/* A number, or for EITHER the choice it stands for. */
static bool parse_int (const struct variable *v, const char *text, int64_t *value)
{
    int index = v->kind == EITHER ? parse_choice (v->choices, text) : -1;
    char *end;

    if (index >= 0) {
        *value = -1 - index;
        return true;
    }
    errno = 0;
    *value = strtoimax (text, &end, 10);
    return !errno && end != text && !*end && *value >= v->low && *value <= v->high;
}

static gs_status_t check_one (enum gsi_env id)
{
    const struct variable *v = &variables[id];
    const char *text = set_text (id);
    int64_t value;

    if (!text)
        return GS_OK;
    if (v->kind == INT && !parse_int (v, text, &value))
        return gsi_fail (GS_ERR_ARG,
                         "%s='%.60s' is not a whole number from %" PRId64 " to %" PRId64 ": %s",
                         v->name, text, v->low, v->high, v->help);
    if (v->kind == EITHER && !parse_int (v, text, &value))
        return gsi_fail (GS_ERR_ARG,
                         "%s='%.60s' is neither one of %s nor a whole number from %" PRId64
                         " to %" PRId64,
                         v->name, text, v->choices, v->low, v->high);
    if (v->kind == CHOICE && parse_choice (v->choices, text) < 0)
        return gsi_fail (GS_ERR_ARG, "%s='%.60s' is not one of %s", v->name, text, v->choices);
    return id == GSI_ENV_DEBUG ? gsi_log_check (text) : GS_OK;
}

gs_status_t gsi_env_check (void)
{
    gs_status_t st = GS_OK;

    for (int id = 0; id < GSI_ENV_COUNT && !st; id++)
        st = check_one ((enum gsi_env) id);
    return st;
}

/* How many letters must be put in, left out or changed to make [a] into [b], [most] or more as
 * [most]; Levenshtein's recurrence, row by row. */
static int distance (const char *a, const char *b, int most)
{
    int row[NAME_MOST + 1];
    size_t width = strlen (b);

    if (strlen (a) > NAME_MOST || width > NAME_MOST)
        return most;
    for (size_t j = 0; j <= width; j++)
        row[j] = (int) j;
    for (int i = 1; a[i - 1]; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= width; j++) {
            int change = diagonal + (a[i - 1] != b[j - 1]);
            int one = 1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);
            diagonal = row[j];
            row[j] = change < one ? change : one;
        }
    }
    return row[width] < most ? row[width] : most;
}

/* How unlike they are: 0 if [known] only goes on where [name] ends, as GS_TIMEOUT_MS, 2 at most
 * if it is the other way; else as many letters. */
static int unlike (const char *name, const char *known, int most)
{
    size_t mine = strlen (name), theirs = strlen (known), length = mine < theirs ? mine : theirs;
    int letters = distance (name, known, most);

    if (length < sizeof ("GS_ABCD") - 1 || strncmp (name, known, length))
        return letters;
    return mine < theirs ? 0 : letters < 2 ? letters : 2;
}

const char *gsi_env_nearest (const char *name)
{
    const char *nearest = NULL;
    int least = 1 + (int) (strlen (name) - PREFIX) / 3; /* more than that is another word */

    for (int id = 0; id < GSI_ENV_COUNT; id++) {
        const char *known = variables[id].name;
        int d = unlike (name, known, least);
        if (!strcmp (name, known))
            return NULL;
        if (d < least) {
            least = d;
            nearest = known;
        }
    }
    return nearest;
}

void gsi_env_warn_misspelt (void)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    char name[NAME_MOST + 1];

    if (atomic_flag_test_and_set (&told))
        return;
    for (char **entry = environ; entry && *entry; entry++) {
        size_t length = strcspn (*entry, "=");
        const char *nearest;
        if (strncmp (*entry, "GS_", PREFIX) || length > NAME_MOST || length == PREFIX)
            continue;
        snprintf (name, sizeof (name), "%.*s", (int) length, *entry);
        if ((nearest = gsi_env_nearest (name)))
            gsi_log (GS_LOG_WARN, "env",
                     "the variable %s is set, which gradsync does not know: is %s meant? "
                     "gs-info lists all",
                     name, nearest);
    }
}

const char *gsi_env_name (enum gsi_env id)
{
    return variables[id].name;
}

bool gsi_env_is_set (enum gsi_env id)
{
    return set_text (id) != NULL;
}

int64_t gsi_env_int (enum gsi_env id)
{
    const struct variable *v = &variables[id];
    const char *text = set_text (id);
    int64_t value;

    if (text && parse_int (v, text, &value))
        return value;
    parse_int (v, v->standard, &value);
    return value;
}

int gsi_env_choice (enum gsi_env id)
{
    const struct variable *v = &variables[id];
    const char *text = set_text (id);
    int index = text ? parse_choice (v->choices, text) : -1;

    return index >= 0 ? index : parse_choice (v->choices, v->standard);
}

const char *gsi_env_text (enum gsi_env id)
{
    const char *text = set_text (id);

    return text ? text : variables[id].standard;
}

gs_status_t gs_setting_get (int index, gs_setting_t *setting)
{
    if (!setting)
        return gsi_fail (GS_ERR_ARG, "gs_setting_get: setting is NULL");
    if (index < 0 || index >= GSI_ENV_COUNT)
        return gsi_fail (GS_ERR_ARG, "gs_setting_get: index %d is not in 0 to %d", index,
                         GSI_ENV_COUNT - 1);
    setting->name = variables[index].name;
    setting->value = gsi_env_text ((enum gsi_env) index);
    setting->origin = set_text ((enum gsi_env) index) ? "environment" : "default";
    setting->help = variables[index].help;
    return gsi_result (GS_OK);
}
