/* SPDX-License-Identifier: BSD-3-Clause */
/* names - names in the folder of checkpoints. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "ckpt/format/file.h"
#include "ckpt/folder/store.h"

#define ID_LENGTH 16 /* of a lock */

struct gsi_path gsi_store_path (const gs_ckpt_t *c, int64_t step, const char *end)
{
    struct gsi_path path;

    snprintf (path.text, sizeof (path.text), "%s/ck-%012" PRId64 "%s", c->dir, step, end);
    return path;
}

const char *gsi_store_end_of (const gs_ckpt_t *c)
{
    return c->nodes ? "" : ".h5";
}

struct gsi_path gsi_store_coming (const gs_ckpt_t *c, int64_t step, enum gsi_store_what what)
{
    char end[96];
    int used =
        snprintf (end, sizeof (end), "%s.%s" GSI_COMING, gsi_store_end_of (c), c->coming.id);
    size_t room = sizeof (end) - (size_t) used;

    if (c->nodes && what == GSI_STORE_SEALED)
        snprintf (end + used, room, "/" GSI_SEALED);
    if (c->nodes && what == GSI_STORE_PART)
        snprintf (end + used, room, "/" GSI_PART_NAME, c->node);
    return gsi_store_path (c, step, end);
}

struct gsi_path gsi_store_find (const gs_ckpt_t *c, int64_t step)
{
    /* A folder may have lost its index: by its own name then. */
    static const char *const ends[][2] = {{".h5", ".h5"},
                                          {"/" GSI_SEALED, "/" GSI_SEALED},
                                          {GSI_OLD "/" GSI_SEALED, GSI_OLD "/" GSI_SEALED},
                                          {GSI_OLD, GSI_OLD "/" GSI_SEALED},
                                          {"", "/" GSI_SEALED}};

    for (size_t i = 0; i < sizeof (ends) / sizeof (*ends); i++)
        if (!access (gsi_store_path (c, step, ends[i][0]).text, F_OK))
            return gsi_store_path (c, step, ends[i][1]);
    return gsi_store_path (c, step, ".h5");
}

/* Whether a name has this behind the step: it is not complete, or not to stay. An id may be
 * missing, as it once was. */
static bool is_coming (const char *end)
{
    int length = 0;

    if (sscanf (end, ".gone%*1[0-9]%n", &length) == 0 && length)
        return !strcmp (end + length, GSI_COMING);
    end += strncmp (end, ".h5", 3) ? 0 : 3;
    if (*end == '.' && strspn (end + 1, "0123456789abcdef") == ID_LENGTH)
        end += 1 + ID_LENGTH;
    return !strcmp (end, GSI_COMING);
}

int64_t gsi_store_step_of (const char *name, bool *coming)
{
    char again[64];
    int64_t step;

    if (sscanf (name, "ck-%" SCNd64, &step) != 1 || step < 0)
        return -1;
    snprintf (again, sizeof (again), "ck-%012" PRId64, step);
    if (strncmp (name, again, strlen (again)) != 0)
        return -1;
    name += strlen (again);
    *coming = is_coming (name);
    return *coming || !*name || !strcmp (name, ".h5") || !strcmp (name, GSI_OLD) ? step : -1;
}

static int by_step (const void *a, const void *b)
{
    int64_t x = *(const int64_t *) a, y = *(const int64_t *) b;

    return (x > y) - (x < y);
}

/* Those that are wanted, each once. */
static size_t sort (int64_t *steps, size_t number)
{
    size_t kept = 0;

    if (number)
        qsort (steps, number, sizeof (*steps), by_step);
    for (size_t i = 0; i < number; i++)
        if (!kept || steps[kept - 1] != steps[i])
            steps[kept++] = steps[i];
    return kept;
}

gs_status_t gsi_store_list (const gs_ckpt_t *c, int64_t **steps, size_t *number)
{
    DIR *dir = opendir (c->dir);
    size_t room = 0;
    struct dirent *entry;
    int64_t *larger;
    bool coming = false;

    *steps = NULL;
    *number = 0;
    if (!dir)
        return gsi_file_unread (c->dir);
    while ((errno = 0, entry = readdir (dir))) {
        int64_t step = gsi_store_step_of (entry->d_name, &coming);
        if (step < 0 || coming)
            continue;
        if (*number == room) {
            room = room ? 2 * room : 64;
            if (!(larger = realloc (*steps, room * sizeof (**steps))))
                break;
            *steps = larger;
        }
        (*steps)[(*number)++] = step;
    }
    if (entry || errno) {
        gs_status_t st = entry ? gsi_fail (GS_ERR_NOMEM, "%s: no memory for its list", c->dir)
                               : gsi_file_fail (c->dir, "readdir");
        closedir (dir);
        free (*steps);
        *steps = NULL;
        return st;
    }
    closedir (dir);
    *number = sort (*steps, *number);
    return GS_OK;
}
