#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# kernels.sh - the test of kernels for real GPUs passes, unchanged, on the simulated runtime: its
# launches, copies and captures keep the rules, and every twin gives the bits of hosts.

: "${top_builddir:?run me by make check}"
here=$top_builddir/tests/simgpu

unset "${!SIM_@}" CUDA_VISIBLE_DEVICES
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

"$top_builddir/tests/gpu/kernels.gt"
status=$?
((status != 77)) || echo "tests/gpu/kernels.gt did not find the simulated GPU"
exit $((status != 0))
