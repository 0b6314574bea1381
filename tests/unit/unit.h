/* SPDX-License-Identifier: BSD-3-Clause */
/* unit.h - what every unit test needs beside Check: being a suite, a clean environment. */
#ifndef GS_TESTS_UNIT_H
#define GS_TESTS_UNIT_H

#include <check.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gradsync.h"

/* Checks that [call] fails with [status] and that its text has all the parts that follow. */
#define unit_fails(call, status, ...) unit_failed (call, status, #call, __VA_ARGS__, NULL)

static inline void unit_failed (gs_status_t st, gs_status_t wanted, const char *call, ...)
{
    const char *part;
    va_list ap;

    ck_assert_msg (st == wanted, "%s gives %s, not %s; last error: %s", call,
                   gs_status_string (st), gs_status_string (wanted), gs_last_error ());
    va_start (ap, call);
    while ((part = va_arg (ap, const char *)))
        ck_assert_msg (strstr (gs_last_error (), part), "%s: no '%s' in '%s'", call, part,
                       gs_last_error ());
    va_end (ap);
}

/* As ck_assert_msg, for inner loops: Check writes to its pipe at each of its own assertions. */
#define unit_check(condition, ...)      \
    do {                                \
        if (!(condition))               \
            ck_abort_msg (__VA_ARGS__); \
    } while (0)

#define unit_ok(call) unit_worked (call, #call)

static inline void unit_worked (gs_status_t st, const char *call)
{
    ck_assert_msg (st == GS_OK, "%s gives %s: %s", call, gs_status_string (st), gs_last_error ());
}

/* How much longer than usual to wait: where Check does, under valgrind for instance; up to 4. */
static inline int unit_patience (void)
{
    const char *text = getenv ("CK_TIMEOUT_MULTIPLIER");
    int times = text ? atoi (text) : 1;

    return times > 4 ? 4 : times > 1 ? times : 1;
}

/* No GS_* variable, and nothing of a launcher that these tests may run under. */
static inline void unit_clean_env (void)
{
    static const char *const foreign[] = {
        "SLURM_JOB_ID",
        "SLURM_CLUSTER_NAME",
        "SLURM_RESTART_COUNT",
        "SLURM_STEP_ID",
        "SLURM_STEP_NUM_TASKS",
        "OMPI_COMM_WORLD_SIZE",
        "PMI_SIZE",
        "PALS_SIZE",
        "MV2_COMM_WORLD_SIZE",
        "MVP_COMM_WORLD_SIZE",
        "JSM_NAMESPACE_SIZE",
        "FLUX_JOB_SIZE",
        "SLURM_NTASKS",
        "SLURM_HET_SIZE",
        "PMI_CONTROL_PORT",
        "PALS_APID",
        "PMIX_NAMESPACE",
        "PMIX_RANK",
        "PMIX_SERVER_URI2",
        "PMIX_SERVER_URI3",
        "PMIX_SERVER_URI21",
    };
    gs_setting_t setting;

    for (int i = 0; !gs_setting_get (i, &setting); i++)
        unsetenv (setting.name);
    for (size_t i = 0; i < sizeof (foreign) / sizeof (foreign[0]); i++)
        unsetenv (foreign[i]);
}

/* xorshift64*: the same numbers everywhere. [state] is not 0. */
static inline uint64_t unit_random (uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C (2685821657736338717);
}

/* Adds a suite to those that main, in tests/unit/unit.c, runs. Each test is allowed [seconds] on
 * a machine that has nothing else to do; [before] and [after], or NULL, run in its process, in a
 * clean environment. */
void unit_add (const char *name, const TTest *const *tests, size_t count, double seconds,
               SFun before, SFun after);

/* The tests that follow are a suite. */
#define UNIT_SUITE(name, seconds, ...) UNIT_SUITE_WITH (name, seconds, NULL, NULL, __VA_ARGS__)

#define UNIT_SUITE_WITH(name, seconds, before, after, ...)                                  \
    __attribute__ ((constructor)) static void unit_register (void)                          \
    {                                                                                       \
        const TTest *const tests[] = {__VA_ARGS__};                                         \
        unit_add (name, tests, sizeof (tests) / sizeof (tests[0]), seconds, before, after); \
    }

#endif /* GS_TESTS_UNIT_H */
