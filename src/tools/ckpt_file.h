/* SPDX-License-Identifier: BSD-3-Clause */
/* ckpt_file - a checkpoint that gs-ckpt looks at, of either layout; and what it does with it. */
#ifndef GS_TOOLS_CKPT_FILE_H
#define GS_TOOLS_CKPT_FILE_H

#include <stdbool.h>

#include "ckpt/format/reader.h"

struct ckpt_file {
    const char *path; /* as the user has it */
    struct gsi_reader reader;
};

/* Say on stderr what went wrong, the second what gradsync's own call has met: false. */
bool ckpt_complain (const char *format, ...) __attribute__ ((format (printf, 1, 2)));
bool ckpt_failed (void);

/* The path of the main file that [path] stands for: that in a folder; to be freed. */
char *ckpt_file_main (const char *path);

/* FOLDER and [ending], beside the folder of the file at [main_file], an index.h5; to be freed.
 * NULL: it is none, errno is 0; or errno says why not. */
char *ckpt_file_beside (const char *main_file, const char *ending);

/*
 * Opens it, which may be a folder, checks trailer, beginning, table and map, and finds what is in
 * it; if it is none, says so on stderr: false. In one that has no index of gradsync's own, HDF5
 * looks in a process of its own: what crashes that does not crash the tool.
 */
bool ckpt_file_open (const char *path, struct ckpt_file *f);
void ckpt_file_close (struct ckpt_file *f);

/* Bytes of all its files. */
uint64_t ckpt_file_bytes (const struct ckpt_file *f);

/* Reads [bytes] of a data set of it, in the order of C; says on stderr what went wrong: false. */
bool ckpt_file_read (struct ckpt_file *f, const struct gsi_h5_set *set, uint64_t at, size_t bytes,
                     void *data);

/* Reads all of a data set, see gsi_reader_scan; says on stderr what went wrong: false. */
bool ckpt_file_scan (struct ckpt_file *f, const struct gsi_h5_set *set, gsi_reader_bytes_f each,
                     void *context);

/* Checks all its data; shows how far it is on a terminal, if that takes a while. */
bool ckpt_file_verify (struct ckpt_file *f);

/* A number that gradsync itself has stored, /gs/NAME. */
int64_t ckpt_file_number (struct ckpt_file *f, const char *path);

/* "f32 [4, 5]" */
void ckpt_file_describe (const struct gsi_h5_set *set, char *text, size_t room);

/*
 * ckpt_diff.c: prints a line for each array that differs. Elements a and b, or their parts, are
 * the same if all bits are, both are NaN, or |a - b| <= tolerance * max (|a|, |b|). Returns how
 * many arrays differ, or -1 after an error, which it has told.
 */
int ckpt_diff (struct ckpt_file *a, struct ckpt_file *b, double tolerance);

/* ckpt_script.c: prints a program in Python that reads all arrays with h5py. */
void ckpt_script_print (const struct ckpt_file *f);

#endif /* GS_TOOLS_CKPT_FILE_H */
