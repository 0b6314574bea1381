#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# sharing.sh - ranks that share GPUs: whatever they do not do, or do at the same time, their
# streams go on, nobody uses memory that is gone, and sums are right.

. "$(dirname "$0")/lib.sh"
export OMPI_MCA_orte_allowed_exit_without_sync=1 # after a failure PMIx is not finalized
export SIM_GPUS=2 GS_TEST_SHARED_GPUS=2

# Sets sent to what two nodes of 4 GPUs send to each other in sums, when each has $1 ranks: bytes.
sent_between () {
    sent=0
    rm -f "$room/traffic"
    run "2x$1 SIM_GPUS=4 GS_TEST_SHARED_GPUS=4 GS_DEBUG=info SIM_TRAFFIC=$room/traffic" \
        tests/simgpu/sharing sums || return
    (($1 == 4)) || grep -q 'then by NCCL between 8 GPUs' "$room/out" \
        || fail "$1 ranks: no sums by groups"
    sent=$(awk '{ far += $13 } END { printf "%.0f", far }' "$room/traffic")
}

# As much as without sharing, to 0.1 %, however many ranks there are.
sent_between 4
few=$sent
for ranks in ${GS_TEST_LONG:+16} 8; do
    sent_between "$ranks"
    ((few && (sent - few) * 1000 <= few && (few - sent) * 1000 <= few)) \
        || fail "2x$ranks: $sent bytes between nodes, not $few as of 2x4"
    echo "2x$ranks: $sent bytes between nodes, 2x4: $few"
done

for mode in aborts beside others apart refused long group late; do
    run 4 tests/simgpu/sharing "$mode" && echo "$mode"
done
# NCCL takes 6 s to be told that what it has is to end.
run "4 SIM_FAULT=ncclGroupStart#1+=slow,ncclCommAbort=slow" tests/simgpu/sharing late \
    && echo "late, with a slow abort"
run "2x3 GS_CHECK=args" tests/multi/exchange.mt && echo "counts are compared"
# Messages in host memory go from and to where they are.
for times in 1 5; do
    run "4 SIM_COUNT=$room/calls.$times" tests/simgpu/sharing hosts $times && echo "hosts, $times"
done
awk '/^cuda(HostAlloc|Malloc) / { n += (FILENAME ~ /5$/ ? 1 : -1) * $2 } END { exit n != 0 }' \
    "$room"/calls.* || fail "memory of the GPU or pinned memory for messages in host memory"
run "4 SIM_LAUNCH_QUEUE=64" tests/simgpu/sharing full && echo full
run "4 SIM_LEAKS=0" tests/simgpu/sharing graph && echo "graph, which keeps its memory"
for mode in others apart aborts; do
    run "3 SIM_GPUS=1 GS_TEST_SHARED_GPUS=1" tests/simgpu/sharing "$mode" \
        && echo "$mode, on one GPU"
    run "2x3" tests/simgpu/sharing "$mode" && echo "$mode, on two nodes"
done
# A GPU that takes one process says so, and what helps.
"$top_srcdir/tests/launch.sh" --live --layout "2 SIM_GPUS=1 SIM_COMPUTE_MODE=exclusive" \
    tests/simgpu/sharing sums >"$room/out" 2>&1 && fail "two processes on an exclusive GPU"
grep -q "EXCLUSIVE_PROCESS ranks share a GPU by CUDA's MPS alone" "$room/out" \
    || fail "an exclusive GPU: $(cat "$room/out")"
# Without MPI, as where Open MPI 5 cannot be started any more, libfabric joins the hosts.
if [[ -e .libs/gradsync-ofi.so ]]; then
    without='GS_MPI_MODULE=/nonexistent GS_OFI_PROVIDER=tcp;ofi_rxm FI_TCP_IFACE=lo'
    for mode in others group aborts; do
        run "2x3 $without" tests/simgpu/sharing "$mode" && echo "$mode, without MPI"
    done
    run "2x3 $without GS_DEBUG=info" tests/multi/split.mt && echo "split, without MPI"
    grep -q 'by libfabric, since GS_MPI_MODULE' "$room/out" \
        || fail "split: hosts have another network"
    # A rank without a GPU would have MPI alone, as long as it does not know that others have one.
    run "2x3 $without GS_DEBUG=info GS_TRANSPORT=auto SIM_BLIND_EVERY=2" tests/multi/split.mt \
        && echo "split, every other rank without a GPU, without MPI"
    grep -q "transport ofi" "$room/out" || fail "split: every other rank: no libfabric"
    # Where networks differ all say so; with Open MPI 5 they do not, for no rank has MPI's here.
    # None ends with an error: the launcher would end the others.
    words='between hosts rank 0 uses mpi and rank 1 ofi'
    [[ $(mpirun --version) = *"(Open MPI) "[1-4].* ]] || words='^status 0'
    run "3 ${without#* }" /bin/bash -c \
        '((PMIX_RANK != 1)) || export GS_MPI_MODULE=/nonexistent
         tests/multi/split.mt; echo "status $?"'
    (($(grep -c "$words" "$room/out") == 3)) \
        || fail "split: one rank without MPI: $(cat "$room/out")"
fi
exit $((failures > 0))
