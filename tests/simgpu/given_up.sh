#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# given_up.sh - what a rank that gives up hands on is nobody's result, on its node and elsewhere,
# and who waits for one that was killed, or gives up, in a graph is told.

. "$(dirname "$0")/lib.sh"

left='OMPI_MCA_orte_allowed_exit_without_sync=1'
for mode in abort deadline; do
    run "3 $left" tests/simgpu/given_up "$mode" 4 && echo "3: $mode"
    run "2x2 $left" tests/simgpu/given_up "$mode" 4 && echo "2x2: $mode"
done
# Ranks 3 to 5 share the GPUs of 0 to 2, their leaders: when rank 0 gives up, 1 and 2 hand on to 4
# and 5 what NCCL then makes of the sum, which look at flight records too seldom to know.
run "6 SIM_GPUS=3 GS_TEST_SHARED_GPUS=3 $left" tests/simgpu/given_up abort 12 sum \
    && echo "6 on 3 GPUs"
# Rank 1 cannot map the memory in which ranks of the node tell that they give up.
if "$top_builddir/gs-info" | grep -q 'fault injection.*yes'; then
    run "3 GS_FAULT=nccl.join@1 $left" tests/simgpu/given_up abort 1 sum 1 \
        && echo "3: without the node's memory"
fi
# A rank is killed, or gives up, while the others wait for it in CUDA graphs, which no call tells
# of. Without NCCL_HOSTID NCCL does not, either. What graphs may use of a shared GPU stays.
replayed () { # LAYOUT SETTING...
    GS_TEST_LAUNCHER="$top_srcdir/tests/gpu/ranks %n %N" GS_TEST_DIES=0 \
        run "$*" "$(command -v env)" -u NCCL_HOSTID GS_ALLOW_SHARED_GPU=0 \
        tests/simgpu/replayed 3 ${how:+"$how"} && echo "$1: replays${how:+, $how}"
}

for how in '' abort; do
    replayed 3
    [[ ! -e .libs/gradsync-ofi.so ]] || replayed 3 SIM_GPUS=1 GS_TEST_SHARED_GPUS=1 SIM_LEAKS=0
    replayed 2+2
done
exit $((failures > 0))
