#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# ckpt_rivals.sh - two jobs save the same step to one folder, the second of which has taken it
# over while the first hung: each is stopped before each call of its save on the folder, and then
# killed or continued, one before the other. Whatever comes of it, the newest checkpoint is whole,
# no job is told GS_OK for a file that is not its own, and the next job goes on.
# Each place of the one job and of the other; GS_TEST_SHORT: a sample of those of the one.
# GS_TEST_LONG: a sample of the pairs of places, too, and jobs of two ranks, of which either is
# stopped.

launch=${top_srcdir:?run me by make check}/tests/launch.sh
env=$(command -v env)
program=$PWD/tests/multi/rival.mt
recorder=$PWD/tests/multi/recorder.so
room=$(mktemp -d /dev/shm/gs-rivals.XXXXXX 2>/dev/null) \
    || room=$(mktemp -d "${TMPDIR:-/tmp}/gs-rivals.XXXXXX") || exit 99
room=$(cd "$room" && pwd -P)
files=$room/files
failures=0 tried=0 jobs_of=()
trap 'kill -KILL $(pids_of "*") 2>/dev/null; wait; rm -rf "$room"' EXIT
export GS_RECORD_DIR=$room GS_DEBUG=error SLURM_JOB_ID=71 GS_TEST_JOURNAL=$room/journal \
    GS_TEST_JOURNAL_FOLDER=$files ASAN_OPTIONS=${ASAN_OPTIONS-}:verify_asan_link_order=0
unset PMIX_NAMESPACE PALS_APID SLURM_STEP_ID SLURM_CLUSTER_NAME

fail () {
    echo "FAIL: $case: $*"
    head -n 3 "$room"/out.* | sed 's/^/    /'
    find "$files" -mindepth 1 -printf '    has %P\n'
    failures=$((failures + 1))
}

# ---- Jobs: 1 and 2 are rivals. Their ids of processes are in files.JOB.RANK ----

# The program in $ranks ranks, of which $rank stops at the place; 0: none.
run () { # RESTART PLACE ARGUMENT...
    local place=("$env" -u LD_PRELOAD)

    ((!$2)) || place=("$env" LD_PRELOAD="$recorder" GS_TEST_STOP="$2" GS_TEST_STOP_RANK="$rank")
    if [[ $ranks = 1 ]]; then
        SLURM_RESTART_COUNT=$1 GS_BOOT=single "${place[@]}" "$program" "$files" "${@:3}"
    else
        SLURM_RESTART_COUNT=$1 GS_TEST_SECONDS=60 "$launch" --live --layout "$ranks" \
            "${place[@]}" "$program" "$files" "${@:3}"
    fi
}

pids_of () { # JOB
    # shellcheck disable=SC2086 # a pattern
    cat "$files".$1.* 2>/dev/null
}

start () { # JOB PLACE
    rm -f "$files.$1".*
    run "$1" "$2" save 10 "$1" "$layout" >"$room/out.$1" 2>&1 &
    jobs_of[$1]=$!
}

# Whether the job has come to its place; false if it has ended.
comes () { # JOB
    local pid='' stat i

    for ((i = 0; i < 6000; i++)); do
        [[ -d /proc/${jobs_of[$1]} ]] || return 1
        stat=
        [[ ! -s $files.$1.$rank ]] || read -r pid <"$files.$1.$rank"
        [[ -z $pid ]] || read -r stat 2>/dev/null <"/proc/$pid/stat"
        [[ $stat != *") T "* ]] || return 0
        sleep 0.005
    done
    fail "job $1 does neither end nor stop"
    return 1
}

go_on () { # JOB
    local pids

    read -r -d '' -a pids < <(pids_of "$1")
    kill -CONT "${pids[@]}" 2>/dev/null
    wait "${jobs_of[$1]}"
    looks
}

ends () { # JOB
    local pids

    read -r -d '' -a pids < <(pids_of "$1")
    kill -KILL "${pids[@]}" 2>/dev/null
    wait "${jobs_of[$1]}" 2>/dev/null
    looks
}

# ---- What must be ----

