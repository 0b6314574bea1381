# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2034,SC2154 # layouts is for those who source this; they have check.sh's
#
# steps.sh - the programs of tests/multi and tests/fortran as steps of the private Slurm; to be
# sourced after check.sh. GS_TEST_SRUN_ARGS has more words for srun, see step.

# shellcheck source=../programs.sh
. "$top/tests/programs.sh"

# Sets layouts to NODES nodes of 4 ranks with each of the settings that the lines of the program's
# own layouts have.
read_settings () { # PROGRAM NODES
    local file=$top/${1%.*}.layouts line

    layouts=()
    if [[ $1 = */topology.mt ]]; then
        layouts=("$2x4 GS_TEST_NODES=$2")
    elif [[ ! -e $file ]]; then
        layouts=("$2x4")
    else
        while read -r line; do
            layouts+=("$line")
        done < <(sed -nE "/GS_TEST_MPIRUN_ARGS/d; s/^[a-z]+ [0-9x+]+/$2x4/p" "$file" \
            | awk '!seen[$0]++')
    fi
}

runs () { # PROGRAM, in all layouts
    local words=() layout

    for layout in "${layouts[@]}"; do
        words+=(--layout "$layout")
    done
    cd "$build" || return
    GS_TEST_LAUNCHER="$top/tests/slurm/step %N %n" \
        "$top/tests/launch.sh" "${words[@]}" "./$1" >"$room/out" 2>&1
    local status=$?
    cd "$room" || return
    # Some programs are about what carries data between hosts.
    ((status == 77)) && grep -q '# skip: NCCL and GPUs carry the data' out && return
    ((status == 0)) && ! grep -qE '^not ok|# SKIP' out
}

# Checks that each program, or each of NAMEs like multi/average, runs. COMMAND sets layouts.
check_programs () { # COMMAND [NAME]...
    local choose=$1 program name some=no
    shift
    local chosen=" $* " left=" $* "

    for program in $(programs "$top"); do
        name=${program#tests/}
        name=${name%.*}
        [[ -z ${chosen// /} || $chosen = *" $name "* ]] || continue
        left=${left/ $name / }
        if [[ ! -x $build/$program ]]; then
            echo "left out: $program is not built"
            continue
        fi
        some=yes
        "$choose" "$program"
        core "$name: ${layouts[*]}${GS_TEST_SRUN_ARGS:+ $GS_TEST_SRUN_ARGS}" runs "$program"
    done
    [[ -z ${left// /} && $some = yes ]] \
        || { echo "FAILED - nothing was run, or no such program:$left"; ((++failures)); }
}

# The demo trains a surrogate on NODES nodes with 4 ranks; it is as good as elsewhere.
trains () { # NODES [OPTION]...
    local nodes=$1 demo=$build/doc/examples/10-lorenz96/lorenz96_demo
    shift

    timeout -k 5 300 "$top/tests/slurm/step" "$nodes" $((4 * nodes)) \
        "$demo" --out "$PWD/out.$nodes" --train-steps 1500 --run-time 20 "$@" >out 2>&1 \
        && says "on $((4 * nodes)) ranks of $nodes nodes" && beats_quartic \
        && [[ -s out.$nodes/lorenz96.svg ]]
}

beats_quartic () { # by 0.04 in held-out R2, as tests/demo/skill.sh asks
    sed -nE 's/^Held-out R2:.* difference +(-?[0-9.]+).*/\1/p' out \
        | awk '{ enough = $1 >= 0.04 } END { exit !enough }'
}
