#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples.sh - the small examples give the right numbers, on any number of ranks.
. "$(dirname "$0")/lib.sh"

wants () { # LINE
    [[ $(<"$room/output") = "$1" ]] || fail "wanted '$1', got '$(<"$room/output")'"
}

for program in 01-average/average 01-average/average_f; do
    [[ -e $examples/$program ]] || continue # built without Fortran
    launch 1 "$program"
    wants 'average over 1 ranks: 0.00 1.00 2.00'
    launch 4 "$program"
    wants 'average over 4 ranks: 1.50 2.50 3.50'
done

for ranks in 1 4; do
    launch "$ranks" 03-reducer/train
    loss=$(sed -nE 's/^step 4000, loss (.*)/\1/p' "$room/output")
    awk "BEGIN { exit !(${loss:-1} < 0.01) }" || fail "train on $ranks ranks: loss '$loss'"
done

for program in 02-mlp/closure 02-mlp/closure_f; do
    [[ -e $examples/$program ]] || continue
    launch 2 "$program"
    sed -nE 's/^error without f (.*), with the network (.*)/\1 \2/p' "$room/output" \
        | awk '{ good = $1 > 0.9 && $2 < 0.1 } END { exit !good }' \
        || fail "$program learns nothing: $(<"$room/output")"
done

# Ends with the same checkpoint whether it was started again after step 500 or not.
resume () { # FOLDER RANKS
    (cd "$room/$1" && launch "$2" 08-checkpoint/resume) || exit
    [[ -e $room/$1/checkpoints/ck-000000001000.h5 ]] || fail "resume on $2 ranks is not done"
}

if ! "$built/gs-info" | grep -q '^  hdf5  *no'; then
    mkdir -p "$room"/{straight,again,fewer}/checkpoints
    resume straight 4
    for folder in again fewer; do
        cp "$room/straight/checkpoints/ck-000000000500.h5" "$room/$folder/checkpoints"
    done
    resume again 4
    "$built/gs-ckpt" diff "$room"/{straight,again}/checkpoints/ck-000000001000.h5 \
        || fail "resume comes to something else after a restart"
    resume fewer 3
fi

# Pairs of ranks share a batch; whatever their number, it is the same training.
pipeline () { # LAYOUT BYTES
    launch "$1" 09-pipeline/pipeline
    grep -q "sends $2 bytes a step over the boundary" "$room/output" \
        || fail "a pipeline in layout $1, not $2 bytes: $(<"$room/output")"
    sed -nE 's/^step .*, loss +//p' "$room/output" >"$room/losses"
    [[ -e $room/losses.first ]] || mv "$room/losses" "$room/losses.first"
    [[ ! -e $room/losses ]] || paste "$room/losses.first" "$room/losses" | awk '
        { off = $1 - $2; bad += off * off > 1e-20 * $1 * $1 }
        END { exit bad || NR != 4 }' || fail "pipelines differ: $(<"$room/output")"
    awk 'NR == 1 { first = $1 } END { exit !($1 < 0.02 * first) }' "$room/losses.first" \
        || fail "a pipeline learns nothing: $(<"$room/losses.first")"
}

if [[ -e $examples/09-pipeline/pipeline ]]; then
    pipeline 2 32768
    pipeline 1+1 32768
    pipeline 2x4 8192
    for layout in 1 6 2x2; do
        launch "$layout" 13-field/field "$room/field.$layout"
        cmp "$room/field.1" "$room/field.$layout" || fail "a field in layout $layout"
    done
    [[ $(wc -lw <"$room/field.1" | xargs) = '48 3072' ]] || fail "a field has no 48 x 64 numbers"
fi
