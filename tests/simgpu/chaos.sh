#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# chaos.sh [TRIALS [SEED]] - tests/multi/chaos.sh on GPUs: one for each rank, one for all of a
# node, and none for every other rank. 12 trials of each, 4 with GS_TEST_SHORT, 60 with
# GS_TEST_LONG, or as many as GS_TEST_TRIALS says. A stopped rank would stop the simulated GPU
# with it, which a real one does not.

. "$(dirname "$0")/lib.sh"
if [[ ! -e .libs/gradsync-ofi.so ]]; then
    echo "skip: without libfabric it is not known which rank of another node has died"
    exit 77
fi
usual=12
[[ -z ${GS_TEST_SHORT-} ]] || usual=4
[[ -z ${GS_TEST_LONG-} ]] || usual=60
trials=${1:-${GS_TEST_TRIALS:-$usual}}
seed=${2:-${GS_TEST_SEED:-$((SRANDOM % 1000000))}}
export SIM_LEAKS=0 GS_TEST_HOWS="kill leave"

# chaos WHAT VARIABLE=VALUE...
chaos () {
    echo "$1:"
    env "${@:2}" bash "$top_srcdir/tests/multi/chaos.sh" "$trials" "$seed" || fail "$1"
}

chaos "a GPU for each rank" SIM_GPUS=16
chaos "a GPU for all ranks of a node" SIM_GPUS=1 GS_TEST_SHARED_GPUS=1
chaos "a GPU for every other rank" SIM_GPUS=2 GS_TRANSPORT=auto SIM_BLIND_EVERY=2
exit $((failures > 0))
