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
    local rank late=0

    GS_TIMEOUT_MS=3000 step -N2 --ntasks-per-node=2 --kill-on-bad-exit=1 "$act" 50 20 stop 3 5
    failed $? && says "allreduce_avg #6" "did not come: rank 3 (host n1)" \
        && recorded 3 4 "#5 " 2 || return
    for rank in 0 1 2; do # the first that gives up ends the step, maybe before the others have
        recorded "$rank" 4 "#6 " || return
        ! recorded "$rank" 4 "GS_ERR_TIMEOUT" || late=$((late + 1))
    done
    ((late > 0))
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
# N.B. Open MPI 5 ends both processes without a word, or does not; then only gs-run can tell.
wrong_interface () {
    step -N2 -n2 sh -c 'ip link add docker0 type bridge && ip link set docker0 up &&
        ip addr add 172.17.0.1/16 dev docker0' || return
    await 70 all_idle
    OMPI_MCA_btl_tcp_if_include=docker0 GS_BOOT_TIMEOUT_MS=5000 GS_RECORD_DIR=$room \
        timeout -k 5 60 gs-run --no-gpus -N2 --ntasks-per-node=1 "$act" >out 2>&1
    local status=$?
    mv out blocked
    step -N2 -n2 ip link del docker0
    mv blocked out
    failed "$status" && says "OMPI_MCA_btl_tcp_if_include" && if grep -q "^act: " out; then
        says "did not reach the others" "docker0 172.17.0.1" "MPI on host n"
    else
        says "Open MPI 5 ends processes with status 14"
    fi
}

# planted NODE PLANT REMOVE COMMAND...: with a fault on a node, which goes again.
planted () {
    local node=$1 plant=$2 remove=$3 status
    shift 3

    await 70 all_idle
    srun -w "$node" sh -c "$plant" || return
    "$@"
    status=$?
    await 70 all_idle
    srun -w "$node" sh -c "$remove" && return "$status"
}

no_common_security () {
    PMIX_MCA_psec=none step -N2 --ntasks-per-node=1 "$act"
    [[ $? = 4 ]] && says "The server offers native" "here PMIX_MCA_psec is none"
}

not_launched () { # TEXT in the log of slurmd on n1
    GS_RECORD_DIR=$room timeout -k 5 60 gs-run --no-gpus -N2 --ntasks-per-node=1 "$act" >out 2>&1
    failed $? && says "launch failed" "its PMIx plugin did not start there" "$1" || return
    grep -qF -- "$1" "$GS_CLUSTER/n1.log"
}

# shellcheck disable=SC2016 # expanded on the node
no_libpmix () {
    planted n1 'for f in /usr/lib/*/libpmix.so /usr/lib/*/pmix2/lib/libpmix.so
            do [ ! -e $f ] || mount --bind /dev/null $f; done' \
        'umount /usr/lib/*/libpmix.so /usr/lib/*/pmix2/lib/libpmix.so' \
        not_launched "can not load PMIx library"
}

read_only_tmpfs () {
    local folder=$GS_CLUSTER/n1/tmp
    planted n1 "mount --bind $folder $folder && mount -o remount,bind,ro $folder" \
        "umount $folder" not_launched "pmixp_libpmix_init() failed"
}

saves_to () { # FOLDER: n1 does not see what rank 0 has on n0
    step -N2 --ntasks-per-node=2 --chdir="$1" "$build/doc/examples/08-checkpoint/resume"
    failed $? && says "host n1 does not see what rank 0 has made on host n0" \
        "folder $1/checkpoints must be on a file system that all nodes share" \
        && ! grep "communicators open" out
}

local_checkpoints () { # NODES that have a folder of this name
    planted "$1" 'mkdir /dev/shm/checkpoints' 'rm -r /dev/shm/checkpoints' saves_to /dev/shm
}

# dropped PORTS COMMAND...: what nodes send each other to these ports goes to nobody.
dropped () {
    local rule="pref 1 to 10.77.1.0/24 ipproto tcp dport $1 lookup 100"
    shift
    planted n0,n1 "ip neigh replace 10.77.1.99 lladdr 02:00:00:00:00:99 dev eth0 &&
            ip route add 10.77.0.0/16 via 10.77.1.99 dev eth0 onlink table 100 &&
            ip rule add $rule" "ip rule del $rule; ip route flush table 100" "$@"
}

cut_off () {
    GS_BOOT_TIMEOUT_MS=1000 step -N2 --ntasks-per-node=1 "$act"
    failed $? && says "nobody of other hosts was heard of: a firewall may drop"
}

mpi_cut_off () {
    GS_BOOT_TIMEOUT_MS=4000 step -N2 --ntasks-per-node=1 "$act"
    failed $? && says "MPI on host n" "A firewall between the hosts does this"
}

firewall_of_servers () { dropped 20000-65000 cut_off; }
firewall_of_mpi () { dropped 1024-1100 mpi_cut_off; }

# One line of gradsync's for each node at most, and none for a communicator that stays open.
told_once () { # ACTOR
    GS_TIMEOUT_MS=3000 step -N2 --ntasks-per-node=4 --kill-on-bad-exit=1 "$act" 50 20 stop "$1" 5
    failed $? && says "1 of 8 ranks did not come: rank $1 " && ! grep "communicators open" out \
        && (($(grep -c '^gradsync' out) <= 2))
}

core "a failure is told once for a node" told_once 6
core "client and server without a common security domain" no_common_security
core "a node without libpmix" no_libpmix
core "a node whose TmpFS cannot be written" read_only_tmpfs
core "a folder of checkpoints that another node does not have" local_checkpoints n0
check "a failure of the first rank is told once for a node" told_once 0
check "a folder of checkpoints that each node has" local_checkpoints n0,n1
if ip rule help 2>&1 | grep -q dport; then
    check "a firewall between the PMIx servers" firewall_of_servers
    check "a firewall between the ranks' MPI" firewall_of_mpi
else
    echo "left out: firewalls, this ip has no rules with ports"
fi
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
