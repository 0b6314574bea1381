#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# ckpt_lock.sh - jobs that write checkpoints to one folder are kept apart: another job is refused,
# or takes the folder from one that has ended or was requeued, which then writes nothing more.

launch=${top_srcdir:?run me by make check}/tests/launch.sh
timeout=$top_srcdir/tests/timeout
program=tests/multi/locker.mt
# A folder that may only be read: root needs a mount for it, which only this test sees.
if ((!EUID)) && [[ ${1-} != inside ]] && unshare --mount true 2>/dev/null; then
    exec unshare --mount "$0" inside
fi
room=$(mktemp -d "${TMPDIR:-/tmp}/gs-lock.XXXXXX") || exit 99
files=$room/files
lock=$files/.gs-lock
failures=0
trap 'umount -q "$files" 2>/dev/null; chmod -R u+w "$room"; rm -rf "$room"' EXIT
export GS_RECORD_DIR=$room GS_BOOT=single
unset PMIX_NAMESPACE PALS_APID SLURM_STEP_ID SLURM_CLUSTER_NAME SLURM_JOB_ID SLURM_RESTART_COUNT

fail () {
    echo "FAIL: $*"
    failures=$((failures + 1))
}

# Begins a case, in an empty folder.
begin () { # TEXT
    wait
    case=$1
    rm -rf "$files" "$room"/files.* "$room"/out.*
    mkdir "$files"
}

