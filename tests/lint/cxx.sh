#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# cxx.sh - gradsync.h is valid C99, C11 and C++, needs no other header first, and pulls in none
# but <stddef.h> and <stdint.h>.
. "$(dirname "$0")/lint.sh"
cc=${CC:-cc} cxx=${CXX:-c++}
need "${cxx%% *}" g++

compile () { # COMPILER ARGUMENT...
    local output

    # shellcheck disable=SC2086 # CC may carry options
    output=$(printf '#include <gradsync.h>\ngs_comm_opts_t opts = GS_COMM_OPTS_INIT;\n' \
        | $1 "${@:2}" -Wall -Wextra -pedantic -Werror -Isrc -fsyntax-only - 2>&1) \
        || complain src/gradsync.h "$*: $output"
}

compile "$cc" -x c -std=c99
compile "$cc" -x c -std=c11
compile "$cxx" -x c++ -std=c++11
compile "$cxx" -x c++ -std=c++17

others=$(grep -E '^#include' src/gradsync.h | grep -vE '<std(def|int)\.h>')
[[ -z $others ]] || complain src/gradsync.h "includes more than stddef.h and stdint.h: $others"

finish "gradsync.h compiles as C99, C11, C++11 and C++17"
