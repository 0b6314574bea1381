/* SPDX-License-Identifier: BSD-3-Clause */
/* ckpt_look - what is in a checkpoint; where only HDF5 can tell, in a process of its own. */
#include "tools/ckpt_look.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ckpt/format/metadata.h"

#define SECONDS 60 /* of a look that takes a moment */

static bool look_error (const char *path, const char *text, const char *reason)
{
    fprintf (stderr, "gs-ckpt: %s%s%s%s\n", path, *text ? ": " : "", text, reason);
    return false;
}

/* The child: HDF5 looks, and what it finds goes through the pipe as an index. */
static _Noreturn void look_alone (const char *path, int pipe)
{
    struct gsi_h5_file file;
    size_t bytes;
    FILE *to = fdopen (pipe, "w");
    char *index;

    alarm (SECONDS);
    if (gsi_h5_list (path, &file)) {
        look_error (gs_last_error (), "", "");
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
        while (larger && (n = read (pipe, at + *bytes, room - *bytes)) < 0 && errno == EINTR)
            ;
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

    while (waitpid (child, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFSIGNALED (status))
        return look_error (
            path,
            "HDF5 crashes over what is in it, or hangs: it is damaged, or made to do harm: ",
            strsignal (WTERMSIG (status)));
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
        return look_error (s->path, "no process to look at it: ", strerror (errno));
    if (!child) {
        close (ends[0]);
        look_alone (s->path, ends[1]);
    }
    close (ends[1]);
    index = read_all (ends[0], &bytes);
    close (ends[0]);
    fine = ended_well (s->path, child);
    if (fine && !index)
        fine = look_error (s->path, "out of memory", "");
    if (fine &&
        (gsi_index_read (s->path, index, bytes, s->seal.file_bytes, s->seal.parts, &file) ||
         gsi_reader_take (s, &file)))
        fine = look_error (gs_last_error (), "", "");
    free (index);
    return fine;
}

bool ckpt_look (struct gsi_reader *s)
{
    if (!s->seal.index_bytes)
        return look_apart (s);
    return !gsi_reader_list (s) || look_error (gs_last_error (), "", "");
}
