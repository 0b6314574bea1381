/* SPDX-License-Identifier: BSD-3-Clause */
/* record - the flight record: the last operations of one communicator on one rank. */
#include "base/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/dtype.h"
#include "base/env.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/proc.h"
#include "base/status.h"

#define SHOWN_ENTRIES 32 /* newest entries in a text; the ring holds more */
#define NAME_FORMAT   "%s/gradsync-%ld-%s-%s.%d-r%d.ring"
#define OWN_FOLDER    "gs-records." /* of one step, as gs-run names it: goes when it is empty */
#define TRIES         8             /* to make a file while others of the node end */

static const char *const op_names[GSI_OP_COUNT] = {
#define GSI_RECORD_OP(NAME, name, value) [value] = #name,
#include "base/record_ops.def"
};

const char *gsi_record_op_name (int op)
{
    return op >= 0 && op < GSI_OP_COUNT ? op_names[op] : "unknown";
}

/* The folder of records: GS_RECORD_DIR, else the first of the defaults that can be written. */
static const char *folder (void)
{
    const char *setting = gsi_env_text (GSI_ENV_RECORD_DIR);
    const char *tmp = getenv ("TMPDIR");

    if (*setting)
        return setting;
    if (!access ("/dev/shm", W_OK))
        return "/dev/shm";
    return tmp && *tmp ? tmp : "/tmp";
}

/* Letters, digits, '.', '_' and '-' stay; anything else would surprise in a file name. */
static void clean_name (const char *name, char *out, size_t room)
{
    size_t i;

    for (i = 0; name[i] && i + 1 < room; i++)
        out[i] =
            strchr ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", name[i])
                ? name[i]
                : '_';
    out[i] = 0;
}

/* The folder of a record's [path]. */
static void folder_of (const char *path, char *dir, size_t room)
{
    snprintf (dir, room, "%s", path);
    *strrchr (dir, '/') = 0; /* a relative one begins with a name, see NAME_FORMAT */
}

/*
 * A new file in place of what a killed job has left, open to write; -1 with errno when that
 * fails. The folder may be everybody's, so a link that waits there is not followed. Where it is
 * one of each node it may have to be made, again if a rank that ended has just removed it.
 */
static int replace_file (const char *path)
{
    char dir[sizeof (((struct gsi_record *) NULL)->path)];
    int fd = -1;

    folder_of (path, dir, sizeof (dir));
    for (int i = 0; i < TRIES; i++) {
        if (unlink (path) && errno != ENOENT)
            return -1;
        fd = open (path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd >= 0 || errno != ENOENT || (mkdir (dir, 0700) && errno != EEXIST))
            break;
    }
    return fd;
}

/* The last rank of a step to end well leaves no folder that was made for the step. */
static void remove_own_folder (const char *path)
{
    char dir[sizeof (((struct gsi_record *) NULL)->path)];
    const char *name;

    folder_of (path, dir, sizeof (dir));
    name = strrchr (dir, '/');
    name = name ? name + 1 : dir;
    if (!strncmp (name, OWN_FOLDER, strlen (OWN_FOLDER)))
        rmdir (dir); /* fails while others have records there, or left them */
}

/* A new file of the right size, open for mapping; -1 with errno when that fails. */
static int make_record_file (const char *path)
{
    int fd = replace_file (path), saved;

    if (fd < 0)
        return -1;
    /* Allocate now: a full file system must fail here, not as SIGBUS at a later store. */
    if (!(errno = posix_fallocate (fd, 0, sizeof (struct gsi_record_file))))
        return fd;
    saved = errno;
    close (fd);
    unlink (path);
    errno = saved;
    return -1;
}

int64_t gsi_record_thread (void)
{
    return syscall (SYS_gettid); /* glibc has gettid from 2.30 on */
}

/* Maps [path], or anonymous memory when [path] is empty. NULL when that fails. */
static struct gsi_record_file *map (const char *path)
{
    size_t bytes = sizeof (struct gsi_record_file);
    int fd = -1, flags = MAP_SHARED;
    void *address;

