/* SPDX-License-Identifier: BSD-3-Clause */
/* ckpt_file - a checkpoint that a tool looks at. */
#ifndef GS_TOOLS_CKPT_FILE_H
#define GS_TOOLS_CKPT_FILE_H

#include <stdbool.h>

#include "ckpt/h5.h"
#include "ckpt/seal.h"

struct ckpt_file {
    const char *path;
    int fd;
    struct gsi_seal seal;
    struct gsi_seal_block *table;
    struct gsi_h5_file h5;
};

/* Opens it and checks seal, beginning and table; if it is none, says so on stderr: false. */
bool ckpt_file_open (const char *path, struct ckpt_file *f);
void ckpt_file_close (struct ckpt_file *f);

/* Reads [bytes] at [offset]; says on stderr what went wrong: false. */
bool ckpt_file_read (const struct ckpt_file *f, void *data, size_t bytes, uint64_t offset);

/* Checks all its data; shows how far it is on a terminal, if that takes a while. */
bool ckpt_file_verify (const struct ckpt_file *f);

/* A number that gradsync itself has stored, /gs/NAME. */
int64_t ckpt_file_number (const struct ckpt_file *f, const char *path);

/* "f32 [4, 5]" */
void ckpt_file_describe (const struct gsi_h5_set *set, char *text, size_t room);

#endif /* GS_TOOLS_CKPT_FILE_H */
