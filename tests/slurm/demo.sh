#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2317 # check calls the functions
#
# demo.sh - the demo as a step of a real Slurm: the surrogate it trains is as good as elsewhere.

# shellcheck source=check.sh
. "$(dirname "$0")/check.sh"
enter_cluster --nodes 4

trains () { # NODES OPTION...
    local nodes=$1
    shift

    timeout -k 5 300 srun --quiet --mpi=pmix -N "$nodes" --ntasks-per-node=4 \
        "$build/doc/examples/fortran/lorenz96_demo" --out "$PWD/out.$nodes" "$@" >out 2>&1 \
        && says "on $((4 * nodes)) ranks of $nodes nodes" && beats_quartic \
        && [[ -s out.$nodes/lorenz96.svg ]]
}

beats_quartic () { # by 0.04 in held-out R2, as tests/demo/skill.sh asks
    sed -nE 's/^Held-out R2:.* difference +(-?[0-9.]+).*/\1/p' out \
        | awk '{ enough = $1 >= 0.04 } END { exit !enough }'
}

check "2 nodes of 4 ranks" trains 2 --train-steps 1500 --run-time 20
check "4 nodes of 4 ranks" trains 4 --train-steps 1500 --run-time 20 --trajectories 16
finish
