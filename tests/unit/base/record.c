/* SPDX-License-Identifier: BSD-3-Clause */
/* record - the ring in its file: entries, wrap-around, survival, fallbacks, text, damage. */
#include "unit/base/records.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>

static char warning[2048]; /* the last line logged */

static void note (gs_log_level_t level, const char *line, void *context)
{
    (void) level, (void) context;
    snprintf (warning, sizeof (warning), "%s", line);
}

static void enter (void)
{
    enter_room ();
    gs_log_set_sink (note, NULL);
    warning[0] = 0;
}

static void leave (void)
{
    gs_log_set_sink (NULL, NULL);
    clear_room ();
}

static char text[65536];
static int lines;

static void add_line (void *context, const char *line)
{
    ck_assert_ptr_eq (context, &lines);
    ck_assert_uint_lt (strlen (text) + strlen (line) + 2, sizeof (text));
    strcat (strcat (text, line), "\n");
    lines++;
}

static void print (const struct gsi_record_file *file)
{
    text[0] = 0;
    lines = 0;
    gsi_record_print (file, add_line, &lines);
}

START_TEST (op_names)
{
    ck_assert_str_eq (gsi_record_op_name (GSI_OP_NONE), "none");
    ck_assert_str_eq (gsi_record_op_name (GSI_OP_ALLREDUCE_AVG), "allreduce_avg");
    ck_assert_str_eq (gsi_record_op_name (GSI_OP_DESTROY), "destroy");
    for (int op = 0; op < GSI_OP_COUNT; op++)
        ck_assert_str_ne (gsi_record_op_name (op), "unknown");
    ck_assert_str_eq (gsi_record_op_name (-1), "unknown");
    ck_assert_str_eq (gsi_record_op_name (GSI_OP_COUNT), "unknown");
    ck_assert_str_eq (gsi_record_op_name (INT_MAX), "unknown");
}
END_TEST

START_TEST (entries_are_in_the_file)
{
    struct gsi_record record;
    struct gsi_record_file file;
    const struct gsi_record_entry *e;
    int64_t begin;

    open_record (&record, "world", 0);
    begin = gsi_record_begin (&record, GSI_OP_ALLREDUCE, 1000, GS_F64, GS_MAX);
    read_ring (record.path, &file);
    ck_assert_uint_eq (file.magic, GSI_RECORD_MAGIC);
    ck_assert_uint_eq (file.entries, GSI_RECORD_ENTRIES);
    ck_assert_uint_eq (file.entry_bytes, sizeof (struct gsi_record_entry));
    ck_assert_int_eq (file.rank, 2);
    ck_assert_int_eq (file.size, 5);
    ck_assert_int_eq (file.pid, getpid ());
    ck_assert_str_eq (file.name, "world");
    ck_assert_str_eq (file.host, "host9");
    e = &file.entry[1];
    ck_assert (e->seq == 1 && e->op == GSI_OP_ALLREDUCE && e->count == 1000 &&
               e->dtype == GS_F64 && e->argument == GS_MAX && e->begin_ns == begin);
    ck_assert_int_eq (e->end_ns, 0);
    gsi_record_end (&record, GS_ERR_TIMEOUT);
    read_ring (record.path, &file);
    ck_assert_int_ge (e->end_ns, begin);
    ck_assert_int_eq (e->status, GS_ERR_TIMEOUT);
    gsi_record_close (&record, 0);
    ck_assert_int_eq (access (record.path, F_OK), -1);
}
END_TEST

