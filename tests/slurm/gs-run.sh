#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2317 # check calls the functions
#
# gs-run.sh - gs-run chooses srun's options, refuses what cannot work, reports after a failure.

# shellcheck source=check.sh
. "$(dirname "$0")/check.sh"
enter_cluster --nodes 2
unset OMPI_MCA_mpi_yield_when_idle

act=$build/tests/slurm/act

# chooses EXPECTED ARGUMENT...: what --dry-run prints for them.
chooses () {
    local expected=$1
    shift
    gs-run --dry-run "$@" >out 2>&1 && says "$expected"
}

# refuses TEXT ARGUMENT...: status 2, the text, and nothing was started.
refuses () {
    local text=$1
    shift
    gs-run "$@" touch started >out 2>&1
    [[ $? = 2 && ! -e started ]] && says "$text"
}

gpus_of_a_job () { # OPTION: how the job asked for them
    salloc --quiet -N2 "$1" --ntasks-per-node=4 gs-run "$act" 3 >out 2>&1 \
        && says "rank 7 of 8 on n1" || return
    # shellcheck disable=SC2016 # expanded by the ranks
    salloc --quiet -N2 "$1" --ntasks-per-node=4 gs-run sh -c 'echo "$CUDA_VISIBLE_DEVICES"' >out
    [[ $(sort -u out) = 0,1,2,3 ]]
}

binding_of_a_job () {
    # shellcheck disable=SC2016 # expanded by the ranks
    salloc --quiet -N1 -n4 --gpus-per-task=1 \
        gs-run sh -c 'echo "${CUDA_VISIBLE_DEVICES-all}"' >out 2>&1
    [[ $(sort -u out) = all ]]
}

too_few_cpus () {
    salloc --quiet -N1 --gpus-per-node=4 gs-run true >out 2>&1
    [[ $? = 2 ]] && says "4 ranks on a node, of which the job has 1 CPUs"
}

no_program () {
    gs-run -n4 >out 2>&1
    [[ $? = 2 ]] && says "no program given"
}

runs () {
    gs-run -N2 "$act" 3 >out 2>&1 && says "rank 7 of 8 on n1: local 3 of 4" || return
    ! ls -d gs-records.* >>out 2>&1
}

# shellcheck disable=SC2016 # expanded by the program
hands_on () { # input, output, status, arguments
    [[ $(echo a line | gs-run --no-gpus -n1 -- sh -c 'cat; echo "$1"' sh "two  'words'") \
        = $'a line\ntwo  \'words\'' ]] || return
    gs-run --no-gpus -n1 sh -c 'exit 9' 2>out
    [[ $? = 9 ]] && says "no rank left a flight record"
}

