#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weights.sh - the weights after 200 training steps are the same to 1e-10 on any number of ranks:
# the shares of 8 trajectories may be equal, unequal, or empty.
. "$(dirname "$0")/lib.sh"
tolerance=1e-10

# Prints the largest difference of the numbers in two files relative to the weight itself.
difference () {
    paste "$1" "$2" | awk '
        function abs (v) { return v < 0 ? -v : v }
        NF != 2 || $1 == 0 { print "line " NR " is no pair of weights: " $0; exit }
        { d = abs($1 - $2) / abs($1); if (d > most) most = d }
        END { printf "%.1e\n", most }'
}

for ranks in 1 2 4 8 3 10; do
    launch "$ranks" 10-lorenz96/lorenz96_demo --train-steps 200 --run-time 0 --out "$room" \
        --weights-file "$room/$ranks"
done
(($(wc -l <"$room/1") > 1000)) || fail "the weights file is too short: $(wc -l "$room/1")"

for ranks in 2 4 8 3 10; do
    d=$(difference "$room/1" "$room/$ranks")
    echo "1 and $ranks ranks: largest relative difference $d"
    awk "BEGIN { exit !(($d) <= $tolerance) }" || fail "more than $tolerance"
done
