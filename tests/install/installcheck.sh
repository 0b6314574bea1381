#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# installcheck.sh - a C and a Fortran program are built against the installed gradsync as its
# manual says, by pkg-config alone, and average over the ranks; what is installed is what would be
# with DESTDIR. Run by make installcheck in the build folder, which sets PKG_CONFIG_PATH, CC, FC,
# DESTDIR, prefix, bindir and libdir.
here=$(cd "$(dirname "$0")" && pwd) || exit 99
examples=$here/../../doc/examples
room=$(mktemp -d "${TMPDIR:-/tmp}/gs.XXXXXX") || exit 99
trap 'rm -rf "$room"' EXIT
export LD_LIBRARY_PATH=${libdir:?}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

fail () {
    echo "installcheck: $*" >&2
    exit 1
}

# Runs program $1 alone and, if ranks can be launched, on two: it prints the mean of ranks.
run () {
    expect "$1" alone '1 ranks: 0.00 1.00 2.00'
    [[ ! -e $libdir/gradsync/gradsync-mpi.so ]] || ! command -v mpirun >/dev/null \
        || expect "$1" 2 '2 ranks: 0.50 1.50 2.50'
}

expect () { # PROGRAM LAYOUT LINE
    "$here/../launch.sh" --live --layout "$2" "$room/$1" >"$room/out" || fail "$1 failed ($2)"
    tr -s ' ' <"$room/out" | grep -q "$3\$" || fail "$1 ($2) printed: $(<"$room/out")"
    echo "installcheck: $1 works ($2)"
}

read -ra flags <<<"$(pkg-config --cflags --libs gradsync)"
${CC:-cc} -o "$room/prog_c" "$examples/01-average/average.c" "${flags[@]}" \
    || fail "the C program does not build"
run prog_c

if pkg-config --exists gradsync-fortran; then
    read -ra flags <<<"$(pkg-config --cflags --libs gradsync-fortran)"
    ${FC:?} -o "$room/prog_f" "$examples/01-average/average_f.f90" "${flags[@]}" \
        || fail "the Fortran program does not build"
    run prog_f
fi

# Files that may be others' do not count: the prefix may be /usr/local.
installed=${DESTDIR-}${prefix:?}
env -u MAKEFLAGS -u MFLAGS make install DESTDIR="$room/stage" >"$room/out" 2>&1 \
    || fail "make install DESTDIR=...: $(<"$room/out")"
(cd "$room/stage$prefix" && find . ! -type d | sort) >"$room/staged"
(cd "$installed" && find . ! -type d | sort | grep -F -f "$room/staged" -e gradsync -e /gs-) \
    >"$room/there"
diff "$room/staged" "$room/there" || fail "with DESTDIR other files are installed than without"
echo "installcheck: DESTDIR makes no difference"

"${bindir:?}/gs-info" >"$room/out" || fail "gs-info failed"
echo "installcheck: gs-info works"
