#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# ckpt_replay.sh - power is lost while checkpoints are saved: after each call on the folder, with
# any part of what was not synced on the disk, there is a whole checkpoint, and none is lost that
# gs_ckpt_write has called saved. Without any one of the syncs that would not be so.
# In the layout of one file and in that of a file for each node, of which one is made in the end.
# GS_TEST_LONG: more saves, ranks and states. GS_TEST_SHORT: fewer.

launch=${top_srcdir:?run me by make check}/tests/launch.sh
recorder=$PWD/tests/multi/recorder.so
runs=('2 single 3 2' '2 single 2 1' '2x1 node 3 2' '2x2 node 2 1') # the last: how many stay
[[ -z ${GS_TEST_SHORT-} ]] || runs=('2 single 3 1' '2x1 node 3 1')
[[ -z ${GS_TEST_LONG-} ]] || runs=('2 single 5 2' '2 single 5 1' '4 single 5 2'
                                   '2x1 node 5 2' '2x2 node 5 1')
seconds=${GS_TEST_SECONDS:-120}
[[ -z ${GS_TEST_LONG-} ]] || seconds=3600
room=$(mktemp -d /dev/shm/gs-replay.XXXXXX 2>/dev/null) \
    || room=$(mktemp -d "${TMPDIR:-/tmp}/gs-replay.XXXXXX") || exit 99
trap 'rm -rf "$room"' EXIT
room=$(cd "$room" && pwd -P)
# The sanitizers' libraries need not be first: the recorder calls what stands behind it.
export ASAN_OPTIONS=${ASAN_OPTIONS-}:verify_asan_link_order=0

# run LAYOUT PROGRAM...: with its output in the room.
run () {
    GS_TEST_SECONDS=$seconds "$launch" --live --layout "$@" >"$room/output" 2>&1
    status=$?
    if ((status == 77)); then
        tail -n 1 "$room/output"
        exit 77
    fi
    if ((status)); then
        echo "FAIL: $*: exit status $status"
        sed 's/^/    /' "$room/output"
        exit 1
    fi
}

# record LAYOUT PROGRAM...: what it does to the folder is kept in the journal.
record () {
    run "$1" "$(command -v env)" LD_PRELOAD="$recorder" GS_TEST_JOURNAL="$room/journal" \
        GS_TEST_JOURNAL_FOLDER="$room/saved" "${@:2}"
}

for line in "${runs[@]}"; do
    read -r ranks layout saves keep <<<"$line"
    mkdir "$room/saved" "$room/rebuilt"
    record "$ranks" tests/multi/recorded.mt "$room/saved" "$layout" "$saves" "$keep"
    [[ $layout = single ]] \
        || record alone ./gs-ckpt flatten "$room/saved/ck-$(printf %012d "$saves")"
    echo "$ranks ranks, layout $layout, $saves saves, of which $keep stay:"
    # Warnings of damaged files are what is wanted without a sync.
    GS_DEBUG=error run alone tests/multi/replayer.mt "$room/journal" "$room/saved" \
        "$room/rebuilt" "$layout"
    cat "$room/output"
    rm -r "$room/journal" "$room/saved" "$room/rebuilt"
done
