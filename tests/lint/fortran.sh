#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# fortran.sh - the Fortran modules have all of gradsync.h and its parts: every function is
# public, every constant is there and public, with the same value.
. "$(dirname "$0")/lint.sh"
calls=fortran/calls.def
types=fortran/gradsync_types.f90

# words: those of standard input, with blanks around each.
words () {
    echo " $(grep -oE '[A-Za-z0-9_]+' | sort -u | tr '\n' ' ')"
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

# What module gradsync hands on: the rows of calls.def, and what its modules say is public.
public=$({ sed -nE 's/^(gs_[a-z0-9_]+)[: ].*/\1/p' "$calls"
    awk '/^ *(public|type, public|integer.*, public) ::/ { on = 1 }
        on; !/&$/ { on = 0 }' fortran/*.f90; } | words)
in_headers=$(cat "${headers[@]}" | words)
values=$'\n'$(fortran_constants)$'\n'

functions=0
for name in $(public_names); do
    case $name in # what the module calls it
    gs_comm_from_mpi_fint) name=gs_comm_from_mpi ;; # generic, other handles too
    gs_ckpt_set_bounds) name= ;;                    # not for programs: the adds call it
    gs_abort_on_error) name= ;;                     # what a call without stat does
    esac
    [[ -z $name || $public = *" $name "* ]] || complain "$calls" "$name is not public"
    ((functions++))
done

constants=0
while read -r name value; do
    there=${values#*$'\n'"$name "} # its value, and all that follows it
    if [[ $there = "$values" ]]; then
        complain "$types" "$name is missing"
    elif [[ ${there%%$'\n'*} != "$value" ]]; then
        complain "$types" "$name is ${there%%$'\n'*}, in C $value"
    fi
    [[ $public = *" $name "* ]] || complain "$calls" "$name is not public"
    ((constants++))
done < <(c_constants)

while read -r name value; do
    [[ $in_headers = *" $name "* ]] || complain "$types" "$name is not in ${headers[*]}"
done < <(fortran_constants)

# Patterns that find nothing would pass everything.
((functions > 20)) || complain src/gradsync.map "only $functions functions found"
((constants > 40)) || complain src/gradsync.h "only $constants constants found"

finish "$functions functions and $constants constants are in the Fortran modules"
