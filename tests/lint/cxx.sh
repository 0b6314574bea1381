#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# cxx.sh - gradsync.h is valid C99, C11 and C++, needs no other header first, and pulls in none
# but <stddef.h>, <stdint.h> and its own parts, which pull in none.
. "$(dirname "$0")/lint.sh"
cc=${CC:-cc} cxx=${CXX:-c++}
need "${cxx%% *}" g++

compile () { # COMPILER ARGUMENT...
    local output

    # shellcheck disable=SC2086 # CC may carry options
    output=$(printf '%s\n' '#include <gradsync.h>' 'gs_comm_opts_t opts = GS_COMM_OPTS_INIT;' \
        'gs_reducer_opts_t reducer_opts = GS_REDUCER_OPTS_INIT;' \
        | $1 "${@:2}" -Wall -Wextra -pedantic -Werror -Isrc -fsyntax-only - 2>&1) \
        || complain src/gradsync.h "$*: $output"
}

compile "$cc" -x c -std=c99
compile "$cc" -x c -std=c11
compile "$cxx" -x c++ -std=c++11
compile "$cxx" -x c++ -std=c++17

# check_includes HEADER WHAT PATTERN: it includes what matches only.
check_includes () {
    local others

    others=$(grep -E '^[[:space:]]*#[[:space:]]*include' "$1" | grep -vE "$3")
    [[ -z $others ]] || complain "$1" "includes more than $2: $others"
}

check_includes src/gradsync.h "stddef.h, stdint.h and its own parts" \
    '(<std(def|int)\.h>|"gradsync_(gather|group|reducer|stats)\.h")$'

# A part alone is refused: what it needs is in gradsync.h.
for part in src/gradsync_gather.h src/gradsync_group.h src/gradsync_reducer.h \
    src/gradsync_stats.h; do
    check_includes "$part" nothing '^$'
    # shellcheck disable=SC2086 # CC may carry options
    if output=$($cc -Isrc -fsyntax-only -x c "$part" 2>&1); then
        complain "$part" "compiles without gradsync.h"
    elif [[ $output != *"include gradsync.h"* ]]; then
        complain "$part" "does not say that gradsync.h is to be included: $output"
    fi
done

finish "gradsync.h compiles as C99, C11, C++11 and C++17"
