/* SPDX-License-Identifier: BSD-3-Clause */
/* disk - what a disk may hold after power was lost. */
#include "disk.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STALE 0xdb

/* ---- The journal ---- */

static bool refuse (size_t entry, const char *what, const char *name)
{
    fprintf (stderr, "entry %zu of the journal: %s %s\n", entry, what, name);
    return false;
}

static char *read_all (const char *path, size_t *bytes)
{
    FILE *file = fopen (path, "r");
    char *room = NULL;
    long length;

    if (file && !fseek (file, 0, SEEK_END) && (length = ftell (file)) > 0) {
        rewind (file);
        *bytes = (size_t) length;
        room = malloc (*bytes);
        if (room && fread (room, 1, *bytes, file) != *bytes) {
            free (room);
            room = NULL;
        }
    }
    if (file)
        fclose (file);
    return room;
}

static bool read_entries (struct disk *d, size_t bytes)
{
    struct disk_entry *e;

    d->entry = calloc (bytes / sizeof (struct journal_entry) + 1, sizeof (*d->entry));
    for (size_t at = 0; at < bytes; at += sizeof (e->is) + e->is.bytes) {
        if (!d->entry || bytes - at < sizeof (e->is))
            return refuse (d->entries, "it ends in", "the middle");
        e = &d->entry[d->entries++];
        memcpy (&e->is, d->journal + at, sizeof (e->is));
        e->data = d->journal + at + sizeof (e->is);
        if (bytes - at - sizeof (e->is) < e->is.bytes)
            return refuse (d->entries, "it ends in", "the middle");
        if (e->is.kind == JOURNAL_UNKNOWN)
            return refuse (d->entries, "a call that cannot be replayed:", e->is.name);
    }
    return true;
}

/* The entry in which call [i] has returned. */
static size_t find_end (const struct disk *d, size_t i)
{
    uint64_t call = d->entry[i].is.call;

    for (i++; i < d->entries; i++)
        if (d->entry[i].is.kind == JOURNAL_END && d->entry[i].is.call == call)
            return i;
    return DISK_NEVER;
}

/* ---- What it tells ---- */

static uint32_t number_of (struct disk *d, uint32_t process)
{
    for (uint32_t i = 0; i < d->processes; i++)
        if (d->process[i] == process)
            return i;
    d->process[d->processes] = process;
    return d->processes++;
}

/* The number of a name; new ones are owned by nobody. */
static int name_of (struct disk *d, const char *name)
{
    for (int i = 0; i < d->names; i++)
        if (!strcmp (d->name[i], name))
            return i;
    strcpy (d->name[d->names], name);
    d->owner[d->names] = -1;
    return d->names++;
}

/* The file that has this inode now; -1: none. */
static int file_of (const struct disk *d, uint64_t inode)
{
    for (int i = d->files - 1; i >= 0; i--)
        if (d->file[i].inode == inode)
            return i;
    return -1;
}

static struct disk_item *add (struct disk *d, enum disk_kind kind, int file, size_t begin,
                              size_t end)
{
    struct disk_item *item = &d->item[d->items++];

    *item = (struct disk_item){.kind = kind,
                               .file = file,
                               .name = -1,
                               .gone = -1,
                               .process = number_of (d, d->entry[begin].is.process),
                               .begin = begin,
                               .end = end};
    return item;
}

static void add_length (struct disk *d, int file, uint64_t bytes, size_t begin, size_t end)
{
    add (d, DISK_LENGTH, file, begin, end)->bytes = bytes;
    d->file[file].bytes = bytes;
    d->most_bytes = bytes > d->most_bytes ? bytes : d->most_bytes;
}

static void add_name (struct disk *d, int name, int file, int gone, size_t begin, size_t end)
{
    struct disk_item *item = add (d, DISK_NAME, file, begin, end);

    item->name = name;
    item->gone = gone;
    if (gone >= 0)
        d->owner[gone] = -1;
    d->owner[name] = file;
}

