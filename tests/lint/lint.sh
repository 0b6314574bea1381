# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# lint.sh - what the lint tests share; sourced by each.
#
# Goes to the top of the sources. top_srcdir and top_builddir may be set from outside (make check
# does); by default the sources are those around this file and the build is where one stands.
top_builddir=$(cd "${top_builddir:-.}" && pwd) || exit 99
cd "${top_srcdir:-$(dirname "${BASH_SOURCE[0]}")/../..}" || exit 99
failed=0

# complain WHERE TEXT: one finding.
complain () {
    echo "$1: $2"
    failed=1
}

# need TOOL PACKAGE: skips the test when there is no TOOL.
need () {
    command -v "$1" >/dev/null && return
    echo "skip: $1 is not installed (Debian: $2)"
    exit 77
}

# need_build FILE...: a lint of the built library is wrong without it.
need_build () {
    local file

    for file; do
        [[ -e $top_builddir/$file ]] && continue
        echo "$top_builddir/$file is not there: run make first, and this test in the build folder"
        exit 99
    done
}

# sources EXTENSION...: our own files with these extensions, one per line; not the Fortran that a
# build in the tree makes.
sources () {
    local IFS='|'

    find src cuda fortran tests doc/examples contrib 2>/dev/null | grep -E "\.($*)\$" \
        | grep -vE '^fortran/gradsync_(c|calls)\.f90$' | sort
}

# map_names NODE-PATTERN: the names listed as global in the nodes of src/gradsync.map that match.
map_names () {
    awk -v pattern="^$1$" '
        /^[A-Z_0-9.]+ \{/ { inside = ($1 ~ pattern) }
        inside && /^ +[a-z_0-9]+;/ { sub (/;.*/, ""); print $1 }
    ' src/gradsync.map | sort
}

# public_names: the functions of the public API.
public_names () {
    map_names 'GRADSYNC_[0-9.]+'
}

# The public interface: gradsync.h, and the parts of it that stand in files of their own.
headers=(src/gradsync.h src/gradsync_adjoint.h src/gradsync_ckpt.h src/gradsync_collectives.h
    src/gradsync_gather.h src/gradsync_group.h src/gradsync_p2p.h src/gradsync_pool.h
    src/gradsync_reducer.h src/gradsync_stats.h)

# prototypes: one line for each function of the headers: its name, its type, the names of its
# parameters, its header without the folder, and its contract, which several functions may share,
# separated by $unit.
unit=$'\x1f'
prototypes () {
    awk -v OFS="$unit" '
        /^\/\*/ { contract = ""; comment = 1 }
        comment { contract = contract " " $0; comment = !/\*\//; next }
        /^[a-z]/ && !/^(typedef|struct|enum|extern) / {
            text = $0
            while (text !~ /;/ && getline > 0)
                text = text $0
            match (text, /gs_[a-z0-9_]+ \(/)
            name = substr (text, RSTART, RLENGTH - 2)
            type = substr (text, 1, RSTART - 1)
            parameters = substr (text, RSTART + RLENGTH)
            gsub (/\).*|[^,]*[ *]|void/, "", parameters)
            gsub (/,/, " ", parameters)
            print name, type, parameters, substr (FILENAME, 5), contract
        }
    ' "${headers[@]}"
}

# finish TEXT: ends the test; TEXT says what holds when nothing was found.
finish () {
    ((failed)) || echo "$1"
    exit "$failed"
}
