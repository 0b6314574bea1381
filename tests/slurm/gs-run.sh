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
    sees_all -N2 "$1" --ntasks-per-node=4 || return
    GS_GPU_SHARING=never salloc --quiet -N2 --exclusive "$1" gs-run --ntasks-per-node=5 \
        touch started >out 2>&1
    [[ $? = 2 && ! -e started ]] && says "5 ranks on a node with 4 GPUs"
}

sees_all () { # SALLOC-OPTION...: every rank of such a job sees its node's GPUs
    # shellcheck disable=SC2016 # expanded by the ranks
    salloc --quiet "$@" gs-run sh -c 'echo "${CUDA_VISIBLE_DEVICES-unset}"' >out 2>&1
    [[ $(sort out | uniq -c | xargs) =~ ^[48]" 0,1,2,3"$ ]]
}

binding_is_shown () {
    SLURM_GPU_BIND=single:1 SLURM_TRES_BIND=gres/gpu:per_task:1 SLURM_TRES_PER_TASK=gres:gpu:1 \
        chooses "env -u SLURM_GPU_BIND -u SLURM_TRES_BIND -u SLURM_TRES_PER_TASK" -N1 prog
}

# As in a job whose first node is the smaller one.
node_with_most_cpus () {
    SLURM_JOB_ID=1 SLURM_JOB_NUM_NODES=2 SLURM_NTASKS=8 SLURM_TASKS_PER_NODE=1,7 \
        SLURM_JOB_CPUS_PER_NODE=1,7 chooses "srun" --no-gpus prog
}

shares () { # more ranks than GPUs, where they say so
    chooses "--ntasks-per-node=5" -N2 --ntasks-per-node=5 prog \
        && says "gs-run: 5 ranks on a node with 4 GPUs share them: gs-info --layout 2x5x4 tells" \
        || return
    GS_DEVICE=host chooses "--ntasks-per-node=5" -N2 --ntasks-per-node=5 prog \
        && ! grep "share them" out
}

# places EXPECTED COMMAND...: the ranks on each node, as "n0 4 n1 4".
places () {
    local expected=$1
    shift
    # shellcheck disable=SC2016 # expanded by the ranks
    "$@" sh -c 'echo "$SLURMD_NODENAME"' >out 2>&1 || return
    [[ $(grep -v '^gs-run:' out | sort | uniq -c | awk '{ print $2, $1 }' | xargs) \
        = "$expected" ]]
}

in_job () { # SALLOC-OPTIONS COMMAND...
    local options
    read -ra options <<<"$1"
    shift
    salloc --quiet "${options[@]}" "$@"
}

layout_of_a_job () { # 7 ranks and 1
    in_job "-N2 -n8 --gpus-per-node=4" gs-run touch started >out 2>&1
    [[ $? = 2 && ! -e started ]] && says "the job has room for 7,1 ranks on its nodes" \
        "and a node has 4 GPUs: submit with --ntasks-per-node=4" || return
    in_job "-N2 -n8 --gpus-per-node=4" gs-run --ntasks-per-node=4 touch started >out 2>&1
    [[ $? = 2 && ! -e started ]] && says "room for 7,1 ranks" || return
    GS_TRANSPORT=mpi places "n0 7 n1 1" in_job "-N2 -n8 --gpus-per-node=4" gs-run
}

environment_arrives () { # as sbatch --export=NONE leaves it
    # shellcheck disable=SC2016 # expanded by the rank
    SLURM_EXPORT_ENV=NONE gs-run --no-gpus -n1 sh -c 'echo "${GS_RECORD_DIR-none}"' >out 2>&1 \
        && says "$room/gs-records."
}

no_environment () {
    printf 'NCCL_ONE=1\n' >site.env
    refuses "--export=NONE keeps the settings of --profile" --profile ./site.env --export=NONE \
        && chooses "keeps gs-run's settings" --no-gpus -n1 --export=NONE prog \
        && chooses "srun --mpi=pmix --kill-on-bad-exit=1 --export=ALL,A=1 -n1 prog" \
            --no-gpus --export=ALL,A=1 -n1 prog
}