/* Messages are counted apart, so that all ranks count other operations alike. */
START_TEST (messages_have_numbers_of_their_own)
{
    struct gsi_record record;
    const struct gsi_record_entry *e;
    int64_t begin;

    open_record (&record, "world", 0);
    gsi_record_begin (&record, GSI_OP_BARRIER, 0, 0, 0);
    gsi_record_end (&record, GS_OK);
    for (int i = 0; i < 3; i++) {
        gsi_record_begin (&record, i ? GSI_OP_SEND : GSI_OP_MESSAGES, 7, GS_F32, 4);
        gsi_record_queued (&record);
    }
    ck_assert (record.seq == 1 && record.messages == 3);
    ck_assert_uint_eq (gsi_record_newest (record.file), 1);
    begin = gsi_record_begin (&record, GSI_OP_BARRIER, 0, 0, 0);
    gsi_record_end (&record, GS_OK);
    ck_assert_uint_eq (record.seq, 2);
    e = record.file->message;
    ck_assert (e[1].op == GSI_OP_MESSAGES && e[2].op == GSI_OP_SEND && e[3].argument == 4);
    gsi_record_done (&record, GSI_OP_SEND, 2, begin + 5000);
    ck_assert (e[2].end_ns == begin + 5000 && record.file->entry[2].end_ns != begin + 5000);
    print (record.file);
    ck_assert_ptr_nonnull (strstr (text, "3 messages"));
    ck_assert_ptr_nonnull (strstr (strstr (text, "3 messages"), "send"));
    gsi_record_close (&record, 0);
}
END_TEST

/* What is queued ends later than its call, in any order, and only if its entry is still there. */
START_TEST (queued_operations_end_later)
{
    struct gsi_record record;
    const struct gsi_record_entry *e;
    int64_t begin;

    open_record (&record, "world", 0);
    e = record.file->entry;
    begin = gsi_record_begin (&record, GSI_OP_ALLREDUCE_AVG, 5, GS_F32, 0);
    gsi_record_queued (&record);
    ck_assert_ptr_null (record.open);
    gsi_record_begin (&record, GSI_OP_BARRIER, 0, 0, 0);
    gsi_record_queued (&record);
    ck_assert (e[1].end_ns == 0 && e[2].end_ns == 0);
    print (record.file);
    ck_assert_ptr_nonnull (strstr (strstr (text, "allreduce_avg"), "NOT ENDED"));
    gsi_record_done (&record, GSI_OP_BARRIER, 2, begin + 7000);
    ck_assert (e[1].end_ns == 0 && e[2].end_ns == begin + 7000);
    gsi_record_done (&record, GSI_OP_BARRIER, 1, begin + 9000);
    ck_assert (e[1].end_ns == begin + 9000 && e[1].status == GS_OK && e[1].count == 5);
    print (record.file);
    ck_assert_ptr_nonnull (strstr (text, "9.0 us  GS_OK"));
    ck_assert_ptr_null (strstr (text, "NOT ENDED"));
    while (record.seq < GSI_RECORD_ENTRIES + 1) { /* the last one lies where the first was */
        gsi_record_begin (&record, GSI_OP_BARRIER, 0, 0, 0);
        gsi_record_queued (&record);
    }
    gsi_record_done (&record, GSI_OP_BARRIER, 1, begin + 11000);
    ck_assert (e[1].seq == GSI_RECORD_ENTRIES + 1 && e[1].end_ns == 0);
    gsi_record_done (&record, GSI_OP_BARRIER, GSI_RECORD_ENTRIES + 1, begin + 12000);
    ck_assert_int_eq (e[1].end_ns, begin + 12000);
    gsi_record_close (&record, 0);
}
END_TEST

START_TEST (the_ring_wraps)
{
    struct gsi_record record;
    char first[16];

    open_record (&record, "world", 0);
    for (unsigned i = 1; i <= 3 * GSI_RECORD_ENTRIES + 7; i++) {
        gsi_record_begin (&record, GSI_OP_BARRIER, i, 0, 0);
        gsi_record_end (&record, GS_OK);
    }
    for (unsigned i = 0; i < GSI_RECORD_ENTRIES; i++) {
        const struct gsi_record_entry *e = &record.file->entry[i];
        ck_assert_uint_eq (e->seq, e->count);
        ck_assert_uint_gt (e->seq, 2 * GSI_RECORD_ENTRIES + 7);
        ck_assert_uint_eq (e->seq % GSI_RECORD_ENTRIES, i);
    }
    print (record.file);
    ck_assert_int_eq (lines, 33); /* a head and the newest 32, oldest first */
    snprintf (first, sizeof (first), "\n#%d ", 3 * GSI_RECORD_ENTRIES + 7 - 31);
    ck_assert_ptr_nonnull (strstr (text, first));
    ck_assert_ptr_nonnull (strstr (text, "775 operations"));
    gsi_record_close (&record, 0);
}
END_TEST

