#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# steady.sh - a step of a reducer in its steady state makes nothing, waits for nothing on the host
# and asks the system for nothing: counted in libc, by the program, and in CUDA and NCCL, here.

: "${top_srcdir:?run me by make check}" "${top_builddir:?}"
room=$(mktemp -d "${TMPDIR:-/tmp}/gs-steady.XXXXXX") || exit 99
trap 'rm -rf "$room"' EXIT
cd "$top_builddir" || exit 99
unset "${!SIM_@}" CUDA_VISIBLE_DEVICES
export LD_LIBRARY_PATH=$PWD/tests/simgpu/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export GS_TRANSPORT=nccl SIM_GPUS=16 GS_TEST_SECONDS=60
failures=0

fail () {
    echo "FAILED - $*"
    ((++failures))
}

# run LAYOUT STEPS
run () {
    "$top_srcdir/tests/launch.sh" --live --layout "$1" tests/simgpu/steady "$2" \
        >"$room/out" 2>&1 && return
    fail "$1, $2 steps"
    sed 's/^/    /' "$room/out"
}

# Calls in 20 steps of two ranks: the difference of 60 and 40, without steps in which buckets may
# be made anew. gs_comm_wait asks events, so only what must not be is looked at.
run "2 SIM_COUNT=$room/calls.40" 40
run "2 SIM_COUNT=$room/calls.60" 60
awk '{ n[$1] += (FILENAME ~ /60$/ ? 1 : -1) * $2 }
     END { for (name in n) printf "%s %.2f\n", name, n[name] / 40 }' "$room"/calls.* \
    >"$room/per_step"
grep -qE '^ncclAllReduce [1-9]' "$room/per_step" || fail "no step was counted"
while read -r name calls; do
    case $name in
    cudaMalloc* | cudaFree* | cudaHost* | *Synchronize* | *Create* | *Destroy* | cudaMemcpy)
        [[ $calls = 0.00 ]] || fail "$calls $name a step"
        ;;
    esac
done <"$room/per_step"
echo "a step is $(sed '/ 0\.00$/d' "$room/per_step" | tr '\n' ',')"
run 1 50
run 2x2 50
exit $((failures > 0))
