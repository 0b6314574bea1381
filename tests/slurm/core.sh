#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2317 # core calls the function
#
# core.sh - of the tests on a private Slurm those that the others mark by core, and some programs,
# all in one cluster: the part that is run each time.

# shellcheck source=check.sh
. "$(dirname "$0")/check.sh"
enter_cluster --nodes 4
export GS_SLURM_CORE=yes
few="multi/average multi/reducer multi/ckpt multi/topology fortran/arrays"

script () { # NAME [PROGRAM]...
    mkdir -p "$room/$1"
    GS_INSIDE=$room/$1 GS_SUITE=${*:2} top_builddir=$build bash "$top/tests/slurm/$1.sh" >out 2>&1
}

core "failures.sh" script failures
core "gs-run.sh" script gs-run
# shellcheck disable=SC2086 # names are words
GS_TEST_SHORT=1 core "suite.sh" script suite $few
if [[ -e $build/tests/simgpu/lib/libnccl.so.2 ]]; then
    core "simgpu.sh" script simgpu multi/average multi/device
else
    echo "left out: simgpu.sh, no simulated GPUs in this build"
fi
finish
