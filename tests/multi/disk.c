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

/* The number of the name [is] in [folder]; new ones are owned by nobody. */
static int name_in (struct disk *d, int folder, const char *is)
{
    for (int i = 0; i < d->names; i++)
        if (d->name[i].folder == folder && !strcmp (d->name[i].is, is))
            return i;
    d->name[d->names].folder = folder;
    d->name[d->names].owner = DISK_NONE;
    strcpy (d->name[d->names].is, is);
    return d->names++;
}

/* The number of a path, which may lead through one folder. */
static int name_of (struct disk *d, const char *path)
{
    const char *slash = strchr (path, '/');
    char folder[JOURNAL_NAME_MAX + 1];

    if (!slash)
        return name_in (d, DISK_ROOT, path);
    snprintf (folder, sizeof (folder), "%.*s", (int) (slash - path), path);
    return name_in (d, d->name[name_in (d, DISK_ROOT, folder)].owner, slash + 1);
}

/* The file that has this inode now, or DISK_NONE. */
static int file_of (const struct disk *d, uint64_t inode)
{
    if (inode == JOURNAL_FOLDER)
        return DISK_ROOT;
    for (int i = d->files - 1; i >= 0; i--)
        if (d->file[i].inode == inode)
            return i;
    return DISK_NONE;
}

static struct disk_item *add (struct disk *d, enum disk_kind kind, int file, size_t begin,
                              size_t end)
{
    struct disk_item *item = &d->item[d->items++];

    *item = (struct disk_item){.kind = kind,
                               .file = file,
                               .synced = file,
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
    item->synced = d->name[name].folder;
    if (gone >= 0)
        d->name[gone].owner = DISK_NONE;
    d->name[name].owner = file;
}

static void add_file (struct disk *d, int name, bool is_folder, size_t begin, size_t end)
{
    d->file[d->files] = (struct disk_file){.inode = d->entry[end].is.file,
                                           .is_folder = is_folder,
                                           .first = name,
                                           .process = number_of (d, d->entry[begin].is.process)};
    add_name (d, name, d->files++, -1, begin, end);
}

static bool note_open (struct disk *d, size_t i, size_t end)
{
    const struct journal_entry *is = &d->entry[i].is;
    uint64_t inode = d->entry[end].is.file;
    int name = name_of (d, is->name), owner = d->name[name].owner;

    if (owner >= 0 && (is->kind == JOURNAL_FOLD || d->file[owner].inode != inode))
        return refuse (i, "another file has", is->name);
    if (owner < 0)
        add_file (d, name, is->kind == JOURNAL_FOLD, i, end);
    else if (is->value & O_TRUNC)
        add_length (d, owner, 0, i, end);
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
    int name = name_of (d, is->name), owner = d->name[name].owner, to;

    if (owner < 0)
        return refuse (i, "nobody knows of", is->name);
    to = is->kind == JOURNAL_UNLINK ? name : name_of (d, is->to);
    if (d->name[to].folder != d->name[name].folder)
        return refuse (i, "it goes to another folder:", is->name);
    if (is->kind == JOURNAL_UNLINK)
        add_name (d, name, DISK_NONE, -1, i, end);
    else
        add_name (d, to, owner, is->kind == JOURNAL_RENAME ? name : -1, i, end);
    return true;
}

/* Files that have the same work differ in numbers: of steps, parts, locks. */
static void name_kind (const struct disk *d, int file, char *of)
{
    const char *name = file == DISK_ROOT ? "" : d->name[d->file[file].first].is;
    size_t length = strcspn (name, "0123456789");
    const char *dot = *name ? strchr (name + 1, '.') : NULL;

    if (dot && dot < name + length)
        length = (size_t) (dot - name);
    snprintf (of, JOURNAL_NAME_MAX + 1, "%.*s", (int) length, name);
}

/* The kind of [s], the last one by now; -1: too many. */
static int kind_of (struct disk *d, const struct disk_sync *s)
{
    struct disk_kind_of_sync *k = &d->kind[d->kinds], is = {.n = 0};

    name_kind (d, s->file, is.of);
    if (s->file >= 0 && d->file[s->file].is_folder)
        is.n = d->file[s->file].process == s->process ? 0 : -1;
    else if (s->file >= 0)
        for (size_t i = 0; i <= d->syncs; i++) /* with this one */
            is.n += d->sync[i].file == s->file && d->sync[i].process == s->process;
    for (int i = 0; i < d->kinds; i++)
        if (d->kind[i].n == is.n && !strcmp (d->kind[i].of, is.of))
            return i;
    if (d->kinds == DISK_SYNC_KINDS)
        return -1;
    *k = is;
    return d->kinds++;
}

static bool note_sync (struct disk *d, size_t i, size_t end)
{
    const struct journal_entry *is = &d->entry[i].is;
    struct disk_sync *s = &d->sync[d->syncs];

    *s = (struct disk_sync){.file = file_of (d, is->file),
                            .process = number_of (d, is->process),
                            .begin = i,
                            .end = end};
    if (s->file == DISK_NONE)
        return refuse (i, "a sync of a file that", "the journal has not seen begin");
    if ((s->kind = kind_of (d, s)) < 0)
        return refuse (i, "too many kinds", "of syncs");
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
    if (d->names + 4 > DISK_NAMES_MAX || d->files == DISK_FILES_MAX ||
        d->processes == DISK_FILES_MAX)
        return refuse (i, "too many", "names, files or processes");
    if (d->entry[end].is.value < 0 || (kind == JOURNAL_RESERVE && d->entry[end].is.value))
        return true;
    switch (kind) {
    case JOURNAL_OPEN:
    case JOURNAL_FOLD: return note_open (d, i, end);
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
        item->durable = DISK_NEVER;
        for (size_t k = 0; k < d->syncs; k++) {
            const struct disk_sync *s = &d->sync[k];
            if (s->kind != without && s->file == item->synced && s->process == item->process &&
                s->begin > item->end && s->end < item->durable)
                item->durable = s->end;
        }
    }
}

/* ---- A state ---- */

void disk_names (const struct disk *d, const struct disk_choice *c, int owner[DISK_NAMES_MAX])
{
    for (int i = 0; i < d->names; i++)
        owner[i] = DISK_NONE;
    for (size_t i = 0; i < d->items; i++) {
        const struct disk_item *item = &d->item[i];
        if (item->kind != DISK_NAME || c->fate[i] != DISK_KEPT)
            continue;
        if (item->gone >= 0 && owner[item->gone] == item->file)
            owner[item->gone] = DISK_NONE;
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
