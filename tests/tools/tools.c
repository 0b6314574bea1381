/* SPDX-License-Identifier: BSD-3-Clause */
/* tools - the parts of the tools that are plain functions: medians and JSON strings. */

#include "tools/bench/stats.h"
#include "tools/json.h"
#include "unit/unit.h"

START_TEST (median_is_the_middle_or_between_the_two_middle_ones)
{
    double one[] = {5}, two[] = {3, 1}, odd[] = {9, -1, 4}, even[] = {8, 2, 1e300, 4};

    ck_assert_double_eq (bench_median (one, 1), 5);
    ck_assert_double_eq (bench_median (two, 2), 2);
    ck_assert_double_eq (bench_median (odd, 3), 4);
    ck_assert_double_eq (bench_median (even, 4), 6);
}
END_TEST

static void check_string (const char *text, const char *expected)
{
    char *got = NULL;
    size_t bytes;
    FILE *out = open_memstream (&got, &bytes);

    ck_assert_ptr_nonnull (out);
    json_string (out, text);
    fclose (out);
    ck_assert_str_eq (got, expected);
    free (got);
}

START_TEST (strings_are_quoted)
{
    check_string ("", "\"\"");
    check_string ("plain /text", "\"plain /text\"");
    check_string ("a\"b\\c", "\"a\\\"b\\\\c\"");
    check_string ("\n\t\x01\x7f", "\"\\u000a\\u0009\\u0001\\u007f\"");
}
END_TEST

START_TEST (utf8_passes_and_other_bytes_are_replaced)
{
    check_string ("\u00e4\u20ac\U0001f600", "\"\u00e4\u20ac\U0001f600\"");
    check_string ("a\xffz", "\"a\\ufffdz\"");
    check_string ("\xc3", "\"\\ufffd\"");                                  /* cut off */
    check_string ("\xe2\x82", "\"\\ufffd\\ufffd\"");                       /* cut off */
    check_string ("\xc0\xaf", "\"\\ufffd\\ufffd\"");                       /* overlong */
    check_string ("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"");            /* surrogate */
    check_string ("\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""); /* beyond Unicode */
}
END_TEST

UNIT_SUITE ("tools", 10, median_is_the_middle_or_between_the_two_middle_ones, strings_are_quoted,
            utf8_passes_and_other_bytes_are_replaced)
