#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# fortran.sh - the Fortran modules have all of gradsync.h and its parts: every function is bound
# and public, every constant is there and public, with the same value.
. "$(dirname "$0")/lint.sh"
facade=fortran/gradsync.f90
types=fortran/gradsync_types.f90

# is_public NAME: module gradsync hands the name on.
is_public () {
    sed 's/!.*//' "$facade" | grep -qw "$1"
}

# public_name FUNCTION: what the module calls it: its own name, or nothing for one that is not for
# programs, because the binding calls it.
public_name () {
    case $1 in
    gs_comm_from_mpi_fint) echo gs_comm_from_mpi ;; # generic, other handles too
    gs_ckpt_set_bounds) ;;                          # called by the adds
    *) echo "$1" ;;
    esac
}

# NAME VALUE of each enumerator and numeric macro of the headers, but for those that only make an
# enum as wide as an int.
c_constants () {
    sed -nE -e 's/^ *(GS_[A-Z0-9_]+) = ([0-9]+),?( .*)?$/\1 \2/p' \
        -e 's/^#define (GS_[A-Z0-9_]+) \(?(-?[0-9]+)\)?( .*)?$/\1 \2/p' \
        "${headers[@]}"
}

fortran_constants () {
    sed -nE 's/^ *integer.*parameter, public :: (GS_[A-Z0-9_]+) = (-?[0-9]+).*$/\1 \2/p' "$types"
}

functions=0
for name in $(public_names); do
    grep -hq "bind(c, name=\"$name\")" fortran/*.f90 || complain fortran "$name is not bound"
    name=$(public_name "$name")
    [[ -z $name ]] || is_public "$name" || complain "$facade" "$name is not public"
    ((functions++))
done

constants=0
while read -r name value; do
    fortran=$(fortran_constants | sed -n "s/^$name //p")
    if [[ -z $fortran ]]; then
        complain "$types" "$name is missing"
    elif [[ $fortran != "$value" ]]; then
        complain "$types" "$name is $fortran, in C $value"
    fi
    is_public "$name" || complain "$facade" "$name is not public"
    ((constants++))
done < <(c_constants)

while read -r name value; do
    grep -hqw "$name" "${headers[@]}" || complain "$types" "$name is not in ${headers[*]}"
done < <(fortran_constants)

# Patterns that find nothing would pass everything.
((functions > 20)) || complain src/gradsync.map "only $functions functions found"
((constants > 40)) || complain src/gradsync.h "only $constants constants found"

finish "$functions functions and $constants constants are in the Fortran modules"
