#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# exports.sh - the built library exports exactly the names of src/gradsync.map: in public nodes
# those gradsync.h declares, in the private node those that our own modules and tools import.
. "$(dirname "$0")/lint.sh"
read -ra nm <<<"${NM:-nm}" # it may carry options
need "${nm[0]}" binutils
need_build .libs/libgradsync.so

# same FILE TEXT-OF-LEFT TEXT-OF-RIGHT LEFT RIGHT: two sorted lists must be equal.
same () {
    local only

    only=$(comm -23 <(echo "$4") <(echo "$5") | tr '\n' ' ')
    [[ -z ${only// /} ]] || complain "$1" "in $2, not in $3: $only"
    only=$(comm -13 <(echo "$4") <(echo "$5") | tr '\n' ' ')
    [[ -z ${only// /} ]] || complain "$1" "in $3, not in $2: $only"
}

exported=$("${nm[@]}" -D --defined-only "$top_builddir/.libs/libgradsync.so" \
    | awk '$2 != "A" { sub (/@.*/, "", $3); print $3 }' | sort -u)
same libgradsync.so "the library" src/gradsync.map "$exported" "$(map_names '.*')"

declared=$(prototypes | cut -d "$unit" -f 1 | sort)
same src/gradsync.h gradsync.h "the public nodes of src/gradsync.map" \
    "$declared" "$(public_names)"

wrong=$(public_names | grep -v '^gs_')
[[ -z $wrong ]] || complain src/gradsync.map "public names start with gs_: $wrong"

users='gradsync-mpi.so gradsync-ofi.so gradsync-cuda.so libgradsync_fortran.so gs-info gs-bench'
imported=$(for user in $users; do
    [[ ! -e $top_builddir/.libs/$user ]] \
        || "${nm[@]}" -D --undefined-only "$top_builddir/.libs/$user"
done | awk '$2 ~ /^gsi_/ { sub (/@.*/, "", $2); print $2 }' | sort -u)
everything=yes
for user in gradsync-mpi.so gradsync-ofi.so gs-bench; do
    [[ -e $top_builddir/.libs/$user ]] || everything=no
done
if [[ $everything = yes ]]; then
    same src/gradsync.map "the private node" "the imports of the modules and the tools" \
        "$(map_names 'GRADSYNC_PRIVATE_[0-9.]+')" "$imported"
fi

finish "exported names, map and header agree"
