/* SPDX-License-Identifier: BSD-3-Clause */
/* fault - SIM_FAULT, which makes the n-th call of something fail, and SIM_COUNT. */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rt.h"

#define NAME_BYTES 64
#define POINTS     512 /* a power of two, more than there are functions */
#define RULES      16
#define SLOW_S     3

struct point {
    char name[NAME_BYTES];
    unsigned long calls;
};

struct rule {
    char point[NAME_BYTES];
    unsigned long call; /* which one */
    bool on;            /* it and all later ones */
    long rank;          /* LONG_MIN: any */
    enum sim_fault fault;
    int code; /* INT_MIN: the usual one of the point */
    bool happened;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static struct point points[POINTS];
static struct rule rules[RULES];
static int rule_count = -1; /* -1: SIM_FAULT was not read yet */

void rt_faults_lock (void)
{
    pthread_mutex_lock (&lock);
}

void rt_faults_unlock (void)
{
    pthread_mutex_unlock (&lock);
}

long sim_rank (void)
{
    static const char *const names[] = {"PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"};

    for (int i = 0; i < 3; i++) {
        const char *text = getenv (names[i]);
        if (text && isdigit ((unsigned char) *text))
            return strtol (text, NULL, 10);
    }
    return 0;
}

/* One fault of the list, POINT[#N[+]][@RANK][=CODE|=stall|=late|=slow]; false: it is not one. */
static bool parse_rule (char *text, struct rule *rule)
{
    char *end = text + strcspn (text, "#@=");
    size_t bytes = (size_t) (end - text);

    *rule = (struct rule){"", 1, false, LONG_MIN, SIM_FAULT_ERROR, INT_MIN, false};
    if (!bytes || bytes >= NAME_BYTES)
        return false;
    memcpy (rule->point, text, bytes);
    if (*end == '#') {
        rule->call = strtoul (end + 1, &end, 10);
        if (!rule->call)
            return false;
        if (*end == '+') {
            rule->on = true;
            end++;
        }
    }
    if (*end == '@') {
        if (!isdigit ((unsigned char) end[1]))
            return false;
        rule->rank = strtol (end + 1, &end, 10);
    }
    if (!*end)
        return true;
    if (*end != '=')
        return false;
    if (!strcmp (end, "=stall"))
        rule->fault = SIM_FAULT_STALL;
    else if (!strcmp (end, "=late"))
        rule->fault = SIM_FAULT_LATE;
    else if (!strcmp (end, "=slow"))
        rule->fault = SIM_FAULT_SLOW;
    else if (isdigit ((unsigned char) end[1]))
        rule->code = (int) strtol (end + 1, &end, 10);
    else
        return false;
    return rule->fault != SIM_FAULT_ERROR || !*end;
}

static void read_rules (void)
{
    const char *text = getenv ("SIM_FAULT");
    char *copy = strdup (text ? text : ""), *rest = NULL;

    rule_count = 0;
    for (char *one = strtok_r (copy, ",", &rest); one; one = strtok_r (NULL, ",", &rest)) {
        struct rule rule;
        if (rule_count == RULES || !parse_rule (one, &rule))
            sim_misuse ("SIM_FAULT: '%s' is not POINT[#N[+]][@RANK][=CODE|=stall|=late|=slow], "
                        "or is one of more than %d",
                        one, RULES);
        else if (rule.rank == LONG_MIN || rule.rank == sim_rank ())
            rules[rule_count++] = rule;
    }
    free (copy);
}

/* What a function gives when it fails in the field; late, a kernel that died, or a lost peer. */
static int usual_code (const char *point, enum sim_fault fault)
{
    static const char *const allocating[] = {"Malloc", "HostAlloc", "Create", "Register",
                                             "Instantiate"};

    if (!strncmp (point, "nccl", 4))
        return fault == SIM_FAULT_LATE ? 6 : 2; /* ncclRemoteError, ncclSystemError */
    if (fault == SIM_FAULT_LATE || strstr (point, "Launch"))
        return cudaErrorLaunchFailure;
    if (!strncmp (point, "cudaIpc", 7))
        return cudaErrorMapBufferObjectFailed;
    if (!strcmp (point, "cudaGetDeviceCount"))
        return cudaErrorNoDevice;
    for (size_t i = 0; i < sizeof (allocating) / sizeof (allocating[0]); i++)
        if (strstr (point, allocating[i]))
            return cudaErrorMemoryAllocation;
    return cudaErrorUnknown;
}

static struct point *find_point (const char *name)
{
    unsigned hash = 2166136261u;

    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char) *c) * 16777619u;
    for (;; hash++) {
        struct point *point = &points[hash % POINTS];
        if (!point->name[0])
            snprintf (point->name, NAME_BYTES, "%s", name);
        if (!strcmp (point->name, name))
            return point;
    }
}

enum sim_fault sim_fault (const char *name, int *code)
{
    enum sim_fault fault = SIM_FAULT_NONE;
    struct point *point;

    *code = 0;
    rt_faults_lock ();
    if (rule_count < 0)
        read_rules ();
    point = find_point (name);
    point->calls++;
    for (int i = 0; i < rule_count && !fault; i++) {
        struct rule *rule = &rules[i];
        if (strcmp (rule->point, name) ||
            (rule->on ? point->calls < rule->call : point->calls != rule->call))
            continue;
        rule->happened = true;
        fault = rule->fault;
        *code = rule->code == INT_MIN ? usual_code (name, fault) : rule->code;
    }
    rt_faults_unlock ();
    if (fault != SIM_FAULT_SLOW)
        return fault;
    sleep (SLOW_S);
    return SIM_FAULT_NONE;
}

unsigned long sim_calls (const char *name)
{
    unsigned long calls;

    rt_faults_lock ();
    calls = find_point (name)->calls;
    rt_faults_unlock ();
    return calls;
}

static void write_counts (const char *path)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream (&text, &bytes), *out;

    if (!file)
        return;
    for (int i = 0; i < POINTS; i++)
        if (points[i].calls)
            fprintf (file, "%s %lu %ld\n", points[i].name, points[i].calls, (long) getpid ());
    fclose (file);
    if ((out = fopen (path, "a"))) {
        setvbuf (out, NULL, _IOFBF, bytes + 1); /* one write: other processes append too */
        fwrite (text, 1, bytes, out);
        fclose (out);
    } else {
        sim_misuse ("SIM_COUNT: %s cannot be written", path);
    }
    free (text);
}

void rt_faults_end (void)
{
    const char *path = getenv ("SIM_COUNT");

    rt_faults_lock ();
    for (int i = 0; i < rule_count; i++)
        if (!rules[i].happened)
            fprintf (stderr, "simgpu: SIM_FAULT: call %lu of %s did not come\n", rules[i].call,
                     rules[i].point);
    if (path && *path)
        write_counts (path);
    rt_faults_unlock ();
}
