#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2317 # check and check_programs call the functions
#
# simgpu.sh [NAME]... - the programs of several ranks and the demo on nodes with 4 simulated GPUs,
# which a real Slurm gives to the ranks: all of a node to each, or one to each, or fewer than
# there are ranks.
#
# NAMEs, like multi/average, choose some of the programs. With GS_TEST_LONG they run in layouts
# with more ranks than GPUs as well, which takes long on few cores: a rank that offers its core
# does not offer it to ranks of other sessions. GS_TEST_SHAPES, like "2x3 1x5", chooses some of
# these layouts, and nothing else is run.

# shellcheck source=check.sh
. "$(dirname "$0")/check.sh"
# shellcheck source=steps.sh
. "$top/tests/slurm/steps.sh"
simulated=$build/tests/simgpu/lib
if [[ ! -e $simulated/libnccl.so.2 || ! -x $build/tests/slurm/gpus ]]; then
    echo "skipped: no simulated GPUs in $build: they need the CUDA toolkit and NCCL's header"
    exit 77
fi
chosen=${GS_SUITE-$*}
GS_SUITE=$chosen enter_cluster --nodes 4

# nccl and not auto, which would go on without GPUs.
export LD_LIBRARY_PATH=$simulated${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export SIM_GPUS=4 GS_TRANSPORT=nccl GS_TEST_SECONDS=120
all_gpus=--gpus-per-node=4 own_gpu=--gpus-per-task=1
there="-w n0,n1" # Slurm may choose others while these are still busy with the end of a step
few="multi/average multi/device multi/from_mpi multi/topology multi/wavg fortran/devices"

on_two_nodes () { # PROGRAM
    read_settings "$1" 2
    layouts=("${layouts[0]}")
}

on_four_nodes () { # PROGRAM
    read_settings "$1" 4
    layouts=("${layouts[0]}")
}

# In the layout $shape, like 2x16.
in_shape () { # PROGRAM
    read_settings "$1" "${shape%x*}"
    layouts=("${layouts[0]/#[0-9]x4/$shape}")
}

# The programs in a layout of more ranks than GPUs, with words for srun.
share () { # LAYOUT "SRUN-ARGUMENTS" [VARIABLE=VALUE]...
    local shape=$1 variable
    [[ " ${GS_TEST_SHAPES:-$shape} " = *" $shape "* ]] || return 0
    shared=$shape
    local -x GS_TEST_SHARED_GPUS=4 GS_TEST_SRUN_ARGS="$there $2"

    for variable in "${@:3}"; do
        local -x "$variable"
    done
    # shellcheck disable=SC2086 # names are words
    check_programs in_shape $chosen
}

# ---- Which GPU a rank has ----

# Lines of 8 ranks of tests/slurm/gpus in out, by rank; each sees as many GPUs as it should, holds
# the one that its node has for it, and nodes have different ones.
hold_theirs () { # all | own
    grep -E '^[0-7] n[01] ' out | sort -n >ranks
    awk -v sight="$1" '
        function wrong(text) { print "rank " $1 ": " text; failed = 1 }
        {
            local = ($1 + 0) % 4
            seen = sight == "all" ? "0,1,2,3" : local
            count = split ($7, gpus, ",")
            if ($3 != local || $2 != "n" int ($1 / 4))    wrong("is at another place: " $0)
            if ($4 != (sight == "all" ? local : 0))       wrong("uses number " $4)
            if ($5 != seen)                               wrong("is shown " $5 ", not " seen)
            if (count != (sight == "all" ? 4 : 1))        wrong("sees " count " GPUs")
            if ($6 != gpus[$4 + 1])                       wrong("holds " $6 " of " $7)
            if ($6 in holder)                             wrong("shares with " holder[$6])
            holder[$6] = $1
            if (sight == "all" && $2 in list && list[$2] != $7)
                wrong("sees others than its node has: " $7 " of " list[$2])
            list[$2] = $7
        }
        END { exit NR != 8 || failed }' ranks >>out
}

# Each rank holds the same GPU, whether it sees the others or not.
see_all () {
    "$top/tests/slurm/step" 2 8 "$build/tests/slurm/gpus" >out 2>&1 \
        && ! grep "do not see each other's GPUs" out && hold_theirs all \
        && cut -d ' ' -f 1,2,6 ranks >held
}

see_their_own () {
    "$top/tests/slurm/step" 2 8 "$build/tests/slurm/gpus" >out 2>&1 \
        && says "ranks 0 and 1 (host n0) do not see each other's GPUs" && hold_theirs own \
        && cut -d ' ' -f 1,2,6 ranks | diff - held >>out
}

# gs-run shows each rank all GPUs of its node.
run_by_gs_run () { # COMMAND that starts gs-run
    "$@" gs-run -N2 -w n0,n1 "$build/tests/slurm/gpus" >out 2>&1 \
        && ! grep "do not see each other's GPUs" out && hold_theirs all
}

# The warning finds ranks of one node that do not follow each other.
warns_by_turns () {
    "$top/tests/slurm/step" 2 8 "$build/tests/slurm/gpus" >out 2>&1 \
        && says "ranks 0 and 2 (host n0) do not see each other's GPUs"
}

refuses_to_share () { # as many ranks as GPUs, of which Slurm gives half
    ! GS_GPU_SHARING=never "$top/tests/slurm/step" 2 8 "$build/tests/slurm/gpus" >out 2>&1 \
        && says "ranks 0 and 2 (host n0) would share the GPU 0000:07:00"
}

shares () { # the same
    GS_DEBUG=info "$top/tests/slurm/step" 2 8 "$build/tests/simgpu/sharing" sums >out 2>&1 \
        && says "by NCCL between 4 GPUs" && grep -qx sums out
}

# What gs-info says to type starts such ranks, which go the way that it tells.
as_typed () {
    local words

    gs-info --layout 2x6x4 >out 2>&1
    says "GPU 1         ranks 1 5 of a node" "by NCCL between 8 leaders, 4 on each node" || return
    read -ra words < <(sed -n 's/^  type  *//p' out)
    [[ ${words[-1]} = ./program ]] || return
    words[-1]=$build/tests/slurm/gpus
    # shellcheck disable=SC2086 # the words of $there are meant
    GS_DEBUG=info "${words[0]}" $there "${words[@]:1}" >out 2>&1 \
        && says "12 ranks on 2 nodes" "by NCCL between 8 GPUs" \
        && (($(awk '/^[0-9]+ n[01] / && $4 == $3 % 4' out | wc -l) == 12))
}

not_as_typed () { # a GPU for each rank is more than the nodes have
    ! timeout 60 srun -N2 --ntasks-per-node=8 --gpus-per-task=1 true >out 2>&1 \
        && says "Requested node configuration is not available"
}

averages () {
    GS_DEBUG=info gs-run -N2 "$build/doc/examples/01-average/average" >out 2>&1 \
        && says "8 ranks on 2 nodes" "transport nccl (asked for"
}

on_hosts () { # though the ranks could see GPUs
    (unset GS_TRANSPORT && gs-run --no-gpus -N1 -n2 "$build/tests/multi/topology.mt") >out 2>&1
}

check_gpus () {
    GS_TEST_SRUN_ARGS="$all_gpus $there" check "each rank holds its GPU: $all_gpus" see_all
    GS_TEST_SRUN_ARGS="$own_gpu $there" check "each rank holds its GPU: $own_gpu" see_their_own
    check "each rank holds its GPU: gs-run" run_by_gs_run
    check "each rank holds its GPU: gs-run in a job of $own_gpu" \
        run_by_gs_run salloc --quiet -N2 -w n0,n1 --ntasks-per-node=4 "$own_gpu"
    GS_TEST_SRUN_ARGS="$own_gpu $there -m cyclic" check "hidden GPUs, ranks by turns" \
        warns_by_turns
    GS_TEST_SRUN_ARGS="--gpus-per-node=2 $there" check "fewer GPUs than ranks, each has its own" \
        refuses_to_share
    GS_TEST_SRUN_ARGS="--gpus-per-node=2 $there" check "fewer GPUs than ranks" shares
    check "more ranks than GPUs, as gs-info has it typed" as_typed
    check "more ranks than GPUs, as it has it not" not_as_typed
    check "gs-run --no-gpus" on_hosts
    check "the example of slurm/README.md" averages
}

# ---- Programs ----

with_own_gpus () {
    # shellcheck disable=SC2086 # names are words
    GS_TEST_SRUN_ARGS=$all_gpus check_programs on_two_nodes $chosen
    if [[ -z $chosen ]]; then
        # shellcheck disable=SC2086 # names are words
        GS_TEST_SRUN_ARGS=$own_gpu check_programs on_two_nodes $few
        # shellcheck disable=SC2086 # names are words
        GS_TEST_SRUN_ARGS=$all_gpus check_programs on_four_nodes $few
        GS_TEST_SRUN_ARGS=$all_gpus check "demo: 2x4 $all_gpus" trains 2
        GS_TEST_SRUN_ARGS=$own_gpu check "demo: 2x4 $own_gpu" trains 2
    fi
}

with_more_ranks () {
    share 2x16 "$all_gpus"
    share 2x3 --gpus-per-node=2 # groups of 2 ranks and of 1
    there="-w n0" share 1x5 --gpus-per-node=2
    share 2x8 "$all_gpus" GS_TRANSPORT=auto SIM_BLIND_EVERY=2
    share 2x8 "$all_gpus $top/tests/slurm/instance $build" SIM_GPUS=2 SIM_MIG=2
    share 2x8 "$all_gpus --gpu-bind=none"
    share 2x8 "$all_gpus --gpu-bind=single:2" # a rank sees the one that it shares
}

if [[ -z ${GS_TEST_SHAPES-} ]]; then
    check_gpus
    with_own_gpus
fi
[[ -z ${GS_TEST_LONG-}${GS_TEST_SHAPES-} ]] || with_more_ranks
[[ -z ${GS_TEST_SHAPES-} || -n ${shared-} ]] \
    || check "layouts $GS_TEST_SHAPES: there is none of these" false
finish
