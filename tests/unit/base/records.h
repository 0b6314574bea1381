/* SPDX-License-Identifier: BSD-3-Clause */
/* records - a folder for the records of a test, and records in it. */
#ifndef GS_UNIT_RECORDS_H
#define GS_UNIT_RECORDS_H

#include <dirent.h>

#include "base/log.h"
#include "base/record.h"
#include "unit/unit.h"

static char room[] = "/tmp/gs-record-XXXXXX"; /* GS_RECORD_DIR of each test */

static inline void enter_room (void)
{
    memcpy (room + sizeof (room) - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull (mkdtemp (room));
    setenv ("GS_RECORD_DIR", room, 1);
    gsi_log_configure ();
}

/* Empties and removes the folder; how many files were in it. */
static inline int clear_room (void)
{
    DIR *dir = opendir (room);
    struct dirent *entry;
    int files = 0;

    while (dir && (entry = readdir (dir))) {
        if (entry->d_name[0] == '.')
            continue;
        unlinkat (dirfd (dir), entry->d_name, 0);
        files++;
    }
    if (dir)
        closedir (dir);
    rmdir (room);
    return files;
}

static inline void open_record (struct gsi_record *record, const char *name, int serial)
{
    unit_ok (gsi_record_open (record, "job", name, serial, 2, 5, "host9"));
}

/* Reads the ring file back as another process would. */
static inline void read_ring (const char *path, struct gsi_record_file *file)
{
    FILE *in = fopen (path, "r");

    ck_assert_msg (in != NULL, "no file %s", path);
    ck_assert_uint_eq (fread (file, sizeof (*file), 1, in), 1);
    fclose (in);
}

#endif /* GS_UNIT_RECORDS_H */
