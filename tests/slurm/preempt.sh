#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2317 # check calls the functions
#
# preempt.sh - jobs of slurm/templates/requeue.sbatch whose program asks gs_stop_requested:
# signalled, preempted, out of time, stopped by a file; what is requeued goes on from its step.
# GS_TEST_SHORT: the first three.

# shellcheck source=check.sh
. "$(dirname "$0")/check.sh"
if ! "$build/gs-info" | grep -Eq '^ *hdf5 +[0-9]'; then
    echo "skip: this build has no HDF5"
    exit 77
fi
enter_cluster --nodes 2

template=$top/slurm/templates/requeue.sbatch
program=$build/tests/slurm/preemptible
steps=80 # of 50 ms

gone () { # JOB has ended, for good
    [[ -z $(squeue -h -j "$1" 2>/dev/null) ]]
}

logged () { # COUNT TEXT: out has that many lines with TEXT
    [[ -e out ]] && (($(grep -c -- "$2" out) >= $1))
}

state_is () { # JOB STATE
    scontrol -o show job "$1" >facts
    grep -q "JobState=$2 " facts || { cat facts >>out; return 1; }
}

# Sets job to that of the template with the options $@ and a new folder; waits for its first step.
start () { # MARGIN_S LATE_MS [OPTION]...
    local margin=$1 late=$2
    shift 2

    rm -rf out ck && mkdir ck
    job=$(sbatch --parsable --output=out "$@" "$template" "$program" "$PWD/ck" "$steps" 50 \
        "$margin" "$late") && await 60 logged 1 "from step" && sleep 0.5
}

# The job ended well in two parts, of which the second began where the first had stopped, for
# REASONS, and both are in one log; the sum is that of a run in one part.
went_on () { # REASONS
    await 120 gone "$job" && state_is "$job" COMPLETED && grep -q 'Restarts=1 ' facts \
        && says "part 0 of job $job" "part 1 of job $job" || return
    sed -nE 's/^(from|to) step ([0-9]+)(, sum ([0-9]+), reasons ([0-9]+))?$/\1 \2 \4 \5/p' out \
        | awk -v steps="$steps" -v reasons="$1" '
            $1 == "from" { wrong += $2 != at; parts++ }
            $1 == "to" { at = $2; sum = $3; wrong += $4 != (parts == 1 ? reasons : 0) }
            END { exit wrong || parts != 2 || at != steps || sum != steps * (steps + 1) / 2 }' \
        && ! ls not_finished.* >>out 2>&1
}

signalled () { # LATE_MS
    start 1 "$1" && scancel --signal=USR1 "$job" && went_on 1 && says "has received SIGUSR1"
}

pre_empted () { # Slurm sends TERM, and requeues the job itself
    start 1 0 && srun --quiet -p urgent -N2 --exclusive true \
        && went_on 1 && says "has received SIGTERM"
}

out_of_time () { # the template tells when the job ends; no signal is sent; 75 s are too many
    steps=1500 start 30 0 --time=00:01:00 --signal=CONT@1 || return
    await 100 logged 1 "reasons 2" && says "stops: the job ends in" || return
    scancel "$job"
    await 60 gone "$job"
}

signalled_in_time () { # by Slurm's own clock, 20 s or more before the end
    steps=1500 start 1 0 --time=00:01:00 --signal=USR1@20 || return
    await 100 logged 1 "reasons 1" && says "has received SIGUSR1" \
        && await 60 logged 2 "from step" || return
    scancel "$job"
    await 60 gone "$job"
}

stopped_by_file () { # which is no reason to start again
    start 1 0 && touch ck/stop && await 60 gone "$job" && state_is "$job" COMPLETED \
        && grep -q 'Restarts=0 ' facts && says "reasons 4" "there is a file $PWD/ck/stop"
}

chained () { # two jobs that are not requeued
    local first
    local -x REQUEUE=no

    start 1 0 --no-requeue || return
    first=$job
    scancel --signal=USR1 "$first" && await 60 gone "$first" && state_is "$first" COMPLETED \
        && grep -q 'Restarts=0 ' facts && logged 1 "reasons 1" || return
    job=$(sbatch --parsable --output=out --no-requeue --dependency=afterok:"$first" "$template" \
        "$program" "$PWD/ck" "$steps" 50 1)
    await 60 gone "$job" && state_is "$job" COMPLETED && says "to step $steps"
}

cannot_be_requeued () {
    start 1 0 --no-requeue && scancel --signal=USR1 "$job" && await 60 gone "$job" || return
    state_is "$job" FAILED && grep -q 'ExitCode=75:0' facts
}

crashed () { # a rank that dies is no wish to be started again
    rm -f out
    # shellcheck disable=SC2016 # expanded by the ranks
    job=$(sbatch --parsable --output=out "$template" sh -c \
        '[ "$SLURM_PROCID" = 3 ] || exec sleep 30; kill -s SEGV $$') && await 60 gone "$job" \
        && state_is "$job" FAILED && grep -q 'Restarts=0 ' facts && says "exit code 139"
}

check "a signal: status 75, requeued, goes on" signalled 0
check "a signal, one rank leaves late" signalled 2000
check "pre-emption by an urgent job" pre_empted
if [[ -z ${GS_TEST_SHORT-} ]]; then
    check "the end of the job" out_of_time
    check "a signal of Slurm's before the time limit" signalled_in_time
    check "a file" stopped_by_file
    check "a chain, without requeuing" chained
    check "requeuing is forbidden" cannot_be_requeued
    check "a rank dies" crashed
fi
finish
