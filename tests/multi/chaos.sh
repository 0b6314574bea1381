#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# chaos.sh [TRIALS [SEED]] - one rank is killed, stopped or leaves at a random instant, on a node
# or on two: every rank that is left ends, says why, and names that rank. Trial n has seed
# SEED + n. GS_TEST_TRIALS and GS_TEST_SEED say the same; else 100 trials, 12 with GS_TEST_SHORT,
# 1000 with GS_TEST_LONG, and those of seeds late-LAYOUT: a rank comes when the others have left;
# and gone-LAYOUT: a rank of the second node leaves in a pool, which the first learns later.
# GS_TEST_HOWS leaves some of what happens out.

launch=${top_srcdir:?run me by make check}/tests/launch.sh
program=tests/multi/victim.mt
usual=100
[[ -z ${GS_TEST_SHORT-} ]] || usual=12
[[ -z ${GS_TEST_LONG-} ]] || usual=1000
trials=${1:-${GS_TEST_TRIALS:-$usual}}
seed=${2:-${GS_TEST_SEED-}}
all=() # seeds
[[ -n $seed ]] || all=(late-3 late-3x1 gone-2x2)
[[ $seed != [lg]*-* ]] || { all=("$seed"); trials=0; }
seed=${seed:-$((SRANDOM % 1000000))}
beside=${GS_TEST_BESIDE:-6} # trials that run side by side: they mostly wait
layouts=(3 4 2x1 2x2 2+1 3x1 3x2)
read -ra hows <<<"${GS_TEST_HOWS:-kill stop leave}"
steps=(create split allreduce reducer gather halo pool ckpt destroy)
# About as long as each takes; half of the instants are in the first tenth.
most_us=(300000 100000 150000 200000 250000 100000 100000 200000 5000)
room=$(mktemp -d "${TMPDIR:-/tmp}/gs-chaos.XXXXXX") || exit 99
trap 'rm -rf "$room"' EXIT

# draw N: sets drawn to a number below N.
draw () {
    drawn=$(((RANDOM * 32768 + RANDOM) % $1))
}

