#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# ckpt_kill.sh - ranks are killed at random instants while they save, one or all: no file that has
# its name is bad, the newest one is read, and the next job goes on from it. Also while they go on
# beside a write, and with a file for each node.
# GS_TEST_LONG: 1000 times.

launch=${top_srcdir:?run me by make check}/tests/launch.sh
program=tests/multi/saver.mt
times=${GS_TEST_LONG:+1000}
times=${times:-12}
layouts=(2 3 2x1 4) hows=(now async lazy) kinds=(single node)
room=$(mktemp -d "${TMPDIR:-/tmp}/gs-kill.XXXXXX") || exit 99
trap 'rm -rf "$room"' EXIT
mkdir "$room"/{single,node}

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

# The ways in which too few jobs came to save something.
poor () {
    local how

    for how in "${hows[@]}"; do
        ((grown[$how] > times / 12)) || echo "$how: ${grown[$how]}"
    done
}

RANDOM=7
declare -A before=([single]=-1 [node]=-1) grown=([now]=0 [async]=0 [lazy]=0)
i=-1 early=0
while ((++i < times)) || { ((i < 4 * times)) && [[ -n $(poor) ]]; }; do
    layout=${layouts[i % 4]}
    who=$((RANDOM % 3 - 1)) # -1: all
    ((who < 1 || i % 4 != 2)) || who=1
    us=$(((RANDOM % 2 ? RANDOM * 3 : RANDOM * 20) * (1 + early)))
    how=${hows[i % 3]} files=${kinds[i / 4 % 2]}
    saver "$layout" save "$room/$files" "$who" "$us" "$how" "$files"
    ((status)) || fail "killed, but the exit status is 0"
    saver alone check "$room/$files"
    ((!status)) || fail "after $us us in layout $layout, $how to $files, killed $who"
    newest=$(sed -n 's/.*newest of step //p' "$room/output")
    ((newest >= before[$files])) \
        || fail "the newest was of step ${before[$files]}, now of $newest"
    if ((newest == before[$files])); then
        ((++early)) # on a busy machine all jobs may be killed too early
    else
        ((++grown[$how]))
    fi
    before[$files]=$newest
done
[[ -z $(poor) ]] || fail "too few jobs came to save something: $(poor)"
# What was on its way was swept by the commit after it, which took the lock from the dead job.
[[ -z $(find "$room" -name '*.tmp' -o -name '.gs-*') ]] || fail "left: $(ls -aR "$room")"
# What nobody has a lock for is swept when it is old.
touch "$room/single/ck-000000000007.h5.tmp"
saver alone check "$room/single"
[[ -e $room/single/ck-000000000007.h5.tmp ]] || fail "a new file .tmp was removed"
touch -d '2 hours ago' "$room/single/ck-000000000007.h5.tmp"
saver alone check "$room/single"
[[ ! -e $room/single/ck-000000000007.h5.tmp ]] || fail "left: $(ls -a "$room/single")"
echo "$i jobs killed, ${before[single]} and ${before[node]} steps saved, each file whole"
