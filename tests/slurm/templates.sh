#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2317 # check calls the functions
#
# templates.sh - every job template, submitted as it is, does what it says.

# shellcheck source=check.sh
. "$(dirname "$0")/check.sh"
enter_cluster --nodes 4

act=$build/tests/slurm/act
partial=$build/tests/slurm/partial
resume=$build/tests/slurm/resume
average=$build/tests/slurm/average
templates=$top/slurm/templates

# submit OPTION... SCRIPT ARGUMENT...: a job, awaited, with its output in out; true if it
# completed. (sbatch --wait looks only every ten seconds.)
submit () {
    local job

    job=$(sbatch --parsable --output="$room/out" "$@") && await 90 gone "$job" \
        && scontrol -o show job "$job" | grep -q 'JobState=COMPLETED'
}

plain () {
    submit "$templates/plain.sbatch" "$act" 3 && says "rank 7 of 8 on n1: local 3 of 4" || return
    submit --nodes=4 "$templates/plain.sbatch" "$act" 3 \
        && says "rank 15 of 16 on n3: local 3 of 4, node 3 of 4"
}

plain_fails () { # the job's state is the program's, and the log says where the ranks were
    submit "$templates/plain.sbatch" "$act" 50 20 kill 3 5 && return 1
    says "rank 3 on n0: after allreduce_avg #5 (GS_OK)"
}

shared () { # 16 ranks on each node, four of each GPU
    submit "$templates/shared.sbatch" "$act" 3 \
        && says "rank 31 of 32 on n1: local 15 of 16" "16 ranks on a node with 4 GPUs share them"
}

# make_mps [fails]: an MPS that writes down on which node it is started and ended.
make_mps () {
    mkdir -p mps
    # shellcheck disable=SC2016 # expanded by the script
    printf '%s\n' '#!/bin/bash' 'word=$*; [[ $word = -d ]] || read -r word' \
        "echo \"\$SLURMD_NODENAME \$word\" >>$room/mps/calls" "[[ '${1-}' != fails ]] || exit 1" \
        '[[ $word = quit ]] || : >"$CUDA_MPS_PIPE_DIRECTORY/control"' \
        >mps/nvidia-cuda-mps-control
    chmod +x mps/nvidia-cuda-mps-control
}

shared_by_mps () { # which one rank of each node starts, before any has begun
    make_mps && rm -f mps/calls
    # shellcheck disable=SC2016 # expanded by the ranks
    printf '%s\n' '#!/bin/bash' '[[ -e $CUDA_MPS_PIPE_DIRECTORY/control ]] || exit 3' \
        "exec $act 3" >simulation
    chmod +x simulation
    MPS=yes PATH=$room/mps:$PATH submit "$templates/shared.sbatch" "$room/simulation" \
        && says "rank 31 of 32 on n1: local 15 of 16" || return
    [[ $(sort mps/calls | xargs) = "n0 -d n0 quit n1 -d n1 quit" ]] \
        || { cat mps/calls; return 1; }
    ! compgen -G '/tmp/mps.*.n[01]' >>out
}

shared_without_mps () { # the node has none
    make_mps fails
    ! MPS=yes PATH=$room/mps:$PATH submit "$templates/shared.sbatch" "$act" 3 \
        && says "MPS does not start on n" "submit without MPS=yes"
}

logged () { # COUNT TEXT: out has that many lines with TEXT
    [[ -e out ]] && (($(grep -c -- "$2" out) >= $1))
}

gone () { # JOB has ended, for good
    [[ -z $(squeue -h -j "$1" 2>/dev/null) ]]
}

# Every part began where the one before had stopped, and the last came to round $1.
continuous () {
    grep -E '^(from|to) round' out | awk -v last="$1" '
        { round = $3 }
        $1 == "from" && round != at { exit 1 }
        $1 == "to" { at = round }
        END { exit at != last }' || { echo "not continuous" >>out; return 1; }
}

requeued_on_signal () { # what --signal sends before the time limit, sent by hand
    local state=$1 job # FILE [LATE_MS]

    job=$(sbatch --parsable --output=out "$templates/requeue.sbatch" "$resume" "$state" 60 50 \
        ${2+"$2"})
    await 60 logged 1 "from round" && sleep 0.5 && scancel --signal=USR1 "$job" || return
    await 90 gone "$job" && says "part 0" "part 1" && continuous 60 \
        && ! ls not_finished.* >>out 2>&1
}

requeued_by_urgent () { # pre-emption: Slurm itself ends and requeues the job
    local job

    rm -f out
    job=$(sbatch --parsable --nodes=4 --output=out "$templates/requeue.sbatch" \
        "$resume" state2 60 50)
    await 60 logged 1 "from round" || return
    sleep 0.5
    srun --quiet -p urgent -N4 --exclusive true || return
    await 90 gone "$job" && says "part 0" "part 1" && continuous 60
}

chain () {
    local jobs

    jobs=$("$templates/chain.sh" 3 --open-mode=append --output="$room/out" \
        --signal=USR1@300 "$templates/plain.sbatch" "$resume" state3 60 50) || return
    [[ $(wc -l <<<"$jobs") = 3 ]] || return
    await 60 logged 1 "from round" && sleep 0.5 \
        && scancel --signal=USR1 "$(sed -n 's/^job 1 .* //p' <<<"$jobs")" || return
    await 90 gone "${jobs##* }" && logged 3 "from round" && continuous 60 \
        && (($(awk '$1 == "to" { print $3; exit }' out) < 60))
}

