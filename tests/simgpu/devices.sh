#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# devices.sh - which GPU each rank of a real launch takes, on simulated nodes with more or less of
# them: by itself, as it is told, not at all, and what it says then.

: "${top_srcdir:?run me by make check}" "${top_builddir:?}"
launch=$top_srcdir/tests/launch.sh
simulated=$top_builddir/tests/simgpu/lib
program=$top_builddir/tests/simgpu/chosen.mt
failures=0
room=$(mktemp -d "${TMPDIR:-/tmp}/gs-devices.XXXXXX") || exit 99
trap 'rm -rf "$room"' EXIT

unset "${!SIM_@}" "${!NCCL_@}" "${!GS_NCCL_@}" CUDA_VISIBLE_DEVICES GS_TRANSPORT GS_DEVICE \
    GS_GPU_SHARING
export OMPI_MCA_orte_allowed_exit_without_sync=1 GS_TIMEOUT_MS=60000 GS_DEBUG=warn
[[ -x $program ]] || { echo "skip: no $program in this build"; exit 77; }

fail () {
    echo "FAIL: $title: $*"
    sed 's/^/    /' "$room/output"
    failures=$((failures + 1))
}

# run TITLE LAYOUT [VARIABLE=VALUE...] [-- ARGUMENT...]: launches the program, by way of $wrapper.
run () {
    local layout=$2 settings=() folders=$simulated
    title="$1 ($2)"
    shift 2

    while (($#)) && [[ $1 != -- ]]; do
        settings+=("$1")
        [[ $1 != SIM_NCCL_VERSION=* ]] || folders=${simulated%lib}nccl-2.18:$simulated
        shift
    done
    folders=${nccl:+$nccl:}$folders${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    env "${settings[@]}" LD_LIBRARY_PATH="$folders" "$launch" --live --layout "$layout" \
        "${wrapper:-$program}" "${@:2}" >"$room/output" 2>&1
    status=$?
    ((status != 77)) || { echo "skip: $(tail -n 1 "$room/output")"; exit 77; }
    ((status == 0)) || fail "exit status $status"
}

# says TIMES PATTERN: so many lines have it.
says () {
    (($(grep -cE "$2" "$room/output") == $1)) || fail "not $1 lines have '$2'"
}

# foretold LAYOUT: gs-info --layout, with the settings there are, says what each rank has got.
foretold () {
    local nodes=${1%%x*} ranks=${1#*x} told transport n r gpu
    ranks=${ranks%x*}

    told=$("$top_builddir/gs-info" --layout "$1")
    transport=$(sed -n 's/^  transport  *//p' <<<"$told")
    for ((n = 0; n < nodes; n++)); do
        for ((r = 0; r < ranks; r++)); do
            gpu=$(sed -nE "s/^  GPU ([0-9]+) +ranks?( [0-9]+)* $r( .*)? of a node.*/\1/p" \
                <<<"$told")
            says 1 "^rank $((n * ranks + r)) has transport $transport, GPU ${gpu:--2}\$"
        done
    done
}

# make_wrapper LINES: a script that sets variables for a rank and starts the program.
# shellcheck disable=SC2016 # the script expands them
make_wrapper () { # LINES
    wrapper=$room/wrapper
    {
        echo '#!/bin/sh'
        echo 'rank=$OMPI_COMM_WORLD_RANK local=$OMPI_COMM_WORLD_LOCAL_RANK'
        echo "$1"
        echo "exec $program"
    } >"$wrapper"
    chmod +x "$wrapper"
}

# ---- Each rank has one ----

run "GPUs by local rank" 2x2 SIM_GPUS=2
says 2 '^rank [02] has transport nccl, GPU 0$'
says 2 '^rank [13] has transport nccl, GPU 1$'
says 4 '^rank . with an array on a GPU: GS_OK'
foretold 2x2x2

run "a GPU by number" alone SIM_GPUS=4 GS_DEVICE=3
says 1 '^rank 0 has transport nccl, GPU 3$'

# shellcheck disable=SC2016
make_wrapper 'CUDA_VISIBLE_DEVICES=$local; export CUDA_VISIBLE_DEVICES'
run "one visible GPU each" 2x2 SIM_GPUS=4
says 4 '^rank . has transport nccl, GPU 0$'
says 1 "^gradsync.*ranks 0 and 1 \(host n1\) do not see each other's GPUs, .*--gpus-per-node"
wrapper=

run "the caller's device" 2 SIM_GPUS=4 -- current
says 1 'all is well'

run "a CUDA graph" 2x2 SIM_GPUS=4 GS_TIMEOUT_MS=20000 -- captured
says 1 'all is well'

run "a CUDA graph of ranks that share GPUs" 2x3 SIM_GPUS=2 GS_TRANSPORT=nccl \
    GS_TEST_SHARED_GPUS=1 GS_TIMEOUT_MS=20000 -- captured
says 1 'all is well'

# ---- Two ranks would share one ----

shared='ranks 0 and 1 \(host .+\) would share the GPU [0-9a-f:]+.*srun --gpus-per-node=4'
run "one GPU for two" 2 SIM_GPUS=1 GS_DEBUG=info
says 2 '^rank . has transport nccl, GPU 0$'
says 1 "^gradsync\[0/2\] comm: 'world': 2 ranks .* transport nccl \(several ranks share a GPU,"
says 1 '^gradsync\[0/2\] nccl: sums: on each GPU, then by NCCL between 1 GPUs'
says 2 '^rank . with an array on a GPU: GS_OK'

run "two GPUs for three, twice" 2x3 SIM_GPUS=2 GS_TRANSPORT=nccl GS_DEBUG=info
says 4 '^rank . has transport nccl, GPU 0$'
says 2 '^rank . has transport nccl, GPU 1$'
says 1 '^gradsync\[0/6\] nccl: sums: on each GPU, then by NCCL between 4 GPUs'
says 6 '^rank . with an array on a GPU: GS_OK'
foretold 2x3x2

title="an NCCL that is too old for groups, foretold"
LD_LIBRARY_PATH=${simulated%lib}nccl-2.18:$simulated "$top_builddir/gs-info" --layout 2x3x2 \
    >"$room/output" 2>&1
says 1 '^  sums  *by way of the hosts: NCCL before 2.22'
says 1 '^  GPU 0  *ranks 0 2 of a node$'

run "one GPU for two, in the order of ranks" 2 SIM_GPUS=1 GS_DEBUG=info GS_DETERMINISTIC=1
says 1 'sums go by way of the hosts: GS_DETERMINISTIC is set'
says 2 '^rank . with an array on a GPU: GS_OK'

run "one GPU for two, but it cannot be mapped" 2 SIM_GPUS=1 SIM_FAULT=cudaIpcOpenMemHandle@1
says 1 'sums go by way of the hosts: rank 1: cudaIpcOpenMemHandle: '
says 2 '^rank . with an array on a GPU: GS_OK'

run "two GPUs for four, but NCCL does not start" 4 SIM_GPUS=2 SIM_FAULT=ncclCommInitRankConfig@1
says 1 'sums go by way of the hosts: rank [01]: ncclCommInitRank'
says 4 '^rank . with an array on a GPU: GS_OK'

run "two GPUs for four, but one has no memory of the host" 4 SIM_GPUS=2 \
    GS_BOOT_TIMEOUT_MS=20000 SIM_FAULT=cudaHostRegister@1
says 1 'sums go by way of the hosts: rank 1: cudaHostRegister: '
says 4 '^rank . with an array on a GPU: GS_OK'

run "one GPU for two, but its streams wait in vain" 2 SIM_GPUS=1 SIM_LEAKS=0 GS_DEVICE=0 \
    SIM_FAULT=cuStreamWaitValue32@1=stall
says 1 'sums go by way of the hosts: rank 1: a stream waits for a flag in vain'
says 2 '^rank . has transport nccl, GPU 0$'

run "one GPU for two, but one makes no stream" 2 SIM_GPUS=1 \
    "SIM_FAULT=cudaStreamCreateWithPriority#3@1"
says 2 '^rank . has none: GS_ERR_NOMEM: .*rank 1: cudaStreamCreateWithPriority'

run "an instance of a GPU for two" 2 SIM_GPUS=1 SIM_MIG=2 GS_DEBUG=info
says 1 '^gradsync\[0/2\] nccl: sums: on each GPU, then by NCCL between 1 GPUs'
says 2 '^rank . with an array on a GPU: GS_OK'

# shellcheck disable=SC2016
make_wrapper 'CUDA_VISIBLE_DEVICES=$(tests/simgpu/names | sed -n "$((rank + 1))p")
export CUDA_VISIBLE_DEVICES'
run "an instance of one GPU each" 2 SIM_GPUS=1 SIM_MIG=2
says 1 'sums go by way of the hosts: ranks 0 and 1 have two instances \(MIG\) of one GPU'
says 2 '^rank . with an array on a GPU: GS_OK'
wrapper=

run "a GPU each, as if they shared it" 2 SIM_GPUS=2 GS_GPU_SHARING=always GS_DEBUG=info
says 1 'sums: on each GPU, then by NCCL between 2 GPUs'
says 2 '^rank . with an array on a GPU: GS_OK'

export GS_GPU_SHARING=never
run "one GPU for two, nccl, never shared" 2 SIM_GPUS=1 GS_TRANSPORT=nccl
says 2 "^rank . has none: GS_ERR_DEVICE: .*$shared"

run "one GPU for two, auto, never shared" 2 SIM_GPUS=1
says 2 '^rank . has transport mpi, GPU -2$'
says 1 "^gradsync\[0/2\] comm: 'world' does not use GPUs: $shared"
says 2 '^rank . with an array on a GPU: GS_ERR_DEVICE: .*in memory of GPU 0, but .*transport mpi'
foretold 1x2x1

run "two ranks with the same GPU by number" 2 SIM_GPUS=4 GS_DEVICE=1
says 2 "^rank . has none: GS_ERR_DEVICE: .*would share the GPU"
unset GS_GPU_SHARING

# shellcheck disable=SC2016
make_wrapper '[ $rank != 1 ] || { GS_GPU_SHARING=never; export GS_GPU_SHARING; }'
run "different GS_GPU_SHARING" 2 SIM_GPUS=1
says 2 '^rank . has none: GS_ERR_MISMATCH: .*rank 0 and rank 1 .*different GS_GPU_SHARING'
wrapper=

# shellcheck disable=SC2016
make_wrapper 'NCCL_HOSTID=host-$rank; export NCCL_HOSTID'
run "one GPU for two, allowed" 2 SIM_GPUS=1 GS_ALLOW_SHARED_GPU=1 GS_TRANSPORT=nccl
says 2 '^rank . has transport nccl, GPU 0$'
wrapper=

# ---- The wrong one, or none ----

run "a GPU that is not there" 2 SIM_GPUS=4 GS_DEVICE=7
says 2 '^rank . has none: GS_ERR_DEVICE: .*rank 0 \(host .+\) asks for GPU 7, but sees 4'

run "the host, by auto" 2 SIM_GPUS=4 GS_DEVICE=host
says 2 '^rank . has transport mpi, GPU -2$'
says 0 '^gradsync'

run "the host, by nccl" 2 SIM_GPUS=4 GS_DEVICE=host GS_TRANSPORT=nccl
says 2 '^rank . has none: GS_ERR_ARG: .*transport nccl needs a GPU, but .* is the host'

# shellcheck disable=SC2016
make_wrapper '[ $rank != 1 ] || { CUDA_VISIBLE_DEVICES=; export CUDA_VISIBLE_DEVICES; }'
run "a rank without GPU, auto" 2x2 SIM_GPUS=4 GS_TEST_ALL_CALL=1
says 1 '^rank 1 has transport mpi, GPU -2$'
says 3 '^rank [023] has transport mpi, GPU [01]$'
says 3 '^rank [023] with an array on a GPU: GS_OK: $'
says 1 "^gradsync\[0/4\] comm: 'world' does not use NCCL, .*: rank 1 \(host n1\) has no GPU: "
run "a rank without GPU, never" 2x2 SIM_GPUS=4 GS_GPU_SHARING=never
says 4 '^rank . has transport mpi, GPU -2$'
says 1 "^gradsync\[0/4\] comm: 'world' does not use GPUs: rank 1 \(host n1\) has no GPU: "
run "a rank without GPU, nccl" 2x2 SIM_GPUS=4 GS_TRANSPORT=nccl
says 4 '^rank . has none: GS_ERR_DEVICE: .*CUDA_VISIBLE_DEVICES'
says 3 '^rank [023] has none: GS_ERR_DEVICE: .*rank 1 \(host n1\)'
wrapper=

run "no driver, auto" 2 SIM_GPUS=-1
says 2 '^rank . has transport mpi, GPU -2$'
says 0 '^gradsync'
run "no driver, nccl" 2 SIM_GPUS=-1 GS_TRANSPORT=nccl
says 2 '^rank . has none: GS_ERR_DEVICE: .*no GPU: no NVIDIA driver on this host'

# shellcheck disable=SC2016
make_wrapper '[ $rank != 1 ] || {
    unset SIM_NCCL_VERSION
    export LD_LIBRARY_PATH="${LD_LIBRARY_PATH#*:}"
}'
run "different versions of NCCL" 2 SIM_NCCL_VERSION=2.18
says 2 '^rank . has none: GS_ERR_MISMATCH: .*rank 0 runs NCCL [0-9]+, rank 1 NCCL [0-9]+'
# shellcheck disable=SC2016
make_wrapper '[ $rank != 1 ] || { GS_AVG=fast; export GS_AVG; }'
run "different GS_AVG" 2
says 2 '^rank . has none: GS_ERR_MISMATCH: .*rank 0 and rank 1 have different GS_AVG'
wrapper=

run "no code for this GPU" alone GS_TRANSPORT=nccl SIM_FAULT=cudaFuncGetAttributes=209
says 1 '^rank 0 has none: GS_ERR_DEVICE: .*no code for GPU 0, .*: .* with GS_CUDA_ARCH=90'

# ---- NCCLs that do not work ----

# with_nccl TITLE FILE: on one rank, this in the place of libnccl.so.2.
with_nccl () {
    mkdir -p "$room/nccl"
    cp "$2" "$room/nccl/libnccl.so.2"
    nccl=$room/nccl run "$1" alone GS_TRANSPORT=nccl
}

: >"$room/empty"
with_nccl "no NCCL" "$room/empty"
says 1 '^rank 0 has none: GS_ERR_TRANSPORT: .*cannot load NCCL: .*Load the module of NCCL'
echo 'int ncclGetVersion (int *v) { *v = 22809; return 0; }' \
    | ${CC:-cc} -x c -shared -fPIC -o "$room/some.so" - 2>/dev/null
with_nccl "half an NCCL" "$room/some.so"
says 1 '^rank 0 has none: GS_ERR_TRANSPORT: .*has no ncclGetUniqueId: gradsync needs NCCL 2.18'

run "an NCCL that is too old" alone GS_TRANSPORT=nccl SIM_NCCL_VERSION=2.17.1
says 1 '^rank 0 has none: GS_ERR_TRANSPORT: .*is NCCL 2\.17\.1, which gradsync refuses, as it has'
says 1 'has no ncclCommSplit: load NCCL 2\.18 or later'

# ---- Several roots ----

# counted NAME: how often all ranks together called it.
counted () {
    awk -v name="$1" '$1 == name { sum += $2 } END { print sum + 0 }' "$room/count"
}

run "several roots" 2x3 GS_NCCL_RANKS_PER_ROOT=2 SIM_COUNT="$room/count"
says 6 '^rank . has transport nccl'
[[ $(counted ncclCommInitRankScalable) = 6 && $(counted ncclGetUniqueId) = 3 ]] \
    || fail "not 6 ranks started with 3 ids"
rm "$room/count"
run "several roots, old NCCL" 2x3 GS_NCCL_RANKS_PER_ROOT=2 SIM_COUNT="$room/count" \
    SIM_NCCL_VERSION=2.18
says 6 '^rank . has transport nccl'
[[ $(counted ncclCommInitRankConfig) = 6 && $(counted ncclGetUniqueId) = 1 ]] \
    || fail "not 6 ranks started with 1 id"

# ---- What NCCL may take of a GPU ----

rm "$room/count"
run "few CTAs" 2x2 GS_NCCL_MAX_CTAS=8 SIM_COUNT="$room/count"
says 4 '^rank . has transport nccl'
[[ $(counted maxCTAs=8) = 4 ]] || fail "not 4 communicators have 8 CTAs at most"
rm "$room/count"
run "as many CTAs as NCCL likes" 2 SIM_COUNT="$room/count"
! grep -q maxCTAs "$room/count" || fail "maxCTAs is set unasked"

((failures)) || echo "the devices are as they should be"
exit $((failures > 0))
