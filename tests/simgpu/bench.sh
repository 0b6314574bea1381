#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# bench.sh - gs-bench measures on GPUs beside NCCL, on ranks that it starts itself.

: "${top_builddir:?run me by make check}"
room=$(mktemp -d "${TMPDIR:-/tmp}/gs-bench.XXXXXX") || exit 99
trap 'rm -rf "$room"' EXIT
cd "$top_builddir" || exit 99
unset "${!SIM_@}" GS_TRANSPORT CUDA_VISIBLE_DEVICES NCCL_HOSTID
export LD_LIBRARY_PATH=$PWD/tests/simgpu/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
failures=0

fail () {
    echo "FAILED - $*"
    sed 's/^/    /' "$room/out"
    ((++failures))
}

timeout=${top_srcdir:?}/tests/timeout

# measures RANKS SIZES ARGUMENT...: exit status 0, and a line of JSON with both times for a size.
measures () {
    local number='[0-9]+\.[0-9]+' ranks=$1 sizes=$2 line
    shift 2

    "$timeout" 60 ./gs-bench "$@" --iterations 4 --warmup 1 --rounds 11 --json >"$room/out" 2>&1 \
        || fail "gs-bench $*: exit status $?"
    line="^\{\"op\":\"$1\",.*\"ranks\":$ranks,.*\"transport\":\"nccl\",\"time_us\":$number,"
    line+="\"raw_time_us\":$number,\"ratio\":$number\}\$"
    [[ $(grep -cE "$line" "$room/out") = "$sizes" ]] \
        || fail "gs-bench $*: not $sizes lines"
}

# averages RANKS ARGUMENT...: exit status 0, and a line of JSON for each mode of a reducer.
averages () {
    local line

    line="\"op\":\"reducer\",.*\"ranks\":$1,.*\"transport\":\"nccl\",.*\"raw_time_us\":null,"
    "$timeout" 60 ./gs-bench reducer "${@:2}" --warmup 1 --rounds 11 --json >"$room/out" 2>&1 \
        || fail "gs-bench reducer ${*:2}: exit status $?"
    [[ $(grep -cE "$line" "$room/out") = 5 ]] || fail "gs-bench reducer ${*:2}: not 5 lines"
}

# refuses TEXT ARGUMENT...: exit status 1, on all ranks within a minute, and TEXT.
refuses () {
    "$timeout" 60 ./gs-bench "${@:2}" >"$room/out" 2>&1
    { [[ $? = 1 ]] && grep -q "$1" "$room/out"; } || fail "gs-bench ${*:2}: not refused with '$1'"
}

measures 2 3 queue --ranks 2 --min-bytes 16 --max-bytes 64
measures 2 3 bucket --ranks 2 --min-bytes 16 --max-bytes 64
measures 4 2 allreduce_avg --memory device --ranks 4 --min-bytes 4K --max-bytes 8K
measures 1 1 allreduce_avg --memory device --dtype bf16 --min-bytes 4K --max-bytes 4K
averages 1 --memory device --model mlp
averages 2 --memory device --ranks 2 --model mlp --wire bf16 --bucket-bytes 256K
export SIM_GPUS=1
refuses 'would share the GPU' queue --ranks 2
GS_ALLOW_SHARED_GPU=1 measures 2 1 queue --ranks 2 --min-bytes 16 --max-bytes 16
SIM_GPUS=0 refuses 'no GPU' queue --ranks 2
((!failures)) && echo "gs-bench measures on GPUs"
exit $((failures > 0))
