/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit - main of the unit tests of a folder: runs its suites, or those that are named.
 *
 * With CK_TAP_LOG_FILE_NAME=- each test is a line of TAP. Time limits are longer where more runs
 * than there are processors for, and times CK_TIMEOUT_MULTIPLIER as everywhere in Check.
 */
#include "unit/unit.h"

#define MOST 20

static struct {
    const char *name;
    Suite *suite;
} suites[MOST];
static size_t count;

/* How much longer than alone a test may take: as many times as there are processes for each
 * processor. */
static double patience (void)
{
    double load, each = (double) sysconf (_SC_NPROCESSORS_ONLN);

    if (getloadavg (&load, 1) != 1 || each < 1 || load <= each)
        return 1;
    return load > 10 * each ? 10 : load / each;
}

void unit_add (const char *name, const TTest *const *tests, size_t number, double seconds,
               SFun before, SFun after)
{
    TCase *tcase = tcase_create (name);

    tcase_set_timeout (tcase, seconds * patience ());
    tcase_add_checked_fixture (tcase, unit_clean_env, NULL);
    if (before || after)
        tcase_add_checked_fixture (tcase, before, after);
    for (size_t i = 0; i < number; i++)
        tcase_add_test (tcase, tests[i]);
    if (count == MOST)
        abort ();
    suites[count].name = name;
    suites[count].suite = suite_create (name);
    suite_add_tcase (suites[count++].suite, tcase);
}

/* Adds the suite [name], or every one for NULL; whether there was any. */
static bool choose (SRunner *runner, const char *name)
{
    bool any = false;

    for (size_t i = 0; i < count; i++) {
        if (name && strcmp (name, suites[i].name))
            continue;
        srunner_add_suite (runner, suites[i].suite);
        any = true;
    }
    return any;
}

int main (int argc, char **argv)
{
    SRunner *runner = srunner_create (NULL);
    int failed;

    if (argc == 1)
        choose (runner, NULL);
    for (int i = 1; i < argc; i++) {
        if (choose (runner, argv[i]))
            continue;
        fprintf (stderr, "%s: there is no suite '%s'; there are:", argv[0], argv[i]);
        for (size_t k = 0; k < count; k++)
            fprintf (stderr, " %s", suites[k].name);
        fputc ('\n', stderr);
        return 2;
    }
    srunner_run_all (runner, CK_ENV);
    failed = srunner_ntests_failed (runner);
    srunner_free (runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