static bool note_open (struct disk *d, size_t i, size_t end)
{
    const struct journal_entry *is = &d->entry[i].is;
    uint64_t inode = d->entry[end].is.file;
    int name = name_of (d, is->name), owner = d->owner[name];

    if (owner >= 0 && d->file[owner].inode != inode)
        return refuse (i, "another file has", is->name);
    if (owner < 0) {
        d->file[d->files] = (struct disk_file){.inode = inode};
        add_name (d, name, d->files++, -1, i, end);
    } else if (is->value & O_TRUNC) {
        add_length (d, owner, 0, i, end);
    }
    return true;
}

static bool note_change (struct disk *d, size_t i, size_t end)
{
    const struct journal_entry *is = &d->entry[i].is;
    uint64_t value = (uint64_t) is->value;
    int file = file_of (d, is->file);
    struct disk_item *item;

    if (file < 0)
        return refuse (i, "a file that", "the journal has not seen begin");
    if (is->kind == JOURNAL_WRITE) {
        item = add (d, DISK_DATA, file, i, end);
        item->at = value;
        item->bytes = (uint64_t) d->entry[end].is.value;
        item->data = d->entry[i].data;
        value += item->bytes;
    }
    if (is->kind == JOURNAL_LENGTH || value > d->file[file].bytes)
        add_length (d, file, value, i, end);
    return true;
}

static bool note_name (struct disk *d, size_t i, size_t end)
{
    const struct journal_entry *is = &d->entry[i].is;
    int name = name_of (d, is->name), owner = d->owner[name];

    if (owner < 0)
        return refuse (i, "nobody knows of", is->name);
    if (is->kind == JOURNAL_UNLINK)
        add_name (d, name, -1, -1, i, end);
    else
        add_name (d, name_of (d, is->to), owner, is->kind == JOURNAL_RENAME ? name : -1, i, end);
    return true;
}

static bool note_sync (struct disk *d, size_t i, size_t end)
{
    const struct journal_entry *is = &d->entry[i].is;
    struct disk_sync *s = &d->sync[d->syncs];

    *s = (struct disk_sync){
        .file = -1, .process = number_of (d, is->process), .begin = i, .end = end};
    if (is->file != JOURNAL_FOLDER) {
        if ((s->file = file_of (d, is->file)) < 0)
            return refuse (i, "a sync of a file that", "the journal has not seen begin");
        s->kind = 1;
        for (size_t k = 0; k < d->syncs; k++)
            s->kind += d->sync[k].file == s->file && d->sync[k].process == s->process;
        s->kind = s->kind < DISK_SYNC_KINDS ? s->kind : DISK_SYNC_KINDS - 1;
    }
    d->kinds = s->kind >= d->kinds ? s->kind + 1 : d->kinds;
    d->syncs++;
    return true;
}

/* Takes call [i] in; calls that have failed changed nothing. */
static bool note (struct disk *d, size_t i)
{
    enum journal_kind kind = d->entry[i].is.kind;
    size_t end;

    if (kind == JOURNAL_END || kind == JOURNAL_BEGINS || kind == JOURNAL_SAVED)
        return true;
    if ((end = find_end (d, i)) == DISK_NEVER)
        return refuse (i, "it has no", "end");
    if (d->names + 2 > DISK_NAMES_MAX || d->files == DISK_FILES_MAX ||
        d->processes == DISK_FILES_MAX)
        return refuse (i, "too many", "names, files or processes");
    if (d->entry[end].is.value < 0 || (kind == JOURNAL_RESERVE && d->entry[end].is.value))
        return true;
    switch (kind) {
    case JOURNAL_OPEN: return note_open (d, i, end);
    case JOURNAL_WRITE:
    case JOURNAL_LENGTH:
    case JOURNAL_RESERVE: return note_change (d, i, end);
    case JOURNAL_SYNC: return note_sync (d, i, end);
    default: return note_name (d, i, end);
    }
}

