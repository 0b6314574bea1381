#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# demo.sh - the demo as a step of a real Slurm: the surrogate it trains is as good as elsewhere.

# shellcheck source=check.sh
. "$(dirname "$0")/check.sh"
# shellcheck source=steps.sh
. "$top/tests/slurm/steps.sh"
enter_cluster --nodes 4

check "2 nodes of 4 ranks" trains 2
check "4 nodes of 4 ranks" trains 4 --trajectories 16
finish
