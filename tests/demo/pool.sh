#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# pool.sh - with --pool, where few ranks evaluate the network for all, closures compare as
# without: what is printed, the picture and the tables are the same, to the bit. Ranks have
# unequal shares of the trajectories, also none; of each node one rank evaluates.
. "$(dirname "$0")/lib.sh"

compare () { # LAYOUT TRAJECTORIES
    local layout="$1 GS_DETERMINISTIC=1 GS_DEBUG=info GS_TEST_SECONDS=300" file
    local options=(--trajectories "$2" --train-steps 20 --run-time 1)

    launch "$layout" 10-lorenz96/lorenz96_demo "${options[@]}" --out "$room/alone"
    ! grep -q "pool 'closure'" "$room/output" || fail "a pool without --pool"
    sed -n '/^Trajectories not seen/,/^Held-out/p' "$room/output" >"$room/alone/printed"
    launch "$layout" 10-lorenz96/lorenz96_demo "${options[@]}" --pool --out "$room/pool"
    grep -q "pool 'closure': 1 of [0-9]* ranks of this node evaluate" "$room/output" \
        || fail "no pool with --pool: $(cat "$room/output")"
    sed -n '/^Trajectories not seen/,/^Held-out/p' "$room/output" >"$room/pool/printed"
    grep -q '^Held-out' "$room/pool/printed" || fail "nothing was compared: $(cat "$room/output")"
    for file in printed histograms.csv lorenz96.svg; do
        cmp "$room/alone/$file" "$room/pool/$file" || fail "$1, $2 trajectories: $file differs"
    done
    echo "$1, $2 trajectories: the same with a pool"
}

compare 2x2 5
compare 3 2
