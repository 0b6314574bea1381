#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# skill.sh - a third of the demo's training is enough to beat the quartic closure by 0.04 in
# held-out R2, and the demo leaves its picture and its tables. GS_TEST_SHORT: less, and by 0.02.
. "$(dirname "$0")/lib.sh"
needed=0.04 steps=1500
[[ -z ${GS_TEST_SHORT-} ]] || needed=0.02 steps=400

launch '2x2 GS_TEST_SECONDS=300' \
    10-lorenz96/lorenz96_demo --train-steps "$steps" --run-time 20 --out "$room/new/folder"
cat "$room/output"

r2_of () {
    sed -nE "s/^Held-out R2:.* $1 +([0-9.]+),.*/\1/p" "$room/output"
}

network=$(r2_of network) quartic=$(r2_of quartic)
awk -v n="${network:-9}" -v q="${quartic:-0}" -v needed="$needed" \
    'BEGIN { exit !(n < 1 && q > 0.8 && n - q >= needed) }' \
    || fail "held-out R2: network '$network', quartic '$quartic', wanted $needed between them"

picture=$room/new/folder/lorenz96.svg
[[ $(head -n 1 "$picture") = '<?xml'* && $(tail -n 1 "$picture") = '</svg>' ]] \
    || fail "the picture is not a whole SVG file"
! grep -nE 'NaN|Inf|\*' "$picture" || fail "the picture has numbers that are none"
if command -v xmllint >/dev/null; then
    xmllint --noout "$picture" || fail "the picture is not well-formed XML"
fi
[[ $(wc -l <"$room/new/folder/loss.csv") = $((steps + 1)) ]] \
    || fail "loss.csv has not one line per step"
awk -F , 'NR > 1 { for (i = 2; i <= 4; i++) area[i] += 0.5 * $i }
    END { for (i = 2; i <= 4; i++) if (area[i] < 0.999 || area[i] > 1.001) exit 1 }' \
    "$room/new/folder/histograms.csv" || fail "a histogram's area is not 1"
