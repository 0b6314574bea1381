/* SPDX-License-Identifier: BSD-3-Clause */
/* lock_owner - who writes to a folder of checkpoints. */
#include "ckpt/folder/lock_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/proc.h"

/* ---- This process ---- */

/* A value of a line: no control characters. */
static void set_value (char *out, size_t room, const char *value)
{
    snprintf (out, room, "%s", value ? value : "");
    for (; *out; out++)
        if ((unsigned char) *out < 32)
            *out = '_';
}

/*
 * N.B. Open MPI's mpirun inherits SLURM_STEP_ID from where it was started, or not, by node; but
 * its PMIx namespace is the same everywhere. That is made of 16 bits of a hash, so that two jobs
 * may have the same: its key for transports is drawn anew for each. And all that somebody starts
 * in an interactive shell inherits the step of that, of one task, also as Slurm's PMIx names it.
 */
static void set_step (struct gsi_owner *h)
{
    const char *space = getenv ("PMIX_NAMESPACE"), *step = getenv ("SLURM_STEP_ID");
    const char *tasks = getenv ("SLURM_STEP_NUM_TASKS"), *apid = getenv ("PALS_APID");
    const char *key = getenv ("OMPI_MCA_orte_precondition_transports");
    char text[sizeof (h->step)];

    if (space && *space && (strncmp (space, "slurm.pmix.", 11) || !tasks || atoi (tasks) > 1))
        snprintf (text, sizeof (text), "pmix:%s%s%s", space, key ? "." : "", key ? key : "");
    else if (*h->job && step && tasks && atoi (tasks) > 1)
        snprintf (text, sizeof (text), "slurm:%s.%s", h->job, step);
    else if (apid && *apid)
        snprintf (text, sizeof (text), "pals:%s", apid);
    else
        snprintf (text, sizeof (text), "process:%s.%lld.%" PRIu64, h->host, h->pid, h->start);
    set_value (h->step, sizeof (h->step), text);
}

static void set_id (struct gsi_owner *h)
{
    uint64_t number = 0;
    int64_t seed[3] = {gsi_wall_ns (), h->pid, gsi_now_ns ()};

    if (getrandom (&number, sizeof (number), GRND_NONBLOCK) != sizeof (number))
        number = gsi_hash (seed, sizeof (seed)) ^ gsi_hash (h->host, strlen (h->host));
    snprintf (h->id, sizeof (h->id), "%016" PRIx64, number);
}

void gsi_owner_self (struct gsi_owner *h)
{
    const char *restarts = getenv ("SLURM_RESTART_COUNT");
    time_t now = time (NULL);
    char host[sizeof (h->host)] = "";
    struct tm utc;
    bool ended;

    *h = (struct gsi_owner){.pid = getpid ()};
    gethostname (host, sizeof (host) - 1);
    set_value (h->host, sizeof (h->host), *host ? host : "localhost");
    set_value (h->cluster, sizeof (h->cluster), getenv ("SLURM_CLUSTER_NAME"));
    set_value (h->job, sizeof (h->job), getenv ("SLURM_JOB_ID"));
    h->restarts = *h->job && restarts ? atoll (restarts) : 0;
    gsi_system_text ("/proc/sys/kernel/random/boot_id", h->boot, sizeof (h->boot));
    h->pid_space = gsi_process_space ();
    h->start = gsi_process_start (h->pid, &ended);
    set_step (h);
    set_id (h);
    if (gmtime_r (&now, &utc))
        strftime (h->since, sizeof (h->since), "%Y-%m-%dT%H:%M:%SZ", &utc);
}

/* ---- As text ---- */

/* The id comes last: with it a lock is whole. */
size_t gsi_owner_write (const struct gsi_owner *h, char *text)
{
    int n = snprintf (text, GSI_OWNER_TEXT_MAX,
                      "# This job writes checkpoints here, and touches this file every %d s.\n"
                      "cluster=%s\njob=%s\nrestarts=%lld\nstep=%s\nhost=%s\npid=%lld\n"
                      "pid_namespace=%" PRIu64 "\nstart=%" PRIu64 "\nboot=%s\nsince=%s\nid=%s\n",
                      GSI_OWNER_BEAT_S, h->cluster, h->job, h->restarts, h->step, h->host, h->pid,
                      h->pid_space, h->start, h->boot, h->since, h->id);

    return (size_t) n;
}

