#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# ends.sh - ranks that die: the launch ends soon and not well, the survivors that the launcher
# leaves alone are told who died, and the flight record of a killed rank can be read.

launch=${top_srcdir:?run me by make check}/tests/launch.sh
program=tests/multi/dying.mt
bound=45 # seconds; below the limit of the launcher, far above what it takes
failures=0
room=$(mktemp -d "${TMPDIR:-/tmp}/gs-ends.XXXXXX") || exit 99
trap 'rm -rf "$room"' EXIT

fail () {
    echo "FAIL: $*"
    sed 's/^/    /' "$room/output"
    failures=$((failures + 1))
}

# run HOW LAYOUT [ARGUMENT]...: launches with GS_TEST_END=HOW; the arguments are mpirun's.
run () {
    local how=$1 layout=$2 begin=$SECONDS
    shift 2

    GS_TEST_END=$how GS_TEST_MPIRUN_ARGS=$* GS_TEST_RECORDS=$room/records GS_TEST_SECONDS=60 \
        "$launch" --live --layout "$layout" "$program" >"$room/output" 2>&1
    status=$?
    if ((status == 77)); then
        echo "skip: $(tail -n 1 "$room/output")"
        exit 77
    fi
    ((SECONDS - begin < bound)) || fail "$how on $layout took $((SECONDS - begin)) s"
}

says () {
    grep -q -- "$1" "$room/output" || fail "$2: no '$1' in the output"
}

mkdir "$room/records"
run nobody 3
((status == 0)) || fail "nobody dies, but the exit status is $status"
for layout in 3 2x1; do
    for how in exit-before kill-before kill-inside; do
        run "$how" "$layout"
        ((status != 0)) || fail "$how on $layout: exit status 0"
    done
done

ring=("$room"/records/gradsync-*-dying.*-r2.ring)
if [[ -e ${ring[0]} ]]; then
    ./gs-info --record "${ring[0]}" >"$room/output" 2>&1 || fail "gs-info --record ${ring[0]}"
    says 'communicator dying, rank 2 of 3' "record of the killed rank"
    says 'barrier .*NOT ENDED' "record of the killed rank"
else
    fail "no record of the killed rank: $(ls "$room/records")"
fi

run forget 2
((status != 0)) || fail "a rank that forgets its communicator: exit status 0"
says 'gs_comm_destroy' "a rank that forgets its communicator"

# The launcher lets the others live: they find out by themselves.
run kill-before 3 --enable-recovery
# One of them at least: Open MPI 5 ends the other when the first has left with an error.
says 'rank [01]: GS_ERR_TIMEOUT: .*rank 2 (host ' "survivors of a death before the exchange"

((failures)) || echo "ranks that die before, inside and after a communicator"
exit $((failures > 0))
