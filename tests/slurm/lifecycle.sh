#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2317 # check and the trap call the functions
#
# lifecycle.sh - a private cluster comes up, and goes without a trace however it ends.

# shellcheck source=check.sh
. "$(dirname "$0")/check.sh"

# Everything of a cluster, folders and processes, has the name of this folder in it.
TMPDIR=$room/clusters
mkdir "$TMPDIR"
export TMPDIR

# Ends what is left of clusters: a check that failed leaves none to the next, nor does this test.
take_down () {
    local folder id _

    for id in $(jobs -p); do
        kill "$id" 2>/dev/null && wait "$id"
    done
    for folder in "$TMPDIR"/gs-slurm.*; do
        [[ ! -e $folder/cluster.pid ]] || "$cluster" down "$folder"
    done
    left | while read -r id _; do
        [[ ! $id =~ ^[0-9]+$ ]] || kill -s KILL "$id" 2>/dev/null
    done
    rm -rf "$TMPDIR"/gs-slurm.*
}
trap 'take_down; rm -rf "$room"' EXIT

goes () { # COMMAND...
    local status

    "$@"
    status=$?
    take_down 2>&1
    return "$status"
}

left () { # what is left of all clusters that were started with this TMPDIR, but for this test
    local file id

    for file in /proc/[0-9]*/environ; do
        id=${file#/proc/}
        ! grep -qzs -- "SLURM_CONF=$TMPDIR" "$file" \
            || echo "${id%/*} $(tr '\0' ' ' <"/proc/${id%/*}/cmdline")"
    done
    ls -A "$TMPDIR"
}

none_left () {
    [[ -z $(left) ]]
}

nothing_left () {
    await 5 none_left || { left; return 1; }
}

runs_a_command () {
    # shellcheck disable=SC2016 # expanded by the tasks
    "$cluster" run --nodes 2 --gpus 3 -- srun -N2 --gpus-per-node=3 \
        sh -c 'echo "$(hostname) $CUDA_VISIBLE_DEVICES"' | sort >out || return
    printf 'n0 0,1,2\nn1 0,1,2\n' | diff - out && nothing_left
}

passes_on_failure () {
    "$cluster" run --nodes 1 -- sh -c 'exit 7'
    [[ $? = 7 ]] && nothing_left
}

# The command leaves jobs running that would never end, and daemons that left the session.
ends_by_signal () { # SIGNAL
    local pid

    rm -f started
    # A background job would ignore INT.
    env --default-signal=INT "$cluster" run --nodes 2 -- bash -c '
        sbatch -N1 -o /dev/null --wrap "setsid sleep 1000 & sleep 1000"
        srun -N2 sh -c "setsid sleep 1000 & touch started; trap \"\" TERM INT; sleep 1000"' &
    pid=$!
    await 60 test -e started || return
    kill -s "$1" "$pid"
    wait "$pid"
    [[ $? = $((128 + $(kill -l "$1"))) ]] || return
    # A killed script cannot remove its folder.
    [[ $1 != KILL ]] || { sleep 0.5; rm -r "$TMPDIR"/gs-slurm.*; }
    nothing_left
}

nodes_of () { # FOLDER
    # shellcheck disable=SC2016 # expanded in there
    "$cluster" run --in "$1" bash -c 'srun -N "$(sinfo -h -o %D -p normal)" hostname' \
        | sort | xargs
}

stays_until_down () {
    local one two

    one=$("$cluster" up --nodes 1) || return
    two=$("$cluster" up --nodes 2) || return # two at once
    [[ $(nodes_of "$one") = n0 && $(nodes_of "$two") = "n0 n1" ]] || return
    "$cluster" down "$one" || return
    [[ $(nodes_of "$two") = "n0 n1" ]] || return
    "$cluster" down "$two" && nothing_left
}

# Whether env has run: what this script starts in the background ignores SIGINT before.
takes_interrupts () { # PID
    local ignored

    ignored=$(sed -n 's/^SigIgn:\t//p' "/proc/$1/status" 2>/dev/null)
    ((!(16#${ignored:-0} & 2)))
}

# up that is interrupted before it is done: at the start, and while daemons come up.
up_interrupted () {
    local pid wait

    for wait in 0.02 0.1 0.2 0.3; do
        env --default-signal=INT "$cluster" up --nodes 2 >up.out &
        pid=$!
        until takes_interrupts "$pid"; do
            sleep 0.005
        done
        sleep "$wait"
        kill -s INT "$pid"
        wait "$pid"
        [[ $? = 130 && ! -s up.out ]] || { echo "not interrupted after $wait s" >out; return 1; }
        nothing_left || return
    done
}

used_while_up () {
    local folder

    folder=$("$cluster" up --nodes 1) || return
    [[ $(echo 'hostname; exit 3' | "$cluster" shell --in "$folder" 2>/dev/null; echo $?) = *3 ]] \
        && "$cluster" run --in "$folder" -- sh -c 'exit 4'
    [[ $? = 4 ]] || return
    "$cluster" down "$folder" && nothing_left
}

private_memory () {
    # shellcheck disable=SC2016 # expanded by the tasks
    "$cluster" run --nodes 2 -- srun -N2 -n4 sh -c '
        touch /dev/shm/gs-private.$(hostname); sleep 1; ls /dev/shm | wc -l' | sort -u >out
    [[ $(cat out) = 1 && ! -e /dev/shm/gs-private.n0 ]]
}

refuses () { # TEXT ARGUMENT...
    local text=$1
    shift
    "$cluster" "$@" >out 2>&1
    [[ $? = 99 ]] && grep -qF -- "$text" out
}

not_root () {
    (cd / && setpriv --reuid 65534 --regid 65534 --clear-groups \
        bash -s run true <"$cluster") >out 2>&1 # whose folder may be closed to others
    [[ $? = 77 ]] && grep -q 'needs root' out
}

need_cluster
check "runs a command on nodes with GPUs" goes runs_a_command
check "each node has its own /dev/shm" goes private_memory
check "passes on a failure" goes passes_on_failure
check "ends when interrupted" goes ends_by_signal INT
check "ends when terminated" goes ends_by_signal TERM
check "ends when killed" goes ends_by_signal KILL
check "two stay side by side until they are stopped" goes stays_until_down
check "up that is interrupted leaves nothing" goes up_interrupted
check "a shell and a command in a running one" goes used_while_up
check "up takes no --in" refuses "--in is for run and shell" up --in "$room"
TMPDIR="$TMPDIR/a b" check "a folder with a blank" refuses "has a blank" run true
check "down wants a cluster's folder" refuses "not the folder of a cluster" down "$room"
check "run wants a command" refuses "needs a command" run --nodes 2
check "a number of nodes" refuses "--nodes takes a number" up --nodes many
check "an unknown option" refuses "unknown option '--node'" up --node 3
check "skips without root" not_root
finish