    if (*path) {
        if ((fd = make_record_file (path)) < 0)
            return NULL;
    } else {
        flags |= MAP_ANONYMOUS;
    }
    address = mmap (NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (fd >= 0)
        close (fd);
    return address == MAP_FAILED ? NULL : address;
}

static void fill_header (struct gsi_record_file *file, const char *name, int rank, int size,
                         const char *host)
{
    bool ended;

    memset (file, 0, sizeof (*file));
    file->header_bytes = offsetof (struct gsi_record_file, entry);
    file->entry_bytes = sizeof (struct gsi_record_entry);
    file->entries = GSI_RECORD_ENTRIES;
    file->rank = rank;
    file->size = size;
    file->pid = (int32_t) getpid ();
    file->started = gsi_process_start (file->pid, &ended);
    file->space = gsi_process_space ();
    file->caller = gsi_record_thread ();
    file->wall_offset_ns = gsi_wall_ns () - gsi_now_ns ();
    snprintf (file->name, sizeof (file->name), "%s", name);
    snprintf (file->host, sizeof (file->host), "%s", host);
    file->magic = GSI_RECORD_MAGIC;
}

gs_status_t gsi_record_open (struct gsi_record *record, const char *job, const char *name,
                             int serial, int rank, int size, const char *host)
{
    static atomic_flag swept = ATOMIC_FLAG_INIT; /* by this process */
    char clean_job[128], clean[GSI_RECORD_NAME];
    int length = 0;

    memset (record, 0, sizeof (*record));
    clean_name (job, clean_job, sizeof (clean_job));
    clean_name (name, clean, sizeof (clean));
    if (!atomic_flag_test_and_set (&swept))
        gsi_record_sweep (folder (), host);
    if (gsi_env_choice (GSI_ENV_RECORD) == GSI_RECORD_FILE)
        length = snprintf (record->path, sizeof (record->path), NAME_FORMAT, folder (),
                           (long) getuid (), clean_job, clean, serial, rank);
    errno = ENAMETOOLONG; /* what is cut is another file */
    if (length < (int) sizeof (record->path) && !gsi_fault ("record.map"))
        record->file = map (record->path);
    if (!record->file && record->path[0]) {
        gsi_log (GS_LOG_WARN, "record",
                 "cannot make %.200s%s: %s; the flight record stays in "
                 "memory. Set GS_RECORD_DIR to a folder that can be written",
                 record->path, strlen (record->path) > 200 ? "..." : "", strerror (errno));
        record->path[0] = 0;
        record->file = map ("");
    }
    if (!record->file)
        return gsi_fail (GS_ERR_NOMEM, "no memory for the flight record (%zu bytes)",
                         sizeof (struct gsi_record_file));
    fill_header (record->file, name, rank, size, host);
    return GS_OK;
}

void gsi_record_close (struct gsi_record *record, int keep)
{
    if (!record->file)
        return;
    munmap (record->file, sizeof (*record->file));
    record->file = NULL;
    if (!record->path[0] || keep || gsi_env_int (GSI_ENV_RECORD_KEEP))
        return;
    unlink (record->path);
    remove_own_folder (record->path);
}

static uint64_t newest_of (const struct gsi_record_entry *ring)
{
    uint64_t last = 0;

    for (int i = 0; i < GSI_RECORD_ENTRIES; i++) {
        uint64_t seq = GSI_RECORD_GET (ring[i].seq);
        last = seq > last ? seq : last;
    }
    return last;
}

uint64_t gsi_record_newest (const struct gsi_record_file *file)
{
    return newest_of (file->entry);
}

void gsi_record_settle (struct gsi_record *record)
{
    if (record->file)
        __atomic_store_n (&record->file->settled, 1, __ATOMIC_RELEASE);
}

void gsi_record_give_up (struct gsi_record *record, gs_status_t verdict, int culprit,
                         uint64_t missed)
{
    if (!verdict || !record->file || atomic_flag_test_and_set (&record->given_up))
        return;
    record->file->missed = missed;
    record->file->culprit = culprit;
    __atomic_store_n (&record->file->verdict, (int32_t) verdict, __ATOMIC_RELEASE);
}

/* The wall time of [ns] as "12:34:56.789". */
static void format_time (const struct gsi_record_file *file, int64_t ns, char *out, size_t room)
{
    int64_t wall = (int64_t) ((uint64_t) ns + (uint64_t) file->wall_offset_ns);
    time_t seconds = (time_t) (wall / GSI_NS_PER_S);
    struct tm tm;
    char text[32];

    localtime_r (&seconds, &tm);
    strftime (text, sizeof (text), "%H:%M:%S", &tm);
    snprintf (out, room, "%s.%06" PRId64, text, wall % GSI_NS_PER_S / 1000);
}

static void print_entry (const struct gsi_record_file *file, const struct gsi_record_entry *e,
                         char *line, size_t room)
{
    char begin[64], duration[64];
    const char *type = e->dtype ? gsi_dtype_name ((gs_dtype_t) e->dtype) : "-";

    format_time (file, e->begin_ns, begin, sizeof (begin));
    if (e->end_ns)
        snprintf (duration, sizeof (duration), "%.1f us  %s",
                  (double) (int64_t) ((uint64_t) e->end_ns - (uint64_t) e->begin_ns) / 1e3,
                  gs_status_string ((gs_status_t) e->status));
    else
        snprintf (duration, sizeof (duration), "NOT ENDED");
    snprintf (line, room, "#%-8" PRIu64 " %s  %-14s %-7s count %-10" PRIu64 " arg %-3d %s",
              e->seq, begin, gsi_record_op_name (e->op), type, e->count, e->argument, duration);
}

static void print_ring (const struct gsi_record_file *file, const struct gsi_record_entry *ring,
                        void (*write) (void *context, const char *line), void *context)
{
    char line[512];
    uint64_t last = newest_of (ring), shown = last < SHOWN_ENTRIES ? last : SHOWN_ENTRIES;

    for (uint64_t i = 1; i <= shown; i++) {
        uint64_t seq = last - shown + i; /* of a damaged file, as large as can be */
        struct gsi_record_entry e = gsi_record_load (&ring[seq & (GSI_RECORD_ENTRIES - 1)]);
        if (e.seq != seq)
            continue;
        print_entry (file, &e, line, sizeof (line));
        write (context, line);
    }
}

void gsi_record_print (const struct gsi_record_file *file,
                       void (*write) (void *context, const char *line), void *context)
{
    char line[512];
    uint64_t last = gsi_record_newest (file), messages = newest_of (file->message);

    snprintf (line, sizeof (line),
              "gradsync flight record: communicator %.63s, rank %d of %d, "
              "host %.71s, process %d, %" PRIu64 " operations",
              file->name, file->rank, file->size, file->host, file->pid, last);
    gsi_printable (line, sizeof (line)); /* names may come from a damaged file */
    write (context, line);
    print_ring (file, file->entry, write, context);
    if (!messages)
        return;
    snprintf (line, sizeof (line),
              "%" PRIu64 " messages or groups of them, arg: the other rank, or how many",
              messages);
    write (context, line);
    print_ring (file, file->message, write, context);
}

static void write_line (void *context, const char *line)
{
    fprintf ((FILE *) context, "%s\n", line);
}

const char *gsi_record_dump (const struct gsi_record *record, const char *reason)
{
    static _Thread_local char path[sizeof (record->path) + 8];
    FILE *out = NULL;
    int fd;

    if (!record->file || !record->path[0])
        return "";
    snprintf (path, sizeof (path), "%.*s.txt", (int) (strlen (record->path) - strlen (".ring")),
              record->path);
    if ((fd = replace_file (path)) < 0 || !(out = fdopen (fd, "w"))) {
        if (fd >= 0)
            close (fd);
        gsi_log (GS_LOG_WARN, "record", "cannot write %s: %s", path, strerror (errno));
        return "";
    }
    fprintf (out, "%s\n", reason);
    gsi_record_print (record->file, write_line, out);
    fclose (out);
    return path;
}
