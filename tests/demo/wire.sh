#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# wire.sh - with gradients that travel as bf16 or f16, in a quarter of the bytes, the demo's
# network is as good as with f64, to 0.005 in held-out R2. GS_TEST_SHORT: after less training.
. "$(dirname "$0")/lib.sh"
tolerance=0.005 layers=3 wanted_steps=${GS_TEST_SHORT:+400}
wanted_steps=${wanted_steps:-1500}
weights=$((32 * (5 + 1) + 32 * (32 + 1) + (32 + 1))) # of the network in the demo

trains () { # WIRE
    local number='([0-9]+)'

    launch '2x2 GS_TEST_SECONDS=300' \
        10-lorenz96/lorenz96_demo --train-steps "$wanted_steps" --run-time 20 \
        --wire "$1" --out "$room"
    r2=$(sed -nE 's/^Held-out R2: network +([0-9.]+),.*/\1/p' "$room/output")
    read -r steps bytes wire_bytes < <(sed -nE "s/.* averages: $number steps of $number bytes, \
$number on the wire.*/\1 \2 \3/p" "$room/output")
    echo "$1: R2 ${r2:-none}, steps ${steps:-none}, bytes ${bytes:-none}," \
        "wire ${wire_bytes:-none}"
}

# Between layers in a bucket there may be a gap, up to the next 64 bytes.
travels () { # BYTES-OF-A-NUMBER
    ((steps == wanted_steps && bytes == 8 * weights)) \
        || fail "wanted $wanted_steps steps of $((8 * weights)) bytes"
    ((wire_bytes >= $1 * weights && wire_bytes < $1 * weights + 64 * layers)) \
        || fail "wanted $(($1 * weights)) bytes on the wire, and at most $((64 * layers)) between"
}

trains f64
travels 8
r2_f64=$r2
for wire in bf16 f16; do
    trains "$wire"
    travels 2
    awk -v r2="${r2:-9}" -v wanted="${r2_f64:-0}" -v tolerance="$tolerance" \
        'BEGIN { d = r2 - wanted; exit !(wanted > 0.8 && d <= tolerance && -d <= tolerance) }' \
        || fail "held-out R2 '$r2', with f64 '$r2_f64': wanted at most $tolerance between them"
done
