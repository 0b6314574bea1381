#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# coarray.sh - a program compiled with any -fcoarray shares types with the binding. With lib it is
# compiled only, unless OpenCoarrays is there.

top=${top_srcdir:-.}
failed=0

# compiles KIND: the program of -fcoarray=KIND in $folder.
compiles () {
    # shellcheck disable=SC2086 # the words of FC are meant
    if ! $FC -fcoarray="$1" -Ifortran -J"$folder" -c "$top/tests/fortran/coarray.f90" \
        -o "$folder/$1.o" >"$folder/out" 2>&1; then
        sed 's/^/# /' "$folder/out"
        echo "not ok - $1: does not compile"
        failed=1
        return 1
    fi
}

# runs KIND WORD...: the program, linked by what WORDs say, reaches its end.
runs () {
    kind=$1
    shift
    if "$@" "$folder/$kind.o" -o "$folder/$kind" .libs/libgradsync_fortran.so \
        .libs/libgradsync.so -Wl,-rpath,"$PWD/.libs" >"$folder/out" 2>&1 \
        && "$top/tests/timeout" 60 "$folder/$kind" >"$folder/out" 2>&1 \
        && grep -q 'all arrived' "$folder/out"; then
        echo "ok - $kind"
    else
        sed 's/^/# /' "$folder/out"
        echo "not ok - $kind: the program has not reached its end"
        failed=1
    fi
}

[ -n "$FC" ] || { echo "skip: FC is not set: no Fortran compiler"; exit 77; }
folder=$(mktemp -d "${TMPDIR:-/tmp}/gs-coarray.XXXXXX") || exit 99
trap 'rm -rf "$folder"' EXIT
trap 'exit 99' HUP INT TERM
echo 'end' >"$folder/probe.f90"
# shellcheck disable=SC2086
$FC -fcoarray=single -c "$folder/probe.f90" -o "$folder/probe.o" >/dev/null 2>&1 \
    || { echo "skip: $FC has no -fcoarray"; exit 77; }
for kind in none single; do
    # shellcheck disable=SC2086
    compiles $kind && runs $kind $FC
done
if compiles lib && command -v caf >/dev/null; then
    # One image, of no network: what MPI of a node alone needs.
    OMPI_MCA_btl=self,vader OMPI_MCA_osc=pt2pt OMPI_MCA_ess_singleton_isolated=1
    export OMPI_MCA_btl OMPI_MCA_osc OMPI_MCA_ess_singleton_isolated
    runs lib caf
elif [ -e "$folder/lib.o" ]; then
    echo "ok - lib: compiled # SKIP not run: there is no caf of OpenCoarrays"
fi
exit $failed
