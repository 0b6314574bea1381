# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# lib.sh - what scripts that count on simulated GPUs share; sourced by each. Goes to the build,
# and makes a folder, $room, for what launches write.

: "${top_srcdir:?run me by make check}" "${top_builddir:?}"
room=$(mktemp -d "${TMPDIR:-/tmp}/gs-simgpu.XXXXXX") || exit 99
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

# run LAYOUT WORDS...: one launch, which must succeed.
run () {
    local layout=$1
    shift
    "$top_srcdir/tests/launch.sh" --live --layout "$layout" "$@" >"$room/out" 2>&1 && return
    fail "$layout $*"
    sed 's/^/    /' "$room/out"
    return 1
}
