/* SPDX-License-Identifier: BSD-3-Clause */
/* env - every GS_* variable: unset, good and absurd; refusals name variable, value and cure. */
#include "base/env.h"

#include <limits.h>

#include "unit/unit.h"

#define COUNT(array) (sizeof (array) / sizeof ((array)[0]))

/* The variables that hold a choice, with what is allowed. */
static const struct {
    enum gsi_env id;
    const char *name, *choices, *standard;
} choices[] = {
    {GSI_ENV_BOOT, "GS_BOOT", "auto|pmix|mpi|single", "auto"},
    {GSI_ENV_TRANSPORT, "GS_TRANSPORT", "auto|self|mpi|nccl|ofi", "auto"},
    {GSI_ENV_GPU_SHARING, "GS_GPU_SHARING", "auto|never|always", "auto"},
    {GSI_ENV_AVG, "GS_AVG", "auto|exact|fast", "auto"},
    {GSI_ENV_HOST_ALGO, "GS_HOST_ALGO", "auto|flat|hier|rabenseifner", "auto"},
    {GSI_ENV_CHECK, "GS_CHECK", "off|args|collective", "args"},
    {GSI_ENV_RECORD, "GS_RECORD", "file|memory", "file"},
};

/* The variables that hold a whole number. */
static const struct {
    enum gsi_env id;
    const char *name;
    int64_t low, high, standard;
} numbers[] = {
    {GSI_ENV_TIMEOUT_MS, "GS_TIMEOUT_MS", 1, 31536000000, 600000},
    {GSI_ENV_BOOT_TIMEOUT_MS, "GS_BOOT_TIMEOUT_MS", 1, 31536000000, 240000},
    {GSI_ENV_STUCK_MS, "GS_STUCK_MS", 0, 31536000000, 30000},
    {GSI_ENV_RECORD_KEEP, "GS_RECORD_KEEP", 0, 1, 0},
    {GSI_ENV_ALLOW_SHARED_GPU, "GS_ALLOW_SHARED_GPU", 0, 1, 0},
    {GSI_ENV_NCCL_RANKS_PER_ROOT, "GS_NCCL_RANKS_PER_ROOT", 1, 1000000, 128},
    {GSI_ENV_NCCL_MAX_CTAS, "GS_NCCL_MAX_CTAS", 0, 64, 0},
    {GSI_ENV_NCCL_NOTICES, "GS_NCCL_NOTICES", 0, 1, 1},
    {GSI_ENV_DETERMINISTIC, "GS_DETERMINISTIC", 0, 1, 0},
    {GSI_ENV_DEVICE, "GS_DEVICE", 0, 1023, GS_DEVICE_AUTO},
    {GSI_ENV_JOB_END, "GS_JOB_END", 1, 9000000000, GSI_JOB_END_AUTO},
};

static const char *const texts[] = {"GS_DEBUG_FILE", "GS_RECORD_DIR",   "GS_MPI_MODULE",
                                    "GS_OFI_MODULE", "GS_OFI_PROVIDER", "GS_CUDA_MODULE",
                                    "GS_ID_HOST",    "GS_PROFILE",      "GS_FAULT"};

START_TEST (every_variable_is_tested_here)
{
    ck_assert_uint_eq (COUNT (choices) + COUNT (numbers) + COUNT (texts) + 1, GSI_ENV_COUNT);
}
END_TEST

START_TEST (unset_and_empty_give_the_default)
{
    for (int empty = 0; empty < 2; empty++) {
        gs_setting_t s;
        for (int i = 0; empty && !gs_setting_get (i, &s); i++)
            setenv (s.name, "", 1);
        unit_ok (gsi_env_check ());
        for (size_t i = 0; i < COUNT (numbers); i++)
            ck_assert_int_eq (gsi_env_int (numbers[i].id), numbers[i].standard);
        ck_assert_int_eq (gsi_env_choice (GSI_ENV_BOOT), GSI_BOOT_AUTO);
        ck_assert_int_eq (gsi_env_choice (GSI_ENV_TRANSPORT), GS_TRANSPORT_AUTO);
        ck_assert_int_eq (gsi_env_choice (GSI_ENV_CHECK), GSI_CHECK_ARGS);
        ck_assert_int_eq (gsi_env_choice (GSI_ENV_RECORD), GSI_RECORD_FILE);
        ck_assert_str_eq (gsi_env_text (GSI_ENV_DEBUG), "warn");
        for (int i = 0; !gs_setting_get (i, &s); i++)
            ck_assert_str_eq (s.origin, "default");
    }
}
END_TEST

