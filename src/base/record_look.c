/* SPDX-License-Identifier: BSD-3-Clause */
/* record_look - what the flight records of other ranks, on this node, tell about them. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/record.h"

#define STALE_S (24 * 3600) /* somebody may still want to know what a killed job did */

/* Maps the record [path] to read; NULL if it is none, or another user's. A pipe is not waited
 * for. */
static const struct gsi_record_file *open_file (const char *path)
{
    size_t bytes = sizeof (struct gsi_record_file);
    int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct gsi_record_file *file;
    struct stat about;

    if (fd < 0)
        return NULL;
    file = fstat (fd, &about) || !S_ISREG (about.st_mode) || about.st_uid != getuid () ||
                   (size_t) about.st_size < bytes
               ? MAP_FAILED
               : mmap (NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    close (fd);
    if (file == MAP_FAILED)
        return NULL;
    if (file->magic == GSI_RECORD_MAGIC)
        return file;
    munmap (file, bytes);
    return NULL;
}

static void close_file (const struct gsi_record_file *file)
{
    munmap ((void *) (uintptr_t) file, sizeof (*file));
}

/* How long the part of a path is that all ranks of a communicator have in common; 0: no path. */
static size_t common_length (const char *path)
{
    const char *end = strrchr (path, '-');

    return end ? (size_t) (end - path) : 0;
}

bool gsi_record_peek (const struct gsi_record *record, int rank, struct gsi_record_state *state)
{
    size_t length = common_length (record->path);
    const struct gsi_record_file *file;
    char path[sizeof (record->path)];
    bool good;

    if (!length || snprintf (path, sizeof (path), "%.*s-r%d.ring", (int) length, record->path,
                             rank) >= (int) sizeof (path))
        return false;
    if (!(file = open_file (path)))
        return false;
    if ((good = file->rank == rank && file->size == record->file->size)) {
        state->verdict = (gs_status_t) __atomic_load_n (&file->verdict, __ATOMIC_ACQUIRE);
        state->missed = file->missed;
        state->culprit = file->culprit;
        state->seq = gsi_record_newest (file);
        state->last = gsi_record_load (&file->entry[state->seq & (GSI_RECORD_ENTRIES - 1)]);
        state->pid = file->pid;
        state->caller = file->caller;
        state->step = file->step;
        state->started = file->started;
        state->space = file->space;
        state->settled = __atomic_load_n (&file->settled, __ATOMIC_ACQUIRE);
    }
    close_file (file);
    return good;
}

bool gsi_record_runs (const struct gsi_record_state *state)
{
    return state->space && state->space == gsi_process_space () &&
           gsi_process_runs (state->pid, state->started);
}

bool gsi_record_ended (const struct gsi_record_state *state)
{
    return gsi_process_has_ended (state->pid, state->started, state->space);
}

bool gsi_record_died (const struct gsi_record_state *state)
{
    return !state->verdict && gsi_record_ended (state);
}

bool gsi_record_halted (const struct gsi_record_state *state)
{
    return !state->verdict && state->started && state->space == gsi_process_space () &&
           !gsi_record_runs (state);
}

/* The newest of [newest] and what fits among the entries of a kind. */
static const struct gsi_record_entry *find_newer (const struct gsi_record_file *file, bool died,
                                                  const struct gsi_record_entry *ring,
                                                  const struct gsi_record_entry *newest)
{
    for (int i = 0; i < GSI_RECORD_ENTRIES; i++) {
        const struct gsi_record_entry *e = &ring[i];
        bool fits = died ? file->verdict && e->status == file->verdict : !e->end_ns;
        if (e->seq && fits && (!newest || e->begin_ns > newest->begin_ns))
            newest = e;
    }
    return newest;
}

/*
 * The newest call of [file] that has not ended, or that the communicator has [died] of; or NULL.
 * Older ones may have ended on a GPU, where nobody has looked yet.
 */
static const struct gsi_record_entry *find_call (const struct gsi_record_file *file, bool died)
{
    return find_newer (file, died, file->message, find_newer (file, died, file->entry, NULL));
}

/* Asks each record in [folder] about [context], until one answers true. */
static bool ask_all_in (const char *folder,
                        bool (*ask) (void *context, const char *path,
                                     const struct gsi_record_file *file),
                        void *context)
{
    char path[sizeof (((struct gsi_record *) NULL)->path)], start[64];
    struct dirent *entry;
    bool answer = false;
    DIR *dir;

    if (!*folder || !(dir = opendir (folder)))
        return false;
    snprintf (start, sizeof (start), "gradsync-%ld-", (long) getuid ());
    while (!answer && (entry = readdir (dir))) {
        const struct gsi_record_file *file;
        size_t length = strlen (entry->d_name);
        if (strncmp (entry->d_name, start, strlen (start)) || length < 5 ||
            strcmp (entry->d_name + length - 5, ".ring") ||
            snprintf (path, sizeof (path), "%s/%s", folder, entry->d_name) >=
                (int) sizeof (path) ||
            !(file = open_file (path)))
            continue;
        answer = ask (context, path, file);
        close_file (file);
    }
    closedir (dir);
    return answer;
}

/* The same in the folder of [record]. */
static bool ask_all (const struct gsi_record *record,
                     bool (*ask) (void *context, const char *path,
                                  const struct gsi_record_file *file),
                     void *context)
{
    const char *slash = strrchr (record->path, '/');
    char folder[sizeof (record->path)];

    snprintf (folder, sizeof (folder), "%.*s", slash ? (int) (slash - record->path) : 0,
              record->path);
    return ask_all_in (folder, ask, context);
}

struct search {
    const struct gsi_record *record;
    int pid;
    bool died; /* calls that ended communicators are looked for */
    struct gsi_record_call *call;
    char path[sizeof (((struct gsi_record *) NULL)->path)]; /* of what was found */
};

static bool is_elsewhere (void *context, const char *path, const struct gsi_record_file *file)
{
    struct search *s = context;
    const struct gsi_record_entry *e;

    if (file->pid != s->pid || strcmp (file->host, s->record->file->host) ||
        !strncmp (path, s->record->path, common_length (s->record->path) + 1) ||
        !(e = find_call (file, s->died)))
        return false;
    s->call->seq = e->seq;
    s->call->op = e->op;
    s->call->caller = file->caller;
    memcpy (s->call->name, file->name, sizeof (s->call->name));
    s->call->name[sizeof (s->call->name) - 1] = 0;
    snprintf (s->path, sizeof (s->path), "%s", path);
    return true;
}

/* Whether [file] is this process's, of the communicator of the call, to which it has not come. */
static bool is_awaited (void *context, const char *path, const struct gsi_record_file *file)
{
    const struct search *s = context;

    return file->pid == getpid () && file->caller == gsi_record_thread () &&
           !strcmp (file->host, s->record->file->host) &&
           !strncmp (path, s->path, common_length (s->path) + 1) &&
           gsi_record_newest (file) < s->call->seq;
}

bool gsi_record_elsewhere (const struct gsi_record *record, int rank,
                           struct gsi_record_call *call)
{
    struct search search = {.record = record, .call = call};
    struct gsi_record_state state;

    if (!gsi_record_peek (record, rank, &state))
        return false;
    search.pid = state.pid;
    while (!ask_all (record, is_elsewhere, &search)) {
        if (search.died)
            return false;
        search.died = true;
    }
    call->died = search.died;
    call->awaits_us = call->caller == state.caller && !gsi_record_is_message (call->op) &&
                      ask_all (record, is_awaited, &search);
    return true;
}

/* ---- Records that were left ---- */

/* When [ring] was last written to, or [newest_ns], whichever is later. */
static int64_t last_written (const struct gsi_record_entry *ring, int64_t newest_ns)
{
    for (int i = 0; i < GSI_RECORD_ENTRIES; i++) {
        int64_t ns = ring[i].end_ns > ring[i].begin_ns ? ring[i].end_ns : ring[i].begin_ns;
        newest_ns = ns > newest_ns ? ns : newest_ns;
    }
    return newest_ns;
}

/* N.B. stores to mapped memory do not change the time of a file in /dev/shm. */
static bool is_left (const struct gsi_record_file *file, const char *host, const char *path)
{
    int64_t now_ns = gsi_wall_ns (), written_ns, offset_ns = file->wall_offset_ns;
    struct stat about;

    if (!gsi_process_has_ended (file->pid, file->started, file->space) ||
        strncmp (file->host, host, sizeof (file->host)) || lstat (path, &about) ||
        !S_ISREG (about.st_mode))
        return false;
    written_ns = last_written (file->message, last_written (file->entry, 0));
    return now_ns / GSI_NS_PER_S - about.st_mtime > STALE_S &&
           (!written_ns ||
            now_ns / GSI_NS_PER_S - (written_ns / GSI_NS_PER_S + offset_ns / GSI_NS_PER_S) >
                STALE_S);
}

static bool sweep_record (void *host, const char *path, const struct gsi_record_file *file)
{
    char text[sizeof (((struct gsi_record *) NULL)->path) + 8];

    if (!is_left (file, host, path))
        return false;
    snprintf (text, sizeof (text), "%.*s.txt", (int) (strlen (path) - strlen (".ring")), path);
    unlink (text);
    unlink (path);
    return false;
}

void gsi_record_sweep (const char *folder, const char *host)
{
    char name[GSI_RECORD_HOST];

    snprintf (name, sizeof (name), "%s", host);
    ask_all_in (folder, sweep_record, name);
}
