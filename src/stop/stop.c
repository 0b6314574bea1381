/* SPDX-License-Identifier: BSD-3-Clause */
/* stop - whether a program is to end: a signal, the end of its job, a file. */
#include "stop/stop.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "base/status.h"
#include "base/timed_call.h"
#include "feature/consensus.h"
#include "stop/signals.h"

#define MARGIN_S 60.0
#define LOOK_NS  GSI_NS_PER_S /* between two looks for the file, and how long one is awaited */

/* What ranks tell each other. */
enum { SIGNAL, TIME, FILE_THERE, WORDS };

static const int reason_of[WORDS] = {GS_CKPT_STOP_SIGNAL, GS_CKPT_STOP_TIME, GS_CKPT_STOP_FILE};

/* ---- Life ---- */

gs_status_t gsi_stop_open (struct gsi_stop *s, const char *dir, const gs_ckpt_opts_t *opts)
{
    static const char create[] = "gs_ckpt_create";
    size_t room = strlen (dir) + 8;
    gs_status_t st;

    *s = (struct gsi_stop){.margin_s = opts->stop_margin_s > 0 ? opts->stop_margin_s : MARGIN_S};
    if (!isfinite (opts->stop_margin_s) || opts->stop_margin_s < 0)
        return gsi_fail (GS_ERR_ARG, "%s: stop_margin_s is %g: seconds, 0 for the default of %g",
                         create, opts->stop_margin_s, MARGIN_S);
    if ((st = gsi_signals_parse (create, opts->signals ? opts->signals : "USR1,TERM",
                                 &s->signals)))
        return st;
    if (!(s->file = malloc (room)))
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", create);
    snprintf (s->file, room, "%s/stop", dir);
    return GS_OK;
}

void gsi_stop_close (struct gsi_stop *s)
{
    if (s->asked)
        gsi_signals_close (s->signals);
    if (s->look)
        gsi_timed_call_leave (s->look);
    free (s->file);
    s->file = NULL;
    s->look = NULL;
}

void gsi_stop_note_write (struct gsi_stop *s, int64_t ns)
{
    s->longest_write_s = fmax (s->longest_write_s, 1e-9 * (double) ns);
}

double gsi_stop_needed_s (const struct gsi_stop *s)
{
    return s->longest_call_s + 1.5 * s->longest_write_s + s->margin_s;
}

/* ---- What rank 0 finds ---- */

/* When the job ends, since 1970; infinite if nobody tells. */
static double find_end (void)
{
    int64_t given = gsi_env_int (GSI_ENV_JOB_END);
    const char *text = getenv ("SLURM_JOB_END_TIME");
    char *end;
    double end_s;

    if (given != GSI_JOB_END_AUTO)
        return given == GSI_JOB_END_NONE ? HUGE_VAL : (double) given;
    if (!text || !*text)
        return HUGE_VAL;
    end_s = (double) strtoll (text, &end, 10);
    if (end_s > 0 && !*end)
        return end_s;
    gsi_log (GS_LOG_WARN, "ckpt",
             "SLURM_JOB_END_TIME='%.60s' is no number of seconds since 1970, so the end of the "
             "job is not known: set GS_JOB_END",
             text);
    return HUGE_VAL;
}

static double left_s (const struct gsi_stop *s)
{
    return s->end_s - 1e-9 * (double) gsi_wall_ns ();
}

static void begin_watch (struct gsi_stop *s)
{
    s->end_s = find_end ();
    if (isinf (s->end_s))
        gsi_log (GS_LOG_INFO, "ckpt", "the end of the job is not known; GS_JOB_END would tell");
    else
        gsi_log (GS_LOG_INFO, "ckpt", "the job ends in %.0f s", left_s (s));
}

/* Of a name that is freed by who looks, however late. */
static int is_there (void *path)
{
    int there = !access (path, F_OK);

    free (path);
    return there;
}