START_TEST (text_of_the_dump)
{
    struct gsi_record record;
    const char *path;
    char content[4096];
    FILE *in;

    open_record (&record, "world", 0);
    gsi_record_begin (&record, GSI_OP_BROADCAST, 10, GS_C128, 3);
    gsi_record_end (&record, GS_OK);
    gsi_record_begin (&record, GSI_OP_ALLGATHER, 20, GS_BF16, 0);
    path = gsi_record_dump (&record, "why it died");
    ck_assert_ptr_eq (strstr (path, room), path);
    ck_assert_str_eq (path + strlen (path) - 4, ".txt");
    ck_assert_ptr_nonnull (in = fopen (path, "r"));
    content[fread (content, 1, sizeof (content) - 1, in)] = 0;
    fclose (in);
    ck_assert_ptr_eq (strstr (content, "why it died\n"), content);
    ck_assert_ptr_nonnull (strstr (content, "communicator world, rank 2 of 5, host host9"));
    ck_assert_ptr_nonnull (strstr (content, "broadcast      GS_C128 count 10         arg 3 "));
    ck_assert_ptr_nonnull (strstr (content, " us  GS_OK\n"));
    ck_assert_ptr_nonnull (strstr (content, "allgather      GS_BF16 count 20 "));
    ck_assert_ptr_nonnull (strstr (content, "NOT ENDED\n"));
    gsi_record_end (&record, GS_OK);
    gsi_record_close (&record, 1);
    ck_assert_int_eq (access (record.path, F_OK), 0);
}
END_TEST

START_TEST (it_survives_sigkill)
{
    struct gsi_record_file file;
    char path[300];
    int status;
    pid_t pid = fork ();

    ck_assert_int_ge (pid, 0);
    if (!pid) {
        struct gsi_record record;
        open_record (&record, "killed", 0);
        gsi_record_begin (&record, GSI_OP_BARRIER, 0, 0, 0);
        gsi_record_end (&record, GS_OK);
        gsi_record_begin (&record, GSI_OP_ALLREDUCE_AVG, 4711, GS_F32, 0);
        raise (SIGKILL);
    }
    ck_assert_int_eq (waitpid (pid, &status, 0), pid);
    ck_assert (WIFSIGNALED (status) && WTERMSIG (status) == SIGKILL);
    snprintf (path, sizeof (path), "%s/gradsync-%ld-job-killed.0-r2.ring", room,
              (long) getuid ());
    read_ring (path, &file);
    ck_assert_int_eq (file.pid, pid);
    print (&file);
    ck_assert_int_eq (lines, 3);
    ck_assert_ptr_nonnull (strstr (text, "allreduce_avg  GS_F32  count 4711"));
    ck_assert_ptr_nonnull (strstr (text, "NOT ENDED"));
}
END_TEST

/* Opens a record that can have no file and checks that it works in memory, with a warning. */
static void check_memory (const char *word)
{
    struct gsi_record record;

    warning[0] = 0;
    open_record (&record, "world", 0);
    ck_assert_str_eq (record.path, "");
    ck_assert_msg (strstr (warning, "GS_RECORD_DIR") && strstr (warning, word),
                   "no '%s' in the warning '%s'", word, warning);
    gsi_record_begin (&record, GSI_OP_BARRIER, 0, 0, 0);
    gsi_record_end (&record, GS_OK);
    ck_assert_uint_eq (record.file->entry[1].seq, 1);
    ck_assert_str_eq (gsi_record_dump (&record, "x"), "");
    gsi_record_close (&record, 0);
}

/* GS_RECORD_DIR is [name], which is not there, in the room. */
static void name_folder (const char *name, char *path, size_t length)
{
    snprintf (path, length, "%s/%s", room, name);
    setenv ("GS_RECORD_DIR", path, 1);
}