START_TEST (every_choice_is_understood)
{
    for (size_t i = 0; i < COUNT (choices); i++) {
        char list[64], *rest = list, *word;
        snprintf (list, sizeof (list), "%s", choices[i].choices);
        for (int index = 0; (word = strsep (&rest, "|")); index++) {
            setenv (choices[i].name, word, 1);
            unit_ok (gsi_env_check ());
            ck_assert_int_eq (gsi_env_choice (choices[i].id), index);
        }
        unsetenv (choices[i].name);
    }
    ck_assert_int_eq (GSI_BOOT_SINGLE, 3);
    ck_assert_int_eq (GS_TRANSPORT_NCCL, 3);
    ck_assert_int_eq (GSI_CHECK_COLLECTIVE, 2);
    ck_assert_int_eq (GSI_RECORD_MEMORY, 1);
}
END_TEST

START_TEST (absurd_choices_are_refused)
{
    static const char *const absurd[] = {
        "x", "AUTO", "auto ",    " auto", "aut",   "autox", "|",
        "1", "-1",   "off|args", "1e99",  "file|", "\xff",  "auto|pmix|mpi|single"};

    for (size_t i = 0; i < COUNT (choices); i++) {
        for (size_t j = 0; j < COUNT (absurd); j++) {
            char quoted[64];
            snprintf (quoted, sizeof (quoted), "'%s'", absurd[j]);
            setenv (choices[i].name, absurd[j], 1);
            unit_fails (gsi_env_check (), GS_ERR_ARG, choices[i].name, quoted,
                        choices[i].choices);
            ck_assert_int_ge (gsi_env_choice (choices[i].id), 0); /* the default serves */
        }
        unsetenv (choices[i].name);
    }
}
END_TEST

START_TEST (numbers_at_their_limits)
{
    for (size_t i = 0; i < COUNT (numbers); i++) {
        const int64_t good[] = {numbers[i].low, numbers[i].high};
        const int64_t bad[] = {numbers[i].low - 1, numbers[i].high + 1, INT64_MAX, INT64_MIN};
        char text[32], low[32], high[32];
        snprintf (low, sizeof (low), "from %lld ", (long long) numbers[i].low);
        snprintf (high, sizeof (high), "to %lld", (long long) numbers[i].high);
        for (size_t j = 0; j < COUNT (good); j++) {
            snprintf (text, sizeof (text), "%lld", (long long) good[j]);
            setenv (numbers[i].name, text, 1);
            unit_ok (gsi_env_check ());
            ck_assert_int_eq (gsi_env_int (numbers[i].id), good[j]);
        }
        for (size_t j = 0; j < COUNT (bad); j++) {
            snprintf (text, sizeof (text), "%lld", (long long) bad[j]);
            setenv (numbers[i].name, text, 1);
            unit_fails (gsi_env_check (), GS_ERR_ARG, numbers[i].name, text, low, high);
            ck_assert_int_eq (gsi_env_int (numbers[i].id), numbers[i].standard);
        }
        unsetenv (numbers[i].name);
    }
}
END_TEST

