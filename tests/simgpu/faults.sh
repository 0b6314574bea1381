#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# faults.sh - every function of CUDA and NCCL that the library calls fails, stalls or fails late
# on one rank, in the create and later: all ranks end, in time, with the same status, and nothing
# is leaked or misused. GS_TEST_LONG: each call, and more ranks.
#
# The same status means:
# - The rank where the fault happens ends with that of the failure, and its text names the call.
#   The others end with the same one and name the rank: in the create by the bootstrap, later by
#   the flight records that they can read, those of their node. Ranks of other nodes have what
#   NCCL tells them, GS_ERR_TRANSPORT, or GS_ERR_TIMEOUT.
# - A call that no other rank takes part in (memory, copies, waits) fails on its rank alone. The
#   program then aborts, so the others end with GS_ERR_STATE.
# - What only gives something back (destroy, free) is not a failure of the communicator. Then, and
#   when work of the GPU itself never ends, memory is left to the end of the process, as CUDA
#   would wait for ever; the simulation is told not to call this a leak.
# - Where ranks share a GPU (SIM_GPUS=1), one that cannot take part in sums there has all ranks
#   make them by way of the hosts: that is no failure, but a warning names the rank and the call,
#   or a rank that waited in vain. Sums are looked at, in either way.
# A call of CUDA that does not return leaves its rank where it is, so only calls that queue stall.

: "${top_srcdir:?run me by make check}" "${top_builddir:?}"
launch=$top_srcdir/tests/launch.sh
simulated=$top_builddir/tests/simgpu/lib
program=tests/simgpu/faulty_gpu.mt
soon=10000   # ms in which a rank must know of what can be known at once
deadline=3000 # ms for what stalls
((${GS_TEST_SECONDS:-60} <= 120)) || deadline=9000 # a slow build
margin=7000  # ms: 2 s of the create, 1 s of a GPU that does not end, a crowded machine
parallel=3
failures=0 runs=0
room=$(mktemp -d "${TMPDIR:-/tmp}/gs-simfaults.XXXXXX") || exit 99
trap 'wait; rm -rf "$room"' EXIT

