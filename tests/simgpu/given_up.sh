#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# given_up.sh - what a rank that gives up hands on is nobody's result, on its node and elsewhere.

. "$(dirname "$0")/lib.sh"

left='OMPI_MCA_orte_allowed_exit_without_sync=1'
for mode in abort deadline; do
    run "3 $left" tests/simgpu/given_up "$mode" 4 && echo "3: $mode"
    run "2x2 $left" tests/simgpu/given_up "$mode" 4 && echo "2x2: $mode"
done
exit $((failures > 0))
