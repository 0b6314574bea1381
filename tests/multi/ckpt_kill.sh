#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# ckpt_kill.sh - ranks are killed at random instants while they save, one or all: no file that has
# its name is bad, the newest one is read, and the next job goes on from it.
# GS_TEST_LONG: 1000 times.

launch=${top_srcdir:?run me by make check}/tests/launch.sh
program=tests/multi/saver.mt
times=${GS_TEST_LONG:+1000}
times=${times:-12}
layouts=(2 3 2x1 4)
room=$(mktemp -d "${TMPDIR:-/tmp}/gs-kill.XXXXXX") || exit 99
trap 'rm -rf "$room"' EXIT
mkdir "$room/files"

fail () {
    echo "FAIL: $*"
    sed 's/^/    /' "$room/output"
    exit 1
}

saver () { # LAYOUT ARGUMENT...
    GS_TEST_SECONDS=60 "$launch" --live --or-one-node --layout "$1" "$program" "${@:2}" \
        >"$room/output" 2>&1
    status=$?
    ((status != 77)) || { tail -n 1 "$room/output"; exit 77; }
}

RANDOM=7
before=-1
grown=0
for ((i = 0; i < times; i++)); do
    layout=${layouts[i % 4]}
    who=$((RANDOM % 3 - 1)) # -1: all
    ((who < 1 || i % 4 != 2)) || who=1
    us=$((RANDOM % 2 ? RANDOM * 3 : RANDOM * 20))
    saver "$layout" save "$room/files" "$who" "$us"
    ((status)) || fail "killed, but the exit status is 0"
    saver alone check "$room/files"
    ((!status)) || fail "after $us us in layout $layout, killed $who"
    newest=$(sed -n 's/.*newest of step //p' "$room/output")
    ((newest >= before)) || fail "the newest was of step $before, now of $newest"
    grown=$((grown + (newest > before)))
    before=$newest
done
((grown > times / 4)) || fail "only $grown of $times jobs came to save something"
# What was on its way is swept by a commit, when it is old.
find "$room/files" -name '*.tmp' -exec touch -d '2 hours ago' {} +
saver alone check "$room/files"
[[ -z $(find "$room/files" -name '*.tmp') ]] || fail "left: $(ls -a "$room/files")"
echo "$times jobs killed, $before steps saved, each file whole"