START_TEST (absurd_numbers_are_refused)
{
    static const char *const absurd[] = {"-5",
                                         "99999999999999999999",
                                         "-99999999999999999999",
                                         "1e99",
                                         "text",
                                         "1 ",
                                         "1s",
                                         "0x1",
                                         "1.0",
                                         "1,0",
                                         "+-1",
                                         " ",
                                         "nan",
                                         "inf"};

    for (size_t i = 0; i < COUNT (numbers); i++) {
        for (size_t j = 0; j < COUNT (absurd); j++) {
            char quoted[64];
            snprintf (quoted, sizeof (quoted), "'%s'", absurd[j]);
            setenv (numbers[i].name, absurd[j], 1);
            unit_fails (gsi_env_check (), GS_ERR_ARG, numbers[i].name, quoted, "whole number");
            ck_assert_int_eq (gsi_env_int (numbers[i].id), numbers[i].standard);
        }
        unsetenv (numbers[i].name);
    }
}
END_TEST

START_TEST (a_device_is_a_word_or_a_number)
{
    setenv ("GS_DEVICE", "auto", 1);
    unit_ok (gsi_env_check ());
    ck_assert_int_eq (gsi_env_int (GSI_ENV_DEVICE), GS_DEVICE_AUTO);
    setenv ("GS_DEVICE", "host", 1);
    unit_ok (gsi_env_check ());
    ck_assert_int_eq (gsi_env_int (GSI_ENV_DEVICE), GS_DEVICE_HOST);
    setenv ("GS_DEVICE", "gpu1", 1);
    unit_fails (gsi_env_check (), GS_ERR_ARG, "GS_DEVICE='gpu1'", "auto|host", "0 to 1023");
}
END_TEST

START_TEST (a_huge_value_leaves_room_for_the_cure)
{
    char *huge = malloc (100000);

    memset (huge, '7', 99999);
    huge[99999] = 0;
    setenv ("GS_TIMEOUT_MS", huge, 1);
    unit_fails (gsi_env_check (), GS_ERR_ARG, "GS_TIMEOUT_MS='777", "whole number from 1 to");
    unsetenv ("GS_TIMEOUT_MS");
    setenv ("GS_CHECK", huge, 1);
    unit_fails (gsi_env_check (), GS_ERR_ARG, "GS_CHECK='777", "off|args|collective");
    free (huge);
}
END_TEST

START_TEST (debug_starts_with_a_level)
{
    static const char *const good[] = {"error", "warn",       "info",
                                       "trace", "trace:boot", "info:comm,coll"};
    static const char *const bad[] = {"loud", "WARN", "warning", "warn,boot", ":boot",
                                      ":",    "3",    "-1",      "1e99",      "trace boot"};

    for (size_t i = 0; i < COUNT (good); i++) {
        setenv ("GS_DEBUG", good[i], 1);
        unit_ok (gsi_env_check ());
    }
    for (size_t i = 0; i < COUNT (bad); i++) {
        setenv ("GS_DEBUG", bad[i], 1);
        unit_fails (gsi_env_check (), GS_ERR_ARG, "GS_DEBUG", bad[i], "error, warn, info");
    }
}
END_TEST

/* A topic that is not there would silence the log. */
START_TEST (debug_names_topics_that_there_are)
{
    static const char *const bad[] = {"warn:",      "info:,comm",       "info:com",
                                      "info:comm,", "trace:boot,comm ", "info:comm:boot"};

    for (size_t i = 0; i < COUNT (bad); i++) {
        setenv ("GS_DEBUG", bad[i], 1);
        unit_fails (gsi_env_check (), GS_ERR_ARG, "GS_DEBUG", bad[i], "there is no topic",
                    "boot,ckpt,coll");
    }
}
END_TEST

START_TEST (texts_are_taken_as_they_are)
{
    for (size_t i = 0; i < COUNT (texts); i++) {
        setenv (texts[i], "any % text", 1);
        unit_ok (gsi_env_check ());
    }
    ck_assert_str_eq (gsi_env_text (GSI_ENV_RECORD_DIR), "any % text");
}
END_TEST

