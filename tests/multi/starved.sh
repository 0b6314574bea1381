#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# starved.sh - memory runs out on one of two ranks, at each allocation that gradsync's own code
# makes in a call: no rank hangs or crashes, the others are told which one it was, no number is
# wrong, and nothing is left. On one node and on two.
# GS_TEST_LONG: every allocation, and all behind it, too; else as many as GS_TEST_SEED draws.

launch=${top_srcdir:?run me by make check}/tests/launch.sh
program=tests/multi/starving.mt
seed=${GS_TEST_SEED:-5}
every=40
[[ -z ${GS_TEST_SHORT-} ]] || every=80
[[ -z ${GS_TEST_LONG-} ]] || every=1
export GS_TEST_SECONDS=60
[[ -z ${GS_TEST_LONG-} ]] || GS_TEST_SECONDS=1200
# A wait to the end of this time is a failure; a create waits for ranks that can tell nothing.
export GS_TIMEOUT_MS=30000 GS_BOOT_TIMEOUT_MS=3000 GS_DEBUG=error
# The ranks may leave without MPI_Finalize, which would wait for what never comes.
export OMPI_MCA_orte_allowed_exit_without_sync=1
if nm -D .libs/libgradsync.so | grep -q __asan_init; then
    echo "skip: with AddressSanitizer, whose allocator cannot stand behind another one"
    exit 77
fi
failures=0
room=$(mktemp -d "${TMPDIR:-/tmp}/gs-starved.XXXXXX") || exit 99
trap 'rm -rf "$room"' EXIT

# run LAYOUT PLACE RANK ARGUMENT...: the program, starved there from the beginning on.
run () {
    "$launch" --live --layout "$1" "$(command -v env)" LD_PRELOAD="$PWD/tests/multi/starve.so" \
        GS_TEST_STARVE="$2" GS_TEST_STARVE_RANK="$3" "$program" "${@:4}" >"$room/output" 2>&1
    status=$?
    if ((status == 77)); then
        echo "skip: $(tail -n 1 "$room/output")"
        exit 77
    fi
    ((status == 0)) && return
    echo "FAIL: '$program ${*:4}' on $1, starved at $2 of rank $3, seed $seed: status $status"
    sed 's/^/    /' "$room/output"
    # Where that was: object+0xoffset.
    sed -nE 's|.*; (/[^ ]*)\+(0x[0-9a-f]+)$|\1 \2|p' "$room/output" | sort -u \
        | while read -r object offset; do
            printf '    %s: %s\n' "$offset" "$(addr2line -sfpe "$object" "$offset" 2>/dev/null)"
        done
    failures=$((failures + 1))
}

# What a rank says of its create: field FIELD of its last line.
said () { # RANK FIELD
    sed -nE "s/^rank $1: ([0-9]+) allocations, .*blocks left ([0-9]+);.*/\\$2/p" "$room/output"
}

# check_create LAYOUT: every allocation of a first create, on each rank.
check_create () {
    local layout=$1 guilty place most tried=0 left

    for guilty in 0 1; do
        run "$layout" 0 "$guilty" create
        most=$(said "$guilty" 1)
        left=$(said "$guilty" 2)
        for ((place = 1; place <= ${most:-0}; place++)); do
            (((seed + place) % every == 0)) || continue
            run "$layout" "$place" "$guilty" create "$left"
            run "$layout" "$place+" "$guilty" create "$left"
            tried=$((tried + 2))
        done
        ((${most:-0} > 0)) || { echo "FAIL: no allocation of a create is seen"; failures=1; }
        echo "comm_create on $layout, rank $guilty: $most allocations"
    done
    echo "comm_create on $layout: $tried times starved"
}

for layout in 2 1+1; do
    check_create "$layout"
    run "$layout" 0 0 calls "$seed" "$every"
    grep ' allocations; ' "$room/output"
done
((failures)) || echo "seed $seed: all allocations that fail are told of or made up for"
exit $((failures > 0))
