/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * multi.h - what programs of several ranks share: checks, the launcher's view, signals by file.
 *
 * Any rank's failed check makes the program fail; rank 0 says what was done when all went well.
 */
#ifndef GS_TESTS_MULTI_H
#define GS_TESTS_MULTI_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gradsync.h"

#define MULTI_SHOWN 20 /* failures printed per rank; all are counted */

static int multi_failures;

/* A number of the environment, the first of the names that is set, else [standard]. */
static inline int multi_number (int standard, const char *name, ...)
{
    const char *text = NULL;
    va_list ap;

    va_start (ap, name);
    for (; name && !text; name = va_arg (ap, const char *))
        text = getenv (name);
    va_end (ap);
    return text ? atoi (text) : standard;
}

/* Rank and size as the launcher has them, known before any communicator. */
static inline int multi_rank (void)
{
    return multi_number (0, "GS_TEST_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID",
                         NULL);
}

#define MULTI_MOST_RANKS 64 /* that programs have room for */

static inline int multi_size (void)
{
    int size =
        multi_number (1, "GS_TEST_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", NULL);

    if (size > MULTI_MOST_RANKS) {
        fprintf (stderr, "%d ranks: tests have room for %d\n", size, MULTI_MOST_RANKS);
        exit (EXIT_FAILURE);
    }
    return size;
}

__attribute__ ((format (printf, 3, 4))) static inline void
multi_failed (const char *file, int line, const char *format, ...)
{
    char text[3000];
    va_list ap;

    if (multi_failures++ >= MULTI_SHOWN)
        return;
    va_start (ap, format);
    vsnprintf (text, sizeof (text), format, ap);
    va_end (ap);
    fprintf (stderr, "rank %d: %s:%d: %s\n", multi_rank (), file, line, text);
}

/* Goes on after a failure, so that no other rank is left waiting for this one. */
#define CHECK(condition, ...)                               \
    do {                                                    \
        if (!(condition))                                   \
            multi_failed (__FILE__, __LINE__, __VA_ARGS__); \
    } while (0)

#define CHECK_OK(call) multi_check_status (__FILE__, __LINE__, #call, call, GS_OK, NULL)

