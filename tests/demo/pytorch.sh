#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# pytorch.sh - the programs that gradsync-pytorch(7) names are there; those that no other test
# runs print what they should.
. "$(dirname "$0")/lib.sh"

# Whether the lines with PATTERN, sorted, and without what the number of nodes decides, are these.
prints () { # PATTERN LINE...
    grep "$1" "$room/output" | sed 's/, highest on its node .*//; s/; to other nodes: .*//' \
        | sort >"$room/lines"
    diff <(printf '%s\n' "${@:2}") "$room/lines" || fail "it prints: $(<"$room/output")"
}

while read -r program; do
    [[ -e $here/../../$program ]] || fail "gradsync-pytorch(7) names $program, which is not there"
done < <(grep -oE 'doc/examples/[a-z0-9_/-]+\.(c|f90)' "$here/../../doc/man/gradsync-pytorch.7")

# Samples: 0; 10, 11; none; 30.
launch 4 12-ragged/ragged
prints average 'first 0, second 10, average over samples 12.7500'

launch 2x2 11-groups/groups
prints model 'model 0: ranks 0 to 1, average 0.50' 'model 1: ranks 2 to 3, average 2.50'

launch 2x2 11-groups/traffic
prints samples '10 samples: 800000 bytes averaged in 1 call' \
    '100 samples: 800000 bytes averaged in 1 call' \
    '1000 samples: 800000 bytes averaged in 1 call'
[[ $(grep samples "$room/output" | sed 's/.*; to/to/' | sort -u | wc -l) = 1 ]] \
    || fail "traffic depends on the batch: $(<"$room/output")"