static void get_value (const char *text, const char *key, char *out, size_t room)
{
    size_t length = strlen (key);

    while (*text && (strncmp (text, key, length) || text[length] != '=')) {
        text += strcspn (text, "\n");
        text += *text == '\n';
    }
    text += *text ? length + 1 : 0;
    snprintf (out, room, "%.*s", (int) strcspn (text, "\n"), text);
}

static uint64_t get_number (const char *text, const char *key)
{
    char value[32];

    get_value (text, key, value, sizeof (value));
    return strtoull (value, NULL, 10);
}

bool gsi_owner_read (struct gsi_owner *h, const char *text)
{
    size_t length = strlen (text);
    char id[sizeof (h->id) + 1];

    *h = (struct gsi_owner){.pid = 0};
    get_value (text, "id", id, sizeof (id));
    if (!length || text[length - 1] != '\n' || strlen (id) != sizeof (h->id) - 1 ||
        id[strspn (id, "0123456789abcdef")]) /* it is part of names of files */
        return false;
    memcpy (h->id, id, sizeof (h->id));
    get_value (text, "cluster", h->cluster, sizeof (h->cluster));
    get_value (text, "job", h->job, sizeof (h->job));
    get_value (text, "step", h->step, sizeof (h->step));
    get_value (text, "host", h->host, sizeof (h->host));
    get_value (text, "boot", h->boot, sizeof (h->boot));
    get_value (text, "since", h->since, sizeof (h->since));
    h->restarts = (long long) get_number (text, "restarts");
    h->pid = (long long) get_number (text, "pid");
    h->pid_space = get_number (text, "pid_namespace");
    h->start = get_number (text, "start");
    return true;
}

void gsi_owner_describe (const struct gsi_owner *h, char *text, size_t room)
{
    char job[sizeof (h->job) + sizeof (h->step) + 64];

    if (!*h->id) {
        snprintf (text, room, "somebody whose lock cannot be read");
        return;
    }
    if (*h->job)
        snprintf (job, sizeof (job), "job %s (restart %lld, step %s)", h->job, h->restarts,
                  h->step);
    else
        snprintf (job, sizeof (job), "a job without a Slurm id (step %s)", h->step);
    snprintf (text, room, "%s, process %lld on host %s, since %s", job, h->pid, h->host,
              h->since);
}

/* ---- Who may take it ---- */

static bool is_same_job (const struct gsi_owner *a, const struct gsi_owner *b)
{
    return !strcmp (a->cluster, b->cluster) && !strcmp (a->job, b->job);
}

bool gsi_owner_is_same_step (const struct gsi_owner *a, const struct gsi_owner *b)
{
    return *a->step && !strcmp (a->step, b->step) && is_same_job (a, b) &&
           a->restarts == b->restarts;
}

/* Whether its process could be seen from here, and is not there. */
static bool is_gone (const struct gsi_owner *there, const struct gsi_owner *self)
{
    uint64_t start;
    bool ended;

    if (!*there->boot || strcmp (there->boot, self->boot) || !there->pid_space ||
        there->pid_space != self->pid_space || there->pid <= 0 || there->pid > INT32_MAX)
        return false;
    if (kill ((pid_t) there->pid, 0) && errno == ESRCH)
        return true;
    start = gsi_process_start (there->pid, &ended);
    return ended || (start && there->start && start != there->start); /* another has its number */
}

enum gsi_right gsi_owner_judge (const struct gsi_owner *there, const struct gsi_owner *self,
                                int64_t age_s)
{
    if (*self->job && is_same_job (there, self) && there->restarts < self->restarts)
        return GSI_RIGHT_OLDER;
    if (is_gone (there, self))
        return GSI_RIGHT_GONE;
    if (age_s > GSI_OWNER_SILENT_S)
        return GSI_RIGHT_SILENT;
    return gsi_owner_is_same_step (there, self) ? GSI_RIGHT_SHARED : GSI_RIGHT_NONE;
}