/* The call must fail so, with all the parts that follow in its text. */
#define CHECK_FAILS(call, status, ...) \
    multi_check_status (__FILE__, __LINE__, #call, call, status, __VA_ARGS__, NULL)

static inline void multi_check_status (const char *file, int line, const char *call,
                                       gs_status_t st, gs_status_t wanted, ...)
{
    const char *part;
    va_list ap;

    if (st != wanted) {
        multi_failed (file, line, "%s gives %s, not %s: %s", call, gs_status_string (st),
                      gs_status_string (wanted), st ? gs_last_error () : "");
        return;
    }
    va_start (ap, wanted);
    while ((part = va_arg (ap, const char *)))
        if (!strstr (gs_last_error (), part))
            multi_failed (file, line, "%s: no '%s' in '%s'", call, part, gs_last_error ());
    va_end (ap);
}

/* Every SIM_BLIND_EVERY-th rank has no GPU, the others have; 0: all are alike. */
static inline int multi_mixed (void)
{
    const char *every = getenv ("SIM_BLIND_EVERY");

    return every ? atoi (every) : 0;
}

/* Whether the launch asks for GPUs, real or simulated, on all ranks. */
static inline bool multi_on_gpus (void)
{
    const char *transport = getenv ("GS_TRANSPORT");

    return transport && !strcmp (transport, "nccl");
}

/* Whether ranks have memory of GPUs, by gs_device_alloc: all of them, or those that are not
 * blind. */
static inline bool multi_any_gpus (void)
{
    return multi_on_gpus () || multi_mixed ();
}

/* Whether this rank has. */
static inline bool multi_has_gpu (void)
{
    int every = multi_mixed ();

    return every ? multi_rank () % every != every - 1 : multi_on_gpus ();
}

/* Where several ranks share one of the GS_TEST_SHARED_GPUS GPUs of a node, what NCCL does not
 * carry goes between hosts, by MPI. */
static inline bool multi_shares_gpus (void)
{
    return multi_on_gpus () && getenv ("GS_TEST_SHARED_GPUS");
}

/* [st] of a call and, where it was queued, of waiting for it. */
static inline gs_status_t multi_wait (gs_comm_t *comm, gs_status_t st)
{
    return st ? st : gs_comm_wait (comm, NULL);
}

static char multi_why[4096]; /* the text of the first failure that was kept */

/* Keeps the text of [st], for what comes next may fail, or succeed, too. */
static inline gs_status_t multi_keep (gs_status_t st)
{
    if (st && !*multi_why)
        snprintf (multi_why, sizeof (multi_why), "%s", gs_last_error ());
    return st;
}

/* All ranks have come so far, also where a barrier is queued on GPUs. */
static inline gs_status_t multi_barrier (gs_comm_t *comm)
{
    return multi_wait (comm, gs_barrier (comm, NULL));
}

static inline double multi_seconds (void)
{
    struct timespec t;

    clock_gettime (CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

/* Whether [id] is the one that rank 0 has put at [path]: whole, for it was renamed. */
static inline bool multi_read_id (const char *path, gs_unique_id_t *id)
{
    FILE *file = fopen (path, "r");
    bool whole = file && fread (id, sizeof (*id), 1, file) == 1;

    if (file)
        fclose (file);
    return whole;
}

/* Ranks without a launcher (tests/gpu/ranks) meet by an id, one for each communicator, in a file
 * that GS_TEST_ID begins the name of.
 */
static inline gs_status_t multi_create_by_id (const gs_comm_opts_t *opts, gs_comm_t **comm)
{
    static int created;
    double until = multi_seconds () + 60;
    gs_unique_id_t id = {{0}};
    char path[1024], whole[1040];
    FILE *file;

    snprintf (whole, sizeof (whole), "%s.%d", getenv ("GS_TEST_ID"), created++);
    snprintf (path, sizeof (path), "%.1000s.new", whole);
    if (!multi_rank ()) {
        gs_status_t st = gs_unique_id_get (&id);
        if (st)
            return st;
        if (!(file = fopen (path, "w")) || fwrite (&id, sizeof (id), 1, file) != 1 ||
            fclose (file) || rename (path, whole)) {
            fprintf (stderr, "cannot write an id to %s\n", whole);
            exit (1);
        }
    }
    while (multi_rank () && !multi_read_id (whole, &id) && multi_seconds () < until)
        usleep (10000);
    return gs_comm_create_from_id (&id, multi_rank (), multi_size (), opts, comm);
}

/* A communicator of all ranks; without one the program cannot go on. */
static inline gs_comm_t *multi_create (const gs_comm_opts_t *opts)
{
    gs_comm_t *comm;
    gs_status_t st =
        getenv ("GS_TEST_ID") ? multi_create_by_id (opts, &comm) : gs_comm_create (opts, &comm);

    if (!st)
        return comm;
    fprintf (stderr, "rank %d: gs_comm_create: %s: %s\n", multi_rank (), gs_status_string (st),
             gs_last_error ());
    exit (1);
}

/* The path of a signal in the launch's own folder, which all simulated nodes share. */
static inline const char *multi_signal_path (const char *name, int rank)
{
    static char path[1024];
    const char *folder = getenv ("TMPDIR");

    snprintf (path, sizeof (path), "%s/signal-%s-%d", folder ? folder : "/tmp", name, rank);
    return path;
}

/* Tells ranks that await it, without gradsync. */
static inline void multi_signal (const char *name, int rank)
{
    FILE *file = fopen (multi_signal_path (name, rank), "w");

    CHECK (file, "cannot write %s", multi_signal_path (name, rank));
    if (file)
        fclose (file);
}

/* Waits for the signal of [rank], for half a minute at most. */
static inline void multi_await (const char *name, int rank)
{
    double until = multi_seconds () + 30;

    while (access (multi_signal_path (name, rank), F_OK) && multi_seconds () < until)
        usleep (10000);
    CHECK (!access (multi_signal_path (name, rank), F_OK), "no signal %s of rank %d", name, rank);
}

/* Waits for the signals of all ranks but [except]. */
static inline void multi_await_others (const char *name, int except)
{
    for (int r = 0; r < multi_size (); r++)
        if (r != except)
            multi_await (name, r);
}

/* What main returns; rank 0 says what was done. */
static inline int multi_end (const char *done)
{
    if (!multi_failures && !multi_rank ())
        printf ("%s\n", done);
    if (multi_failures > MULTI_SHOWN)
        fprintf (stderr, "rank %d: %d failures in all\n", multi_rank (), multi_failures);
    return multi_failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* The same where ranks leave without PMIx_Finalize: Slurm ends a step once one of them has. */
static inline int multi_end_together (const char *done)
{
    int status = multi_end (done);

    fflush (NULL);
    multi_signal ("leaves", multi_rank ());
    multi_await_others ("leaves", multi_rank ());
    if (getenv ("SLURM_STEP_ID"))
        _exit (status); /* what exit does takes some longer than others */
    return status;
}

#endif /* GS_TESTS_MULTI_H */
