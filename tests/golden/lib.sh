# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# lib.sh - what the tests of checkpoint files share; to be sourced.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) || exit 99
cd "${top_builddir:-.}" || exit 99
if [[ ! -x ./gs-info ]]; then
    echo "gs-info is not in $PWD: run make first, and this test in the build folder"
    exit 99
fi
room=$(mktemp -d "${TMPDIR:-/tmp}/gs-golden.XXXXXX") || exit 99
trap 'rm -rf "$room"' EXIT
export GS_RECORD_DIR=$room
hdf5=$(./gs-info | sed -n 's/^  hdf5  *//p')
failures=0

if [[ $hdf5 = no ]]; then
    echo "skip: this build has no HDF5"
    exit 77
fi

fail () {
    echo "FAIL: $*"
    failures=$((failures + 1))
}

# Runs a program of this folder in a layout of launch.sh. Skips the test when ranks cannot be
# launched here.
launch () { # PROGRAM LAYOUT ARGUMENTS...
    local status

    "$here/../launch.sh" --live --or-one-node --layout "$2" "tests/golden/$1.mt" "${@:3}" \
        >"$room/output" 2>&1
    status=$?
    ((status)) || return 0
    cat "$room/output"
    if ((status == 77)); then
        echo "skip: $(tail -n 1 "$room/output")"
        exit 77
    fi
    fail "$1.mt ${*:3} in layout $2: exit status $status"
    return 1
}

state () { # LAYOUT ARGUMENTS...
    launch state "$@"
}

# Ends the test; TEXT says what holds.
finish () { # TEXT
    ((failures)) || echo "$1"
    exit $((failures > 0))
}
