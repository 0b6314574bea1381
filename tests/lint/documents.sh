#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# documents.sh - groff formats every manual page without a warning, and the build installs it; the
# README shows the example programs as they are; links between our documents lead somewhere.
. "$(dirname "$0")/lint.sh"
need groff groff-base

check_page () { # FILE
    local target warnings

    grep -qF "  $1" doc/Makefile.am || complain "$1" "is not in doc/Makefile.am"
    target=$(sed -n '1s/^\.so man3\///p' "$1")
    if [[ -n $target ]]; then
        [[ -e doc/man/$target ]] || complain "$1" "points to $target, which is not there"
        return
    fi
    warnings=$(LC_ALL=C.UTF-8 groff -t -man -ww -Tutf8 -z "$1" 2>&1)
    [[ -z $warnings ]] || complain "$1" "$warnings"
}

# check_example LANGUAGE FILE: the README's block of this language is the file.
check_example () {
    sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" README.md | sed '1d;$d' | cmp -s - "$2" \
        || complain README.md "its $1 example differs from $2"
}

check_links () { # FILE
    local link

    while read -r link; do
        [[ -e $(dirname "$1")/$link ]] || complain "$1" "links to $link, which is not there"
    done < <(grep -oE '\]\([^)#: ]+' "$1" | sed 's/^](//')
}

for file in doc/man/*.[0-9]; do
    check_page "$file"
done
check_example c doc/examples/c/average.c
check_example fortran doc/examples/fortran/average.f90
for file in README.md doc/*.md; do
    check_links "$file"
done

finish "the manual formats, the README shows what is there"
