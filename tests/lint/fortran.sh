#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# fortran.sh - the Fortran modules have all of gradsync.h: every exported function is bound and
# public, every constant is there with the same value, and nothing else is called a constant.
#
# usage: fortran.sh [TOP]; TOP is the source folder, default $srcdir or what this file is in.

top=${1:-${srcdir:-$(dirname "$0")/../..}}
header=$top/src/gradsync.h
map=$top/src/gradsync.map
types=$top/fortran/gradsync_types.f90
facade=$top/fortran/gradsync.f90
failed=0

for file in "$header" "$map" "$types" "$facade"; do
    [ -r "$file" ] || { echo "fortran.sh: cannot read $file"; exit 99; }
done

gap () {
    echo "not ok - $*"
    failed=1
}

# Whether module gradsync makes NAME public.
is_public () {
    sed 's/!.*//' "$facade" | grep -qiw "$1"
}

# NAME VALUE of each constant: enumerators and numeric macros of the header. The enumerators
# that only make an enum as wide as an int have no use in Fortran.
c_constants () {
    sed -n -e 's/^ *\(GS_[A-Z0-9_]*\) = \([0-9a-fx-]*\),\{0,1\}\( .*\)\{0,1\}$/\1 \2/p' \
        -e 's/^#define \(GS_[A-Z0-9_]*\) (\{0,1\}\(-\{0,1\}[0-9][0-9]*\))\{0,1\}\( .*\)\{0,1\}$/\1 \2/p' \
        "$header" | grep -v '_INT_SIZED '
}

fortran_constants () {
    sed -n 's/^ *integer.*parameter, public :: \(GS_[A-Z0-9_]*\) = \([0-9-]*\).*$/\1 \2/p' "$types"
}

functions=$(sed -n '/^GRADSYNC_[0-9]/,/local:/s/^ *\(gs_[a-z0-9_]*\);$/\1/p' "$map")
constants=$(c_constants)

# A pattern that finds nothing would pass everything.
[ "$(echo "$functions" | wc -l)" -gt 20 ] || gap "few functions found in $map"
[ "$(echo "$constants" | wc -l)" -gt 40 ] || gap "few constants found in $header"

for name in $functions; do
    grep -hq "bind(c, name=\"$name\")" "$top"/fortran/*.f90 || gap "$name is not bound"
    case $name in
    gs_comm_from_mpi_fint) name=gs_comm_from_mpi ;; # generic: integer and type(MPI_Comm)
    esac
    is_public "$name" || gap "$name is not in $facade"
done

while read -r name value; do
    fortran=$(fortran_constants | sed -n "s/^$name //p")
    if [ -z "$fortran" ]; then
        gap "$name is not in $types"
    elif [ "$fortran" != "$value" ]; then
        gap "$name is $value in C but $fortran in Fortran"
    fi
    is_public "$name" || gap "$name is not in $facade"
done <<END
$constants
END

while read -r name value; do
    echo "$constants" | grep -q "^$name " || gap "$name = $value is not in $header"
done <<END
$(fortran_constants)
END

[ "$failed" -eq 0 ] && echo "ok - $(echo "$functions" | wc -l) functions and" \
    "$(echo "$constants" | wc -l) constants are in the Fortran modules"
exit $failed
