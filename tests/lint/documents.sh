#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# documents.sh - groff formats every manual page without a warning, and the build installs it; the
# README and a page show example programs as they are; links between our documents lead somewhere.
. "$(dirname "$0")/lint.sh"
need groff groff-base

check_page () { # FILE
    local target warnings

    grep -qF "  $1" doc/Makefile.am || complain "$1" "is not in doc/Makefile.am"
    target=$(sed -n '1s/^\.so man[13]\///p' "$1")
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

# check_page_example PAGE FILE: the page's EXAMPLE is the file, but for its first two lines.
check_page_example () {
    sed -n '/^\.SH EXAMPLE$/,/^\.EE$/p' "$1" | sed '1,/^\.EX$/d;$d;s/\\e/\\/g;s/\\-/-/g' \
        | cmp -s - <(sed 1,2d "$2") || complain "$1" "its example differs from $2"
}

# check_page_program PAGE FILE: the page has the file's program, which begins with "import sys".
check_page_program () {
    sed -n '/^import sys$/,/^\.EE$/p' "$1" | sed '$d;s/\\e/\\/g;s/\\-/-/g' \
        | cmp -s - <(sed 1,2d "$2") || complain "$1" "its program differs from $2"
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
check_page_example doc/man/gradsync-checkpoint.7 doc/examples/c/resume.c
check_page_example doc/man/gradsync-reducer.7 doc/examples/c/train.c
check_page_program doc/man/gradsync-checkpoint.7 doc/examples/python/plot.py
for file in README.md doc/*.md; do
    check_links "$file"
done

finish "the manual formats, documents show what is there"