unset "${!SIM_@}" "${!NCCL_@}" CUDA_VISIBLE_DEVICES
export GS_TRANSPORT=nccl SIM_GPUS=16
export LD_LIBRARY_PATH=$simulated${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export OMPI_MCA_orte_allowed_exit_without_sync=1 # after a failure PMIx is not finalized

# What queues, and so can stall or fail when its turn comes.
queueing=" cudaMemcpyAsync cudaMemsetAsync cudaLaunchKernel cudaEventRecord cudaStreamWaitEvent
 ncclAllReduce ncclBroadcast ncclAllGather ncclReduce ncclReduceScatter ncclSend ncclRecv
 ncclGroupEnd ncclCommInitRankConfig ncclCommSplit ncclCommFinalize cuStreamWaitValue32 "
# What only gives back, or does no harm.
harmless=" cudaEventDestroy cudaFree cudaFreeHost cudaStreamDestroy ncclCommDestroy ncclCommAbort
 cudaHostUnregister cudaIpcCloseMemHandle cudaThreadExchangeStreamCaptureMode cudaSetDevice
 cudaGetDevice "
# How often these are called depends on time.
polling=" cudaEventQuery ncclCommGetAsyncError cudaGetDevice cudaSetDevice "
# Called by the simulated NCCL, not by the library.
foreign=" cudaStreamGetDevice "
several='an alltoallv\|messages'
# What texts say instead of the function's name.
declare -A said=([cudaEventCreateWithFlags]=cudaEventCreate [cudaLaunchKernel]='launch of'
    [cudaDeviceGetStreamPriorityRange]=cudaStreamCreateWithPriority [cudaGetDevice]=cudaSetDevice
    [cudaFree]='cuda\(Free\|SetDevice\)' [ncclCommInitRankConfig]=ncclCommInitRank
    [ncclSend]=$several [ncclRecv]=$several [ncclGroupEnd]=$several
    [cudaGetDeviceCount]='no GPU' [cudaGetDeviceProperties]=cuDeviceGetUuid
    [ncclCommGetAsyncError]=.)
local_steps=' alloc copy-in set copy-out wait-thread wait free '

fail () { # WHAT OUTPUT
    echo "FAIL: $1"
    sed 's/^/    /' "$2"
    failures=$((failures + 1))
}

one_of () { # NAME LIST
    [[ $2 = *[[:space:]]"$1"[[:space:]]* ]]
}

# count LAYOUT [STEP]: calls of each function by rank, in the run up to a step: calls[RANK NAME].
declare -A calls
count () {
    local file name number
    calls=()
    FAULTY_COUNT=$room/count. "$launch" --live --layout "$1" "$program" "${@:2}" \
        >"$room/clean" 2>&1 \
        || { fail "a run without faults on $1" "$room/clean"; exit 1; }
    for file in "$room"/count.*; do
        while read -r name number _; do
            calls[${file##*.} $name]=$number
        done <"$file"
        rm "$file"
    done
}

# start LAYOUT FAULT GUILTY [VARIABLE=VALUE...]: launches, in the background, and notes how.
start () {
    local layout=$1 fault=$2 guilty=$3 time=20000 leaks=1 name=${2%%[#@=]*}
    shift 3

    [[ $fault != *=stall* ]] || { time=$deadline leaks=0; }
    one_of "${fault%%[#@=]*}" "$harmless" && leaks=0
    [[ $fault != *,* ]] || leaks=0
    [[ $* != *APART* ]] || time=$deadline
    ((SIM_GPUS != 1)) || set -- "$@" SIM_GPUS=1
    # A copy to memory that is not pinned waits inside CUDA, for ever if a GPU's work never ends.
    [[ $fault != cu*=stall ]] || set -- "$@" FAULTY_SKIP=copy-out
    runs=$((runs + 1))
    echo "$layout $fault $guilty $name $time $*" >"$room/$runs.what"
    (env SIM_FAULT="$fault" SIM_LEAKS=$leaks GS_TIMEOUT_MS=$time GS_BOOT_TIMEOUT_MS=$time \
        GS_TEST_SECONDS=60 "$@" "$launch" --live --layout "$layout" \
        ${wrapper:+"$wrapper"} "$program" >"$room/$runs.out" 2>&1
    echo $? >"$room/$runs.status") &
    (($(jobs -rp | wc -l) < parallel)) || wait -n
}

# Whether rank [rank] may end with [st] when the guilty one ended with [own] in [step].
may_end () { # RANK STATUS
    [[ $2 != "$own" ]] || return 0
    if ((rank == guilty)) || [[ $own = GS_OK ]]; then
        return 1
    fi
    one_of "$step" "$local_steps" && [[ $2 = GS_ERR_STATE ]] && return 0
    # One that has come to the end by then hears of it there.
    one_of "$step" "$local_steps" && [[ ${steps[rank]} = destroy && $2 = GS_ERR_TRANSPORT ]] \
        && return 0
    # A rank that has left may fail when nothing is wanted of it any more.
    [[ $fault = ncclCommFinalize* && $2 = GS_OK ]] && return 0
    # A group has ended on the others, which hear of it by what the program then does.
    [[ $fault = ncclCommFinalize* && $step = split && $2 = GS_ERR_STATE ]] && return 0
    # All have met, but where a rank could not call: what then fails on one concerns no other.
    [[ $step = destroy && $2 = GS_OK && ($name != ncclAllGather || $fault = *=*) ]] && return 0
    [[ $how = *APART* && $((rank / 2)) != $((guilty / 2)) ]] \
        && [[ $2 = GS_ERR_TRANSPORT || $2 = GS_ERR_TIMEOUT ]]
}

# Looks at one rank's last line.
judge_rank () {
    local text=${texts[rank]} st=${ends[rank]} bound=$soon

    may_end "$rank" "$st" \
        || fail "$what: rank $rank ends with $st, the guilty one with $own" "$out"
    ((time > soon)) || bound=$((time + margin))
    [[ $how != *RELAYOUT=before* ]] || bound=$((bound + time)) # it waits, and frees
    ((took[rank] <= bound)) || fail "$what: rank $rank took ${took[rank]} ms" "$out"
    [[ $st != GS_OK && $fault != *,* && $fault != *=stall* ]] || return
    if ((rank != guilty)) && [[ $how != *APART* ]]; then
        [[ $text = *"rank $guilty "*"(host "* ]] || fail "$what: rank $rank names nobody" "$out"
    elif ((rank == guilty)) && [[ $fault != *=late* ]]; then
        grep -q "${said[$name]:-$name}" <<<"$text" || fail "$what: the text names no call" "$out"
    fi
}

# Whether ranks that share a GPU have said that their sums do not go there, because of the fault.
goes_by_hosts () {
    local why="rank $guilty: .*${said[$name]:-$name}"

    [[ $fault != *=late ]] || why="rank $guilty: "
    [[ $fault != *=stall ]] || why='rank [0-9]*: .*\(in vain\|deadline\)'
    [[ $how = *SIM_GPUS=1* ]] && grep -q "sums go by way of the hosts: $why" "$out"
}

# Looks at a launch that has ended.
judge () { # NUMBER
    local layout fault guilty name time how out=$room/$1.out own step what ranks rank line
    local ends=() texts=() took=() steps=()

    read -r layout fault guilty name time how <"$room/$1.what"
    local ending='^rank ([0-9]+) ended in ([a-z-]+) after ([0-9]+) ms with (GS_[A-Z_]+): ?(.*)'
    what="SIM_FAULT=$fault on $layout${how:+ $how}"
    ranks=$((${layout/x/*}))
    if [[ $(<"$room/$1.status") != 0 ||
        $(grep -c '^rank [0-9]* left after' "$out") != "$ranks" ]]; then
        fail "$what: exit status $(<"$room/$1.status"), or not all ranks left" "$out"
        return
    fi
    while IFS='|' read -r rank line st ms text; do
        ends[rank]=$st took[rank]=$ms texts[rank]=$text steps[rank]=$line
        ((rank != guilty)) || step=$line
    done < <(sed -nE "s/$ending/\\1|\\2|\\4|\\3|\\5/p" "$out")
    own=${ends[guilty]}
    for ((rank = 0; rank < ranks; rank++)); do
        judge_rank
    done
    one_of "$name" "$polling" && return
    ! grep -q '^simgpu: SIM_FAULT: .* did not come' "$out" \
        || fail "$what: it did not come to this" "$out"
    [[ $own != GS_OK ]] || one_of "$name" "$harmless" || goes_by_hosts \
        || fail "$what: nobody noticed" "$out"
}

# The calls of [name] on rank [guilty] that are tried: the first one, the first after the create,
# the last; all of them in the long test.
pick () {
    local total=${all["$guilty $name"]:-0} after=$((${in_create["$guilty $name"]:-0} + 1))

    # Where ranks share a GPU the last are those that three frees wait by, which need not work.
    [[ $name != cudaEventRecord || $SIM_GPUS != 1 ]] || ((total -= 3))
    ((total)) || return
    if [[ -n ${GS_TEST_LONG-} ]] && ! one_of "$name" "$polling"; then
        seq $((total < 80 ? total : 80))
        return
    fi
    echo 1
    ((after == 1 || after > total)) || echo "$after"
    ((after >= total)) || one_of "$name" "$polling" || echo "$total"
}

# Copies of memory that is not pinned do not return when they stall: the last, and some of the
# first steps, whose number goes with what the create copies: nothing where ranks share a GPU.
waits_in_cuda () {
    local which="$number $name"

    [[ $name = cudaMemcpyAsync ]] || return
    ((n == ${all[$which]})) && return
    ((n <= ${before_calls[$which]:-0})) || return
    [[ -n ${FAULTY_SUM-} || (-n ${GS_TEST_LONG-} && $n != 1) ]]
}

# try LAYOUT GUILTY [NAME...]: faults of all functions, or of these, on one rank.
try () {
    local layout=$1 guilty=$2 name n number names
    local -A all in_create before_calls
    shift 2

    count "$layout" alloc
    for n in "${!calls[@]}"; do in_create[$n]=${calls[$n]}; done
    count "$layout" average-host
    for n in "${!calls[@]}"; do before_calls[$n]=${calls[$n]}; done
    count "$layout"
    for n in "${!calls[@]}"; do all[$n]=${calls[$n]}; done
    names=("$@")
    (($#)) || mapfile -t names < <(printf '%s\n' "${!all[@]}" | cut -d ' ' -f 2 | sort -u)
    for name in "${names[@]}"; do
        one_of "$name" "$foreign" && continue
        number=$guilty # some do what others do not
        [[ -n ${all["$number $name"]-} ]] || number=0
        [[ -n ${all["$number $name"]-} ]] || continue
        for n in $(guilty=$number pick); do
            start "$layout" "$name#$n@$number" "$number"
            one_of "$name" "$queueing" || continue
            start "$layout" "$name#$n@$number=late" "$number"
            waits_in_cuda \
                || [[ -z ${GS_TEST_LONG-} && $n = 1 && $name != *CommInit* && $name != *Mem* ]] \
                || start "$layout" "$name#$n@$number=stall" "$number"
        done
    done
}

# Ranks that share a GPU, of one node and of two, each with one: what they do there, and by way of
# the hosts.
try_sharing () {
    local -x SIM_GPUS=1 GS_DEBUG=warn FAULTY_SUM=1
    local fault

    if [[ -n ${GS_TEST_LONG-} ]]; then
        try 2 1
        try 2 0
        try 2x2 2
        return
    fi
    for fault in cudaGetDeviceProperties@1 cudaHostGetDevicePointer@1 cudaHostRegister@1 \
        cudaIpcGetMemHandle@0 cudaIpcOpenMemHandle@1 cudaIpcCloseMemHandle@1; do
        start 2 "$fault" "${fault#*@}"
    done
    try 2 1 cudaMalloc cudaEventRecord cudaLaunchKernel cuStreamWaitValue32
    count 2x2
    for fault in ncclCommInitRankConfig@2 ncclAllReduce@2 ncclAllReduce@2=late \
        ncclAllReduce#2@2=stall \
        cudaStreamWaitEvent#${calls['2 cudaStreamWaitEvent']}@2=stall; do # in the destroy
        start 2x2 "$fault" 2
    done
}

# Every function that the library can call was called.
check_complete () {
    local name
    count 2
    for name in $(nm -D --undefined-only "$top_builddir"/.libs/libgradsync.so \
        | sed -nE 's/^.* U (cuda[A-Za-z]+)(@.*)?$/\1/p'); do
        case $name in
        *GetLastError | *GetErrorString | *GetErrorName | cudaDriverGetVersion) ;; # cannot fail
        cudaEventElapsedTime) ;; # of reducers, which it has with FAULTY_RELAYOUT alone
        *) [[ " ${!calls[*]} " = *" $name "* ]] || fail "$name is not called" "$room/clean" ;;
        esac
    done
    while read -r name; do
        case $name in
        GetVersion | GetErrorString | GetLastError) ;; # have no faults
        CommAbort) ;;                                  # after others, below
        *)
            [[ " ${!calls[*]} " = *" nccl$name "* ]] \
                || fail "nccl$name is not called" "$room/clean"
            ;;
        esac
    done < <(sed -nE 's/^    X \(([A-Za-z]+)\).*/\1/p' "$top_srcdir/src/transport/coll_nccl.h")
}

# Each call of some functions in gs_reducer_relayout fails on one rank.
try_relayout () {
    local name n
    local -A before
    FAULTY_RELAYOUT=before count 2 copy-in
    for n in "${!calls[@]}"; do before[$n]=${calls[$n]}; done
    for name in cudaMemcpyAsync cudaEventRecord ncclAllReduce; do # on the reducer's stream
        start 2 "$name#${before["1 $name"]}@1=stall" 1 FAULTY_RELAYOUT=before
    done
    FAULTY_RELAYOUT=alone count 2 copy-in
    for name in cudaMalloc cudaMemsetAsync cudaMemcpyAsync; do
        n=${before["1 $name"]}
        ((calls["1 $name"] > n)) || fail "no $name in a relayout" "$room/clean"
        while ((++n <= calls["1 $name"])); do
            start 2 "$name#$n@1" 1 FAULTY_RELAYOUT=yes
        done
    done
}

if [[ ! -x $program ]]; then
    echo "skip: no $program in this build"
    exit 77
fi
"$launch" --live --layout 2x2 "$program" create >"$room/clean" 2>&1
status=$?
((status != 77)) || { echo "skip: $(tail -n 1 "$room/clean")"; exit 77; }

check_complete
try 2 1
start 2 ncclAllReduce@1,ncclCommAbort@1 1
start 2 cudaEventRecord@1=late,cudaEventQuery@1=slow 1 # seen by the thread that watches
start 2 cudaLaunchKernel@1=late,ncclCommAbort@1 1
start 2 ncclReduceScatter@1=stall 1 FAULTY_SLOT=1 GS_CHECK=collective
start 2 ncclReduceScatter@1 1 FAULTY_SLOT=1 GS_CHECK=collective
try_relayout
try_sharing
GS_AVG=exact try 2x2 2 cudaMalloc cudaEventRecord ncclCommInitRankConfig ncclGroupEnd
for fault in cudaMalloc#2@2 ncclCommInitRankConfig@2 ncclAllGather#3@2 cudaLaunchKernel@2=late; do
    wrapper=$top_srcdir/tests/apart start 2x2 $fault 2 APART=1
done
if [[ -n ${GS_TEST_LONG-} ]]; then
    try 2 0
    try 2x2 3
    GS_AVG=exact try 3 1
fi
wait
for ((number = 1; number <= runs; number++)); do
    judge "$number"
done
((failures)) || echo "$runs launches with a fault"
exit $((failures > 0))
