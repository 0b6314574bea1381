# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2034 # variables are for those who source this
#
# lib.sh - what the tests of an installation share; to be sourced.
#
#   room    an empty folder, the working directory; removed at the end
#   top     the top of the sources
#   build   the top of the build
#   stage   what make install DESTDIR=stage has put there, to be copied, not changed
#   installed  the prefix in there
#   prefix, bindir, ...  where configure put things; version; and fortran, mpi: yes or no
#
# A copy of the prefix lies where configure has never heard of: all that finds something in
# it does so from its own place.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) || exit 99
top=$(cd "$here/../.." && pwd) || exit 99
build=$(cd "${top_builddir:-.}" && pwd) || exit 99
if [[ ! -e $build/tests/install/stage.conf ]]; then
    echo "$build has no installed tree: use make check TESTS=tests/install/${0##*/}"
    exit 99
fi
stage='' prefix='' bindir='' libdir='' includedir='' mandir='' pkgconfigdir='' pkgdatadir=''
docdir=''
modulefiles='' version='' fortran='' mpi='' sanitizer=''
# shellcheck disable=SC1091 # it is generated
. "$build/tests/install/stage.conf"
room=$(mktemp -d "${TMPDIR:-/tmp}/gs-install.XXXXXX") || exit 99
trap 'rm -rf "$room"' EXIT
trap 'exit 99' HUP INT TERM
room=$(cd "$room" && pwd -P) && cd "$room" || exit 99
failures=0
for name in $(compgen -e | grep -E '^(GS_|GRADSYNC_)'); do
    [[ $name = GS_TEST_* ]] || unset "$name"
done
# Tests start make themselves; what the make above them was told is not for it.
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR
installed=$stage$prefix
read -ra cc <<<"${CC:-cc} $sanitizer"
read -ra fc <<<"${FC:-gfortran} $sanitizer"

fail () {
    echo "FAILED: $*"
    ((failures++))
}

# must COMMAND...: without it the test cannot go on.
must () {
    "$@" && return
    echo "FAILED: $*"
    exit 1
}

# want TEXT COMMAND...: the command succeeds and prints a line that has TEXT.
want () {
    local text=$1 output
    shift

    output=$("$@" 2>&1) || { fail "status $?: $*: $output"; return 1; }
    grep -qF -- "$text" <<<"$output" || { fail "no '$text' from $*: $output"; return 1; }
}

# refused TEXT COMMAND...: the command fails and says TEXT, wherever lines are broken.
refused () {
    local text=$1 output
    shift

    if output=$("$@" 2>&1); then
        fail "not refused: $*: $output"
    elif [[ $(tr -s ' \n' ' ' <<<"$output") != *"$text"* ]]; then
        fail "no '$text' from $*: $output"
    fi
}

# The folder $1 of the configured prefix, as it lies in a copy of the prefix.
in_copy () { # COPY FOLDER
    echo "$1${2#"$prefix"}"
}

# works PROGRAM: averages alone, and where this build can, over two ranks.
works () {
    runs "$1" alone '1 ranks: 0.00 1.00 2.00'
    [[ $mpi = no ]] || runs "$1" 2 '2 ranks: 0.50 1.50 2.50'
}

runs () { # PROGRAM LAYOUT LINE
    local status

    GS_TEST_SECONDS=${GS_TEST_SECONDS:-60} "$top/tests/launch.sh" --live --layout "$2" "$1" \
        >"$room/output" 2>&1
    status=$?
    if ((status == 77)); then
        echo "skip: $(tail -n 1 "$room/output")"
        exit 77
    fi
    if ((status)) || ! tr -s ' ' <"$room/output" | grep -q "$3\$"; then
        fail "$1, layout $2: exit status $status: $(<"$room/output")"
    fi
}

# uses PROGRAM FOLDER: its libgradsync is that of the folder.
uses () {
    local found

    found=$(ldd "$1" | sed -n 's/.*libgradsync\.so[.0-9]* => \(.*\)\/libgradsync.*/\1/p')
    [[ -n $found && $(cd "$found" && pwd -P) = "$2" ]] || fail "$1 uses '$found', not $2"
}

finish () {
    ((!failures)) || { echo "$failures failures"; exit 1; }
    echo "$*"
    exit 0
}