# The newest one is whole; [seen] has whose it was, each time.
looks () {
    local text

    text=$(GS_BOOT=single "$program" "$files" look 0 1 2 3 2>&1) || fail "newest: $text"
    text=${text##*tag }
    [[ $text != none ]] || fail "the newest is of nobody"
    seen+=" $text"
}

is_told () { # JOB
    grep -q 'write: GS_OK' "$room/out.$1"
}

# Two jobs, stopped at these places; 0: not. Then the rest.
try () { # PLACE PLACE ACT...
    case="layout $layout, $ranks ranks, rank $rank at place $1, rival at $2, then ${*:3}"
    tried=$((tried + 1))
    rm -rf "$files"
    cp -r "$room/before" "$files"
    seen=
    start 1 "$1"
    comes 1 || return 1
    looks
    start 2 "$2"
    if ! comes 2; then
        wait "${jobs_of[2]}"
        (($2 == 0)) || { ends 1; return 1; }
    fi
    looks
    while (($# > 2)); do
        if [[ $3 = ends ]]; then ends "$4"; else go_on "$4"; fi
        set -- "$1" "$2" "${@:5}"
    done
    for job in 1 2; do
        ! is_told "$job" || [[ $seen = *" $job"* ]] || fail "job $job was told GS_OK"
    done
    # Whose lock is gone when the other one has ended takes the folder again.
    ! is_told 2 || [[ $seen = *2 ]] || { is_told 1 && [[ $seen = *2*1 ]]; } \
        || fail "what job 2 was told to be saved is gone"
    run 3 0 save 11 3 "$layout" >"$room/out.3" 2>&1
    is_told 3 || fail "the next job fails"
    [[ $(find "$files" -mindepth 1 -maxdepth 1 -printf '%f\n') = ck-000000000011?(.h5) ]] \
        || fail "the next job leaves something"
    rm -f "$room"/out.*
    return 0
}

# One job at each place, or every $1 of them, while the other one saves, or is in the midst of it.
all_of_both () { # EVERY
    local i middle=20 # a place at which data are written

    ((!rank)) || middle=3
    for ((i = 1 + layouts % $1; ; i += $1)); do
        try "$i" 0 go_on 1 || break
        try "$i" "$middle" go_on 1 go_on 2 || break
        ((i % 4 && $1 > 1)) || try "$i" 0 ends 1 || break
        [[ -n ${GS_TEST_LONG-} ]] || continue
        try "$i" "$middle" ends 1 go_on 2 || break
        try "$i" "$middle" go_on 2 go_on 1 || break
    done
    echo "layout $layout, $ranks ranks, rank $rank: $i places"
    ((i > 5)) || fail "these are too few"
    for ((i = 1; $1 == 1; i++)); do
        try "$middle" "$i" go_on 1 go_on 2 || break
        try "$middle" "$i" ends 2 go_on 1 || break
    done
}

some_pairs () {
    local i k

    for ((i = 1; ; i++)); do
        for ((k = 1 + i % 23; ; k += 23)); do
            try "$i" "$k" go_on 1 go_on 2 || break
            try "$i" "$k" go_on 2 go_on 1 || break
            try "$i" "$k" ends 2 go_on 1 || break
            try "$i" "$k" ends 1 go_on 2 || break
        done
        ((k > 1 + i % 23)) || ((i < 23)) || break
    done
}

layouts=0
for layout in single node; do
    ranks=1 rank=0 case=before
    rm -rf "$room/before" "$files"
    mkdir "$files"
    run 0 0 save 9 0 "$layout" >"$room/out.0" 2>&1
    status=$?
    ((status != 77)) || { grep skip "$room/out.0"; exit 77; }
    is_told 0 || fail "it cannot save"
    rm "$room/out.0"
    mv "$files" "$room/before"
    layouts=$((layouts + 1))
    [[ -z ${GS_TEST_SHORT-} ]] || { all_of_both 3; continue; }
    all_of_both 1
    [[ -n ${GS_TEST_LONG-} ]] || continue
    some_pairs
    command -v mpirun >/dev/null || continue
    ranks=2
    for rank in 0 1; do all_of_both 1; done
done
((failures)) || echo "$tried times two jobs met, and nothing was lost"
exit $((failures > 0))