/* A thread looks: a file system that hangs keeps no program from going on. */
static void look_for_file (struct gsi_stop *s, int64_t now_ns)
{
    bool waits = s->look;
    char *path = waits ? NULL : strdup (s->file);
    int there = s->has_file;
    gs_status_t st;

    if (!waits && !path)
        return;
    st = gsi_timed_call_run (&s->look, s->file, is_there, path, now_ns + (waits ? 0 : LOOK_NS),
                             &there);
    if (st == GS_ERR_TIMEOUT && !waits)
        gsi_log (GS_LOG_WARN, "ckpt",
                 "%s: the file system does not tell whether it is there; it counts when it does",
                 s->file);
    else if (st != GS_ERR_TIMEOUT)
        s->has_file = st ? is_there (path) : there;
}

static void look_for_stop (struct gsi_stop *s, uint64_t *word)
{
    int64_t now = gsi_now_ns ();

    if (!s->called_ns)
        begin_watch (s);
    else
        s->longest_call_s = fmax (s->longest_call_s, 1e-9 * (double) (now - s->called_ns));
    if (!s->called_ns || now - s->looked_ns >= LOOK_NS) {
        s->looked_ns = now;
        look_for_file (s, now);
    }
    s->called_ns = now;
    word[TIME] = left_s (s) <= gsi_stop_needed_s (s);
    word[FILE_THERE] = s->has_file;
}

/* ---- The call ---- */

/* Why, in the first call that says so. [first]: it is the first of all. */
static void log_reasons (const struct gsi_stop *s, gs_comm_t *comm, const char *name,
                         const uint64_t *word, bool first)
{
    int rank = (int) (UINT32_MAX - (uint32_t) word[SIGNAL]);

    if (word[SIGNAL])
        gsi_log (GS_LOG_WARN, "ckpt", "%s stops: rank %d (host %s) has received %s", name, rank,
                 gs_comm_host_of (comm, rank),
                 gsi_signals_name (UINT64_C (1) << ((word[SIGNAL] >> 32) - 1)));
    if (word[TIME])
        gsi_log (GS_LOG_WARN, "ckpt",
                 "%s stops: the job ends in %.1f s, and %.1f s are needed: %.3f s between two "
                 "calls, 1.5 times %.3f s for a checkpoint, and stop_margin_s %g%s",
                 name, left_s (s), gsi_stop_needed_s (s), s->longest_call_s, s->longest_write_s,
                 s->margin_s,
                 first
                     ? ". It was so near from the first call on, and nothing will be done: give "
                       "the job more time, or a smaller margin; or GS_JOB_END is of another job"
                     : "");
    if (word[FILE_THERE])
        gsi_log (GS_LOG_WARN, "ckpt", "%s stops: there is a file %s%s", name, s->file,
                 first
                     ? ". It was there before this job asked, which therefore stops at once, and "
                       "so does each after it: remove the file"
                     : "");
}

/* What this rank knows. */
static void know_words (struct gsi_stop *s, int rank, uint64_t *word)
{
    uint64_t came;

    if (!s->asked)
        gsi_signals_open (s->signals);
    s->asked = true;
    if ((came = gsi_signals_seen (s->signals)))
        word[SIGNAL] =
            ((uint64_t) __builtin_ctzll (came) + 1) << 32 | (UINT32_MAX - (uint32_t) rank);
    if (!rank)
        look_for_stop (s, word);
}

gs_status_t gsi_stop_ask (struct gsi_stop *s, gs_comm_t *comm, const char *name, int *reasons,
                          gs_stream_t stream)
{
    static const char caller[] = "gs_stop_requested";
    const struct gsi_stop before = *s;
    struct gsi_timed_call *look;
    int rank = gs_comm_rank (comm);
    uint64_t word[WORDS] = {0};
    gs_status_t st = GS_OK;

    if (reasons)
        know_words (s, rank, word);
    else
        st = gsi_fail (GS_ERR_ARG, "%s: reasons is NULL", caller);
    if ((st = gsi_consensus_most (comm, caller, st, word, WORDS, stream))) {
        if (s->asked && !before.asked)
            gsi_signals_close (s->signals);
        look = s->look;
        *s = before;
        s->look = look;
        return st;
    }
    if (!s->reasons && !rank)
        log_reasons (s, comm, name, word, !before.asked);
    for (int i = 0; i < WORDS; i++)
        s->reasons |= word[i] ? reason_of[i] : 0;
    *reasons = s->reasons;
    return GS_OK;
}
