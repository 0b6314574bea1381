/* SPDX-License-Identifier: BSD-3-Clause */
/* ckpt_file - a checkpoint that a tool looks at, of either layout. */
#include "tools/ckpt_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/ckpt_look.h"

#define SLOW_BLOCKS 128 /* a GiB: from here on it shows how far it is */

static bool file_error (void)
{
    fprintf (stderr, "gs-ckpt: %s\n", gs_last_error ());
    return false;
}

static bool file_no_memory (void)
{
    fprintf (stderr, "gs-ckpt: out of memory\n");
    return false;
}

/* ---- Opening ---- */

char *ckpt_file_sealed (const char *path)
{
    size_t room = strlen (path) + sizeof (GSI_INDEX_FILE) + 1;
    char *sealed = malloc (room);
    struct stat facts;

    if (sealed && !stat (path, &facts) && S_ISDIR (facts.st_mode))
        snprintf (sealed, room, "%s/%s", path, GSI_INDEX_FILE);
    else if (sealed)
        strcpy (sealed, path);
    return sealed;
}

char *ckpt_file_beside (const char *sealed, const char *ending)
{
    char *whole = realpath (sealed, NULL), *slash = whole ? strrchr (whole, '/') : NULL, *name;

    if (!whole)
        return NULL;
    if (slash == whole || strcmp (slash, "/" GSI_INDEX_FILE) != 0) {
        free (whole);
        errno = 0;
        return NULL;
    }
    *slash = 0;
    name = malloc (strlen (whole) + strlen (ending) + 1);
    if (name)
        sprintf (name, "%s%s", whole, ending);
    free (whole);
    return name;
}

static bool look_at_file (const char *sealed, struct ckpt_file *f)
{
    if (gsi_reader_open (sealed, &f->reader))
        return file_error ();
    return ckpt_look (&f->reader);
}

bool ckpt_file_open (const char *path, struct ckpt_file *f)
{
    char *sealed = ckpt_file_sealed (path);
    bool fine;

    *f = (struct ckpt_file){.path = path, .reader = {.fd = -1, .part_fd = -1}};
    fine = sealed ? look_at_file (sealed, f) : file_no_memory ();
    free (sealed);
    if (!fine)
        ckpt_file_close (f);
    return fine;
}

void ckpt_file_close (struct ckpt_file *f)
{
    gsi_reader_close (&f->reader);
}

uint64_t ckpt_file_bytes (const struct ckpt_file *f)
{
    uint64_t bytes = f->reader.seal.file_bytes;

    for (uint64_t p = 0; p < f->reader.seal.parts; p++)
        bytes += f->reader.part[p].file_bytes;
    return bytes;
}

/* ---- Its data ---- */

bool ckpt_file_read (struct ckpt_file *f, const struct gsi_h5_set *set, uint64_t at, size_t bytes,
                     void *data)
{
    return !gsi_reader_read_set (&f->reader, set, at, bytes, data) || file_error ();
}

bool ckpt_file_scan (struct ckpt_file *f, const struct gsi_h5_set *set, gsi_reader_bytes_f each,
                     void *context)
{
    void *room = malloc (GSI_BLOCK_BYTES);
    bool fine = room ? !gsi_reader_scan (&f->reader, set, room, each, context) || file_error ()
                     : file_no_memory ();

    free (room);
    return fine;
}

/* Says each thing once: what is wrong with a part is so with all of its blocks. */
static void complain_once (char *last, size_t room)
{
    if (strncmp (last, gs_last_error (), room - 1) != 0)
        file_error ();
    snprintf (last, room, "%s", gs_last_error ());
}

bool ckpt_file_verify (struct ckpt_file *f)
{
    uint64_t blocks = f->reader.seal.blocks;
    bool shown = blocks >= SLOW_BLOCKS && isatty (STDERR_FILENO), right = true;
    void *room = malloc (GSI_BLOCK_BYTES);
    char last[512] = "";

    if (!room)
        return file_no_memory ();
    for (uint64_t p = 0; p < f->reader.seal.parts; p++)
        if (gsi_reader_check_part (&f->reader, p)) {
            complain_once (last, sizeof (last));
            right = false;
        }
    for (uint64_t b = 0; b < blocks; b++) {
        if (gsi_reader_check_block (&f->reader, b, room)) {
            complain_once (last, sizeof (last));
            right = false;
        }
        if (shown)
            fprintf (stderr, "\r%s: %3d %%%s", f->path, (int) (100 * (b + 1) / blocks),
                     b + 1 == blocks ? "\n" : "");
    }
    free (room);
    return right;
}

int64_t ckpt_file_number (struct ckpt_file *f, const char *path)
{
    int64_t value = 0;

    if (gsi_reader_find (&f->reader, path) && gsi_reader_number (&f->reader, path, &value))
        file_error ();
    return value;
}

void ckpt_file_describe (const struct gsi_h5_set *set, char *text, size_t room)
{
#define NAME(NAME, name, ...) [GS_##NAME] = #name,
    static const char *const names[] = {
#define GSI_REDUCED  NAME
#define GSI_FLOATING NAME
#define GSI_INTEGER  NAME
#define GSI_COMPLEX  NAME
#include "base/dtype.def"
    };
#undef NAME
    size_t used = (size_t) snprintf (text, room, "%s", names[set->dtype]);

    for (int d = 0; d < set->dims && used + 24 < room; d++)
        used += (size_t) snprintf (text + used, room - used, "%s%" PRIu64, d ? ", " : " [",
                                   set->shape[d]);
    if (set->dims)
        snprintf (text + used, room - used, "]");
}
