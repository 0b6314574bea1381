#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# size.sh - no file over 600 lines, no function over 80, no line over 98 columns.
. "$(dirname "$0")/lint.sh"

mapfile -t files < <(sources awk c h cpp cu cuh f90 sh; echo setup)
found=$(awk '
    FNR == 1 { begin = depth = 0 }
    FNR == 601 { print FILENAME ": more than 600 lines" }
    length ($0) > 98 { print FILENAME ":" FNR ": " length ($0) " columns, 98 are allowed" }
    # C: bodies start and end with a brace in column 1. Shell: with "name () {" and "}".
    /^\{/ || /^[a-z_]+ \(\) \{/ { begin = FNR }
    /^\}/ && begin { report(FNR - begin + 1); begin = 0 }
    # Fortran procedures with bodies; contained ones count for themselves and their host.
    { text = tolower ($0) }
    text ~ /^ *([a-z_0-9()]+ +)*(subroutine|function) +[a-z_0-9]+ *\(/ && text !~ /^ *end/ {
        start[++depth] = FNR
    }
    text ~ /^ *end +(subroutine|function)/ { report(FNR - start[depth--] + 1) }
    function report(lines) {
        if (lines > 80)
            print FILENAME ":" FNR ": a function of " lines " lines, 80 are allowed"
    }' "${files[@]}" 2>&1) || complain size "the files cannot be measured"
[[ -z $found ]] || complain size "$found"

finish "files up to 600 lines, functions up to 80, lines up to 98 columns"
