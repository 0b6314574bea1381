# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# lib.sh - what the tests of the examples share; to be sourced.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) || exit 99
built=$(cd "${top_builddir:-.}" && pwd) || exit 99
examples=$built/doc/examples
room=$(mktemp -d "${TMPDIR:-/tmp}/gs-demo.XXXXXX") || exit 99
trap 'rm -rf "$room"' EXIT
export GS_RECORD_DIR=$room

fail () {
    echo "$*"
    exit 1
}

# Runs an example in a layout of launch.sh; its output goes to $room/output. Skips the test when
# ranks cannot be launched here, or this build cannot join them.
launch () { # LAYOUT PROGRAM [ARGUMENT]...
    local status

    if [[ ! -e $built/gradsync-mpi.la ]]; then
        echo "skip: this build has no MPI"
        exit 77
    fi
    "$here/../launch.sh" --live --or-one-node --layout "$1" "$examples/$2" "${@:3}" \
        >"$room/output" 2>&1
    status=$?
    ((status)) || return 0
    cat "$room/output"
    ((status != 77)) || exit 77
    fail "$2 in layout $1: exit status $status"
}
