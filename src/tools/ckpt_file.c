/* SPDX-License-Identifier: BSD-3-Clause */
/* ckpt_file - a checkpoint that a tool looks at, of either layout. */
#include "tools/ckpt_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/dims.h"
#include "base/printable.h"
#include "ckpt/format/metadata.h"

#define SECONDS     60  /* of a look of HDF5, that takes a moment */
#define SLOW_BLOCKS 128 /* a GiB: from here on it shows how far it is */

bool ckpt_complain (const char *format, ...)
{
    char *text;
    va_list args;

    va_start (args, format);
    if (vasprintf (&text, format, args) < 0)
        text = NULL;
    va_end (args);
    fputs ("gs-ckpt: ", stderr);
    gsi_printable_put (stderr, text ? text : "out of memory");
    fputc ('\n', stderr);
    free (text);
    return false;
}

bool ckpt_failed (void)
{
    return ckpt_complain ("%s", gs_last_error ());
}

/* ---- What is in it, where only HDF5 can tell ---- */

/* The child: HDF5 looks, and what it finds goes through the pipe as an index. */
static _Noreturn void look_alone (const char *path, int pipe)
{
    struct gsi_h5_file file;
    size_t bytes;
    FILE *to = fdopen (pipe, "w");
    char *index;

    alarm (SECONDS);
    if (gsi_h5_list (path, &file)) {
        ckpt_failed ();
        _exit (1);
    }
    bytes = gsi_index_write (file.set, file.sets, &file.grid, NULL);
    if (!to || !(index = malloc (bytes)))
        _exit (1);
    gsi_index_write (file.set, file.sets, &file.grid, index);
    _exit (fwrite (index, 1, bytes, to) != bytes || fflush (to));
}

/* All that comes; NULL: no memory. */
static char *read_all (int pipe, size_t *bytes)
{
    size_t room = 1 << 16;
    char *at = malloc (room), *larger = at;
    ssize_t n = 1;

    for (*bytes = 0; larger && n > 0; *bytes += n > 0 ? (size_t) n : 0) {
        if (*bytes == room && (larger = realloc (at, room *= 2)))
            at = larger;
        if (larger)
            n = TEMP_FAILURE_RETRY (read (pipe, at + *bytes, room - *bytes));
    }
    if (larger)
        return at;
    free (at);
    return NULL;
}

/* Whether the child has ended well; it has said itself what it has met. */
static bool ended_well (const char *path, pid_t child)
{
    int status;

    TEMP_FAILURE_RETRY (waitpid (child, &status, 0));
    if (WIFSIGNALED (status))
        return ckpt_complain ("%s: HDF5 crashes over what is in it, or hangs: it is damaged, or "
                              "made to do harm: %s",
                              path, strsignal (WTERMSIG (status)));
    return WIFEXITED (status) && !WEXITSTATUS (status);
}

static bool look_apart (struct gsi_reader *s)
{
    struct gsi_h5_file file;
    int ends[2];
    size_t bytes = 0;
    char *index;
    pid_t child;
    bool fine;

    fflush (NULL);
    if (pipe (ends) || (child = fork ()) < 0)
        return ckpt_complain ("%s: no process to look at it: %s", s->path, strerror (errno));
    if (!child) {
        close (ends[0]);
        look_alone (s->path, ends[1]);
    }
    close (ends[1]);
    index = read_all (ends[0], &bytes);
    close (ends[0]);
    fine = ended_well (s->path, child);
    if (fine && !index)
        fine = ckpt_complain ("%s: out of memory", s->path);
    if (fine &&
        (gsi_index_read (s->path, index, bytes, s->trailer.file_bytes, s->trailer.parts, &file) ||
         gsi_reader_take (s, &file)))
        fine = ckpt_failed ();
    free (index);
    return fine;
}

/* ---- Opening ---- */

char *ckpt_file_main (const char *path)
{
    struct stat facts;
    char *main_file;

    if (stat (path, &facts) || !S_ISDIR (facts.st_mode))
        return strdup (path);
    return asprintf (&main_file, "%s/%s", path, GSI_INDEX_FILE) < 0 ? NULL : main_file;
}

char *ckpt_file_beside (const char *main_file, const char *ending)
{
    char *whole = realpath (main_file, NULL), *slash = whole ? strrchr (whole, '/') : NULL, *name;

    if (!whole)
        return NULL;
    if (slash == whole || strcmp (slash, "/" GSI_INDEX_FILE) != 0) {
        free (whole);
        errno = 0;
        return NULL;
    }
    *slash = 0;
    if (asprintf (&name, "%s%s", whole, ending) < 0)
        name = NULL;
    free (whole);
    return name;
}

static bool look_at_file (const char *main_file, struct ckpt_file *f)
{
    struct gsi_reader *s = &f->reader;

    if (gsi_reader_open (main_file, s))
        return ckpt_failed ();
    if (!s->trailer.index_bytes)
        return look_apart (s);
    return !gsi_reader_list (s) || ckpt_failed ();
}

bool ckpt_file_open (const char *path, struct ckpt_file *f)
{
    char *main_file = ckpt_file_main (path);
    bool fine;

    *f = (struct ckpt_file){.path = path, .reader = {.fd = -1, .part_fd = -1}};
    fine = main_file ? look_at_file (main_file, f) : ckpt_complain ("out of memory");
    free (main_file);
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
    uint64_t bytes = f->reader.trailer.file_bytes;

    for (uint64_t p = 0; p < f->reader.trailer.parts; p++)
        bytes += f->reader.part[p].file_bytes;
    return bytes;
}

/* ---- Its data ---- */

bool ckpt_file_read (struct ckpt_file *f, const struct gsi_h5_set *set, uint64_t at, size_t bytes,
                     void *data)
{
    return !gsi_reader_read_set (&f->reader, set, at, bytes, data) || ckpt_failed ();
}

bool ckpt_file_scan (struct ckpt_file *f, const struct gsi_h5_set *set, gsi_reader_bytes_f each,
                     void *context)
{
    void *room = malloc (GSI_BLOCK_BYTES);
    bool fine = room ? !gsi_reader_scan (&f->reader, set, room, each, context) || ckpt_failed ()
                     : ckpt_complain ("out of memory");

    free (room);
    return fine;
}

/* Says each thing once: what is wrong with a part is so with all of its blocks. */
static void complain_once (char *last, size_t room)
{
    if (strncmp (last, gs_last_error (), room - 1) != 0)
        ckpt_failed ();
    snprintf (last, room, "%s", gs_last_error ());
}

bool ckpt_file_verify (struct ckpt_file *f)
{
    uint64_t blocks = f->reader.trailer.blocks;
    bool shown = blocks >= SLOW_BLOCKS && isatty (STDERR_FILENO), right = true;
    void *room = malloc (GSI_BLOCK_BYTES);
    char last[512] = "";

    if (!room)
        return ckpt_complain ("out of memory");
    for (uint64_t p = 0; p < f->reader.trailer.parts; p++)
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
        ckpt_failed ();
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
    char shape[24 * GSI_H5_DIMS_MAX];

    gsi_dims_write (set->shape, set->dims, ", ", shape, sizeof (shape));
    snprintf (text, room, "%s%s%s%s", names[set->dtype], set->dims ? " [" : "", shape,
              set->dims ? "]" : "");
}
