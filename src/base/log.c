/* SPDX-License-Identifier: BSD-3-Clause */
/* log - lines for people, to stderr, GS_DEBUG_FILE or a sink. */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/printable.h"
#include "base/status.h"
#include "base/transport.h"

#define LINE_MAX_BYTES 1600
#define NAME_MAX_BYTES 512

#define TOPIC(id, name, what) name ","

static const char topic_names[] =
    ",boot,ckpt,coll,comm,device,env,fault,grad,hosts,nccl,pool,record,"
    "stats," GSI_MODULES (TOPIC);
static const char *const level_names[] = {"", "error", "warn", "info", "trace"};

static atomic_int threshold;                              /* 0: not configured yet */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER; /* all below */
static _Thread_local int depth; /* of this thread in the guard: its sink may come back here */
static gs_log_f user_sink;
static void *user_context;
static int self_rank = -1, world_size;
static char topics[128]; /* ",boot,comm," or empty for all */
static char file_name[NAME_MAX_BYTES];
static FILE *file;

static void lock (void)
{
    if (!depth++)
        pthread_mutex_lock (&guard);
}

static void unlock (void)
{
    if (!--depth)
        pthread_mutex_unlock (&guard);
}

static int parse_level (const char *text, size_t *length)
{
    *length = strcspn (text, ":");
    for (int level = GS_LOG_ERROR; level <= GS_LOG_TRACE; level++)
        if (strlen (level_names[level]) == *length &&
            !strncmp (text, level_names[level], *length))
            return level;
    return 0;
}

/* Whether the [length] letters at [text] are a topic. */
static bool topic_known (const char *text, size_t length)
{
    char key[40];

    snprintf (key, sizeof (key), ",%.*s,", length < 30 ? (int) length : 30, text);
    return length && strstr (topic_names, key);
}

gs_status_t gsi_log_check (const char *text)
{
    size_t length;

    if (!parse_level (text, &length) || (text[length] && text[length] != ':'))
        return gsi_fail (GS_ERR_ARG,
                         "GS_DEBUG='%.60s' does not start with error, warn, info or trace", text);
    for (const char *topic = text + length; *topic; topic += length) {
        length = strcspn (++topic, ",");
        if (!topic_known (topic, length))
            return gsi_fail (GS_ERR_ARG,
                             "GS_DEBUG='%.60s': there is no topic '%.*s'; there are %.*s", text,
                             length < 30 ? (int) length : 30, topic,
                             (int) sizeof (topic_names) - 3, topic_names + 1);
    }
    return GS_OK;
}

void gsi_log_configure (void)
{
    const char *text = gsi_env_text (GSI_ENV_DEBUG);
    size_t length;
    int level = parse_level (text, &length);

    lock ();
    topics[0] = 0;
    if (text[length] == ':')
        snprintf (topics, sizeof (topics), ",%s,", text + length + 1);
    unlock ();
    atomic_store (&threshold, level ? level : GS_LOG_WARN);
}

void gsi_log_identity (int rank, int size)
{
    lock ();
    self_rank = rank;
    world_size = size;
    unlock ();
}

bool gsi_log_on (gs_log_level_t level)
{
    if (!atomic_load_explicit (&threshold, memory_order_relaxed))
        gsi_log_configure ();
    return (int) level <= atomic_load_explicit (&threshold, memory_order_relaxed);
}

void gs_log_set_sink (gs_log_f sink, void *context)
{
    lock ();
    user_sink = sink;
    user_context = context;
    unlock ();
}

/* Replaces %r, %h and %p in [pattern]. */
static void expand_name (const char *pattern, char *out, size_t room)
{
    size_t used = 0;
    char host[128] = "";

    gethostname (host, sizeof (host) - 1);
    for (const char *p = pattern; *p && used + 1 < room; p++) {
        char piece[128] = {*p, 0};
        if (p[0] == '%' && p[1] == 'r')
            snprintf (piece, sizeof (piece), "%d", self_rank < 0 ? 0 : self_rank);
        else if (p[0] == '%' && p[1] == 'h')
            memcpy (piece, host, sizeof (piece));
        else if (p[0] == '%' && p[1] == 'p')
            snprintf (piece, sizeof (piece), "%ld", (long) getpid ());
        if (piece[0] != *p || piece[1])
            p++; /* the letter after % */
        used += (size_t) snprintf (out + used, room - used, "%s", piece);
    }
    out[used < room ? used : room - 1] = 0;
}

/* The open stream for lines; stderr when there is no file or it cannot be written. */
static FILE *stream (void)
{
    const char *pattern = gsi_env_text (GSI_ENV_DEBUG_FILE);
    char name[NAME_MAX_BYTES];

    if (!*pattern)
        return stderr;
    expand_name (pattern, name, sizeof (name));
    if (file && !strcmp (name, file_name))
        return file;
    if (file)
        fclose (file);
    if (!(file = fopen (name, "ae"))) {
        fprintf (stderr, "gradsync log: cannot write GS_DEBUG_FILE '%s'; using stderr\n", name);
        return stderr;
    }
    setvbuf (file, NULL, _IOLBF, 0);
    memcpy (file_name, name, sizeof (name));
    return file;
}

static bool topic_on (const char *topic)
{
    char key[40];

    snprintf (key, sizeof (key), ",%s,", topic);
    return !topics[0] || strstr (topics, key);
}

void gsi_log (gs_log_level_t level, const char *topic, const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    int used;
    va_list ap;

    if (!gsi_log_on (level))
        return;
    lock ();
    if (level <= GS_LOG_WARN || topic_on (topic)) {
        if (self_rank >= 0)
            used = snprintf (line, sizeof (line), "gradsync[%d/%d] %s: ", self_rank, world_size,
                             topic);
        else
            used = snprintf (line, sizeof (line), "gradsync[-] %s: ", topic);
        va_start (ap, format);
        vsnprintf (line + used, sizeof (line) - (size_t) used, format, ap);
        va_end (ap);
        gsi_printable (line, sizeof (line));
        if (user_sink && depth == 1) /* else the sink speaks, and would never end */
            user_sink (level, line, user_context);
        else
            fprintf (stream (), "%s\n", line);
    }
    unlock ();
}
