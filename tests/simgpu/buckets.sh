#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# buckets.sh - buckets of a reducer, whose events the library records once a step: what they cost,
# a rank that stops amid a step, and steps that last long, are interrupted or given up, and what
# the program still does meanwhile.

. "$(dirname "$0")/lib.sh"

for layout in 1 2 2x2; do
    for mode in counted paused aborted captured relaid threaded; do
        run "$layout" tests/simgpu/buckets "$mode" && echo "$layout: $mode"
    done
done
run "2 SIM_DELAY_US=50000" tests/simgpu/buckets slow && echo "2: slow"
run "3 OMPI_MCA_orte_allowed_exit_without_sync=1" tests/simgpu/buckets late && echo "3: late"
exit $((failures > 0))
