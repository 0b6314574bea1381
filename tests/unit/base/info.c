/* SPDX-License-Identifier: BSD-3-Clause */
/* info - the version is the header's, and the build tells every part as a line "name: value". */
#include "config.h"
#include "unit/unit.h"

START_TEST (version_is_the_headers)
{
    char text[64];

    snprintf (text, sizeof (text), "%d.%d.%d", GS_VERSION_MAJOR, GS_VERSION_MINOR,
              GS_VERSION_PATCH);
    ck_assert_str_eq (gs_version (), text);
}
END_TEST

START_TEST (lines_are_name_and_value)
{
    static const char *const wanted[] = {
        "version: ",     "\npmix: ",      "\nopenssl: ",  "\nmpi: ",
        "\nhdf5: ",      "\ncuda: ",      "\nnccl: ",     "\nfortran: ",
        "\nhardening: ", "\nsanitizer: ", "\ncompiler: ", "\nfault injection: "};
    const char *info = gs_build_info ();

    for (size_t i = 0; i < sizeof (wanted) / sizeof (wanted[0]); i++)
        ck_assert_msg (strstr (info, wanted[i]), "no '%s' in:\n%s", wanted[i], info);
    for (const char *line = info; *line; line = strchr (line, '\n') + 1) {
        const char *end = strchr (line, '\n'), *colon = strstr (line, ": ");
        ck_assert_msg (end && colon && colon < end && colon + 2 < end, "line '%s'", line);
    }
}
END_TEST

START_TEST (pmix_is_told)
{
#ifdef HAVE_PMIX
    ck_assert_ptr_null (strstr (gs_build_info (), "pmix: no\n"));
#else
    ck_assert_ptr_nonnull (strstr (gs_build_info (), "pmix: no\n"));
#endif
}
END_TEST

UNIT_SUITE ("info", 10, version_is_the_headers, lines_are_name_and_value, pmix_is_told)
