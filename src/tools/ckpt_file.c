/* SPDX-License-Identifier: BSD-3-Clause */
/* ckpt_file - a checkpoint that a tool looks at. */
#include "tools/ckpt_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ckpt/file.h"

#define SLOW_BLOCKS 128 /* a GiB: from here on it shows how far it is */

static bool complain (void)
{
    fprintf (stderr, "gs-ckpt: %s\n", gs_last_error ());
    return false;
}

bool ckpt_file_open (const char *path, struct ckpt_file *f)
{
    *f = (struct ckpt_file){.path = path, .fd = open (path, O_RDONLY | O_CLOEXEC)};
    if (f->fd < 0) {
        fprintf (stderr, "gs-ckpt: %s: %s\n", path, strerror (errno));
        return false;
    }
    if (gsi_seal_check (f->fd, path, &f->seal, &f->table) || gsi_h5_look (path, &f->h5)) {
        complain ();
        ckpt_file_close (f);
        return false;
    }
    return true;
}

void ckpt_file_close (struct ckpt_file *f)
{
    if (f->fd >= 0)
        close (f->fd);
    free (f->table);
    gsi_h5_file_clear (&f->h5);
    f->fd = -1;
    f->table = NULL;
}

bool ckpt_file_read (const struct ckpt_file *f, void *data, size_t bytes, uint64_t offset)
{
    return !gsi_file_read (f->fd, f->path, data, bytes, offset) || complain ();
}

bool ckpt_file_verify (const struct ckpt_file *f)
{
    bool shown = f->seal.blocks >= SLOW_BLOCKS && isatty (STDERR_FILENO), right = true;
    void *room = malloc (GSI_BLOCK_BYTES);

    if (!room) {
        fprintf (stderr, "gs-ckpt: out of memory\n");
        return false;
    }
    for (uint64_t b = 0; b < f->seal.blocks; b++) {
        if (gsi_seal_check_block (f->fd, f->path, &f->table[b], room))
            right = complain ();
        if (shown)
            fprintf (stderr, "\r%s: %3d %%%s", f->path, (int) (100 * (b + 1) / f->seal.blocks),
                     b + 1 == f->seal.blocks ? "\n" : "");
    }
    free (room);
    return right;
}

int64_t ckpt_file_number (const struct ckpt_file *f, const char *path)
{
    int64_t value = 0;

    for (size_t i = 0; i < f->h5.sets; i++)
        if (!strcmp (f->h5.set[i].path, path) && gsi_h5_bytes (&f->h5.set[i]) == sizeof (value))
            ckpt_file_read (f, &value, sizeof (value), f->h5.set[i].offset);
    return value;
}

void ckpt_file_describe (const struct gsi_h5_set *set, char *text, size_t room)
{
    static const char *const names[] = {"",    "f16", "bf16", "f32", "f64", "i8",  "i16", "i32",
                                        "i64", "u8",  "u16",  "u32", "u64", "c64", "c128"};
    size_t used = (size_t) snprintf (text, room, "%s", names[set->dtype]);

    for (int d = 0; d < set->dims && used + 24 < room; d++)
        used += (size_t) snprintf (text + used, room - used, "%s%" PRIu64, d ? ", " : " [",
                                   set->shape[d]);
    if (set->dims)
        snprintf (text + used, room - used, "]");
}