chain_breaks () { # a failed job takes those after it along
    local jobs

    jobs=$("$templates/chain.sh" 3 --open-mode=append --output="$room/out" \
        "$templates/plain.sbatch" false) || return
    await 60 gone "${jobs##* }" && logged 1 "srun ended with status 1" \
        && ! logged 2 "srun ended with status 1" # the output is appended
}

chain_usage () {
    "$templates/chain.sh" many plain.sbatch >out 2>&1
    [[ $? = 2 ]] && says "usage"
}

ensemble () {
    mkdir -p members && cd members || return
    submit "$templates/ensemble.sbatch" 2 "$act" 20 10 || { cd ..; return 1; }
    cat member.*/output.txt >>../out
    cd ..
    (($(grep -c "of 8 on n" out) == 16)) && [[ -d members/member.1 ]]
}

ensemble_fails () { # one of two; the other is not disturbed
    # shellcheck disable=SC2016 # expanded by the members
    printf '#!/bin/sh\n[ "$MEMBER" = 0 ] && exit 3\nexec %s 20 10\n' "$act" >one_fails
    chmod +x one_fails
    submit "$templates/ensemble.sbatch" 2 "$room/one_fails" && return 1
    says "member 0 failed" && (($(grep -c "of 8 on n" member.1/output.txt) == 8))
}

ensemble_refuses () {
    submit "$templates/ensemble.sbatch" 3 "$act" && return 1
    says "4 nodes cannot be shared by 3 members" || return
    submit "$templates/ensemble.sbatch" 08 "$act" && return 1
    says "'08' is not a number of members"
}

partial () {
    submit "$templates/partial.sbatch" "$partial user" "$partial server" \
        && says "8 users agree on 3.5"
}

partial_settings () { # the users' GPUs and the fence
    make_teller teller
    submit "$templates/partial.sbatch" "$room/teller" true && told_by_8
}

by_hand () { # the commands of plain.sbatch's comment
    make_teller simulation
    {
        echo "#!/bin/bash"
        grep '^#SBATCH' "$templates/plain.sbatch"
        sed -n '/By hand:$/,/For the site/s/^#   //p' "$templates/plain.sbatch"
    } >by_hand
    submit by_hand && told_by_8
}

make_teller () { # FILE: a program that tells what it was given
    # shellcheck disable=SC2016 # expanded by the ranks
    printf '#!/bin/sh\necho "%s"\n' \
        'GPUs ${CUDA_VISIBLE_DEVICES-}, fence ${SLURM_PMIX_FENCE-}' >"$1"
    chmod +x "$1"
}

told_by_8 () {
    (($(grep -cx "GPUs 0,1,2,3, fence ring" out) == 8))
}

mixed_refuses () {
    submit "$templates/mixed.sbatch" nowhere.conf && return 1
    says "cannot read 'nowhere.conf'" && ! ls ranks.?????? 2>/dev/null
}

partial_on_gpu_nodes () { # the way its last comment tells
    printf '0-3,5-8 %s user\n4,9 %s server\n' "$partial" "$partial" >ranks.conf
    submit --nodes=2 --ntasks-per-node=5 --gpus-per-node=4 \
        --wrap "gs-run --partial --ntasks-per-node=5 --multi-prog ranks.conf" \
        && says "8 users agree on 3.5"
}

mixed () {
    local text

    text="0-2 $act 1"$'\n'
    text+="3-5 $average"$'\n'
    text+="6-7 python3 $top/tests/slurm/average.py $build/.libs/libgradsync.so"
    echo "$text" >ranks.conf
    submit "$templates/mixed.sbatch" ranks.conf \
        && says "rank 0 of 8 on n0" "Fortran rank 5" "Python rank 7, meeting at n0:2"
}

env_of_uneven_step () { # 4 ranks on n0, 1 on n1
    # shellcheck disable=SC2016 # expanded by the ranks
    srun -N2 -n5 -m block gs-env sh -c \
        'echo "$RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $MASTER_ADDR"' | sort >out
    printf '%s\n' "0/5 0/4 n0" "1/5 1/4 n0" "2/5 2/4 n0" "3/5 3/4 n0" "4/5 0/1 n0" | diff - out
}

env_outside () {
    gs-env true >out 2>&1
    [[ $? = 2 ]] && says "start it with srun"
}

check "plain" plain
check "plain, a rank dies" plain_fails
check "plain, by hand" by_hand
check "more ranks than GPUs" shared
check "more ranks than GPUs, with MPS" shared_by_mps
check "more ranks than GPUs, MPS does not start" shared_without_mps
check "requeue on a signal" requeued_on_signal state1
check "requeue, rank 0 writes when the others have left" requeued_on_signal late 3000
check "requeue for an urgent job" requeued_by_urgent
check "chain" chain
check "chain, a job fails" chain_breaks
check "chain, wrong use" chain_usage
check "ensemble" ensemble
check "ensemble, a member fails" ensemble_fails
check "ensemble, members that do not fit" ensemble_refuses
check "mixed, no file" mixed_refuses
check "the environment of gs-env in an uneven step" env_of_uneven_step
check "gs-env outside a step" env_outside
if [[ -x $partial ]]; then
    check "partial" partial
    check "partial, what its ranks are told" partial_settings
    check "partial, servers on the GPU nodes" partial_on_gpu_nodes
fi
if [[ -x $average ]] && command -v python3 >/dev/null; then
    check "mixed" mixed
else
    echo "left out: the mixed step (needs gfortran and python3)"
fi
finish
