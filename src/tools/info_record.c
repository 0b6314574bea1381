/* SPDX-License-Identifier: BSD-3-Clause */
/* info_record - reads a flight record that may be damaged. */
#include "tools/info.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/record.h"

/* Times beyond this (146 years) come from damage; within it two of them add without overflow. */
#define TIME_LIMIT_NS (INT64_MAX / 2)

static bool record_error (const char *path, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

static bool record_error (const char *path, const char *format, ...)
{
    va_list ap;

    fprintf (stderr, "gs-info: %s: ", path);
    va_start (ap, format);
    vfprintf (stderr, format, ap);
    va_end (ap);
    fputc ('\n', stderr);
    return false;
}

static bool sane_time (int64_t ns)
{
    return ns > -TIME_LIMIT_NS && ns < TIME_LIMIT_NS;
}

/* Reads at most one record into zeroed [file]; [got] is how many bytes there were. */
static bool read_file (const char *path, struct gsi_record_file *file, size_t *got)
{
    FILE *in = fopen (path, "rb");
    int failed;

    if (!in)
        return record_error (path, "cannot be opened: %s", strerror (errno));
    *got = fread (file, 1, sizeof (*file), in);
    failed = ferror (in) ? errno : 0;
    fclose (in);
    return !failed || record_error (path, "cannot be read: %s", strerror (failed));
}

/* Whether there is a header that tells how to read the rest. */
static bool check_header (const char *path, const struct gsi_record_file *file, size_t got)
{
    if (got < sizeof (file->magic) || file->magic != GSI_RECORD_MAGIC)
        return record_error (path, "is not a flight record (they are called gradsync-*.ring)");
    if (got < offsetof (struct gsi_record_file, entry))
        return record_error (path, "is cut off within its header, at byte %zu", got);
    if (file->header_bytes != offsetof (struct gsi_record_file, entry) ||
        file->entry_bytes != sizeof (struct gsi_record_entry) ||
        file->entries != GSI_RECORD_ENTRIES)
        return record_error (path,
                             "was written by another version of gradsync: header %" PRIu32
                             ", entry %" PRIu32 " bytes, %" PRIu32 " entries; this is %s",
                             file->header_bytes, file->entry_bytes, file->entries, gs_version ());
    return true;
}

/* Damage to the header that leaves the entries readable. */
static bool check_header_values (const char *path, struct gsi_record_file *file)
{
    bool ok = true;

    if (file->size < 1 || file->rank < 0 || file->rank >= file->size)
        ok = record_error (path, "damaged header: rank %" PRId32 " of %" PRId32, file->rank,
                           file->size);
    if (!memchr (file->name, 0, sizeof (file->name)) ||
        !memchr (file->host, 0, sizeof (file->host)))
        ok = record_error (path, "damaged header: a name without an end");
    if (!sane_time (file->wall_offset_ns)) {
        ok = record_error (path, "damaged header: no time of day; times count from 0 instead");
        file->wall_offset_ns = 0;
    }
    return ok;
}

/* Why an entry in [slot] cannot be what was recorded, or NULL. */
static const char *entry_fault (const struct gsi_record_entry *e, uint64_t slot, uint64_t last)
{
    if (e->seq % GSI_RECORD_ENTRIES != slot || last - e->seq >= GSI_RECORD_ENTRIES)
        return "a number that does not belong there";
    if (e->op <= GSI_OP_NONE || e->op >= GSI_OP_COUNT)
        return "an unknown operation";
    if (e->dtype && !gs_dtype_size ((gs_dtype_t) e->dtype))
        return "an unknown type";
    if (!sane_time (e->begin_ns) || !sane_time (e->end_ns))
        return "an impossible time";
    if (e->end_ns && e->end_ns < e->begin_ns)
        return "an end before its begin";
    return NULL;
}

/*
 * The newest number that stands where it belongs and has another close before it. A wild number
 * in one damaged entry must not make all others look out of date.
 */
static uint64_t newest (const struct gsi_record_entry *ring)
{
    uint64_t best = 0;
    int most = 0;

    for (uint64_t i = 0; i < GSI_RECORD_ENTRIES; i++) {
        uint64_t last = ring[i].seq;
        int in_window = 0;
        if (!last || last % GSI_RECORD_ENTRIES != i)
            continue;
        for (uint64_t k = 0; k < GSI_RECORD_ENTRIES; k++) {
            uint64_t seq = ring[k].seq;
            in_window += seq && seq % GSI_RECORD_ENTRIES == k && seq <= last &&
                         last - seq < GSI_RECORD_ENTRIES;
        }
        if (in_window > most || (in_window == most && last > best)) {
            most = in_window;
            best = last;
        }
    }
    return best;
}

/* Names damaged and lost entries of a kind, and clears them so that the printer skips them. */
static bool check_ring (const char *path, struct gsi_record_entry *ring, const char *kind)
{
    uint64_t last = newest (ring);
    uint64_t expected = last < GSI_RECORD_ENTRIES ? last : GSI_RECORD_ENTRIES;
    uint64_t whole = 0, damaged = 0;

    for (uint64_t slot = 0; slot < GSI_RECORD_ENTRIES; slot++) {
        struct gsi_record_entry *e = &ring[slot];
        const char *fault = e->seq ? entry_fault (e, slot, last) : NULL;
        if (fault) {
            record_error (path, "entry %" PRIu64 " (%s #%" PRIu64 ") is damaged: it has %s", slot,
                          kind, e->seq, fault);
            memset (e, 0, sizeof (*e));
            damaged++;
        }
        whole += e->seq != 0;
    }
    if (whole < expected)
        record_error (path, "%" PRIu64 " of the last %" PRIu64 " %ss are lost", expected - whole,
                      expected, kind);
    return !damaged && whole == expected;
}

static bool check_entries (const char *path, struct gsi_record_file *file, size_t got)
{
    bool ok = got == sizeof (*file);

    if (!ok)
        record_error (path, "is cut off at byte %zu of %zu", got, sizeof (*file));
    ok = check_ring (path, file->entry, "operation") && ok;
    return check_ring (path, file->message, "message") && ok;
}

static void record_print_line (void *context, const char *line)
{
    fprintf ((FILE *) context, "%s\n", line);
}

bool info_record (const char *path)
{
    struct gsi_record_file *file = calloc (1, sizeof (*file));
    size_t got = 0;
    bool ok;

    if (!file)
        return record_error (path, "no memory to read it");
    ok = read_file (path, file, &got) && check_header (path, file, got);
    if (ok) {
        ok = check_header_values (path, file);
        ok = check_entries (path, file, got) && ok;
        gsi_record_print (file, record_print_line, stdout);
    }
    free (file);
    return ok;
}
