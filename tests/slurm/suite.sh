#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2317 # check calls the functions
#
# suite.sh [NAME]... - the programs of tests/multi and tests/fortran, as steps of a real Slurm.
#
# A program that runs as any number of ranks runs as 2 x 4 and 4 x 4; others in their own
# layouts. NAMEs, like multi/average, choose some.

# shellcheck source=check.sh
. "$(dirname "$0")/check.sh"
chosen=" ${GS_SUITE-$*} "
GS_SUITE=$chosen enter_cluster --nodes 4

# The programs that are tests, as their Makefile.am lists them, without the extension.
programs () {
    awk '/^[A-Za-z_]*HELPERS *=/ { helpers = 1 }
         /^#/ || /^$/ { helpers = 0 }
         !helpers' "$top"/tests/{multi,fortran}/Makefile.am \
        | grep -oE 'tests/[a-z]+/[a-z0-9_]+\.[mf]t' | sort -u
}

# Sets layouts to those of program $1 that make sense here.
choose_layouts () {
    local file=$top/${1%.*}.layouts line plain=no own=()

    if [[ -e $file ]]; then
        while read -r line; do
            case $line in
            '' | '#'* | alone* | *GS_TEST_MPIRUN_ARGS*) ;;
            2x2) plain=yes ;;
            *' '*) own+=("$line") ;;
            *) [[ $plain = yes ]] || own+=("$line") ;;
            esac
        done <"$file"
    else
        plain=yes
    fi
    layouts=("${own[@]}")
    case $1 in
    */topology.mt) layouts+=("2x4 GS_TEST_NODES=2" "4x4 GS_TEST_NODES=4") ;;
    *) [[ $plain = no ]] || layouts=(2x4 4x4) ;;
    esac
}

runs () { # PROGRAM
    local words=() layout

    for layout in "${layouts[@]}"; do
        words+=(--layout "$layout")
    done
    cd "$build" || return
    GS_TEST_LAUNCHER="$top/tests/slurm/step %N %n" \
        "$top/tests/launch.sh" "${words[@]}" "./$1" >"$room/out" 2>&1
    local status=$?
    cd "$room" || return
    ((status == 0 || status == 77)) && ! grep -q '^not ok' out
}

for program in $(programs); do
    name=${program#tests/}
    [[ -z ${chosen// /} || $chosen = *" ${name%.*} "* ]] || continue
    if [[ ! -x $build/$program ]]; then
        echo "left out: $program is not built"
        continue
    fi
    choose_layouts "$program"
    check "${name%.*}: ${layouts[*]}" runs "$program"
done
finish
