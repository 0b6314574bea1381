/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * journal.h - what recorder.c writes of a program's calls on a folder, and replayer.c reads.
 * There may be folders in it, but none in those.
 *
 * A file of entries, each appended by one call. A call has an entry before it is made, with all
 * that it changes, and another one when it has returned. Between the two any of it may have come
 * to the disk; after the second one a sync that begins covers it. So the order of entries tells
 * what came before what, whichever process or thread made the calls: two calls of which neither
 * had returned when the other began are in no order, and none is read into the journal.
 */
#ifndef GS_TESTS_JOURNAL_H
#define GS_TESTS_JOURNAL_H

#include <stdint.h>

#define JOURNAL_NAME_MAX 63
#define JOURNAL_FOLDER   0 /* in place of an inode: the folder itself */

enum journal_kind {
    JOURNAL_END,     /* call number [call] has returned [value]; of these two also which file */
    JOURNAL_OPEN,    /* of [name], with the flags [value], that may make or cut it */
    JOURNAL_FOLD,    /* [name] is made, a folder */
    JOURNAL_WRITE,   /* [bytes], which follow, at [value] */
    JOURNAL_LENGTH,  /* the file gets the length [value], */
    JOURNAL_RESERVE, /* or at least that */
    JOURNAL_SYNC,    /* of the file or folder */
    JOURNAL_RENAME,  /* [name] becomes [to] */
    JOURNAL_LINK,    /* [name] is also [to] */
    JOURNAL_UNLINK,  /* [name] is removed */
    JOURNAL_BEGINS,  /* the program begins to save step [value], */
    JOURNAL_SAVED,   /* and has been told that it is saved; these two have no end */
    JOURNAL_UNKNOWN  /* the call [name], which nobody can replay */
};

struct journal_entry {
    uint32_t kind, process;
    uint64_t call;
    uint64_t file; /* its inode */
    int64_t value;
    uint64_t bytes;
    char name[JOURNAL_NAME_MAX + 1], to[JOURNAL_NAME_MAX + 1]; /* paths in the folder */
};

/* The function of recorder.so by which a program adds JOURNAL_BEGINS and JOURNAL_SAVED. */
#define JOURNAL_MARK "journal_mark"
typedef void (*journal_mark_f) (enum journal_kind kind, int64_t step);

#endif /* GS_TESTS_JOURNAL_H */
