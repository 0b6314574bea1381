/* SPDX-License-Identifier: BSD-3-Clause */
/* ckpt_file - a checkpoint that a tool looks at, of either layout. */
#ifndef GS_TOOLS_CKPT_FILE_H
#define GS_TOOLS_CKPT_FILE_H

#include <stdbool.h>

#include "ckpt/format/reader.h"

struct ckpt_file {
    const char *path; /* as the user has it */
    struct gsi_reader reader;
};

/* The path of the sealed file that [path] stands for: that in a folder; to be freed. */
char *ckpt_file_sealed (const char *path);

/* FOLDER and [ending], beside the folder of the file at [sealed], an index.h5; to be freed. NULL:
 * it is none, errno is 0; or errno says why not. */
char *ckpt_file_beside (const char *sealed, const char *ending);

/* Opens it, which may be a folder, and checks seal, beginning, table and map; if it is none, says
 * so on stderr: false. */
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

#endif /* GS_TOOLS_CKPT_FILE_H */
