#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2317 # check calls the functions
#
# suite.sh [NAME]... - the programs of tests/multi and tests/fortran, as steps of a real Slurm.
#
# Each program runs as 2 x 4 and 4 x 4, with the settings of its .layouts file. NAMEs, like
# multi/average, choose some.

# shellcheck source=check.sh
. "$(dirname "$0")/check.sh"
# shellcheck source=../programs.sh
. "$top/tests/programs.sh"
chosen=" ${GS_SUITE-$*} "
GS_SUITE=$chosen enter_cluster --nodes 4

# Sets layouts to 2x4 with each of the settings that the lines of the program's own layouts have,
# and 4x4 with the first of them.
choose_layouts () { # PROGRAM
    local file=$top/${1%.*}.layouts line settings

    layouts=()
    if [[ $1 = */topology.mt ]]; then
        layouts=("2x4 GS_TEST_NODES=2" "4x4 GS_TEST_NODES=4")
    elif [[ ! -e $file ]]; then
        layouts=(2x4 4x4)
    else
        while read -r line; do
            layouts+=("$line")
        done < <(sed -nE '/^#|^$|^alone|GS_TEST_MPIRUN_ARGS/d; s/^[0-9x]+/2x4/p' "$file" \
            | awk '!seen[$0]++')
        settings=${layouts[0]#2x4}
        layouts+=("4x4$settings")
    fi
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
    ((status == 0)) && ! grep -qE '^not ok|# SKIP' out
}

left=$chosen some=no
for program in $(programs "$top"); do
    name=${program#tests/}
    [[ -z ${chosen// /} || $chosen = *" ${name%.*} "* ]] || continue
    left=${left/ ${name%.*} / }
    if [[ ! -x $build/$program ]]; then
        echo "left out: $program is not built"
        continue
    fi
    some=yes
    choose_layouts "$program"
    check "${name%.*}: ${layouts[*]}" runs "$program"
done
[[ -z ${left// /} && $some = yes ]] \
    || { echo "FAILED - nothing was run, or no such program:$left"; ((++failures)); }
finish
