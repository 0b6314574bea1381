#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2317 # check calls the functions
#
# failures.sh - a step whose ranks fail, or do not all use gradsync, ends in time and says why.

# shellcheck source=check.sh
. "$(dirname "$0")/check.sh"
enter_cluster --nodes 4

act=$build/tests/slurm/act
partial=$build/tests/slurm/partial
export GS_RECORD_DIR=$room/records
mkdir "$GS_RECORD_DIR"

# step OPTION... PROGRAM...: a step with its output in out; not longer than a minute. It waits
# for the nodes that the one before had, so that rank 0 is always on n0.
step () {
    rm -f "$GS_RECORD_DIR"/*
    await 70 all_idle
    timeout -k 5 60 srun --mpi=pmix "$@" >out 2>&1
}

# Rank $1 of $2 left a record, and one of its last $4 lines, by default 1, has $3 in it.
recorded () {
    local file

    file=$(echo "$GS_RECORD_DIR"/*-r"$1".ring)
    [[ $(echo "$GS_RECORD_DIR"/*.ring | wc -w) = "$2" ]] || return
    "$build/gs-info" --record "$file" | tee -a out | tail -n "${4-1}" | grep -qF -- "$3"
}

failed () { # STATUS: not 0, and not for having taken too long
    (($1 != 0 && $1 != 124))
}

without_pmix () {
    step --mpi=none -n2 "$act"
    [[ $? = 4 ]] && says "GS_ERR_BOOT" "srun --mpi=pmix"
}

killed () { # OPTION...: rank 3 of 4 dies in the sixth round
    step "$@" "$act" 50 20 kill 3 5
    failed $? && grep -qE "tasks? (2-)?3: Killed" out && recorded 3 4 "#5 " \
        && recorded 0 4 "NOT ENDED"
}

# N.B. Slurm 22.05: the PMIx plugin ends a step only while its daemon on the node of the dead
# rank has other ranks; alone on its node a rank dies unseen without --kill-on-bad-exit.
killed_alone () {
    GS_TIMEOUT_MS=3000 step -N2 --ntasks-per-node=1 "$act" 50 20 kill 1 5
    failed $? && says "did not come: rank 1 (host n1)" && recorded 1 2 "#5 "
}

stopped () { # when it ends the step, Slurm wakes the rank, which may go on to its sixth call
    GS_TIMEOUT_MS=3000 step -N2 --ntasks-per-node=2 --kill-on-bad-exit=1 "$act" 50 20 stop 3 5
    failed $? && says "allreduce_avg #6" "did not come: rank 3 (host n1)" \
        && recorded 3 4 "#5 " 2 && recorded 0 4 "GS_ERR_TIMEOUT"
}

exits_early () { # the others are told by Slurm or by the deadline, whichever comes first
    GS_TIMEOUT_MS=3000 step -N2 --ntasks-per-node=2 "$act" 50 20 exit 3 5
    failed $? && says "1 communicators open" && recorded 3 4 "#5 "
}

exits_early_alone () {
    GS_TIMEOUT_MS=3000 step -N2 --ntasks-per-node=1 "$act" 50 20 exit 1 5
    [[ $? = 9 ]] && says "did not come: rank 1 (host n1)" && recorded 0 2 "GS_ERR_TIMEOUT"
}

dies_in_bootstrap () {
    echo "kill -s KILL \$\$" >die
    printf '0-2 %s\n3 sh die\n' "$act" >programs
    GS_BOOT_TIMEOUT_MS=3000 step -N2 --ntasks-per-node=2 --multi-prog programs
    failed $? && says "task 3: Killed"
}

stranger_in_the_step () { # rank 3 knows nothing of PMIx
    printf '0-2 %s\n3 sleep 5\n' "$act" >programs
    GS_BOOT_TIMEOUT_MS=3000 step -N2 --ntasks-per-node=2 --multi-prog programs
    [[ $? = 9 ]] && says "did not come: rank 3 (host n1)" "gs_comm_from_mpi"
}

stranger_under_gs_run () { # which ends the step with the first rank that fails
    # shellcheck disable=SC2016 # expanded by the ranks
    GS_BOOT_TIMEOUT_MS=3000 timeout -k 5 60 gs-run --no-gpus -N2 --ntasks-per-node=2 \
        sh -c '[ $SLURM_PROCID != 3 ] || exec sleep 30; exec "$0"' "$act" >out 2>&1
    failed $? && says "did not come: rank 3 (host n1)"
}

programs_of_one_step () {
    printf '0-5 %s user\n6-7 %s server\n' "$partial" "$partial" >programs
    step -N2 --ntasks-per-node=4 --multi-prog programs && says "6 users agree on 2.5"
}

# het PROGRAM ARGUMENT PROGRAM ARGUMENT: a step over both parts of a heterogeneous job, of 3 and
# 2 ranks.
# N.B. within a job: an srun of 22.05 that asks for the job itself at times does not end when its
# tasks have; it waits for its own PMIx agent.
het () {
    timeout -k 5 60 salloc --quiet -N1 -n3 : -N1 -n2 \
        srun --mpi=pmix --het-group=0 "$1" "$2" : --het-group=1 "$3" "$4" >out 2>&1
}

het_step () {
    het "$partial" user "$partial" server && says "3 users agree on 1"
}

het_world () {
    het "$act" 2 "$act" 2 && says "rank 3 of 5 on n1: local 0 of 2, node 1 of 2"
}

fences_wait () { # no rank leaves a fence before every rank came
    step -N4 -n16 "$build/tests/slurm/fence" && [[ $(grep -c ^fence out) = 64 ]] \
        && sort -k 2n,2 -k 5n,5 out | awk '
            { if ($2 in last && $5 > last[$2] || !($2 in last)) last[$2] = $5
              if (!($2 in first) || $6 < first[$2]) first[$2] = $6 }
            END { for (i in last) if (first[i] < last[i]) exit 1 }'
}

steps_side_by_side () {
    # shellcheck disable=SC2016 # expanded by the job
    timeout -k 5 60 salloc -N2 --ntasks-per-node=4 --quiet sh -c '
        srun --exact --mpi=pmix -N2 -n4 "$0" 30 20 & srun --exact --mpi=pmix -N2 -n4 "$0" 30 20
        wait $!' "$act" >out 2>&1 && [[ $(grep -c "of 4 on n" out) = 8 ]]
}

# Each node gets a bridge with the address that Docker gives it, and MPI is told to use that.
wrong_interface () {
    step -N2 -n2 sh -c 'ip link add docker0 type bridge && ip link set docker0 up &&
        ip addr add 172.17.0.1/16 dev docker0' || return
    OMPI_MCA_btl_tcp_if_include=docker0 GS_BOOT_TIMEOUT_MS=5000 \
        step -N2 --ntasks-per-node=1 "$act"
    local status=$?
    mv out blocked
    step -N2 -n2 ip link del docker0
    mv blocked out
    failed "$status" && says "did not reach the others" "docker0 172.17.0.1" \
        "OMPI_MCA_btl_tcp_if_include" "MPI on host n"
}

core "without PMIx the error names the cure" without_pmix
core "killed rank, others on its node" killed -N2 --ntasks-per-node=2
check "killed rank, alone on its node, --kill-on-bad-exit" killed -N4 -n4 --kill-on-bad-exit=1
check "killed rank, alone on its node" killed_alone
check "stopped rank" stopped
check "rank that exits early" exits_early
check "rank that exits early, alone on its node" exits_early_alone
check "rank that dies before it calls" dies_in_bootstrap
core "rank that never calls is named" stranger_in_the_step
core "rank that never calls is named under gs-run" stranger_under_gs_run
core "hosts that do not reach each other" wrong_interface
check "PMIx fences wait for all nodes" fences_wait
check "two steps of a job at once" steps_side_by_side
check "heterogeneous step, all ranks" het_world
if [[ -x $partial ]]; then
    check "two programs in a step, some ranks without gradsync" programs_of_one_step
    check "heterogeneous step, some ranks without gradsync" het_step
fi
finish
