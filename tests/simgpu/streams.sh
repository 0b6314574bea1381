#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# streams.sh - no operation on device arrays waits on the host; ghosts keep out of each other's
# way; what can be captured is right when it is replayed; where the host reads what a stream
# writes, it waits for that.

. "$(dirname "$0")/lib.sh"

for layout in 1 2 3 2x2; do
    for average in fast exact; do
        run "$layout GS_AVG=$average GS_TIMEOUT_MS=10000" tests/simgpu/streams blocked \
            && echo "$layout: nothing waits, averages are $average"
    done
    run "$layout GS_CHECK=collective GS_TIMEOUT_MS=10000" tests/simgpu/streams graph \
        && echo "$layout: graph, compared"
    for mode in turns graph arrives weights pool; do
        run "$layout GS_TIMEOUT_MS=10000" tests/simgpu/streams "$mode" && echo "$layout: $mode"
    done
done
run "2 GS_TIMEOUT_MS=1500 OMPI_MCA_orte_allowed_exit_without_sync=1" \
    tests/simgpu/streams "late pool" && echo "2: late pool"
exit $((failures > 0))