START_TEST (settings_are_listed)
{
    gs_setting_t s;
    int found = 0;

    setenv ("GS_TIMEOUT_MS", "77", 1);
    for (int i = 0; i < GSI_ENV_COUNT; i++) {
        unit_ok (gs_setting_get (i, &s));
        ck_assert_ptr_eq (strstr (s.name, "GS_"), s.name);
        ck_assert_ptr_nonnull (s.value);
        ck_assert_uint_gt (strlen (s.help), 10);
        if (strcmp (s.name, "GS_TIMEOUT_MS"))
            continue;
        found++;
        ck_assert_str_eq (s.value, "77");
        ck_assert_str_eq (s.origin, "environment");
    }
    ck_assert_int_eq (found, 1);
}
END_TEST

START_TEST (settings_have_bounds)
{
    static const int outside[] = {-1, GSI_ENV_COUNT, INT_MAX, INT_MIN};
    gs_setting_t s = {.name = "untouched"};

    for (size_t i = 0; i < COUNT (outside); i++)
        unit_fails (gs_setting_get (outside[i], &s), GS_ERR_ARG, "gs_setting_get", "index");
    ck_assert_str_eq (s.name, "untouched");
    unit_fails (gs_setting_get (0, NULL), GS_ERR_ARG, "setting is NULL");
}
END_TEST

START_TEST (misspelt_variables_have_a_nearest_one)
{
    static const char *const pairs[][2] = {
        {"GS_TRASNPORT", "GS_TRANSPORT"},          {"GS_TIMEOUT", "GS_TIMEOUT_MS"},
        {"GS_BOOT_TIMEOUT", "GS_BOOT_TIMEOUT_MS"}, {"GS_CHEK", "GS_CHECK"},
        {"GS_DEBUGFILE", "GS_DEBUG_FILE"},         {"GS_DETERMINSTIC", "GS_DETERMINISTIC"},
        {"GS_HOST_ALGORITHM", "GS_HOST_ALGO"},     {"GS_AVGS", "GS_AVG"},
    };
    static const char *const others[] = {"GS_LIB",          "GS_OPTIONS",     "GS_FONTPATH",
                                         "GS_TEST_SECONDS", "GS_LAUNCH_MARK", "GS_",
                                         "GS_INSIDE"};
    gs_setting_t s;

    for (size_t i = 0; i < COUNT (pairs); i++) {
        const char *nearest = gsi_env_nearest (pairs[i][0]);
        ck_assert_msg (nearest && !strcmp (nearest, pairs[i][1]), "%s: %s, not %s", pairs[i][0],
                       nearest ? nearest : "none", pairs[i][1]);
    }
    for (size_t i = 0; i < COUNT (others); i++)
        ck_assert_msg (!gsi_env_nearest (others[i]), "%s: %s", others[i],
                       gsi_env_nearest (others[i]));
    for (int i = 0; !gs_setting_get (i, &s); i++)
        ck_assert_msg (!gsi_env_nearest (s.name), "%s is known", s.name);
}
END_TEST

static void count_warnings (gs_log_level_t level, const char *line, void *context)
{
    if (level == GS_LOG_WARN && strstr (line, "GS_TRASNPORT") && strstr (line, "GS_TRANSPORT"))
        ++*(int *) context;
}

START_TEST (misspelt_variables_are_told_once)
{
    int warnings = 0;

    setenv ("GS_TRASNPORT", "mpi", 1);
    setenv ("GS_OPTIONS", "-q", 1);
    gs_log_set_sink (count_warnings, &warnings);
    gsi_env_warn_misspelt ();
    gsi_env_warn_misspelt ();
    gs_log_set_sink (NULL, NULL);
    ck_assert_int_eq (warnings, 1);
}
END_TEST

UNIT_SUITE ("env", 10, every_variable_is_tested_here, unset_and_empty_give_the_default,
            every_choice_is_understood, absurd_choices_are_refused, numbers_at_their_limits,
            absurd_numbers_are_refused, a_device_is_a_word_or_a_number,
            a_huge_value_leaves_room_for_the_cure, debug_starts_with_a_level,
            debug_names_topics_that_there_are, texts_are_taken_as_they_are, settings_are_listed,
            settings_have_bounds, misspelt_variables_have_a_nearest_one,
            misspelt_variables_are_told_once)