START_TEST (a_missing_folder_is_made_and_stays)
{
    struct gsi_record record;
    char path[200];

    name_folder ("mine", path, sizeof (path));
    open_record (&record, "world", 0);
    ck_assert_str_eq (warning, "");
    ck_assert (!strncmp (record.path, path, strlen (path)));
    gsi_record_close (&record, 0);
    ck_assert_int_eq (rmdir (path), 0);
}
END_TEST

START_TEST (the_folder_of_a_step_goes_with_its_last_record)
{
    struct gsi_record first, last;
    char path[200], dump[250];

    name_folder ("gs-records.abc123", path, sizeof (path));
    open_record (&first, "first", 0);
    open_record (&last, "last", 0);
    gsi_record_close (&first, 0);
    ck_assert_int_eq (access (path, W_OK), 0);
    gsi_record_close (&last, 0);
    ck_assert_int_eq (access (path, F_OK), -1);

    open_record (&last, "late", 0); /* of a rank that comes when the others have gone */
    ck_assert_str_eq (warning, "");
    snprintf (dump, sizeof (dump), "%s", gsi_record_dump (&last, "it failed"));
    gsi_record_close (&last, 0);
    ck_assert_int_eq (unlink (dump), 0); /* what is left keeps its folder */
    ck_assert_int_eq (rmdir (path), 0);
}
END_TEST

START_TEST (unwritable_folders_fall_back_to_memory)
{
    char path[3000];

    setenv ("GS_RECORD_DIR", "/nonexistent/folder", 1);
    check_memory ("/nonexistent/folder/gradsync-");
    setenv ("GS_RECORD_DIR", "/proc/self", 1);
    check_memory ("/proc/self/gradsync-");
    setenv ("GS_RECORD_DIR", "/dev/null", 1);
    check_memory ("Not a directory");
    memset (path, '/', sizeof (path));
    path[sizeof (path) - 1] = 0;
    setenv ("GS_RECORD_DIR", path, 1); /* the root folder, in too many letters */
    check_memory ("too long");
}
END_TEST

START_TEST (a_full_file_system_falls_back_to_memory)
{
    int status;
    pid_t pid = fork ();

    if (!pid) {
        if (unshare (CLONE_NEWNS) || mount ("none", "/", "none", MS_REC | MS_PRIVATE, NULL) ||
            mount ("gs-test", room, "tmpfs", 0, "size=8k"))
            _exit (77); /* an ordinary user cannot mount */
        check_memory ("No space left");
        _exit (rmdir (room) && clear_room () ? 1 : 0); /* nothing half made stays */
    }
    ck_assert_int_eq (waitpid (pid, &status, 0), pid);
    ck_assert (WIFEXITED (status));
    if (WEXITSTATUS (status) == 77)
        printf ("record: the full file system is not tested: no right to mount one\n");
    else
        ck_assert_int_eq (WEXITSTATUS (status), 0);
}
END_TEST

START_TEST (memory_on_request)
{
    struct gsi_record record;

    setenv ("GS_RECORD", "memory", 1);
    open_record (&record, "world", 0);
    ck_assert_str_eq (record.path, "");
    ck_assert_str_eq (warning, "");
    gsi_record_close (&record, 1);
    ck_assert_int_eq (clear_room (), 0);
}
END_TEST

START_TEST (links_are_not_followed)
{
    struct gsi_record record;
    char victim[300], link[300];
    struct stat st;
    FILE *out;

    snprintf (victim, sizeof (victim), "%s/victim", room);
    ck_assert_ptr_nonnull (out = fopen (victim, "w"));
    fputs ("precious", out);
    fclose (out);
    snprintf (link, sizeof (link), "%s/gradsync-%ld-job-world.0-r2.ring", room, (long) getuid ());
    ck_assert_int_eq (symlink (victim, link), 0);
    strcpy (link + strlen (link) - 4, "txt");
    ck_assert_int_eq (symlink (victim, link), 0);
    open_record (&record, "world", 0);
    ck_assert_int_eq (lstat (record.path, &st), 0);
    ck_assert (S_ISREG (st.st_mode));
    ck_assert_uint_eq (st.st_mode & 0777, 0600);
    gsi_record_begin (&record, GSI_OP_BARRIER, 0, 0, 0);
    ck_assert_str_eq (gsi_record_dump (&record, "x"), link);
    ck_assert_int_eq (lstat (link, &st), 0);
    ck_assert (S_ISREG (st.st_mode));
    gsi_record_end (&record, GS_OK);
    gsi_record_close (&record, 0);
    ck_assert_int_eq (stat (victim, &st), 0);
    ck_assert_int_eq (st.st_size, 8);
}
END_TEST

