/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_main - the tests of the simulated runtime. A test also fails if its process ends with
 * misuse, leaks among it. They may be picked with CK_RUN_CASE.
 */
#include "test.h"

int main (void)
{
    static TCase *(*const cases[]) (void) = {
        test_device, test_memory, test_stream_case, test_event_case, test_default, test_capture,
        test_launch, test_value,  test_ipc,         test_share,      test_visible, test_fault};
    Suite *suite = suite_create ("simulated CUDA runtime");
    SRunner *runner;
    int failed;

    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++)
        suite_add_tcase (suite, cases[i]());
    runner = srunner_create (suite);
    srunner_run_all (runner, CK_ENV);
    failed = srunner_ntests_failed (runner);
    srunner_free (runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