# job NAME[:RESTART] COMMAND...: runs locker as that job of Slurm; what it says is in out.NAME.
job () {
    local name=${1%:*} restart=''

    [[ $1 != *:* ]] || restart=SLURM_RESTART_COUNT=${1#*:}
    "$timeout" 60 env SLURM_JOB_ID="$name" ${restart:+"$restart"} \
        "$program" "$files" "${@:2}" >"$room/out.$1" 2>&1
}

await () { # NAME
    local i

    for ((i = 0; i < 600; i++)); do
        [[ ! -e $files.$1 ]] || return 0
        sleep 0.1
    done
    fail "$case: $1 does not come"
}

says () { # JOB TEXT...: all in one line
    local text lines

    lines=$(<"$room/out.$1")
    for text in "${@:2}"; do
        lines=$(grep -F -- "$text" <<<"$lines")
    done
    [[ -n $lines ]] || { fail "$case: job $1 does not say '${*:2}':"; cat "$room/out.$1"; }
}

has () { # NAME...: these files, and no others
    [[ $(ls -A "$files") = $(printf '%s\n' "$@") ]] \
        || fail "$case: the folder has $(find "$files" -mindepth 1 -printf '%f ')"
}

# A lock of a job on another host, touched so long ago.
foreign () { # TIME
    printf '%s=%s\n' job 99 restarts 4 step slurm:99.2 host elsewhere pid 1 boot another \
        since 2026-11-22T20:00:00Z id 0123456789abcdef >"$lock"
    touch -d "$1" "$lock"
}

file () { # STEP
    printf 'ck-%012d.h5' "$1"
}

begin "another job"
"$timeout" 60 "$program" "$files" commit destroy >"$room/out.x" 2>&1
status=$?
((status != 77)) || { grep skip "$room/out.x"; exit 77; }
has
job 71 commit write 1 say ready await go write 2 destroy &
pid=$!
await ready
grep -q "^pid=[0-9]" "$lock" || fail "$case: no process in the lock"
job 72 commit
says 72 "commit: GS_ERR_STATE" "$files" "job 71" "restart 0" "step process:$HOSTNAME" \
    "process $(sed -n 's/^pid=//p' "$lock") " "on host $HOSTNAME" "s ago" "another folder" \
    "$lock"
env -u GS_BOOT GS_TEST_SECONDS=60 SLURM_JOB_ID=72 "$launch" --live --layout 2 "$program" \
    "$files" commit >"$room/out.73" 2>&1
if grep -q 'launch.sh: no mpirun' "$room/out.73"; then
    echo "not done, no mpirun: several ranks"
else
    says 73 "rank 0: commit: GS_ERR_STATE" "job 71"
    says 73 "rank 1: commit: GS_ERR_STATE" "job 71" "rank 0"
fi
job 74 read_only read write 5 destroy
says 74 "commit: GS_OK"
says 74 "read: GS_OK"
says 74 "write: GS_ERR_STATE" "option read_only"
has .gs-lock "$(file 1)"
touch "$files.go"
wait "$pid" || fail "$case: the first job fails"
says 71 "write: GS_OK"
has "$(file 1)" "$(file 2)"

begin "the same job, requeued"
job 71 commit write 1 say ready await go write 6 destroy &
await ready
touch "$files/$(file 2).tmp"
job 71:1 commit write 5 say taken await end write 7 destroy &
pid=$!
await taken
has .gs-lock "$(file 1)" "$(file 5)" # what the first was writing was removed at once
taker=$(sed -n 's/^pid=//p' "$lock")
touch "$files.go"
wait -n || fail "$case: the first job fails otherwise"
says 71 "write: GS_ERR_STATE" "job 71 (restart 1" "process $taker "
has .gs-lock "$(file 1)" "$(file 5)"
touch "$files.end"
wait "$pid" || fail "$case: the second job fails"
says 71:1 "write: GS_OK"
has "$(file 1)" "$(file 5)" "$(file 7)"

begin "a job that was killed"
job 71 commit write 1 say ready await go &
await ready
touch "$files/$(file 2).tmp"
kill -9 "$(sed -n 's/^pid=//p' "$lock")"
wait
job 72 commit write 3 destroy
says 72 "write: GS_OK"
has "$(file 1)" "$(file 3)"

begin "a job that has been silent"
foreign "10 seconds ago"
job 71 commit
says 71 "commit: GS_ERR_STATE" "job 99 (restart 4, step slurm:99.2)" "host elsewhere" "s ago"
foreign "2 minutes ago"
job 71 commit write 1 destroy
says 71 "write: GS_OK"
says 71 "taken over from job 99 (restart 4, step slurm:99.2), process 1 on host elsewhere"
has "$(file 1)"

begin "eight jobs at once"
foreign "2 minutes ago"
for i in {1..8}; do
    job "$i" say "here$i" await go commit say "done$i" await end destroy &
done
for i in {1..8}; do await "here$i"; done
touch "$files.go"
for i in {1..8}; do await "done$i"; done
touch "$files.end"
wait
winners=$(cat "$room"/out.? | grep -c 'commit: GS_OK')
losers=$(cat "$room"/out.? | grep -c 'commit: GS_ERR_STATE')
((winners == 1 && losers == 7)) || {
    fail "$case: $winners win, $losers lose"
    cat "$room"/out.?
}
has

begin "a folder that may only be read"
if ((EUID)) || { [[ ${1-} = inside ]] && mount -t tmpfs -o size=20m none "$files"; }; then
    job 71 commit write 1 destroy
    if ((EUID)); then
        reason='Permission denied'
        chmod 555 "$files"
    else
        reason='Read-only file system'
        mount -o remount,ro "$files"
    fi
    job 72 commit
    says 72 "commit: GS_ERR_IO" "$lock" "option read_only" \
        "$reason"
    job 73 read_only read write 2 destroy
    says 73 "commit: GS_OK"
    says 73 "read: GS_OK"
    says 73 "write: GS_ERR_STATE" "option read_only"
    if ((EUID)); then chmod 755 "$files"; else mount -o remount,rw "$files"; fi
    has "$(file 1)"
    ((EUID)) || umount "$files"
else
    echo "not done, root cannot mount here: $case"
fi

for layout in 2 2x1; do
    begin "ranks of one job step, layout $layout"
    env -u GS_BOOT GS_TEST_SECONDS=60 "$launch" --live --or-one-node --layout "$layout" \
        "$program" "$files" share >"$room/out.1" 2>&1
    status=$?
    grep -q 'launch.sh: no mpirun' "$room/out.1" && { echo "not done, no mpirun: $case"; break; }
    ((!status)) || { fail "$case"; cat "$room/out.1"; }
    has "$(file 10)" "$(file 11)" "$(file 12)" "$(file 13)" "$(file 14)"
done

((failures)) || echo "one job at a time writes to a folder"
exit $((failures > 0))