bool disk_load (struct disk *d, const char *path)
{
    size_t bytes = 0;

    memset (d, 0, sizeof (*d));
    if (!(d->journal = read_all (path, &bytes)))
        return refuse (0, "it cannot be read:", path);
    if (!read_entries (d, bytes))
        return false;
    d->item = calloc (2 * d->entries, sizeof (*d->item));
    d->sync = calloc (d->entries, sizeof (*d->sync));
    if (!d->item || !d->sync)
        return refuse (0, "out of", "memory");
    for (size_t i = 0; i < d->entries; i++)
        if (!note (d, i))
            return false;
    disk_settle (d, -1);
    return true;
}

void disk_unload (struct disk *d)
{
    free (d->journal);
    free (d->entry);
    free (d->item);
    free (d->sync);
}

void disk_settle (struct disk *d, int without)
{
    for (size_t i = 0; i < d->items; i++) {
        struct disk_item *item = &d->item[i];
        int file = item->kind == DISK_NAME ? -1 : item->file;
        item->durable = DISK_NEVER;
        for (size_t k = 0; k < d->syncs; k++) {
            const struct disk_sync *s = &d->sync[k];
            if (s->kind != without && s->file == file && s->process == item->process &&
                s->begin > item->end && s->end < item->durable)
                item->durable = s->end;
        }
    }
}

/* ---- A state ---- */

void disk_names (const struct disk *d, const struct disk_choice *c, int owner[DISK_NAMES_MAX])
{
    for (int i = 0; i < d->names; i++)
        owner[i] = -1;
    for (size_t i = 0; i < d->items; i++) {
        const struct disk_item *item = &d->item[i];
        if (item->kind != DISK_NAME || c->fate[i] != DISK_KEPT)
            continue;
        if (item->gone >= 0 && owner[item->gone] == item->file)
            owner[item->gone] = -1;
        owner[item->name] = item->file;
    }
}

static uint64_t mix (uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C (0x94d049bb133111eb);
    return x ^ x >> 31;
}

uint64_t disk_signature (const struct disk *d, const struct disk_choice *c, int file)
{
    uint64_t signature = mix ((uint64_t) file + 1);

    for (size_t i = 0; i < d->items; i++) {
        const struct disk_item *item = &d->item[i];
        bool leaves_a_trace = c->fate[i] == DISK_KEPT || c->fate[i] == DISK_TORN ||
                              (c->fate[i] == DISK_LOST && c->stale && item->kind == DISK_DATA);
        if (item->kind == DISK_NAME || item->file != file || !leaves_a_trace)
            continue;
        signature = mix (signature + 4 * i + c->fate[i]);
        if (c->fate[i] == DISK_TORN)
            signature = mix (signature + 2 * c->seed + c->stale);
    }
    return signature;
}

/* One page or less of [item]. */
static void put (const struct disk_choice *c, size_t number, const struct disk_item *item,
                 uint64_t at, size_t n, char *room)
{
    bool kept = c->fate[number] == DISK_KEPT ||
                (c->fate[number] == DISK_TORN &&
                 mix (mix (c->seed + number) + (item->at + at) / DISK_PAGE) & 1);

    if (kept)
        memcpy (room + item->at + at, item->data + at, n);
    else if (c->stale)
        memset (room + item->at + at, STALE, n);
}

size_t disk_content (const struct disk *d, const struct disk_choice *c, int file, char *room)
{
    uint64_t length = 0;

    memset (room, 0, d->most_bytes);
    for (size_t i = 0; i < d->items; i++) {
        const struct disk_item *item = &d->item[i];
        if (item->kind == DISK_NAME || item->file != file || c->fate[i] == DISK_NOT_YET)
            continue;
        if (item->kind == DISK_LENGTH) {
            if (c->fate[i] != DISK_KEPT)
                continue;
            if (item->bytes < length)
                memset (room + item->bytes, 0, d->most_bytes - item->bytes);
            length = item->bytes;
            continue;
        }
        for (uint64_t at = 0, n; at < item->bytes; at += n) {
            n = DISK_PAGE - (item->at + at) % DISK_PAGE;
            n = n < item->bytes - at ? n : item->bytes - at;
            put (c, i, item, at, (size_t) n, room);
        }
    }
    return (size_t) length;
}
