#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# steady.sh - a step of a reducer in its steady state makes nothing, waits for nothing on the host
# and asks the system for nothing: counted in libc, by the program, and in CUDA and NCCL, here.

. "$(dirname "$0")/lib.sh"

# Calls in 20 steps of two ranks: the difference of 60 and 40, without steps in which buckets may
# be made anew. gs_comm_wait asks events, so only what must not be is looked at.
run "2 SIM_COUNT=$room/calls.40" tests/simgpu/steady 40
run "2 SIM_COUNT=$room/calls.60" tests/simgpu/steady 60
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
run 1 tests/simgpu/steady 50
run 2x2 tests/simgpu/steady 50
exit $((failures > 0))