/* Another rank's record, and any in the folder: open would wait until somebody writes. */
START_TEST (pipes_are_not_waited_for)
{
    struct gsi_record record, other;
    struct gsi_record_state state;
    struct gsi_record_call call;
    char pipe[300];

    open_record (&record, "world", 0);
    snprintf (pipe, sizeof (pipe), "%s/gradsync-%ld-job-world.0-r3.ring", room, (long) getuid ());
    ck_assert_int_eq (mkfifo (pipe, 0600), 0);
    ck_assert (!gsi_record_peek (&record, 3, &state));
    unit_ok (gsi_record_open (&other, "job", "world", 0, 1, 5, "host9"));
    ck_assert (!gsi_record_elsewhere (&record, 1, &call));
    gsi_record_close (&other, 0);
    gsi_record_close (&record, 0);
}
END_TEST

START_TEST (names_become_file_names)
{
    struct gsi_record record;
    char name[200];

    open_record (&record, "../a b/c\n%s", 0);
    ck_assert_ptr_nonnull (strstr (record.path, "-.._a_b_c__s.0-r2.ring"));
    ck_assert_int_eq (access (record.path, F_OK), 0);
    gsi_record_close (&record, 0);
    memset (name, 'n', sizeof (name));
    name[sizeof (name) - 1] = 0;
    open_record (&record, name, 0);
    ck_assert_int_eq (access (record.path, F_OK), 0);
    ck_assert_uint_eq (strlen (record.file->name), GSI_RECORD_NAME - 1);
    gsi_record_close (&record, 0);
}
END_TEST

START_TEST (what_is_kept)
{
    struct gsi_record record = {0}, other;

    gsi_record_close (&record, 0); /* never opened */
    open_record (&record, "world", 0);
    open_record (&other, "world", 1);
    ck_assert_str_ne (record.path, other.path);
    gsi_record_close (&other, 0);
    setenv ("GS_RECORD_KEEP", "1", 1);
    gsi_record_close (&record, 0);
    ck_assert_int_eq (clear_room (), 1);
}
END_TEST

/* Whatever is in a file: printing ends, within the lines that fit a screen. */
static void check_damage (const struct gsi_record_file *file)
{
    print (file);
    ck_assert_int_ge (lines, 1);
    ck_assert_int_le (lines, 33);
}

START_TEST (damaged_files_are_printed)
{
    static struct gsi_record_file file;
    uint64_t state = 9, *words = (uint64_t *) &file;

    check_damage (&file);
    memset (&file, 0xff, sizeof (file));
    check_damage (&file);
    memset (&file, 0x7f, sizeof (file));
    check_damage (&file);
    memset (&file, 0x80, sizeof (file));
    check_damage (&file);
    for (int i = 0; i < 200; i++) {
        for (size_t w = 0; w < sizeof (file) / 8; w++)
            words[w] = unit_random (&state);
        file.entry[i].seq = UINT64_MAX - (uint64_t) (i % 3); /* the largest there can be */
        check_damage (&file);
    }
}
END_TEST

UNIT_SUITE_WITH ("record", 10, enter, leave, op_names, entries_are_in_the_file,
                 queued_operations_end_later, messages_have_numbers_of_their_own, the_ring_wraps,
                 text_of_the_dump, it_survives_sigkill, a_missing_folder_is_made_and_stays,
                 the_folder_of_a_step_goes_with_its_last_record,
                 unwritable_folders_fall_back_to_memory, a_full_file_system_falls_back_to_memory,
                 memory_on_request, links_are_not_followed, pipes_are_not_waited_for,
                 names_become_file_names, what_is_kept, damaged_files_are_printed)
