#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# stems.sh - no two tests of a folder have one stem, as x.sh and x.mt would: automake names the
# log after it, and make runs one of them only.
. "$(dirname "$0")/lint.sh"

extensions=$(sed -n 's/^TEST_EXTENSIONS = //p' tests/Makefile.am)
tests=$(find tests -name '*.am' -exec grep -ohE "tests/[a-z0-9_/-]+(${extensions// /|})\b" {} + \
    | sort -u) # the dot of an extension fits more, which is none of ours
while read -r stem; do
    twins=$(grep -E "^$stem(\.[a-z]+)?$" <<<"$tests" | xargs)
    complain "$stem" "has tests of one .log, of which make runs one: $twins"
done < <(sed -E 's/\.[a-z]+$//' <<<"$tests" | sort | uniq -d)

finish "$(wc -l <<<"$tests") tests have a stem of their own"
