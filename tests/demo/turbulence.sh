#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# turbulence.sh - a short training beats Smagorinsky by 0.5 in held-out R2, the same on any number
# of ranks; the picture is whole; a resume comes to the same; bad options are refused.
. "$(dirname "$0")/lib.sh"
words=(--size 128 --steps 400)

r2 () { # CLOSURE
    sed -nE "s/^Held-out R2 of the sub-grid force:.* $1 (-?[0-9.]+).*/\1/p" "$room/output"
}

run () { # LAYOUT FOLDER [ARGUMENT]...
    launch "$1 GS_TEST_SECONDS=300" 15-turbulence/turbulence "${words[@]}" --out "$room/$2" "${@:3}"
    cat "$room/output"
    awk -v n="$(r2 network)" -v s="$(r2 Smagorinsky)" \
        'BEGIN { exit !(n != "" && s != "" && n < 1 && n - s >= 0.5) }' \
        || fail "held-out R2 in layout $1: network '$(r2 network)', Smagorinsky '$(r2 Smagorinsky)'"
    awk -v n="$(r2 network)" -v first="${first:-$(r2 network)}" \
        'BEGIN { exit !((n - first) ^ 2 <= 0.005 ^ 2) }' \
        || fail "in layout $1 the network has R2 $(r2 network), before $first"
}

run 1 one
first=$(r2 network)
picture=$room/one/turbulence.svg
[[ $(head -n 1 "$picture") = '<?xml'* && $(tail -n 1 "$picture") = '</svg>' ]] \
    || fail "the picture is not a whole SVG file"
! grep -niE 'nan|[^a-z]inf' "$picture" || fail "the picture has numbers that are none"
if command -v xmllint >/dev/null; then
    xmllint --noout "$picture" || fail "the picture is not well-formed XML"
fi
run 4 four

if ! "$built/gs-info" | grep -q '^  hdf5  *no'; then
    run 2 two --checkpoint "$room/saved" --every 200
    rm "$room/saved/ck-000000000400.h5"
    run 3 three --checkpoint "$room/saved" --resume
    grep -q 'goes on after step 200' "$room/output" || fail "it did not go on"
fi

refuses () { # WORDS-IN-THE-TEXT [ARGUMENT]...
    local status

    "$here/../timeout" 60 "$examples/15-turbulence/turbulence" "${@:2}" >/dev/null 2>"$room/stderr"
    status=$?
    ((status == 2)) || fail "'${*:2}': exit status $status, not 2; $(cat "$room/stderr")"
    grep -qF -- "$1" "$room/stderr" || fail "'${*:2}': no '$1' in: $(cat "$room/stderr")"
}

refuses 'unknown option --sise' --sise 8
refuses "--size needs a multiple of 4, not '130'" --size 130
refuses "--steps needs a whole number from 16 to 10000000, not 'ten'" --steps ten
refuses '--every and --resume need --checkpoint FOLDER' --resume