reports () { # which rank was where
    rm -rf gs-records.*
    gs-run -N2 --ntasks-per-node=2 "$act" 50 20 kill 2 5 >out 2>&1 && return 1
    says "gs-run: communicator world" "rank 0 on n0: in allreduce_avg #6 since" \
        "rank 2 on n1: after allreduce_avg #5 (GS_OK)" "gs-info --record" || return
    [[ $(echo gs-records.*/*.ring | wc -w) = 4 ]]
}

reports_a_stopped_rank () {
    rm -rf gs-records.*
    GS_TIMEOUT_MS=2000 gs-run -N2 --ntasks-per-node=2 "$act" 50 20 stop 3 5 >out 2>&1 && return 1
    says "1 of 4 ranks did not come: rank 3 (host n1)" \
        "rank 0 on n0: after allreduce_avg #6 (GS_ERR_TIMEOUT)" "rank 3 on n1:"
}

takes_the_users_folder () {
    mkdir mine
    GS_RECORD_DIR=$room/mine gs-run -N1 -n2 "$act" 50 20 kill 1 5 >out 2>&1 && return 1
    says "rank 1 on n0: after allreduce_avg #5" && [[ -e mine ]]
}

ends_on () { # SIGNAL to gs-run ends the step
    local pid status

    rm -rf gs-records.* began
    env --default-signal=INT gs-run --no-gpus -N1 -n1 sh -c 'touch began; exec sleep 100' \
        >out 2>&1 &
    pid=$!
    await 30 test -e began || return
    kill -s "$1" "$pid"
    # srun wants Ctrl-C twice within a second
    [[ $1 != INT ]] || { sleep 0.3; kill -s INT "$pid"; }
    wait "$pid"
    status=$?
    ((status != 0)) && await 20 no_job
}

no_job () {
    [[ -z $(squeue -h) ]]
}

without_plugin () { # a site whose srun lists no PMIx
    mkdir -p stub
    printf '#!/bin/sh\necho "MPI plugin types are..."; echo none; echo pmi2\n' >stub/srun
    chmod +x stub/srun
    PATH=$room/stub:$PATH refuses "this Slurm has no PMIx plugin" -n2 || return
    printf '#!/bin/sh\necho "MPI plugin types are..."; echo pmix_v3; echo pmix_v4; echo none\n' \
        >stub/srun
    PATH=$room/stub:$PATH chooses "--mpi=pmix_v4" -n2 true
}

without_slurm () {
    PATH=$room/prefix/bin:/nonexistent /bin/sh "$room/prefix/bin/gs-run" true >out 2>&1
    [[ $? = 2 ]] && says "srun is not in PATH" "mpirun"
}

# shellcheck disable=SC2016 # expanded by the program
profile () {
    mkdir -p profiles
    printf '# a comment\n\nNCCL_ONE=1\nNCCL_TWO=two words\n' >profiles/site.env
    NCCL_ONE=mine gs-run --profile profiles/site.env --no-gpus -n1 \
        sh -c 'echo "$NCCL_ONE $NCCL_TWO $GS_PROFILE"' >out 2>&1 \
        && says "mine two words $room/profiles/site.env"
}

bad_profile () {
    printf 'NCCL_ONE=1\nexport NCCL_TWO=2\n' >profiles/bad.env
    refuses "'export NCCL_TWO=2' is not NAME=VALUE" --profile profiles/bad.env
}

lists_profiles () {
    gs-run --profile list >out 2>&1 || return
    [[ $(xargs <out) = $(cd "$top/slurm/profiles" && echo *.env | sed 's/\.env//g') ]]
}

base="srun --mpi=pmix --kill-on-bad-exit=1"
all="$base --ntasks-per-node=4 --gpus-per-node=4"
check "one rank for each GPU" chooses "$all -N2 prog a 'b c'" -N2 prog a "b c"
check "GPUs of a partition" chooses "$all -p urgent -N1 prog" -p urgent -N1 prog
check "a number of ranks" chooses "$base --gpus-per-node=4 -n4 prog" -n4 prog
check "no GPUs" chooses "$base -N2 -n8 prog" --no-gpus -N2 -n8 prog
check "the user's own --mpi" chooses "srun --kill-on-bad-exit=1 --mpi=pmix_v4 -n1" \
    --no-gpus --mpi=pmix_v4 -n1 prog
check "the user's own --kill-on-bad-exit" chooses "srun --mpi=pmix --kill-on-bad-exit=0 -n1" \
    --no-gpus --kill-on-bad-exit=0 -n1 prog
check "GPUs of a job" gpus_of_a_job --gpus-per-node=4
check "GPUs of a job with --gres" gpus_of_a_job --gres=gpu:4
check "a binding inherited from the job is undone" binding_of_a_job
check "the PMIx deadline is Slurm's own" chooses "SLURM_PMIX_TIMEOUT=300" --no-gpus -n1 prog
GS_BOOT_TIMEOUT_MS=600000 check "the PMIx deadline is later than ours" \
    chooses "SLURM_PMIX_TIMEOUT=660" --no-gpus -n1 prog
check "yields when oversubscribed" chooses "OMPI_MCA_mpi_yield_when_idle=1" \
    --no-gpus -N1 -n17 --overcommit prog
check "runs" runs
check "hands on input, output, arguments and status" hands_on
check "reports where the ranks were" reports
check "reports a stopped rank" reports_a_stopped_rank
check "keeps to the user's GS_RECORD_DIR" takes_the_users_folder
check "ends on TERM" ends_on TERM
check "ends on INT" ends_on INT
check "a profile, and the user's own value" profile
check "a damaged profile" bad_profile
check "profiles are listed" lists_profiles
check "an unknown profile" refuses "no profile 'nowhere'" --profile nowhere
check "no program" no_program
check "too many ranks" refuses "5 ranks on a node with 4 GPUs" -N2 --ntasks-per-node=5
check "partial use" chooses "--ntasks-per-node=5" --partial -N2 --ntasks-per-node=5 prog
GS_TRANSPORT=mpi check "more ranks on hosts" chooses "-n8" -N1 -n8 prog
check "GPUs hidden by --gpus-per-task" refuses "hides from each rank" --gpus-per-task=1 -n4
check "GPUs hidden by --gpu-bind" refuses "hides from each rank" --gpu-bind=single:1 -n4
check "--mpi=none" refuses "cannot find each other" --mpi=none -n4
check "--mpi=pmi2" refuses "cannot find each other" --mpi=pmi2 -n4
GS_BOOT=mpi check "--mpi=pmi2 when MPI finds the ranks" chooses "--mpi=pmi2" --mpi=pmi2 -n4 prog
SLURM_PMIX_TIMEOUT=100 check "a PMIx deadline before ours" refuses "is not later than" -n4
GS_BOOT_TIMEOUT_MS=soon check "an odd deadline" refuses "is not a whole number" -n4
check "an option in two words" refuses "write --ntasks=VALUE" --ntasks 4
check "a job with too few CPUs" too_few_cpus
check "no PMIx plugin" without_plugin
check "no Slurm" without_slurm
finish
