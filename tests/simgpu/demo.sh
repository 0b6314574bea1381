#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# demo.sh - on simulated GPUs the demo's surrogate beats the quartic as tests/demo/skill.sh asks.

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
demo=doc/examples/10-lorenz96/lorenz96_demo
[[ -x $demo ]] || { echo "skip: no $demo in this build"; exit 77; }
GS_TEST_SECONDS=120 run 2x4 "$demo" --out "$room/demo" --train-steps 1500 --run-time 20 || exit
sed -nE 's/^Held-out R2:.* difference +(-?[0-9.]+).*/\1/p' "$room/out" \
    | awk '{ enough = $1 >= 0.04 } END { exit !enough }' || { cat "$room/out"; exit 1; }