closed_input () {
    gs-run --no-gpus -n1 sh -c 'cat; echo done' <&- >out 2>&1 && says "done"
}

inside_a_step () {
    SLURM_STEP_ID=7 chooses "this is inside step 7" --no-gpus -n1 prog
}

keeps_own_device () {
    GS_DEVICE=auto chooses "srun" --no-gpus -n1 prog && ! grep GS_DEVICE out || return
    GS_TRANSPORT=mpi chooses "srun" --no-gpus -n1 prog && ! grep GS_DEVICE out || return
    chooses "srun" --no-gpus --gres=gpu:1 -n1 prog && ! grep GS_DEVICE out
}

het_job () {
    refuses "--het-group=0,1: gs-run chooses for all ranks alike" --het-group=0,1 \
        && says "templates/partial.sbatch"
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

# The first to end has srun end the others, maybe inside their calls; Slurm wakes the stopped
# rank for that.
reports_a_stopped_rank () {
    rm -rf gs-records.*
    GS_TIMEOUT_MS=2000 gs-run -N2 --ntasks-per-node=2 "$act" 50 20 stop 3 5 >out 2>&1 && return 1
    says "1 of 4 ranks did not come: rank 3 (host n1)" || return
    # Slurm lets it go on (SIGCONT) before it ends it, and all that it waits for is there.
    grep -qE 'rank 3 on n1: (after allreduce_avg #5 \(GS_OK\)|(in|after) allreduce_avg #6)' out \
        || return
    grep -q 'rank [0-2] on n[01]: after allreduce_avg #6 (GS_ERR_TIMEOUT)' out
}

takes_the_users_folder () { # and does not mix its runs
    mkdir -p mine
    GS_RECORD_DIR=$room/mine gs-run -N1 -n3 "$act" 50 20 kill 2 4 >out 2>&1 && return 1
    says "rank 2 on n" ": after allreduce_avg #4" || return
    GS_RECORD_DIR=mine gs-run -N1 -n2 "$act" 50 20 kill 1 5 >out 2>&1 && return 1
    says "rank 1 on n" ": after allreduce_avg #5" || return
    ! grep "rank 2" out && [[ $(echo mine/gs-records.*/*.ring | wc -w) = 5 ]]
}

# Ranks that make two communicators of one name and end with STATUS, without ending them.
leave () { # STATUS
    gs-run -N1 -n2 python3 -c "
import ctypes, os, sys
gs = ctypes.CDLL(sys.argv[1])
for _ in range(2):
    if gs.gs_comm_create(None, ctypes.byref(ctypes.c_void_p())):
        os._exit(9)
os._exit($1)" "$build/.libs/libgradsync.so" >out 2>&1
}

reports_communicators_apart () {
    leave 3
    says "gs-run: communicator world.0" "gs-run: communicator world.1" \
        && (($(grep -c "not in any operation yet" out) == 4))
}

reports_ranks_that_left () {
    leave 0 || return
    says "some ranks did not end their communicators" "rank 1 on n" ": not in any operation yet"
}

keeps_records_quietly () {
    GS_RECORD_KEEP=1 gs-run -N1 -n1 "$act" >out 2>&1 \
        && says "the flight records are in $room/gs-records." && ! grep "where the ranks" out
}

typed () { # KEYS on the terminal of gs-run
    # shellcheck disable=SC2059 # an escape
    (printf "$1" >&4) # a process of its own, for the terminal may be gone
}

one_interrupt () { # the terminal's, which it sends to srun too; a second one ends the step
    local pid status=1

    rm -f began
    mkfifo keys
    env --default-signal=INT script -qefc \
        "gs-run --no-gpus -N1 -n1 sh -c 'touch began; exec sleep 100'" typescript \
        <keys >/dev/null &
    pid=$!
    exec 4>keys
    if await 30 test -e began; then
        typed '\003'
        await 20 grep -q "one more within 1 sec" typescript && status=0
        sleep 1.5 # after which one more is a first one
        ! grep "forcing job termination" typescript || status=1
        typed '\003'
        sleep 0.3
        typed '\003'
    fi
    exec 4>&-
    wait "$pid"
    cat typescript >out
    ((status == 0)) && await 20 no_job
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
    local tool

    PATH=$room/prefix/bin:/nonexistent /bin/sh "$room/prefix/bin/gs-run" true >out 2>&1
    [[ $? = 2 ]] && says "srun is not in PATH" "mpirun" || return
    mkdir -p without
    for tool in awk dirname grep head mktemp readlink sed sort tail tr; do
        ln -sf "$(command -v "$tool")" without
    done
    PATH=$room/without /bin/sh "$room/prefix/bin/gs-run" --dry-run -N2 -n8 true >out 2>&1 \
        && says " srun --mpi=pmix " " -N2 -n8 true" "srun is not in PATH here"
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

two_words () { # as the site's own srun has them
    local option refused=" gpus-per-task ntasks-per-gpu tres-per-task het-group profile bcast "

    srun --help | sed -nE 's/^ *(-., *)?--([a-z0-9-]+)=.*/\2/p' | sort -u >options
    (($(wc -l <options) > 50)) || return
    while read -r option; do
        [[ $refused = *" $option "* ]] && continue
        gs-run --dry-run --no-gpus --mpi=pmix --"$option" 1 prog >out 2>&1
        grep -qE -- "--$option 1 prog\$|--mpi=1|gres" out || return
    done <options
}

lacks_value () {
    gs-run --dry-run --time >out 2>&1
    [[ $? = 2 ]] && says "--time needs a value"
}

# shellcheck disable=SC2016 # expanded in there
from_read_only_folder () {
    mkdir -p still
    unshare --mount sh -c 'mount -t tmpfs -o ro none still && cd still && exec gs-run "$@"' \
        sh --no-gpus -N1 -n2 "$act" >out 2>&1 || return
    says "$room/still cannot be written: the flight records stay on each node" "rank 1 of 2" \
        && (($(wc -l <out) == 3))
}

# shellcheck disable=SC2016 # expanded on the nodes
own_folder_of_each_node () { # which is on none but the head's
    local there="-w n0,n1 -N2 -n2" status

    # shellcheck disable=SC2086 # words
    GS_RECORD_DIR=/dev/shm gs-run --no-gpus $there "$act" >out 2>&1 || return
    says "rank 1 of 2 on n1" && ! grep "cannot make" out || return
    await 70 all_idle
    # shellcheck disable=SC2086
    srun $there sh -c '! ls -d /dev/shm/gs-records.*' >out 2>&1 || return
    # shellcheck disable=SC2086
    GS_RECORD_DIR=/dev/shm gs-run --no-gpus $there "$act" 50 20 kill 1 5 >out 2>&1 && return 1
    says "no rank left a flight record in /dev/shm/gs-records." || return
    await 70 all_idle
    # shellcheck disable=SC2086
    srun $there sh -c 'ls /dev/shm/gs-records.*/*.ring; rm -r /dev/shm/gs-records.*' >out 2>&1
    status=$?
    ((status == 0)) && says "world.0-r1.ring" "world.0-r0.ring"
}

base="srun --mpi=pmix --kill-on-bad-exit=1"
all="$base --ntasks-per-node=4 --gpus-per-node=4"
core "one rank for each GPU" chooses "$all -N2 prog a 'b c'" -N2 prog a "b c"
check "GPUs of a partition" chooses "$all -p urgent -N1 prog" -p urgent -N1 prog
check "a number of ranks" chooses "$all -n4 prog" -n4 prog
core "a number of ranks and nodes" places "n0 4 n1 4" gs-run -N2 -n8
check "fewer than all GPUs" places "n0 3 n1 3" gs-run -N2 -n6
check "nodes as needed" places "n0 4 n1 3" gs-run -n7
check "an uneven number of ranks" refuses "cannot be shared evenly by 2 nodes" -N2 -n7
check "a job's layout by CPUs" layout_of_a_job
job="-N2 --ntasks-per-node=4 --gpus-per-node=4"
check "one node of a job" places "n0 4" in_job "$job" gs-run -N1
check "one node of a job with --gpus" places "n0 4" \
    in_job "-N2 --ntasks-per-node=4 -G8" gs-run -N1
check "fewer ranks than the job has" places "n0 2 n1 2" in_job "$job" gs-run --ntasks-per-node=2
check "all GPUs of a job without ranks" places "n0 4 n1 4" \
    in_job "-N2 --exclusive --gpus-per-node=4" gs-run
check "fewer ranks than there is room for" places "n0 4 n1 4" \
    in_job "-N2 -n15 --exclusive --gpus-per-node=4" gs-run -n8
check "fewer ranks of each node than there is room for" places "n0 4 n1 4" \
    in_job "-N2 -n15 --exclusive --gpus-per-node=4" gs-run --ntasks-per-node=4
check "one node of a job by CPUs" places "n0 4" in_job "-N2 -n8 --gpus-per-node=4" gs-run -N1
check "one node of a job, no GPUs" places "n0 4" \
    in_job "-N2 --ntasks-per-node=4" gs-run --no-gpus -N1
check "no GPUs" chooses "$base -N2 -n8 prog" --no-gpus -N2 -n8 prog
check "no GPUs, for the program too" chooses " GS_DEVICE=host " --no-gpus -n1 prog
check "no GPUs, and the user's own settings" keeps_own_device
check "the user's own --mpi" chooses "srun --kill-on-bad-exit=1 --mpi=pmix_v4 -n1" \
    --no-gpus --mpi=pmix_v4 -n1 prog
check "a type of PMIx that is newer" chooses "srun --kill-on-bad-exit=1 --mpi pmix_v5 -n1" \
    --no-gpus --mpi pmix_v5 -n1 prog
check "the user's own --kill-on-bad-exit" chooses "srun --mpi=pmix --kill-on-bad-exit=0 -n1" \
    --no-gpus --kill-on-bad-exit=0 -n1 prog
check "GPUs of a job" gpus_of_a_job --gpus-per-node=4
check "GPUs of a job with --gres" gpus_of_a_job --gres=gpu:4
check "GPUs of a job with --gpus" gpus_of_a_job --gpus=8
check "GPUs of a job with --gres of more" gpus_of_a_job --gres=gpu:4,craynetwork:0
check "a job's --gpus-per-task is undone" sees_all -N1 -n4 --gpus-per-task=1
check "a job's --ntasks-per-gpu is undone" sees_all -N1 -n4 --gpus=4 --ntasks-per-gpu=1
check "a job's --gpu-bind is undone" sees_all -N1 -n4 --gpus-per-node=4 --gpu-bind=single:1
check "what is undone is shown" binding_is_shown
GS_GPU_SHARING=never check "--gres with more than GPUs" \
    refuses "3 ranks on a node with 2 GPUs" -N1 -n3 --gres=gpu:a100:2,nvme:1
GS_GPU_SHARING=never check "--gres with GPUs behind" \
    refuses "3 ranks on a node with 2 GPUs" -N1 -n3 --gres=nvme:1,gpu:2
GS_GPU_SHARING=never check "--gpus" refuses "3 ranks on a node with 2 GPUs" -N1 -n3 -G 2
check "the environment reaches the program" environment_arrives
check "an environment that is kept back" no_environment
check "the PMIx deadline is Slurm's own" chooses "SLURM_PMIX_TIMEOUT=300" --no-gpus -n1 prog
GS_BOOT_TIMEOUT_MS=600000 check "the PMIx deadline is later than ours" \
    chooses "SLURM_PMIX_TIMEOUT=660" --no-gpus -n1 prog
check "yields when oversubscribed" chooses "OMPI_MCA_mpi_yield_when_idle=1" \
    --no-gpus -N1 -n17 --overcommit prog
core "runs" runs
check "hands on input, output, arguments and status" hands_on
core "reports where the ranks were" reports
check "reports a stopped rank" reports_a_stopped_rank
check "keeps to the user's GS_RECORD_DIR" takes_the_users_folder
check "reports communicators of one name" reports_communicators_apart
check "reports ranks that left with status 0" reports_ranks_that_left
check "keeps records" keeps_records_quietly
check "goes on after one Ctrl-C" one_interrupt
core "starts in a read-only folder" from_read_only_folder
core "records in a folder of each node" own_folder_of_each_node
check "runs with its input closed" closed_input
check "ends on TERM" ends_on TERM
check "ends on INT" ends_on INT
check "a profile, and the user's own value" profile
check "a damaged profile" bad_profile
check "profiles are listed" lists_profiles
check "an unknown profile" refuses "no profile 'nowhere'" --profile nowhere
check "no program" no_program
GS_GPU_SHARING=never check "too many ranks" refuses "5 ranks on a node with 4 GPUs" \
    -N2 --ntasks-per-node=5
check "more ranks than GPUs" shares
check "partial use" chooses "--ntasks-per-node=5" --partial -N2 --ntasks-per-node=5 prog
GS_TRANSPORT=mpi check "more ranks on hosts" chooses "-n8" -N1 -n8 prog
GS_DEVICE=host check "more ranks without GPUs" chooses "-n8" -N1 -n8 prog
GS_DEVICE=2 check "one GPU for all ranks" refuses "GS_DEVICE=2 gives all ranks of a node" -N2
GS_DEVICE=2 check "one GPU for one rank" chooses "--ntasks-per-node=1" -N2 \
    --ntasks-per-node=1 prog
check "GPUs hidden by --gpus-per-task" refuses "hides from each rank" --gpus-per-task=1 -n4
check "GPUs hidden by --ntasks-per-gpu" refuses "hides from each rank" --ntasks-per-gpu=1 -n4
check "GPUs hidden by --tres-per-task" refuses "hides from each rank" --tres-per-task=gres:gpu:1
check "GPUs hidden by --gpu-bind" refuses "hides from each rank" --gpu-bind=single:1 -n4
check "--mpi=none" refuses "cannot find each other" --mpi=none -n4
check "--mpi=pmi2" refuses "cannot find each other" --mpi=pmi2 -n4
GS_BOOT=mpi check "--mpi=pmi2 when MPI finds the ranks" chooses "--mpi=pmi2" --mpi=pmi2 -n4 prog
SLURM_PMIX_TIMEOUT=100 check "a PMIx deadline before ours" refuses "is not later than" -n4
GS_BOOT_TIMEOUT_MS=soon check "an odd deadline" refuses "is not a whole number" -n4
check "options in two words" chooses "--constraint a100 --ntasks 4 -J name prog -n x" \
    --constraint a100 --ntasks 4 -J name prog -n x
check "every option of srun --help in two words" two_words
GS_GPU_SHARING=never check "an option in two words is read" \
    refuses "5 ranks on a node with 4 GPUs" --ntasks-per-node 5 -N2
check "an option without its value" lacks_value
check "a flag of a plugin" chooses "--container-writable --ntasks 3 prog" \
    --container-writable --ntasks 3 prog
check "flags of srun" chooses "--label --bcast --exact --multi-prog file" \
    --label --bcast --exact --multi-prog file
check "an odd number of ranks" refuses "-n takes a whole number, 1 or more, not 'x'" -n x
check "an odd number for each node" refuses "--ntasks-per-node takes a whole number" \
    --ntasks-per-node=four
check "an odd number of nodes" refuses "-N: 'two' is not a number of nodes" -N two
check "a program like an option" chooses "-- --prog" --no-gpus -- --prog
check "parts of a heterogeneous job" het_job
check "inside a step" inside_a_step
check "a job with too few CPUs" too_few_cpus
check "a job whose nodes have different CPUs" node_with_most_cpus
check "no PMIx plugin" without_plugin
check "no Slurm" without_slurm
finish