# What happens in trial $1, in layout, ranks, victim and plan, and in late the rank that is so.
draw_trial () {
    local step moment

    late=''
    if [[ $1 = late-* ]]; then
        layout=${1#late-} ranks=3 victim=2 late=1 plan="leave 2 gather 0"
        return
    fi
    if [[ $1 = gone-* ]]; then
        layout=${1#gone-} ranks=4 victim=2 plan="leave 2 pool 18000"
        return
    fi
    RANDOM=$1
    draw 1000; draw 1000 # seeds beside each other begin alike
    draw ${#layouts[@]}; layout=${layouts[drawn]}
    ranks=$((${layout//x/*}))
    draw "$ranks"; victim=$drawn
    draw ${#steps[@]}; step=$drawn
    draw ${#hows[@]}; how=${hows[drawn]}
    draw "${most_us[step]}"; moment=$drawn
    draw 2; ((drawn)) || moment=$((moment / 10)) # where much is used for the first time
    plan="$how $victim ${steps[step]} $moment"
}

# What the ranks and MPI print may have bytes in it that are no text, hence grep -a.

# Whether the text $1 holds the victim for missing or dead, and nobody else for missing; but
# others may be in a call of a group, through with a destroy, or stuck in MPI. Groups of every
# other rank have numbers of their own. The output is in $2.
names_victim () {
    local text=$1 number=$victim missing group

    if [[ $text =~ ^[^\']*communicator\ \'chaos\.split([01])\' ]]; then
        group=${BASH_REMATCH[1]} number=$((victim / 2))
        ((victim % 2 == group)) || { names_held_up "$text" "$group" "$2"; return; }
    fi
    text=${text#*communicator \'chaos*\' on rank * (host *): }
    missing=$(grep -oE 'rank [0-9]+' <<<"${text#*did not come*:}" | sort -u)
    if [[ $text = *"did not come"* && $1 != *"destroy #"* ]] \
        && ! grep -aqE "of communicator 'chaos.split|\(GS_STUCK_MS\)" "$2"; then
        [[ $missing = "rank $number" ]]
    else
        grep -qx "rank $number" <<<"$missing"
    fi
}

# Whether the text $1 of a rank in group $2, which the victim is not in, names a member that did
# not come to its call: one that the victim holds up elsewhere, which it says itself.
names_held_up () {
    local member line

    member=$(grep -oE 'did not come: rank [0-9]+' <<<"$1") || return
    member=$((${member##* } * 2 + $2))
    line=$(grep -am1 "^rank $member ended in" "$3") || return
    [[ $line != *"communicator 'chaos.split$2'"* ]] || return
    names_victim "${line#*with }" "$3"
}

# Judges how rank $1 ended, as it says in the file $2; prints what is wrong.
judge_rank () {
    local line step

    if line=$(grep -am1 "^gradsync\[$1/.*(GS_STUCK_MS)" "$2"); then
        : >"$2.stuck.$1"
        names_victim "${line#*: }" "$2" || echo "culprit: rank $1 does not name rank $victim"
        return
    fi
    sed -n "s/^rank $1 crashed/crash: &/p" "$2"
    if ! line=$(grep -am1 "^rank $1 ended in" "$2"); then
        echo "silent: rank $1 does not say how it ended"
        return
    fi
    step=${line#rank * ended in } step=${step%% *}
    if [[ $line = *" with GS_OK: "* ]]; then
        [[ $step = destroy ]] || echo "wrong: rank $1 ends well in $step"
        return
    fi
    # Who hears that another rank has given up need not know why; so a program does that whose
    # group has died.
    [[ $step != split || $line != *"gave the communicator up"* ]] || return
    [[ ! -e $2.server || $step != create ]] || return # nobody can ask any more
    names_victim "${line#*with }" "$2" || echo "culprit: rank $1 does not name rank $victim"
}

judge () {
    local file=$1 status=$2 r said gone

    # mpirun itself can hang (Open MPI 4.1.4 with PMIx 4.2, for one where a rank dies while it
    # connects). It may hand on nothing then, so that each rank has a file for what it says.
    for said in "$file".said.*; do
        [[ ! -e $said ]] || grep -aqxFf "$said" "$file" || cat "$said" >>"$file"
    done
    gone=$(grep -axE 'rank [0-9]+ is gone' "$file" | sort -u | grep -c .)
    if grep -aq 'the PMIx server, .* does not answer any more' "$file"; then
        : >"$file.server"
    elif ((status == 124 || status == 137)); then
        if ((gone == ranks - 1)); then : >"$file.server"; else echo "hang: no end"; fi
    fi
    # MPI's own end of ranks that start it while one of them dies; gradsync(7) tells. Open MPI 5
    # returns an error that names nobody.
    if grep -aqE '(An error occurred in|GS_ERR_TRANSPORT:) MPI_Init_thread' "$file"; then
        : >"$file.init"
        return
    fi
    for ((r = 0; r < ranks; r++)); do
        # Those that have left may name the one that is late as well.
        ((r == victim)) || [[ -n $late && $r != "$late" ]] || judge_rank "$r" "$file"
    done
}

# Whether a deadline passed, in the output $1, for want of time alone: before the fault, or in a
# rank that did not even reach the launcher.
too_slow () {
    grep -aqE 'the deadline passed .*( in PMIx_Init|has not yet opened PMIx)' "$1" \
        || awk -v fault="rank $victim strikes" '
            $0 == fault { struck = 1 }
            /the deadline passed/ { early = !struck; exit }
            END { exit !early }' "$1"
}

# Runs trial $1; its output, and in .wrong what is wrong, lie in the room. Deadlines that this
# machine, with all that it has to do, does not meet without a fault are made longer.
run_trial () {
    local file=$room/$1 status layout ranks victim how plan drawn times late

    draw_trial "$1"
    for times in 1 2 4 8; do
        # The ranks leave without MPI_Finalize, which would wait for what never comes.
        rm -f "$file".said.*
        OMPI_MCA_orte_allowed_exit_without_sync=1 GS_TEST_CHAOS=$plan GS_TEST_LATE=$late \
            GS_TEST_SAID=$file.said \
            GS_TIMEOUT_MS=$((4000 * times)) GS_BOOT_TIMEOUT_MS=$((6000 * times)) \
            GS_STUCK_MS=15000 GS_TEST_SECONDS=$((60 + 60 * times)) \
            "$launch" --live --layout "$layout" "$top_srcdir/tests/apart" "$program" \
            >"$file" 2>&1
        status=$?
        if ((status == 77)) || ! too_slow "$file"; then
            break
        fi
        : >"$file.slow.$times"
    done
    if ((status == 77)); then
        mv "$file" "$file.skip"
        return
    fi
    echo "trial with seed $1: $plan on $layout" >"$file.plan"
    judge "$file" "$status" >"$file.wrong"
}

count () {
    cat "$room"/*.wrong 2>/dev/null | grep -c "^$1"
}

number () {
    find "$room" -name "$1" | wc -l
}

for ((n = 0; n < trials; n++)); do
    all+=($((seed + n)))
done
trials=${#all[@]}
for one in "${all[@]}"; do
    while (($(jobs -rp | wc -l) >= beside)); do
        wait -n
    done
    run_trial "$one" &
done
wait

skipped=$(number '*.skip')
if ((skipped == trials)); then
    echo "skip: $(tail -n 1 "$room/${all[0]}.skip")"
    exit 77
fi
for file in "$room"/*.wrong; do
    [[ -s $file ]] || continue
    file=${file%.wrong}
    echo "FAIL: $(cat "$file.plan"); again: make check TESTS=tests/multi/chaos.sh" \
        "GS_TEST_TRIALS=1 GS_TEST_SEED=${file##*/}"
    sed 's/^/    /' "$file.wrong" "$file"
done
echo "$((trials - skipped)) trials from seed $seed: $(count hang) hangs, $(count silent) silent" \
    "ends, $(count crash) crashes, $(count culprit) wrong culprits, $(count wrong) wrong ends;" \
    "ended by MPI_Init_thread $(number '*.init'), stuck in MPI $(number '*.stuck.*')," \
    "left by the launcher $(number '*.server'), again with longer deadlines" \
    "$(number '*.slow.*')"
! grep -q . "$room"/*.wrong
