#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# documents.sh - groff formats every manual page without a warning, and the build installs it;
# pages show example programs as they are; links between our documents, and references to pages,
# lead somewhere.
. "$(dirname "$0")/lint.sh"
need groff groff-base

# Pages are formatted in one run, where one could hide what another lacks by defining it.
check_pages () {
    local installed page pages=() target text warnings

    installed=$(<doc/Makefile.am)
    for page in doc/man/*.[0-9]; do
        [[ $installed = *"  $page"* ]] || complain "$page" "is not in doc/Makefile.am"
        read -r text <"$page"
        target=${text#.so man[0-9]/}
        if [[ $target = "$text" ]]; then
            pages+=("$page")
        elif [[ ! -e doc/man/$target ]]; then
            complain "$page" "points to $target, which is not there"
        fi
    done
    warnings=$(LC_ALL=C.UTF-8 groff -t -man -ww -Tutf8 -z "${pages[@]}" 2>&1)
    [[ -z $warnings ]] || complain doc/man "$warnings"
    warnings=$(grep -nE "^[.'] *(de|am|al.|ds|as|nr|rn|rm)[1i]? " "${pages[@]}")
    [[ -z $warnings ]] || complain doc/man "pages define nothing: $warnings"
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

check_links () { # FILE...
    local file link

    while IFS=: read -r file link; do
        link=${link#](}
        [[ -e ${file%/*}/$link ]] || complain "$file" "links to $link, which is not there"
    done < <(grep -oHE '\]\([^)#: ]+' "$@")
}

# Of functions, as "gs_send (3)" or "\fBgs_send\fP(3)".
check_references () { # FILE...
    local file name

    while read -r file name; do
        [[ -e doc/man/$name.3 ]] || complain "$file" "there is no page $name(3)"
    done < <(grep -HoE '(^|[^a-z_])gs_[a-z0-9_]+(\\fP)? ?\(3\)' "$@" | sort -u \
        | sed -E 's/:.*(gs_[a-z0-9_]+).*/ \1/')
}

check_pages
check_page_example doc/man/gradsync-checkpoint.7 doc/examples/08-checkpoint/resume.c
check_page_example doc/man/gradsync-reducer.7 doc/examples/03-reducer/train.c
check_page_program doc/man/gradsync-checkpoint.7 doc/examples/08-checkpoint/plot.py
check_links ./{README,CONTRIBUTING,SECURITY}.md slurm/README.md contrib/*/README.md \
    doc/*.md doc/guide/*.md \
    doc/examples/README.md doc/examples/*/README.md
check_references doc/man/*.[1-7] ./{README,SECURITY}.md doc/*.md doc/guide/*.md \
    doc/examples/*/README.md

finish "the manual formats, documents show what is there"
