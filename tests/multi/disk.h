/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * disk - what a disk may hold after power was lost, as a journal of recorder.c tells.
 *
 * The journal becomes a list of items, each of which may be on the disk or not, whatever became
 * of the others: bytes of a file, a length of a file, a name in the folder. It is there for sure
 * when a sync has returned that began after the item's call had returned: of the same file or,
 * for a name, of the folder that it is in, and by the same process. For each process counts as a
 * node of its own, which syncs what it has in its own memory and nothing of the others'. On one
 * node the last sync of a file would do for all.
 *
 * Files and folders have a number, from 0; DISK_ROOT is the folder that the journal is of.
 */
#ifndef GS_TESTS_DISK_H
#define GS_TESTS_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "journal.h"

#define DISK_NAMES_MAX  128
#define DISK_FILES_MAX  64
#define DISK_SYNC_KINDS 16
#define DISK_PAGE       4096 /* the unit in which writes are torn */
#define DISK_NEVER      SIZE_MAX
#define DISK_ROOT       (-1)
#define DISK_NONE       (-2) /* no file */

enum disk_kind { DISK_DATA, DISK_LENGTH, DISK_NAME };

struct disk_item {
    enum disk_kind kind;
    int file;           /* whose; (name) which has the name now, or DISK_NONE */
    int name, gone;     /* (name) this one, and one that is gone by the same call or -1 */
    int synced;         /* what a sync has to be of */
    uint64_t at, bytes; /* (data) where; (length) so many */
    const char *data;   /* [bytes] */
    uint32_t process;   /* its number */
    size_t begin, end;  /* entries of the call */
    size_t durable;     /* entry since which it cannot be lost any more */
};

struct disk_sync {
    int file;
    uint32_t process;
    size_t begin, end;
    int kind;
};

/* The syncs that are the [n]th which a process has made of a file whose first name begins so; or
 * all of such a folder by the process that has made it (0), or by others (-1). */
struct disk_kind_of_sync {
    char of[JOURNAL_NAME_MAX + 1];
    int n;
};

struct disk_file {
    uint64_t inode, bytes; /* in the end, of the names in use now */
    bool is_folder;
    int first;        /* name */
    uint32_t process; /* that has made it */
};

struct disk_name {
    int folder;
    char is[JOURNAL_NAME_MAX + 1]; /* in the folder */
    int owner;                     /* file that has it in the end, or DISK_NONE */
};

struct disk_entry {
    struct journal_entry is;
    const char *data;
};

struct disk {
    char *journal;
    struct disk_entry *entry;
    size_t entries;
    struct disk_item *item;
    size_t items;
    struct disk_sync *sync;
    size_t syncs;
    struct disk_file file[DISK_FILES_MAX];
    int files;
    struct disk_name name[DISK_NAMES_MAX];
    int names;
    uint32_t process[DISK_FILES_MAX];
    uint32_t processes;
    uint64_t most_bytes; /* of a file */
    struct disk_kind_of_sync kind[DISK_SYNC_KINDS];
    int kinds;
};

/* What becomes of an item. */
enum disk_fate { DISK_NOT_YET, DISK_LOST, DISK_KEPT, DISK_TORN };

struct disk_choice {
    unsigned char *fate; /* [items] */
    uint64_t seed;       /* tells which pages of a torn one are kept */
    bool stale;          /* what is lost reads as what the disk had there; else as zeros */
};

/* Reads a journal; false, with a line on stderr, if it cannot be replayed. */
bool disk_load (struct disk *d, const char *path);
void disk_unload (struct disk *d);

/* Finds out since when items are durable, if syncs of kind [without] are not made; -1: all are.
 */
void disk_settle (struct disk *d, int without);

/* The file that has each name, or DISK_NONE. */
void disk_names (const struct disk *d, const struct disk_choice *c, int owner[DISK_NAMES_MAX]);

/* A number that equal files have; different ones have it by an accident of 1 in 2^64. */
uint64_t disk_signature (const struct disk *d, const struct disk_choice *c, int file);

/* Fills [room], of most_bytes, with a file; returns its length. */
size_t disk_content (const struct disk *d, const struct disk_choice *c, int file, char *room);

#endif /* GS_TESTS_DISK_H */
