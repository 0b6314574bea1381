# shellcheck shell=sh
# SPDX-License-Identifier: BSD-3-Clause
#
# lib.sh - what the tests of the tools share; sourced by each. They run in the top build folder.
top_srcdir=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)} || exit 99
cd "${top_builddir:-.}" || exit 99
if test ! -x ./gs-info || test ! -x ./gs-bench; then
    echo "gs-info and gs-bench are not in $PWD: run make first, and this test in the build folder"
    exit 99
fi
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 99' HUP INT TERM
failures=0

# The environment of whoever runs the tests must not matter.
for name in $(env | sed -n 's/^\(GS_[A-Z_]*\)=.*/\1/p'); do
    case $name in
    GS_TEST_*) ;;
    *) unset "$name" ;;
    esac
done
GS_RECORD_DIR=$work
export GS_RECORD_DIR

# run STATUS COMMAND...: its stdout and stderr go to $work/out and $work/err.
run () {
    wanted=$1
    shift
    "$@" >"$work/out" 2>"$work/err"
    status=$?
    test "$status" -eq "$wanted" || fail "exit status $status, not $wanted: $*"
}

# says out|err PATTERN: some line of the last run matches the extended regular expression.
says () {
    grep -Eq -e "$2" "$work/$1" || fail "std$1 has no line like: $2"
}

# quiet out|err: the last run wrote nothing there.
quiet () {
    test ! -s "$work/$1" || fail "std$1 is not empty"
}

# only out|err PATTERN: there is something and every line of it matches.
only () {
    says "$1" "$2"
    if grep -Ev -e "$2" "$work/$1"; then
        fail "std$1 has lines, shown above, unlike: $2"
    fi
}

fail () {
    echo "FAILED: $1"
    echo "  stdout:"
    sed 's/^/    /' "$work/out"
    echo "  stderr:"
    sed 's/^/    /' "$work/err"
    failures=$((failures + 1))
}

finish () {
    test "$failures" -eq 0 || exit 1
    exit 0
}
