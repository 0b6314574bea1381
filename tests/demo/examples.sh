#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples.sh - the small examples give the right numbers on 1 and on 4 ranks.
. "$(dirname "$0")/lib.sh"

wants () { # LINE
    [[ $(<"$room/output") = "$1" ]] || fail "wanted '$1', got '$(<"$room/output")'"
}

for program in c/average fortran/average; do
    [[ -e $examples/$program ]] || continue # built without Fortran
    launch 1 "$program"
    wants 'average over 1 ranks: 0.00 1.00 2.00'
    launch 4 "$program"
    wants 'average over 4 ranks: 1.50 2.50 3.50'
done

for ranks in 1 4; do
    launch "$ranks" c/train
    loss=$(sed -nE 's/^step 4000, loss (.*)/\1/p' "$room/output")
    awk "BEGIN { exit !(${loss:-1} < 0.01) }" || fail "train on $ranks ranks: loss '$loss'"
done
