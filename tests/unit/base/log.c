/* SPDX-License-Identifier: BSD-3-Clause */
/* log - levels, topics, who speaks, and where lines go: sink, file or stderr. */
#include "base/log.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include "unit/unit.h"

/* What a sink has heard. */
struct heard {
    int lines;
    gs_log_level_t level;
    char line[4096];
};

static void listen_to (gs_log_level_t level, const char *line, void *context)
{
    struct heard *h = context;

    h->lines++;
    h->level = level;
    snprintf (h->line, sizeof (h->line), "%s", line);
}

/* Configures the log as GS_DEBUG=[debug] does; NULL: unset. */
static void configure (const char *debug)
{
    if (debug)
        setenv ("GS_DEBUG", debug, 1);
    else
        unsetenv ("GS_DEBUG");
    gsi_log_configure ();
    gsi_log_identity (-1, 0);
}

static char folder[] = "/tmp/gs-log-XXXXXX"; /* of each test */

static void enter (void)
{
    memcpy (folder + sizeof (folder) - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull (mkdtemp (folder));
}

static void leave (void)
{
    gs_log_set_sink (NULL, NULL);
    ck_assert_int_eq (rmdir (folder), 0); /* each test has removed its files */
}

static void read_text (const char *path, char *text, size_t room)
{
    FILE *file = fopen (path, "r");

    ck_assert_msg (file != NULL, "no file %s", path);
    text[fread (text, 1, room - 1, file)] = 0;
    fclose (file);
    unlink (path);
}

START_TEST (levels)
{
    static const char *const settings[] = {"error", "warn", "info", "trace"};
    struct heard h = {0};

    gs_log_set_sink (listen_to, &h);
    for (int set = 1; set <= 4; set++)
        for (int level = 1; level <= 4; level++) {
            configure (settings[set - 1]);
            h.lines = 0;
            gsi_log ((gs_log_level_t) level, "boot", "x");
            ck_assert_int_eq (h.lines, level <= set);
            ck_assert (gsi_log_on ((gs_log_level_t) level) == (level <= set));
            if (h.lines)
                ck_assert_int_eq (h.level, level);
        }
    configure (NULL);
    ck_assert (gsi_log_on (GS_LOG_WARN) && !gsi_log_on (GS_LOG_INFO));
    configure ("nonsense"); /* gsi_env_check tells; until then the default serves */
    ck_assert (gsi_log_on (GS_LOG_WARN) && !gsi_log_on (GS_LOG_INFO));
    gs_log_set_sink (NULL, NULL);
}
END_TEST

START_TEST (topics)
{
    struct heard h = {0};

    gs_log_set_sink (listen_to, &h);
    configure ("trace:boot,comm");
    gsi_log (GS_LOG_TRACE, "boot", "heard");
    gsi_log (GS_LOG_INFO, "comm", "heard");
    ck_assert_int_eq (h.lines, 2);
    gsi_log (GS_LOG_TRACE, "coll", "not heard");
    gsi_log (GS_LOG_TRACE, "boo", "not heard");
    gsi_log (GS_LOG_TRACE, "om", "not heard");
    ck_assert_int_eq (h.lines, 2);
    gsi_log (GS_LOG_WARN, "coll", "warnings are of every topic");
    gsi_log (GS_LOG_ERROR, "coll", "errors too");
    ck_assert_int_eq (h.lines, 4);
    gs_log_set_sink (NULL, NULL);
}
END_TEST

START_TEST (lines_say_who_speaks)
{
    struct heard h = {0};

    gs_log_set_sink (listen_to, &h);
    configure ("warn");
    gsi_log (GS_LOG_WARN, "boot", "number %d", 5);
    ck_assert_str_eq (h.line, "gradsync[-] boot: number 5");
    gsi_log_identity (3, 8);
    gsi_log (GS_LOG_WARN, "coll", "%s", "100% of %s");
    ck_assert_str_eq (h.line, "gradsync[3/8] coll: 100% of %s");
    gs_log_set_sink (NULL, NULL);
}
END_TEST

START_TEST (long_lines_are_cut)
{
    struct heard h = {0};
    char text[8000];

    memset (text, 'y', sizeof (text));
    text[sizeof (text) - 1] = 0;
    gs_log_set_sink (listen_to, &h);
    configure ("warn");
    gsi_log (GS_LOG_WARN, "boot", "%s", text);
    ck_assert_int_eq (h.lines, 1);
    ck_assert_uint_gt (strlen (h.line), 1024); /* a whole error text fits */
    ck_assert_uint_lt (strlen (h.line), 2048);
    gs_log_set_sink (NULL, NULL);
}
END_TEST

START_TEST (file_names)
{
    char pattern[200], path[300], host[100] = "", text[400];

    gethostname (host, sizeof (host) - 1);
    configure ("warn");
    gsi_log_identity (7, 9);
    snprintf (pattern, sizeof (pattern), "%s/%%r-%%h-%%p-%%x%%.log", folder);
    snprintf (path, sizeof (path), "%s/7-%s-%ld-%%x%%.log", folder, host, (long) getpid ());
    setenv ("GS_DEBUG_FILE", pattern, 1);
    gsi_log (GS_LOG_WARN, "boot", "first");
    gsi_log (GS_LOG_WARN, "boot", "second");
    read_text (path, text, sizeof (text)); /* complete while the log is open: lines are flushed */
    ck_assert_str_eq (text, "gradsync[7/9] boot: first\ngradsync[7/9] boot: second\n");
    gsi_log_identity (8, 9); /* another rank, another file */
    gsi_log (GS_LOG_WARN, "boot", "third");
    snprintf (path, sizeof (path), "%s/8-%s-%ld-%%x%%.log", folder, host, (long) getpid ());
    read_text (path, text, sizeof (text));
    ck_assert_str_eq (text, "gradsync[8/9] boot: third\n");
}
END_TEST

START_TEST (a_file_is_continued)
{
    char path[200], text[200];
    FILE *file;

    snprintf (path, sizeof (path), "%s/there", folder);
    ck_assert_ptr_nonnull (file = fopen (path, "w"));
    fputs ("before\n", file);
    fclose (file);
    configure ("warn");
    setenv ("GS_DEBUG_FILE", path, 1);
    gsi_log (GS_LOG_WARN, "boot", "after");
    read_text (path, text, sizeof (text));
    ck_assert_str_eq (text, "before\ngradsync[-] boot: after\n");
}
END_TEST

START_TEST (an_unwritable_file_falls_back_to_stderr)
{
    char path[200], text[1000];
    int saved = dup (STDERR_FILENO), fd;

    snprintf (path, sizeof (path), "%s/stderr", folder);
    ck_assert_int_ge (fd = open (path, O_RDWR | O_CREAT | O_TRUNC, 0600), 0);
    configure ("warn");
    setenv ("GS_DEBUG_FILE", "/nonexistent/folder/log", 1);
    fflush (stderr);
    dup2 (fd, STDERR_FILENO);
    gsi_log (GS_LOG_WARN, "boot", "not lost");
    fflush (stderr);
    dup2 (saved, STDERR_FILENO);
    close (saved);
    close (fd);
    read_text (path, text, sizeof (text));
    ck_assert_ptr_nonnull (strstr (text, "GS_DEBUG_FILE '/nonexistent/folder/log'"));
    ck_assert_ptr_nonnull (strstr (text, "gradsync[-] boot: not lost\n"));
}
END_TEST

START_TEST (the_files_descriptor_is_not_inherited)
{
    char path[200], command[400];

    snprintf (path, sizeof (path), "%s/private", folder);
    configure ("warn");
    setenv ("GS_DEBUG_FILE", path, 1);
    gsi_log (GS_LOG_WARN, "boot", "x");
    snprintf (command, sizeof (command), "! ls -l /proc/self/fd | grep -q '%s'", path);
    ck_assert_int_eq (system (command), 0);
    unlink (path);
}
END_TEST

/* Many lines at once: each arrives whole and alone. */
static void count_line (gs_log_level_t level, const char *line, void *context)
{
    int *count = context; /* not atomic: the log calls the sink one line at a time */

    (void) level;
    if (!strcmp (line, "gradsync[-] boot: 0123456789"))
        ++*count;
}

static void *speak (void *unused)
{
    for (int i = 0; i < 1000; i++)
        gsi_log (GS_LOG_WARN, "boot", "%s", "0123456789");
    return unused;
}

START_TEST (threads_take_turns)
{
    pthread_t threads[4];
    int count = 0;

    configure ("warn");
    gs_log_set_sink (count_line, &count);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq (pthread_create (&threads[i], NULL, speak, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join (threads[i], NULL);
    gs_log_set_sink (NULL, NULL);
    ck_assert_int_eq (count, 4000);
}
END_TEST

/* What a sink does that is told of a line: another one, and another sink. */
static void speak_again (gs_log_level_t level, const char *line, void *context)
{
    struct heard *h = context;

    h->lines++;
    gsi_log (level, "boot", "of %s", line);
    gsi_log_identity (1, 2);
    gs_log_set_sink (listen_to, h + 1);
}

START_TEST (a_sink_may_log_and_set_a_sink)
{
    struct heard h[2] = {{0}};
    char path[200], text[1000];

    snprintf (path, sizeof (path), "%s/own", folder);
    setenv ("GS_DEBUG_FILE", path, 1);
    configure ("warn");
    gs_log_set_sink (speak_again, h);
    gsi_log (GS_LOG_WARN, "boot", "first");
    ck_assert_int_eq (h[0].lines, 1); /* its own line does not come to it */
    read_text (path, text, sizeof (text));
    ck_assert_str_eq (text, "gradsync[-] boot: of gradsync[-] boot: first\n");
    gsi_log (GS_LOG_WARN, "boot", "second");
    ck_assert_int_eq (h[0].lines, 1);
    ck_assert_str_eq (h[1].line, "gradsync[1/2] boot: second");
}
END_TEST

UNIT_SUITE_WITH ("log", 10, enter, leave, levels, topics, lines_say_who_speaks,
                 long_lines_are_cut, file_names, a_file_is_continued,
                 an_unwritable_file_falls_back_to_stderr, the_files_descriptor_is_not_inherited,
                 threads_take_turns, a_sink_may_log_and_set_a_sink)
