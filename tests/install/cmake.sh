#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2317 # want and refused call the function
# Programs outside the tree build and run with the CMake package of a moved installation.
. "$(dirname "$0")/lib.sh"
if ! command -v cmake >/dev/null; then
    echo "skip: no cmake in PATH (Debian: cmake)"
    exit 77
fi

must cp -a "$installed" "$room/moved"
lib=$(in_copy "$room/moved" "$libdir")
export CMAKE_PREFIX_PATH=$room/moved CC=${cc[0]} FC=${fc[0]}
export CFLAGS="${cc[*]:1}" FFLAGS="${fc[*]:1}"

# configure FOLDER VERSION COMPONENTS USE: configures the outside project in the folder.
configure () {
    cmake -Wno-dev -S "$here/outside" -B "$1" -DEXAMPLES="$top/doc/examples" -DVERSION="$2" \
        -DCOMPONENTS="$3" -DUSE="$4"
}

languages=C
[[ $fortran = no ]] || languages='C;Fortran'
want "found gradsync $version" configure built "$version" "$languages" "$languages"
must cmake --build built >log 2>&1 || cat log
for program in built/average_?; do
    works "$program"
    uses "$program" "$lib"
done
[[ $fortran = no || -e built/average_f ]] || fail "there is no Fortran program"

# What does not fit is refused, with the reason.
export gradsync_DIR=$lib/cmake/gradsync
IFS=. read -r major minor patch <<<"$version"
for request in "$major" "$major.$minor" "$version" "$major.$minor...$major.$((minor + 1))" \
    "0.0.1...$version"; do
    want "found gradsync $version" configure find "$request" C NONE
done
older=
((minor == 0)) || older=$major.$((minor - 1))
for request in $((major + 1)) "$major.$((minor + 1))" "$major.$minor.$((patch + 1))" \
    "$((major + 1)).$minor" "0.0.1...<$version" "$major.$((minor + 1))...99" $older; do
    refused "version: $version" configure find "$request" C NONE
done
refused 'has the components C and Fortran, not Python' configure find "$version" Python NONE
[[ $fortran = yes || -e $lib/libgradsync_fortran.so ]] \
    || refused 'built without its Fortran binding' configure find "$version" Fortran NONE
rm "$lib/libgradsync.so"
refused "there is no libgradsync.so in $lib" configure find "$version" C NONE
finish "the CMake package describes a moved installation"
