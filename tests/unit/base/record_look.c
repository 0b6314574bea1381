/* SPDX-License-Identifier: BSD-3-Clause */
/* record_look - records of others: those that killed processes have left are swept. */
#include "unit/base/records.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void leave (void)
{
    clear_room ();
}

/* Leaves the record [serial] of a process that was killed [hours] ago; its path. */
static const char *leave_record (int serial, int hours)
{
    static char path[300];
    struct gsi_record_file file;
    struct timespec then[2];
    int status, fd;
    pid_t pid = fork ();

    if (!pid) {
        struct gsi_record record;
        open_record (&record, "left", serial);
        gsi_record_begin (&record, GSI_OP_BARRIER, 0, 0, 0);
        raise (SIGKILL);
    }
    ck_assert_int_eq (waitpid (pid, &status, 0), pid);
    snprintf (path, sizeof (path), "%s/gradsync-%ld-job-left.%d-r2.ring", room, (long) getuid (),
              serial);
    read_ring (path, &file);
    file.wall_offset_ns -= hours * 3600 * GSI_NS_PER_S;
    ck_assert_int_ge (fd = open (path, O_WRONLY), 0);
    ck_assert_int_eq (write (fd, &file, sizeof (file)), sizeof (file));
    clock_gettime (CLOCK_REALTIME, &then[0]);
    then[0].tv_sec -= hours * 3600;
    then[1] = then[0];
    ck_assert_int_eq (futimens (fd, then), 0);
    close (fd);
    return path;
}

/* Changes [bytes] at [offset] of a record and keeps its time. */
static void forge (const char *path, size_t offset, const void *data, size_t bytes)
{
    struct timespec times[2];
    struct stat about;
    int fd = open (path, O_WRONLY);

    ck_assert_int_eq (fstat (fd, &about), 0);
    ck_assert_int_eq (pwrite (fd, data, bytes, (off_t) offset), (ssize_t) bytes);
    times[0] = times[1] = about.st_mtim;
    ck_assert_int_eq (futimens (fd, times), 0);
    close (fd);
}

/* A create sweeps, and this one is left or not. */
static void check_swept (const char *path, bool swept)
{
    gsi_record_sweep (room, "host9");
    ck_assert_msg (access (path, F_OK) == (swept ? -1 : 0), "%s is %s", path,
                   swept ? "still there" : "gone");
}

START_TEST (records_of_killed_processes_are_swept)
{
    struct gsi_record record;
    uint64_t none = 0, other = 4711;
    int32_t pid = (int32_t) getpid ();
    char path[300], text_path[320];
    FILE *file;

    snprintf (path, sizeof (path), "%s", leave_record (0, 25));
    snprintf (text_path, sizeof (text_path), "%.*s.txt", (int) strlen (path) - 5, path);
    ck_assert_ptr_nonnull (file = fopen (text_path, "w"));
    fclose (file);
    open_record (&record, "mine", 1); /* a create, in whatever process */
    ck_assert_msg (access (path, F_OK) && access (text_path, F_OK), "%s is still there", path);
    check_swept (record.path, false);
    gsi_record_close (&record, 0);
    check_swept (leave_record (1, 23), false); /* somebody may want to see it */
    snprintf (path, sizeof (path), "%s", leave_record (2, 30));
    forge (path, offsetof (struct gsi_record_file, host), "host8", 6);
    check_swept (path, false);
    snprintf (path, sizeof (path), "%s", leave_record (3, 30));
    forge (path, offsetof (struct gsi_record_file, space), &other, sizeof (other));
    check_swept (path, false);
    snprintf (path, sizeof (path), "%s", leave_record (4, 30));
    forge (path, offsetof (struct gsi_record_file, started), &none, sizeof (none));
    check_swept (path, false); /* by a version that did not tell */
    snprintf (path, sizeof (path), "%s", leave_record (5, 30));
    forge (path, offsetof (struct gsi_record_file, pid), &pid, sizeof (pid));
    forge (path, offsetof (struct gsi_record_file, started), &other, sizeof (other));
    check_swept (path, true); /* the number is another process's now */
    open_record (&record, "mine", 6);
    record.file->wall_offset_ns -= 30 * 3600 * GSI_NS_PER_S;
    check_swept (record.path, false); /* it lives */
    gsi_record_close (&record, 0);
}
END_TEST

START_TEST (the_sweep_follows_no_link)
{
    char path[300], place[300];

    snprintf (path, sizeof (path), "%s", leave_record (0, 30));
    snprintf (place, sizeof (place), "%s/elsewhere", room);
    ck_assert_int_eq (rename (path, place), 0);
    ck_assert_int_eq (symlink (place, path), 0);
    check_swept (place, false);
    check_swept (path, false);
}
END_TEST

UNIT_SUITE_WITH ("record_look", 10, enter_room, leave, records_of_killed_processes_are_swept,
                 the_sweep_follows_no_link)
