#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# demo.sh - on simulated GPUs the demo's surrogate beats the quartic as tests/demo/skill.sh asks;
# and where ranks share them, as with ./setup demo --layout, it learns what one rank does.

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
demo=doc/examples/10-lorenz96/lorenz96_demo
[[ -x $demo ]] || { echo "skip: no $demo in this build"; exit 77; }

# learn LAYOUT: 200 training steps, with the weights in $room/LAYOUT.
learn () {
    GS_TEST_SECONDS=120 run "$1" "$demo" --out "$room/demo" --train-steps 200 --run-time 0 \
        --weights-file "$room/$1"
}

learn 1 && SIM_GPUS=2 learn 2x4 || exit
grep -q ' on 8 ranks of 2 nodes, transport nccl' "$room/out" || { cat "$room/out"; exit 1; }
(($(wc -l <"$room/1") > 1000)) || { echo "no weights"; exit 1; }
paste "$room/1" "$room/2x4" | awk '
    { d = ($1 - $2) / $1 }
    NF != 2 || d > 1e-10 || d < -1e-10 { print "weight " NR ": " $0; wrong = 1 }
    END { exit wrong }' || exit 1

GS_TEST_SECONDS=120 run 2x4 "$demo" --out "$room/demo" --train-steps 1500 --run-time 20 || exit
sed -nE 's/^Held-out R2:.* difference +(-?[0-9.]+).*/\1/p' "$room/out" \
    | awk '{ enough = $1 >= 0.04 } END { exit !enough }' || { cat "$room/out"; exit 1; }
